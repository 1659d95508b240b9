"""How much of each cell of a grid lies in each region: exact areas (exactextract), not centres.

exactextract can lose whole cells of a polygon whose sides run along cell edges. A polygon whose cells do not add up to
its area is therefore intersected cell by cell (Shapely), which is slower.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportOptionalSubscript=false, reportReturnType=false
# (tables and geometries: the declared types of pandas and exactextract are wider than what they return)

from typing import Any

import numpy as np

from aggregauss.io.grid import Grid

SLIVER = 1e-5  # shares of a cell, or of a smaller region, closer than this to none or to all are rounding
AGREEMENT = 1e-2  # cells by which a polygon's cells may differ from its area


def coverage(grid: Grid, geometries: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of the region (sorted), number of the cell and share of the cell inside, for every pair that overlaps.

    `geometries` are polygons in the grid's reference system.

    >>> import shapely
    >>> grid = Grid("EPSG:32738", (1.0, 0.0, 0.0, 0.0, -1.0, 2.0), (2, 2))
    >>> region, cell, share = coverage(grid, [shapely.box(0.0, 0.0, 1.5, 1.0)])
    >>> cell.tolist(), share.tolist()
    ([2, 3], [1.0, 0.5])
    """
    shapes = np.asarray(list(geometries), dtype=object)
    found = _extracted(grid, shapes)
    wrong = np.abs([share.sum() for _, share in found] - _cells_inside(grid, shapes)) > AGREEMENT
    for i in np.flatnonzero(wrong):
        found[i] = _intersected(grid, shapes[i])
    region = np.repeat(np.arange(len(found)), [len(cells) for cells, _ in found])
    cell = np.concatenate([cells for cells, _ in found])
    share = np.concatenate([shares for _, shares in found])
    share = np.where(share > 1 - SLIVER, 1.0, share)
    kept = share > SLIVER * np.minimum(1.0, np.bincount(region, share, minlength=len(found)))[region]
    return region[kept], cell[kept], share[kept]


def _extracted(grid: Grid, shapes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    import geopandas as gpd
    from exactextract import exact_extract
    from exactextract.raster import NumPyRasterSource

    table: Any = gpd.GeoDataFrame(geometry=shapes, crs=grid.crs)
    blank = np.broadcast_to(np.zeros(1, np.int8), grid.shape)
    west, south, east, north = grid.bounds
    source = NumPyRasterSource(blank, west, south, east, north, srs_wkt=table.crs.to_wkt())
    found = exact_extract(source, table, ["cell_id", "coverage"], output="pandas")
    pairs = zip(found["cell_id"], found["coverage"])
    return [(np.asarray(cells, np.int64), np.asarray(shares, float)) for cells, shares in pairs]


def _cells_inside(grid: Grid, shapes: np.ndarray) -> np.ndarray:
    """Areas of the polygons inside the grid, in cells."""
    import shapely

    inside = shapely.intersection(shapes, shapely.box(*grid.bounds))
    return shapely.area(inside) / np.abs(grid.step).prod()


def _intersected(grid: Grid, shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cells in the polygon's box, and the share of each inside."""
    import shapely

    west, south, east, north = shape.bounds
    low, high = grid.place(np.array([[west, north], [east, south]]))
    limit = np.array(grid.shape[::-1])
    first, last = np.clip(np.floor(low), 0, limit).astype(int), np.clip(np.ceil(high), 0, limit).astype(int)
    row, column = np.mgrid[first[1] : last[1], first[0] : last[0]].reshape(2, -1)
    (left, top), (width, height) = grid.corner, grid.step
    boxes = shapely.box(
        left + width * column, top + height * (row + 1), left + width * (column + 1), top + height * row
    )
    shapely.prepare(shape)
    share = shapely.contains(shape, boxes).astype(float)
    partly = (share == 0) & shapely.intersects(shape, boxes)
    share[partly] = shapely.area(shapely.intersection(boxes[partly], shape)) / np.abs(width * height)
    return row * grid.shape[1] + column, share
