"""Polygons: a total or a mean over areas on a map, with holes and several parts."""

from typing import Any

import numpy as np

from aggregauss.checks import first_bad, warn
from aggregauss.supports import simplices as geometry
from aggregauss.supports.polytopes import Method, atomise
from aggregauss.supports.support import Measure, Support


def Polygons(
    geometries: Any, method: Method = "boxes", atoms: int = 16, measure: Measure = "total", seed: int = 0
) -> Support:
    """One area per Shapely geometry (a list, an array, a GeoSeries or a GeoDataFrame); needs the extra `geo`.

    Polygons and multipolygons, with holes or without. See `Polytopes` for `method` and `atoms`.

    >>> from shapely.geometry import box
    >>> ring = box(0, 0, 3, 3) - box(1, 1, 2, 2)
    >>> Polygons([ring, box(5, 5, 6, 7)], atoms=8).mass.tolist()
    [8.0, 2.0]
    """
    shapes, labels = _shapes(geometries)
    triangles, owner = _triangulate(shapes)
    support = atomise(triangles, owner, method, atoms, measure, seed, "Polygons")
    object.__setattr__(support, "geometry", shapes)
    object.__setattr__(support, "labels", labels)
    return support


def _shapes(geometries: Any) -> tuple[np.ndarray, np.ndarray | None]:
    import shapely

    labels = None
    if hasattr(geometries, "geometry"):  # a GeoSeries or a GeoDataFrame
        _warn_if_geographic(geometries.crs)
        labels = np.asarray(geometries.index)
        geometries = geometries.geometry.to_numpy()
    shapes = np.empty(len(geometries), dtype=object)
    shapes[:] = list(geometries)
    if len(shapes) == 0:
        raise ValueError('Polygons: "geometries" is empty. Give at least one polygon.')
    areal = np.isin(shapely.get_type_id(shapes), [3, 6])
    if not areal.all():
        row = first_bad(~areal)[0]
        raise TypeError(
            f"Polygons: every row must be a Polygon or a MultiPolygon, but row {row} is "
            f"{getattr(shapes[row], 'geom_type', type(shapes[row]).__name__)}. Use Points for places without area."
        )
    if not shapely.is_valid(shapes).all():
        row = first_bad(~shapely.is_valid(shapes))[0]
        raise ValueError(
            f"Polygons: every row must be a valid polygon, but row {row} is not "
            f"({shapely.is_valid_reason(shapes[row])}). Repair it with shapely.make_valid."
        )
    if not (shapely.area(shapes) > 0).all():
        row = first_bad(~(shapely.area(shapes) > 0))[0]
        raise ValueError(f"Polygons: every row must have an area, but row {row} is empty. Remove it.")
    return shapes, labels


def _warn_if_geographic(crs: Any) -> None:
    if crs is not None and crs.is_geographic:
        warn(
            f"Polygons: the coordinates are degrees ({crs.name}), which are not distances: a degree of longitude "
            "shrinks towards the poles. Project first, e.g. with .to_crs(gdf.estimate_utm_crs()).",
        )


def _triangulate(shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import shapely

    collections = shapely.constrained_delaunay_triangles(shapes)
    parts, owner = shapely.get_parts(collections, return_index=True)
    corners = shapely.get_coordinates(parts).reshape(-1, 4, 2)[:, :3]
    size = geometry.volume(corners)
    solid = size > 0
    found = np.bincount(owner, size, minlength=len(shapes))
    wrong = np.abs(found - shapely.area(shapes)) > 1e-9 * shapely.area(shapes)
    if wrong.any():
        row = first_bad(wrong)[0]
        raise ValueError(
            f"Polygons: row {row} could not be triangulated: its triangles cover {found[row]:.6g} of "
            f"{shapely.area(shapes[row]):.6g}. Repair it with shapely.make_valid or shapely.set_precision."
        )
    return corners[solid], owner[solid]
