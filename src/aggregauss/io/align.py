"""A raster on another grid: counts are redistributed, measurements averaged or interpolated, classes made fractions."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from aggregauss.checks import one_of
from aggregauss.io.grid import Grid, grid_of
from aggregauss.io.projection import move, move_bounds, same_crs
from aggregauss.io.rasters import pixels_of
from aggregauss.io.redistribute import pixel_ratio, redistribute

if TYPE_CHECKING:
    import xarray as xr

Kind = Literal["intensive", "extensive"]
BAND = 4_000_000  # numbers of the source, or of layers made of it, that are in memory at once
HELD = 16  # numbers that interpolation holds for each cell
LEAST = 1e-6  # share of a cell below which it counts as not touched


def align(raster: "xr.DataArray", grid: Grid, kind: Kind, ratio: np.ndarray | None = None) -> np.ndarray:
    """Values of a raster on a grid, (rows, columns), NaN where it has none.

    "extensive" (persons): totals are kept. "intensive" (temperature): the mean over a cell, or, of pixels larger than
    the cells, interpolation between their centres. Give `ratio` (from `pixel_ratio`) for a window of a larger grid, so
    that every window is treated as the whole.
    """
    one_of(kind, ("intensive", "extensive"), "align", "kind")
    source = grid_of(raster)
    ratio = pixel_ratio(source, grid) if ratio is None else ratio
    offset = _offset(source, grid, ratio)
    if offset is not None:
        return _copy(raster, grid, offset)
    if kind == "intensive" and ratio.max() > 1 + 1e-6:
        return _interpolate(raster, source, grid)
    value, touched = _spread(raster, grid, ratio, lambda v: [np.nan_to_num(v), np.isfinite(v)])
    cover = np.where(touched > LEAST * ratio_area(ratio), touched, np.nan)
    return value / cover if kind == "intensive" else np.where(np.isnan(cover), np.nan, value)


def class_fractions(
    raster: "xr.DataArray", grid: Grid, classes: Sequence[float], ratio: np.ndarray | None = None
) -> np.ndarray:
    """The part of every cell that each class takes, (classes, rows, columns), NaN where the raster has no values."""
    ratio = pixel_ratio(grid_of(raster), grid) if ratio is None else ratio
    *parts, touched = _spread(raster, grid, ratio, lambda v: [*(v == level for level in classes), np.isfinite(v)])
    return np.stack(parts) / np.where(touched > LEAST * ratio_area(ratio), touched, np.nan)


def ratio_area(ratio: np.ndarray) -> float:
    """Source pixels in a cell."""
    return 1.0 / float(np.prod(ratio))


def _offset(source: Grid, grid: Grid, ratio: np.ndarray) -> np.ndarray | None:
    """Where the grid's corner lies in the source, (column, row), if both have the same lines."""
    if not same_crs(source.crs, grid.crs) or np.abs(ratio - 1).max() > 1e-9 * max(source.shape):
        return None
    offset = source.place(grid.corner)
    whole = np.rint(offset)
    return whole.astype(int) if np.abs(offset - whole).max() < 1e-5 else None


def _copy(raster: "xr.DataArray", grid: Grid, offset: np.ndarray) -> np.ndarray:
    out = np.full(grid.shape, np.nan)
    first = np.maximum(offset, 0)
    last = np.minimum(offset + grid.shape[::-1], (raster.sizes["x"], raster.sizes["y"]))
    if (first < last).all():
        (left, top), (right, bottom) = first - offset, last - offset
        out[top:bottom, left:right] = pixels_of(raster[first[1] : last[1], first[0] : last[0]])
    return out


def _spread(
    raster: "xr.DataArray",
    grid: Grid,
    ratio: np.ndarray,
    layers: Callable[[np.ndarray], Sequence[np.ndarray]],
) -> np.ndarray:
    """Layers made of the source's values, redistributed; the source is read some rows at a time."""
    out = None
    count = len(layers(np.zeros((1, 1))))
    for part, values in bands(raster, grid, count):
        made = np.stack([np.asarray(layer, float) for layer in layers(values)])
        added = redistribute(made, part, grid, ratio)
        out = added if out is None else out + added
    if out is None:
        return np.zeros((count, *grid.shape))
    return out


def bands(raster: "xr.DataArray", grid: Grid, layers: int = 1) -> Iterator[tuple[Grid, np.ndarray]]:
    """Rows of the raster near the grid, some at a time, with their values, of which `layers` will be made."""
    source = grid_of(raster)
    (left, top), (right, bottom) = _near(source, grid)
    if right <= left:
        return
    rows = max(1, BAND // (layers * (right - left)))
    for first in range(top, bottom, rows):
        last = min(first + rows, bottom)
        part = source.window(first, left, (last - first, right - left))
        yield part, pixels_of(raster[first:last, left:right])


def _near(source: Grid, grid: Grid) -> tuple[tuple[int, int], tuple[int, int]]:
    """First and last column and row of the source around the grid."""
    west, south, east, north = move_bounds(grid.bounds, grid.crs, source.crs)
    low, high = source.place(np.array([[west, north], [east, south]]))
    limit = np.array(source.shape[::-1])
    first = np.clip(np.floor(low) - 2, 0, limit).astype(int)
    last = np.clip(np.ceil(high) + 2, 0, limit).astype(int)
    return (int(first[0]), int(first[1])), (int(last[0]), int(last[1]))


def _interpolate(raster: "xr.DataArray", source: Grid, grid: Grid) -> np.ndarray:
    """Interpolation at the centres of the cells, some rows of them at a time."""
    out = np.empty(grid.shape)
    rows, columns = grid.shape
    some = max(1, BAND // (HELD * columns))
    for first in range(0, rows, some):
        last = min(first + some, rows)
        out[first:last] = _interpolated(raster, source, grid.window(first, 0, (last - first, columns)))
    return out


def _interpolated(raster: "xr.DataArray", source: Grid, grid: Grid) -> np.ndarray:
    """Bilinear between the centres of the source's pixels; those without a value do not count."""
    (left, top), (right, bottom) = _near(source, grid)
    if right <= left or bottom <= top:
        return np.full(grid.shape, np.nan)
    values = pixels_of(raster[top:bottom, left:right])
    place = source.place(move(grid.xy(np.arange(grid.size)), grid.crs, source.crs))
    inside = np.all((place >= -LEAST) & (place <= np.array(source.shape[::-1]) + LEAST), axis=1)
    column, row = np.where(np.asarray(inside)[:, None], place, (left + 0.5, top + 0.5)).T - 0.5
    total, weight = np.zeros(grid.size), np.zeros(grid.size)
    for i in (0, 1):
        for j in (0, 1):
            r, c = np.floor(row) + i, np.floor(column) + j
            share = (1 - np.abs(row - r)) * (1 - np.abs(column - c))
            at = np.clip(r - top, 0, bottom - top - 1).astype(int), np.clip(c - left, 0, right - left - 1).astype(int)
            known = np.isfinite(values[at])
            total += np.where(known, values[at], 0.0) * share
            weight += known * share
    found = np.where(inside & (weight > LEAST), total / np.maximum(weight, LEAST), np.nan)
    return found.reshape(grid.shape)
