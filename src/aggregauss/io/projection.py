"""Coordinates between reference systems, and kilometres near a place.

A lengthscale needs distances, and degrees are none: places are mapped to a plane in metres that touches the earth in
the middle of the study area (azimuthal equidistant), unless their own system is a plane of nearly the true scale.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyproj

DISTORTION = 0.02  # of areas, up to which a projected system is used as it is
PACIFIC = "+proj=longlat +datum=WGS84 +lon_wrap=180 +no_defs +type=crs"  # degrees with longitudes from 0 to 360


def crs_text(crs: Any) -> str:
    """A reference system as "EPSG:4326" where it has such a name, else as WKT."""
    import pyproj

    known = pyproj.CRS.from_user_input(crs)
    authority = known.to_authority(min_confidence=100)
    return ":".join(authority) if authority else known.to_wkt()


def same_crs(a: str, b: str) -> bool:
    """Whether two names mean one reference system."""
    return a == b or (is_pacific(a) == is_pacific(b) and bool(_crs(a).equals(_crs(b), ignore_axis_order=True)))


def is_pacific(crs: str) -> bool:
    """Whether longitudes run from 0 to 360, so that places on both sides of the antimeridian are neighbours."""
    return "lon_wrap=180" in crs


def written_crs(crs: str) -> str:
    """What files say: formats know no range of longitudes, and values beyond 180 speak for themselves."""
    return "EPSG:4326" if is_pacific(crs) else crs


def crosses_antimeridian(longitude: np.ndarray) -> bool:
    """Whether places lie on both sides of the antimeridian and not around the whole globe, or are given beyond 180.

    >>> crosses_antimeridian(np.array([177.0, 180.0, -180.0, -178.5]))
    True
    >>> crosses_antimeridian(np.array([-170.0, -60.0, 30.0]))
    False
    """
    if not np.all(np.abs(longitude) <= 360):  # no degrees, whatever the file says
        return False
    return bool(longitude.max() > 180 or (np.ptp(longitude) > 180 and 0 < np.ptp(longitude % 360) < 180))


def is_geographic(crs: str) -> bool:
    """Whether coordinates are degrees."""
    return _crs(crs).is_geographic


def short_name(crs: str) -> str:
    """A reference system in a sentence."""
    if is_pacific(crs):
        return "degrees from 0 to 360"
    return crs if len(crs) < 20 else _crs(crs).name


def move(xy: np.ndarray, source: str, target: str) -> np.ndarray:
    """The same places, (n, 2), in another reference system; infinite where it has no coordinates for them."""
    if same_crs(source, target):
        return xy
    return np.column_stack(_transformer(source, target).transform(xy[:, 0], xy[:, 1]))


def move_bounds(bounds: tuple[float, ...], source: str, target: str) -> tuple[float, ...]:
    """The box around a box, in another reference system."""
    if same_crs(source, target):
        return bounds
    return _transformer(source, target).transform_bounds(*bounds, densify_pts=21)


def metric_crs(crs: str, middle: np.ndarray) -> str:
    """The plane in which distances near `middle` are nearly true: the system itself, or one that touches there."""
    if not _crs(crs).is_geographic and (not _crs(crs).is_projected or _is_faithful(crs, middle)):
        return crs
    return _touching("aeqd", crs, middle)


def equal_area_crs(crs: str, middle: np.ndarray) -> str:
    """A plane in which areas are true."""
    known = _crs(crs)
    return _touching("laea", crs, middle) if known.is_geographic or known.is_projected else crs


def kilometres(xy: np.ndarray, crs: str, metric: str) -> np.ndarray:
    """Places in kilometres of the plane `metric`."""
    axes = _crs(metric).axis_info
    return move(xy, crs, metric) * ((axes[0].unit_conversion_factor if axes else 1.0) / 1000.0)


def _is_faithful(crs: str, middle: np.ndarray) -> bool:
    import pyproj

    longitude, latitude = move(middle[None], crs, "EPSG:4326")[0]
    return abs(pyproj.Proj(_crs(crs)).get_factors(longitude, latitude).areal_scale - 1.0) < DISTORTION


def _touching(projection: str, crs: str, middle: np.ndarray) -> str:
    longitude, latitude = move(middle[None], crs, "EPSG:4326")[0]
    return f"+proj={projection} +lat_0={latitude:.4f} +lon_0={longitude:.4f} +datum=WGS84 +units=m +no_defs"


@functools.lru_cache(64)
def _crs(text: str) -> "pyproj.CRS":
    import pyproj

    return pyproj.CRS.from_user_input(text)


@functools.lru_cache(64)
def _transformer(source: str, target: str) -> Any:
    import pyproj

    return pyproj.Transformer.from_crs(_crs(source), _crs(target), always_xy=True)
