"""How much of each cell of a grid lies in each region: exact areas (exactextract), not centres."""

from typing import Any

import numpy as np

from aggregauss.io.grid import Grid

SLIVER = 1e-5  # shares closer than this to none or to all are rounding


def coverage(grid: Grid, geometries: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of the region (sorted), number of the cell and share of the cell inside, for every pair that overlaps.

    `geometries` are polygons in the grid's reference system.

    >>> import shapely
    >>> grid = Grid("EPSG:32738", (1.0, 0.0, 0.0, 0.0, -1.0, 2.0), (2, 2))
    >>> region, cell, share = coverage(grid, [shapely.box(0.0, 0.0, 1.5, 1.0)])
    >>> cell.tolist(), share.tolist()
    ([2, 3], [1.0, 0.5])
    """
    import geopandas as gpd
    from exactextract import exact_extract
    from exactextract.raster import NumPyRasterSource

    west, south, east, north = grid.bounds
    blank = np.broadcast_to(np.zeros(1, np.int8), grid.shape)
    shapes = gpd.GeoDataFrame(geometry=list(geometries), crs=grid.crs)
    source = NumPyRasterSource(blank, west, south, east, north, srs_wkt=shapes.crs.to_wkt())
    found = exact_extract(source, shapes, ["cell_id", "coverage"], output="pandas")
    region = np.repeat(np.arange(len(found)), [len(cells) for cells in found["cell_id"]])
    cell = np.concatenate([np.asarray(cells, np.int64) for cells in found["cell_id"]])
    share = np.concatenate([np.asarray(shares, float) for shares in found["coverage"]])
    share = np.where(share > 1 - SLIVER, 1.0, share)
    kept = share > SLIVER
    return region[kept], cell[kept], share[kept]
