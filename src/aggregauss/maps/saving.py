"""A map on disk: rasters, tables, the fitted model, the record of the run, and the page that shows them.

The folder is written beside its place and put there when it is complete. `map.agz` holds numbers and names only, so
reading a map from a stranger cannot execute anything; outlines are read from the GeoPackage beside it.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.archive import load, storable, write
from aggregauss.files import whole_folder
from aggregauss.inference.posterior import Posterior
from aggregauss.io.geopackage import write_geopackage
from aggregauss.io.geotiff import write_geotiff
from aggregauss.io.grid import Grid
from aggregauss.io.pixel_record import Pixels
from aggregauss.io.tables import write_csv
from aggregauss.io.words import first_line
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.record import RunRecord, source
from aggregauss.maps.reporting import report_data
from aggregauss.maps.settings import Settings
from aggregauss.maps.surface import ABOUT, Surface, described
from aggregauss.maps.validate import Validation
from aggregauss.report.page import write_page
from aggregauss.report.plain import json_text

if TYPE_CHECKING:
    import pandas as pd

MAP, REGIONS, RECORD, PAGE, CHECK = "map.agz", "regions.gpkg", "run.json", "report.html", "validation.csv"
TABLE = "regions.csv"
LAYERS = frozenset(f"{name}.tif" for name in ABOUT)
FILES = LAYERS | {MAP, REGIONS, TABLE, RECORD, PAGE, CHECK}


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class StoredMap:
    """What `map.agz` holds: a map without its outlines."""

    posterior: Posterior
    settings: Settings
    warnings: tuple[str, ...]
    coordinates: np.ndarray
    covariates: np.ndarray
    names: tuple[str, ...]
    population: np.ndarray
    cell: np.ndarray
    crs: str | None
    transform: tuple[float, ...]
    shape: tuple[int, ...]
    region: np.ndarray
    pixel: np.ndarray
    share: np.ndarray
    labels: tuple[str, ...]
    observed: np.ndarray
    examined: np.ndarray | None
    notes: tuple[str, ...]


def save(
    found: Disaggregation,
    folder: str | Path,
    *,
    threshold: float | None = None,
    validation: Validation | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes everything to a new folder, and returns it."""
    with whole_folder(folder, FILES if overwrite else None, found.record.paths()) as target:
        checked = None if validation is None else validation.how
        found.record.shown = {"title": title, "threshold": threshold, "validation": checked}
        with found.record.timed("predict"):
            known, table = found.surface(threshold), found.table()
        with found.record.timed("write"):
            if found.pixels.grid is not None:
                _write_rasters(target, found.pixels.grid, found.pixels.cell, known)
            _write_tables(target, found, table, validation)
            write(target / MAP, _stored(found))
            page = report_data(found, known, table, validation, title)
            write_page(page, target / PAGE)
        write_record(target, page.record | {"seconds": found.record.seconds})  # that of writing is known only now
    return Path(folder)


def write_record(folder: Path, words: Mapping[str, Any]) -> None:
    """`run.json`."""
    (folder / RECORD).write_text(json_text(words, indent=1) + "\n")


def load_map(folder: str | Path) -> Disaggregation:
    """The map that `save` wrote."""
    folder = Path(folder)
    if not (folder / MAP).is_file():
        raise FileNotFoundError(
            f"load: {folder} is not the folder of a map: it has no {MAP}. Give the folder of a run."
        )
    stored = load(folder / MAP)
    if not isinstance(stored, StoredMap):
        raise ValueError(f"load: {folder / MAP} holds something other than a map.")
    grid = None if stored.crs is None else Grid(stored.crs, stored.transform, stored.shape)  # pyright: ignore
    own = {f.name: getattr(stored, f.name) for f in dataclasses.fields(Pixels) if hasattr(stored, f.name)}
    pixels = Pixels(**own, grid=grid, regions=_regions(folder, stored))
    return Disaggregation(pixels, stored.posterior, stored.settings, _record(folder), tuple(stored.warnings))


def load_check(folder: str | Path, found: Disaggregation) -> Validation | None:
    """The validation that a map was saved with, if it was."""
    import pandas as pd

    path = Path(folder) / CHECK
    if not path.is_file():
        return None
    return Validation(pd.read_csv(path, dtype={"label": str}), str(found.record.shown.get("validation")))


def _stored(found: Disaggregation) -> StoredMap:
    p, grid = found.pixels, found.pixels.grid
    own = {f.name: getattr(p, f.name) for f in dataclasses.fields(StoredMap) if hasattr(p, f.name)}
    light = found.posterior.observations
    post = dataclasses.replace(found.posterior, observations=dataclasses.replace(light, support=light.support[:0]))
    return StoredMap(
        posterior=post,
        settings=found.settings,
        warnings=found.warnings,
        crs=None if grid is None else str(grid.crs),
        transform=() if grid is None else tuple(grid.transform),
        shape=() if grid is None else tuple(grid.shape),
        labels=tuple(str(x) for x in p.regions["label"]),
        observed=p.regions["observed"].to_numpy(float),
        examined=p.regions["examined"].to_numpy(float) if "examined" in p.regions else None,
        **own,
    )


def _regions(folder: Path, stored: StoredMap) -> Any:
    import geopandas as gpd
    import pandas as pd

    columns = {"label": list(stored.labels), "observed": stored.observed}
    if stored.examined is not None:
        columns["examined"] = stored.examined
    table = pd.DataFrame(columns)
    if not (folder / REGIONS).is_file():
        return table
    shapes = gpd.read_file(folder / REGIONS)
    return gpd.GeoDataFrame(table, geometry=shapes.geometry.to_numpy(), crs=stored.crs)


def _record(folder: Path) -> RunRecord:
    path = folder / RECORD
    try:
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if not isinstance(known, dict):
            raise TypeError(f"it is a {type(known).__name__}")
        fields = {f.name: dict(known.get(f.name, {})) for f in dataclasses.fields(RunRecord) if f.name != "started"}
        record = RunRecord(started=str(known.get("started", "")), **fields)
    except (ValueError, TypeError) as problem:
        raise ValueError(
            f"load: {path} is not the record of a run ({first_line(problem)}). Get it again, or delete it: the map "
            f"itself is in {MAP}."
        ) from None
    record.map = source(folder / MAP)
    return record


def _write_rasters(target: Path, grid: Grid, cell: np.ndarray, known: Surface) -> None:
    about = described(known.threshold)
    for name, values in known.layers().items():
        write_geotiff(target / f"{name}.tif", grid, cell, values, description=about[name])


def _write_tables(target: Path, found: Disaggregation, table: "pd.DataFrame", validation: Validation | None) -> None:
    import geopandas as gpd

    write_csv(table, target / TABLE)
    regions = found.pixels.regions
    if isinstance(regions, gpd.GeoDataFrame):
        shapes = gpd.GeoDataFrame(table, geometry=regions.geometry.to_numpy(), crs=regions.crs)
        write_geopackage(shapes, target / REGIONS, "regions")
    if validation is not None:
        write_csv(validation.table, target / CHECK)
