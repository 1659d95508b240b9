"""Outlines of the regions as whole numbers: steps between corners, in units of a fraction of the map's extent."""

from typing import Any

import numpy as np

STEPS = 16384  # along the longer side of the map; finer than any screen, also after zooming in


def outlines(regions: dict, bounds: tuple[float, float, float, float]) -> dict[str, Any]:
    """Rings of every region. A corner is (west + unit * column, north - unit * row), given as its step from the last.

    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    >>> feature = {"type": "Feature", "properties": {"label": "a"}, "geometry": square}
    >>> outlines({"type": "FeatureCollection", "features": [feature]}, (0.0, 0.0, 1.0, 1.0))["regions"]
    [{'label': 'a', 'rings': [[0, 16384, 16384, 0, 0, -16384]]}]
    """
    west, south, east, north = bounds
    unit = max(east - west, north - south) / STEPS
    shapes = [
        {
            "label": str(feature["properties"]["label"]),
            "rings": [
                ring for ring in (_steps(ring, west, north, unit) for ring in _rings(feature["geometry"])) if ring
            ],
        }
        for feature in regions.get("features", ())
    ]
    return {"unit": unit, "regions": shapes}


def _rings(geometry: dict | None) -> list:
    if geometry is None:
        return []
    if geometry["type"] == "GeometryCollection":
        return [ring for part in geometry["geometries"] for ring in _rings(part)]
    polygons = {"Polygon": lambda c: [c], "MultiPolygon": lambda c: c}.get(geometry["type"], lambda c: [])
    return [ring for polygon in polygons(geometry["coordinates"]) for ring in polygon]


def _steps(ring: Any, west: float, north: float, unit: float) -> list[int]:
    corners = np.asarray([corner[:2] for corner in ring], np.float64)
    whole = np.rint((corners - [west, north]) / [unit, -unit]).astype(np.int64)
    steps = np.diff(whole[:-1], axis=0)  # the page closes a ring by itself
    steps = np.concatenate([whole[:1], steps[steps.any(axis=1)]])
    return steps.reshape(-1).tolist() if len(steps) > 2 else []
