"""What is often wrong with rasters, in sentences: undeclared nodata, densities for counts, codes for measurements."""

from typing import TYPE_CHECKING

import numpy as np

from aggregauss.io.rasters import NODATA, pixels_of
from aggregauss.io.words import listed, several

if TYPE_CHECKING:
    import xarray as xr

PEEK = 4_000_000  # pixels
SENTINELS = (-32768.0, -9999.0, -99999.0, -999.0, -3.4028234663852886e38, -3.4e38, 65535.0, 2147483647.0, -2147483648.0)
HUGE = 1e30
CLASSES = 25  # most distinct whole numbers for which a raster may be one of classes
CROWDED = 100_000.0  # persons per km² that no pixel of a square kilometre or more exceeds
DENSE = 5_000.0  # persons per km² that no area of 10,000 km² exceeds
WORDS_FOR_DENSITY = ("density", "dens", "per_km2", "per km2", "km-2", "ppkm")


def declared(raster: "xr.DataArray", name: str, notes: list[str]) -> "xr.DataArray":
    """The raster with the number that stands for "no value" declared."""
    values = peek(raster)
    known = values[np.isfinite(values)]
    for value in {float(known.min()), float(known.max())} if len(known) else ():
        odd = abs(value) > HUGE or any(np.isclose(value, sentinel, rtol=1e-6) for sentinel in SENTINELS)
        if odd and _stands_apart(known, value):
            notes.append(f"{name}: {value:g} taken as nodata, which the file does not declare.")
            raster = raster.assign_attrs({NODATA: value})
    return raster


def peek(raster: "xr.DataArray") -> np.ndarray:
    """Some rows of a raster, all if it is small."""
    rows, columns = raster.shape
    if rows * columns <= PEEK:
        return pixels_of(raster)
    some = np.linspace(0, rows - 1, max(2, min(64, PEEK // columns))).astype(int)
    return np.stack([pixels_of(raster[int(row) : int(row) + 1])[0] for row in some])


def looks_categorical(values: np.ndarray) -> bool:
    """Whether these are a few whole numbers, more than two."""
    known = values[np.isfinite(values)]
    if not len(known) or (known[:1000] != np.rint(known[:1000])).any():
        return False
    distinct = np.unique(known)
    return 2 < len(distinct) <= CLASSES and bool((distinct == np.rint(distinct)).all())


def population_notes(
    name: str, persons: np.ndarray, area: np.ndarray, weight: np.ndarray, observed: float
) -> list[str]:
    """The total and its density, and why these may not be persons per pixel."""
    total, km2 = float((persons * weight).sum()), float((area * weight).sum())
    said = [f"{name}: {total:,.0f} persons in {km2:,.0f} km², {total / km2:,.3g} per km²."]
    outside = float((persons * np.clip(1.0 - weight, 0.0, 1.0)).sum())
    if outside > 0.01 * total:
        said.append(
            f"{name}: of the persons in pixels that the outlines cut, {outside:,.0f} lie outside of all regions."
        )
    whole = area >= 1.0
    suspicion = [
        (any(word in name.lower() for word in WORDS_FOR_DENSITY), "its name speaks of a density"),
        (bool((persons[whole] > CROWDED * area[whole]).any()), f"a pixel has more than {CROWDED:,.0f} persons per km²"),
        (km2 > 10_000 and total > DENSE * km2, "no area of this size is so densely populated"),
        (total < observed, f"{observed:,.0f} were observed, more than there are persons"),
    ]
    reasons = [reason for holds, reason in suspicion if holds]
    if reasons:
        said.append(
            f"{name} may hold densities and not persons per pixel: {'; '.join(reasons)}. If so, multiply it by the "
            "area of its pixels first."
        )
    return said


def lone_regions(labels: list[str], covered: np.ndarray) -> list[str]:
    """A note on regions that are smaller than one pixel."""
    small = [label for label, area in zip(labels, covered) if area < 1.0]
    return [f"{several(len(small), 'region')} smaller than one pixel: {listed(small)}."] if small else []


def _stands_apart(known: np.ndarray, value: float) -> bool:
    """Whether a value is far from all others."""
    rest = known[known != value]
    return not len(rest) or bool(abs(value - np.median(rest)) > 5 * (np.ptp(rest) + 1e-12))
