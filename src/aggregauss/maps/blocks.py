"""A model's predictions over rasters of any size, block by block: memory is bounded, and blocks leave no trace.

Of each block of the grid the covariates are read and aligned, small gaps filled in as they are for a fit, the complete
pixels predicted in batches of one fixed size, and the results written to their window of the GeoTIFFs. A pixel without
a value of any covariate is not part of the land and stays empty. Blocks run on threads or on a Dask cluster.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aggregauss.checks import warn, whole_number
from aggregauss.files import whole_file
from aggregauss.io.align import align, class_fractions
from aggregauss.io.covariates import by_name, with_rim
from aggregauss.io.gaps import REACH, filled
from aggregauss.io.geotiff import profile, small_cache
from aggregauss.io.grid import Grid, grid_of
from aggregauss.io.hygiene import declared
from aggregauss.io.rasters import open_raster
from aggregauss.io.redistribute import pixel_ratio
from aggregauss.io.words import listed

WHO = "predict_raster"
BATCH = 4096  # rows that `predict` gets at a time, always as many, so that it is compiled once
Window = tuple[int, int, int, int]  # first row, first column, rows, columns


def predict_raster(
    predict: Callable[[np.ndarray], Mapping[str, np.ndarray]],
    covariates: Any,
    out: str | os.PathLike,
    *,
    names: Collection[str],
    grid: Grid | None = None,
    metric: str | None = None,
    block: int = 512,
    client: Any = None,
    about: Mapping[str, str] | None = None,
) -> dict[str, Path]:
    """Write a GeoTIFF for each entry of what `predict` returns, and give their paths.

    `predict` takes columns (n, d), the covariates `names` followed by x and y in km, and returns arrays (n,) by name.
    `covariates` are rasters as for `open_raster`, by name or as a list; a column "cover=4" is the part of a pixel that
    class 4 of the raster "cover" takes. A pixel that lacks some covariates, but not all, gets them from the nearest
    pixel within three, as in a fit; where there is none it stays empty. `grid` is by default that of the finest raster;
    `metric` is the plane of x and y, that of the grid the model was fitted on. `client` is a Dask client; without one
    blocks run on threads. The numbers do not depend on `block`. `about` says what the layers show, by name.

    >>> import aggregauss as ag, tempfile
    >>> def warm(columns):
    ...     return {"warm": columns[:, 0] > 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lst = ag.datasets.madagascar().covariates["lst"]
    ...     made = predict_raster(warm, [lst], folder, names=["lst"])
    ...     open_raster(made["warm"]).values[200, 100:104].tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    whole_number(block, WHO, "block")
    job = _job(predict, covariates, tuple(names), grid, metric, block)
    folder = Path(out)
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _write(job, folder, block, client, about or {})
    except BaseException:
        if made:
            folder.rmdir()
        raise


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """What a worker needs in order to predict any block."""

    predict: Callable[[np.ndarray], Mapping[str, np.ndarray]]
    layers: tuple["Layer", ...]
    grid: Grid
    metric: str
    batch: int

    def __call__(self, window: Window) -> dict[str, np.ndarray]:
        """The predictions of a block by name; none if it has no complete pixel."""
        with small_cache():
            return self._predicted(*window)

    def _predicted(self, row: int, column: int, rows: int, columns: int) -> dict[str, np.ndarray]:
        part = self.grid.window(row, column, (rows, columns))
        values = self._values(part)
        cells = np.flatnonzero(np.isfinite(values).all(axis=0))
        if not len(cells):
            return {}
        inputs = np.column_stack([values.T[cells], part.km(cells, self.metric)])
        found: dict[str, np.ndarray] = {}
        for first in range(0, len(cells), self.batch):
            chosen = cells[first : first + self.batch]
            for name, value in self._padded(inputs[first : first + self.batch]).items():
                found.setdefault(name, np.full(part.size, np.nan, np.float32))[chosen] = value
        return {name: value.reshape(part.shape) for name, value in found.items()}

    def _values(self, part: Grid) -> np.ndarray:
        """Covariates of the cells of a part of the grid, (columns, cells)."""
        if not self.layers:
            return np.zeros((0, part.size))
        values = np.stack([layer(with_rim(part)) for layer in self.layers])
        some = np.asarray(np.isfinite(values).any(axis=0))
        return np.stack([filled(v, some)[REACH:-REACH, REACH:-REACH].ravel() for v in values])

    def _padded(self, inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Predictions for up to a batch of rows, made for a whole batch."""
        n = len(inputs)
        full = np.concatenate([inputs, np.repeat(inputs[-1:], self.batch - n, axis=0)])
        return {name: np.asarray(value)[:n] for name, value in self.predict(full).items()}


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """One column: a raster, or the part of a pixel that one of its classes takes."""

    raster: Any
    level: float | None
    ratio: np.ndarray  # of the whole grid, so that every block is treated alike

    def __call__(self, part: Grid) -> np.ndarray:
        """The column on a part of the grid."""
        if self.level is None:
            return align(self.raster, part, "intensive", self.ratio)
        return class_fractions(self.raster, part, [self.level], self.ratio)[0]


def _job(
    predict: Any, covariates: Any, names: tuple[str, ...], grid: Grid | None, metric: str | None, block: int
) -> Job:
    sources = by_name(covariates)
    chosen = [_source(name, sources) for name in names]
    notes: list[str] = []
    needed = dict.fromkeys(name for name, _ in chosen)
    rasters = {name: declared(open_raster(sources[name]), name, notes) for name in needed}
    for note in notes:
        warn(f"predict: {note}")
    if grid is None and not rasters:
        raise ValueError(f'{WHO}: give a "grid" where there are no covariates.')
    where = grid or min((grid_of(r) for r in rasters.values()), key=lambda g: float(g.cell_area_km2([g.size // 2])[0]))
    ratios = {name: pixel_ratio(grid_of(raster), where) for name, raster in rasters.items()}
    layers = tuple(Layer(rasters[name], level, ratios[name]) for name, level in chosen)
    return Job(predict, layers, where, metric or where.metric, min(BATCH, block * block))


def _source(name: str, sources: Mapping[str, Any]) -> tuple[str, float | None]:
    """The raster of a column, and the class."""
    if name in sources:
        return name, None
    raster, _, level = name.rpartition("=")
    if raster not in sources:
        raise ValueError(f'{WHO}: the model needs the covariate "{name}", but got only {listed(list(sources))}.')
    return raster, float(level)


def _write(job: Job, folder: Path, block: int, client: Any, about: Mapping[str, str]) -> dict[str, Path]:
    """Write blocks as they come, in whatever order."""
    with small_cache(), contextlib.ExitStack() as stack:
        files: dict[str, Any] = {}
        for (row, column, rows, columns), found in _results(job, block, client):
            for name, values in found.items():
                if name not in files:
                    path, words = folder / f"{name}.tif", about.get(name, name)
                    files[name] = stack.enter_context(_geotiff(path, job.grid, words))
                files[name](values, (row, row + rows), (column, column + columns))
        if not files:
            raise ValueError(f"{WHO}: no pixel of the grid has a value of every covariate. Do the rasters overlap?")
    return {name: folder / f"{name}.tif" for name in files}


def _results(job: Job, block: int, client: Any) -> Iterator[tuple[Window, dict[str, np.ndarray]]]:
    """Every block with its predictions; few of them are under way at a time."""
    height, width = job.grid.shape
    windows = (
        (row, column, min(block, height - row), min(block, width - column))
        for row in range(0, height, block)
        for column in range(0, width, block)
    )
    with _workers(job, client) as (submit, most):
        waiting: dict[concurrent.futures.Future, Window] = {}
        for window in windows:
            waiting[submit(window)] = window
            if len(waiting) >= most:
                yield from _finished(waiting)
        while waiting:
            yield from _finished(waiting)


def _finished(waiting: dict[concurrent.futures.Future, Window]) -> Iterator[tuple[Window, dict[str, np.ndarray]]]:
    done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()


@contextlib.contextmanager
def _workers(job: Job, client: Any) -> Iterator[tuple[Callable[[Window], concurrent.futures.Future], int]]:
    """A function that starts a block, and how many may be under way: on threads, or on a Dask cluster."""
    if client is None:
        count = os.cpu_count() or 1
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            yield lambda window: pool.submit(job, window), count + 1
        return
    shared = client.scatter(job, broadcast=True)  # sent once, and not with every block
    with client.get_executor(pure=False) as pool:
        yield lambda window: pool.submit(_call, shared, window), 2 * max(1, sum(client.nthreads().values()))


def _call(job: Job, window: Window) -> dict[str, np.ndarray]:
    return job(window)


@contextlib.contextmanager
def _geotiff(path: Path, grid: Grid, description: str) -> Iterator[Callable[..., None]]:
    """A function that writes values to a window; the file appears whole or not at all."""
    import rasterio
    from rasterio.errors import RasterioIOError
    from rasterio.windows import Window as Rectangle

    written = 0

    def write(values: np.ndarray, rows: tuple[int, int], columns: tuple[int, int]) -> None:
        nonlocal written
        written += int(np.isfinite(values).sum())
        try:
            file.write(values, 1, window=Rectangle.from_slices(rows, columns))
        except RasterioIOError:
            raise _unwritten(path) from None

    with whole_file(path) as made:
        with rasterio.open(made, "w", **profile(grid)) as file:
            file.set_band_description(1, description)
            yield write
        if _values_in(made) != written:  # closing a file on a full disk raises nothing
            raise _unwritten(path)


def _unwritten(path: Path) -> OSError:
    return OSError(f"{WHO}: {path} could not be written to its end, so nothing was left there. Is the disk full?")


def _values_in(path: Path) -> int:
    """How many pixels of a raster can be read and have a value."""
    import rasterio
    from rasterio.errors import RasterioIOError

    try:
        with rasterio.open(path) as file:
            return sum(int(np.isfinite(file.read(1, window=window)).sum()) for _, window in file.block_windows())
    except RasterioIOError:
        return -1
