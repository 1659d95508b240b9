"""One grid of pixels for everything: x = a·column + c, y = e·row + f, with e < 0 because rows run southwards."""

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.archive import storable
from aggregauss.io.projection import crs_text, equal_area_crs, is_geographic, kilometres, metric_crs, move, move_bounds

if TYPE_CHECKING:
    import geopandas as gpd
    import xarray as xr

MOST_CELLS = 300_000_000
CELLS_BY_DEFAULT = 20_000  # of the box around regions that come without any raster


@storable
@dataclasses.dataclass(frozen=True)
class Grid:
    """Pixels in rows from north to south; a cell is numbered row · columns + column.

    >>> grid = Grid("EPSG:4326", (0.5, 0.0, 42.0, 0.0, -0.5, -10.0), (4, 3))
    >>> grid.xy([0, 5]).tolist()
    [[42.25, -10.25], [43.25, -10.75]]
    >>> grid.cell_area_km2([0]).round().tolist()
    [3029.0]
    """

    crs: str
    transform: tuple[float, ...]  # a, b, c, d, e, f with b = d = 0
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    @property
    def step(self) -> np.ndarray:
        """Width and height of a cell in units of the reference system; the height is negative."""
        return np.array([self.transform[0], self.transform[4]])

    @property
    def corner(self) -> np.ndarray:
        """The north-western corner."""
        return np.array([self.transform[2], self.transform[5]])

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north."""
        east, south = self.corner + self.step * self.shape[::-1]
        return float(self.corner[0]), float(south), float(east), float(self.corner[1])

    @property
    def middle(self) -> np.ndarray:
        """The centre of the whole grid."""
        return self.corner + self.step * self.shape[::-1] / 2

    @property
    def metric(self) -> str:
        """The plane of `km`."""
        return metric_crs(self.crs, self.middle)

    def xy(self, cells: Any) -> np.ndarray:
        """Centres of cells in units of the reference system, (n, 2)."""
        row, column = np.divmod(np.asarray(cells), self.shape[1])
        return self.corner + self.step * (np.column_stack([column, row]) + 0.5)

    def km(self, cells: Any, metric: str | None = None) -> np.ndarray:
        """Centres of cells in kilometres, (n, 2), of the grid's own plane or of another grid's."""
        return kilometres(self.xy(cells), self.crs, self.metric if metric is None else metric)

    def cell_area_km2(self, cells: Any) -> np.ndarray:
        """Areas of cells."""
        if is_geographic(self.crs):  # then they depend on the row alone
            row = np.asarray(cells) // self.shape[1]
            return self._area(np.arange(self.shape[0]) * self.shape[1] + self.shape[1] // 2)[row]
        return self._area(np.asarray(cells))

    def place(self, xy: np.ndarray) -> np.ndarray:
        """(column, row) with fractions of places in units of the reference system; (0, 0) is the corner."""
        return (xy - self.corner) / self.step

    def window(self, row: int, column: int, shape: tuple[int, int]) -> "Grid":
        """A rectangle of its cells."""
        c, f = self.corner + self.step * [column, row]
        a, b, _, d, e, _ = self.transform
        return Grid(self.crs, (a, b, float(c), d, e, float(f)), shape)

    def _area(self, cells: np.ndarray) -> np.ndarray:
        plane = equal_area_crs(self.crs, self.middle)
        around = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) * self.step
        corners = self.xy(cells)[:, None] + around
        x, y = kilometres(corners.reshape(-1, 2), self.crs, plane).reshape(-1, 4, 2).transpose(2, 0, 1)
        return np.abs((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(axis=1)) / 2


def grid_of(raster: "xr.DataArray") -> Grid:
    """The grid of an opened raster, from the centres of its pixels."""
    x, y = (raster[axis].values.astype(float) for axis in ("x", "y"))
    transform = tuple(raster.rio.transform())  # for a single row or column, whose centres do not tell its height
    a = (x[-1] - x[0]) / (len(x) - 1) if len(x) > 1 else transform[0]
    e = (y[-1] - y[0]) / (len(y) - 1) if len(y) > 1 else -abs(transform[4])
    c, f = x[0] - a / 2, y[0] - e / 2
    return Grid(crs_text(raster.rio.crs), (float(a), 0.0, float(c), 0.0, float(e), float(f)), (len(y), len(x)))


def common_grid(
    rasters: "Sequence[xr.DataArray]", regions: "gpd.GeoDataFrame", resolution: float | None = None
) -> Grid:
    """The grid of the finest raster, cut to the regions; `resolution` is a cell size in its reference system.

    Without rasters it is a grid of some 20,000 cells in the regions' own reference system.
    """
    if resolution is not None and not resolution > 0:
        raise ValueError(f'common_grid: "resolution" must be a positive size of a cell, but got {resolution!r}.')
    if not rasters:
        return _around(Grid(crs_text(regions.crs), _plain_transform(regions, resolution), (0, 0)), regions)
    finest = min((grid_of(raster) for raster in rasters), key=lambda grid: _cell_size(grid, regions))
    if resolution is not None:
        c, f = finest.corner
        finest = Grid(finest.crs, (resolution, 0.0, float(c), 0.0, -resolution, float(f)), finest.shape)
    return _around(finest, regions)


def _plain_transform(regions: "gpd.GeoDataFrame", resolution: float | None) -> tuple[float, ...]:
    west, south, east, north = regions.total_bounds
    step = resolution or math.sqrt((east - west) * (north - south) / CELLS_BY_DEFAULT)
    return (step, 0.0, float(west), 0.0, -step, float(north))


def _cell_size(grid: Grid, regions: "gpd.GeoDataFrame") -> float:
    """Area of a cell in the middle of the regions."""
    bounds = move_bounds(tuple(regions.total_bounds), crs_text(regions.crs), grid.crs)
    middle = np.array([bounds[0] + bounds[2], bounds[1] + bounds[3]]) / 2
    corners = middle + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) * grid.step
    origin, *sides = move(corners, grid.crs, equal_area_crs(grid.crs, middle))
    (a, b), (c, d) = (side - origin for side in sides)
    return abs(a * d - b * c)


def _around(grid: Grid, regions: "gpd.GeoDataFrame") -> Grid:
    """The cells of the grid, continued where need be, that the regions' box touches."""
    west, south, east, north = move_bounds(tuple(regions.total_bounds), crs_text(regions.crs), grid.crs)
    low, high = grid.place(np.array([[west, north], [east, south]]))
    first, last = np.floor(low + 1e-6).astype(int), np.ceil(high - 1e-6).astype(int)
    columns, rows = np.maximum(last - first, 1)
    if rows * columns > MOST_CELLS:
        raise ValueError(
            f"common_grid: the box around the regions holds {rows} x {columns} pixels of the finest raster, more than "
            f'{MOST_CELLS:,}. Give a coarser "resolution", or fewer regions.'
        )
    return grid.window(int(first[1]), int(first[0]), (int(rows), int(columns)))
