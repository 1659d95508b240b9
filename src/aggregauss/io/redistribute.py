"""Numbers of one grid on another, by how much of each pixel lies in each cell: totals are kept.

    out[t] = Σ_s value[s] · |pixel s ∩ cell t| / |pixel s|

Pixels larger than a cell are cut into parts, so that a part touches at most two rows and two columns of cells. Within
one reference system this is exact; across two, a part is taken as a rectangle along the target's axes.
"""

import math

import numpy as np

from aggregauss.io.grid import Grid
from aggregauss.io.projection import move, same_crs


def pixel_ratio(source: Grid, target: Grid) -> np.ndarray:
    """Width and height of a source pixel, in cells of the target at its middle."""
    middle = move(target.middle[None], target.crs, source.crs)[0]
    corners = middle + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) * source.step
    origin, *sides = target.place(move(corners, source.crs, target.crs))
    return np.abs(np.stack(sides) - origin).sum(axis=0)


def redistribute(layers: np.ndarray, source: Grid, target: Grid, ratio: np.ndarray) -> np.ndarray:
    """`layers`, (k, rows, columns) of the source without gaps, on the target."""
    aligned = same_crs(source.crs, target.crs)
    parts = [max(1, math.ceil(r * (1.0 if aligned else 2.0) - 1e-9)) for r in ratio]
    u, v = _lattice(source, target)
    width = np.minimum(np.abs(np.diff(u, axis=1)[:-1]) / parts[0], 1.0)
    height = np.minimum(np.abs(np.diff(v, axis=0)[:, :-1]) / parts[1], 1.0)
    out = np.zeros((len(layers), target.size))
    values = layers.reshape(len(layers), -1) / (parts[0] * parts[1])
    for i in range(parts[1]):
        for j in range(parts[0]):
            s, t = (i + 0.5) / parts[1], (j + 0.5) / parts[0]
            columns = _two(_inside(u, s, t), width)
            rows = _two(_inside(v, s, t), height)
            for row, down in rows:
                for column, across in columns:
                    _add(out, values, row, column, down * across, target.shape)
    return out.reshape(len(layers), *target.shape)


def _lattice(source: Grid, target: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows of the target, with fractions, of the corners of the source's pixels."""
    rows, columns = source.shape
    x = source.corner[0] + source.step[0] * np.arange(columns + 1)
    y = source.corner[1] + source.step[1] * np.arange(rows + 1)
    corners = np.stack(np.meshgrid(x, y), axis=-1)
    place = target.place(move(corners.reshape(-1, 2), source.crs, target.crs)).reshape(corners.shape)
    return place[..., 0], place[..., 1]


def _inside(corner: np.ndarray, s: float, t: float) -> np.ndarray:
    """Bilinear interpolation between the four corners of every pixel."""
    north = (1 - t) * corner[:-1, :-1] + t * corner[:-1, 1:]
    south = (1 - t) * corner[1:, :-1] + t * corner[1:, 1:]
    return (1 - s) * north + s * south


def _two(center: np.ndarray, width: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The one or two cells that an interval touches, and the share of it in each."""
    with np.errstate(invalid="ignore", divide="ignore"):
        first, last = np.floor(center - width / 2), np.floor(center + width / 2)
        beyond = np.where(last > first, (center + width / 2 - last) / width, 0.0)
    return [(first, 1.0 - beyond), (first + 1, beyond)]


def _add(
    out: np.ndarray, values: np.ndarray, row: np.ndarray, column: np.ndarray, share: np.ndarray, shape: tuple[int, int]
) -> None:
    with np.errstate(invalid="ignore"):
        hit = (row >= 0) & (row < shape[0]) & (column >= 0) & (column < shape[1]) & (share > 0)
    if not hit.any():
        return
    cell = (row[hit] * shape[1] + column[hit]).astype(np.int64)
    chosen, part = hit.ravel(), share[hit]
    for layer, value in zip(out, values):
        layer += np.bincount(cell, value[chosen] * part, minlength=len(layer))
