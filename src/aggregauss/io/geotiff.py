"""Values of some cells of a grid as a GeoTIFF: single precision, tiled, compressed, NaN elsewhere."""

import os
from typing import Any

import numpy as np

from aggregauss.files import whole_file
from aggregauss.io.grid import Grid
from aggregauss.io.projection import written_crs

CACHE = 1 << 26  # bytes
PROFILE = {
    "driver": "GTiff",
    "dtype": "float32",
    "nodata": np.nan,
    "count": 1,
    "compress": "deflate",
    "predictor": 3,
    "tiled": True,
    "blockxsize": 256,
    "blockysize": 256,
    "BIGTIFF": "IF_SAFER",
}


def write_geotiff(path: str | os.PathLike, grid: Grid, cell: Any, values: Any, *, description: str) -> None:
    """One band with `values` in the cells numbered `cell`; the file appears whole or not at all.

    >>> import tempfile
    >>> grid = Grid("EPSG:4326", (0.5, 0.0, 42.0, 0.0, -0.5, -10.0), (2, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_geotiff(f"{folder}/rate.tif", grid, [0, 3], [1.0, 2.0], description="rate")
    ...     from aggregauss.io.rasters import open_raster
    ...     open_raster(f"{folder}/rate.tif").values.tolist()
    [[1.0, nan], [nan, 2.0]]
    """
    import rasterio

    band = np.full(grid.size, np.nan, np.float32)
    band[np.asarray(cell)] = np.asarray(values)
    with whole_file(path) as made, rasterio.MemoryFile() as memory:  # GDAL itself may only log that a disk is full
        with memory.open(**profile(grid)) as out:
            out.write(band.reshape(grid.shape), 1)
            out.set_band_description(1, description)
        made.write_bytes(memory.read())


def small_cache() -> Any:
    """A context in which GDAL keeps little of what it has read or written, and not a share of the machine's memory."""
    import rasterio

    return rasterio.Env(GDAL_CACHEMAX=CACHE)


def profile(grid: Grid) -> dict[str, Any]:
    """How a raster on this grid is stored."""
    import rasterio

    rows, columns = grid.shape
    place = {
        "crs": written_crs(grid.crs),
        "transform": rasterio.Affine(*grid.transform),
        "width": columns,
        "height": rows,
    }
    return PROFILE | place
