"""Any union of simplices as a few weighted boxes.

Each shape is cut in two again and again by axis-parallel planes. A piece is then replaced by the box that has its
volume as weight, its centroid as centre and its variance along each axis: widths √(12 var). A rectangle is its own box,
and for any other piece the first error in an integral is of third order in the piece's size.
"""

import dataclasses

import numpy as np

from aggregauss.supports import simplices as geometry

NEGLIGIBLE = 1e-13  # of a cell's volume: slivers that a cut through a vertex leaves


@dataclasses.dataclass(frozen=True)
class Cells:
    """Pieces of shapes: which shape each belongs to, its volume, its mean and its variance along each axis."""

    owner: np.ndarray
    mass: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    @property
    def width(self) -> np.ndarray:
        """Sides of the boxes with these variances."""
        return np.sqrt(12.0 * self.variance)


def tile(simplices: np.ndarray, owner: np.ndarray, count: int, for_boxes: bool = True) -> Cells:
    """Cut each shape, a union of the simplices it owns, into at most `count` cells.

    Every round cuts one cell of every shape, across its longest side, through its centroid: the one with the largest
    volume and spread, and `for_boxes` also the one least like a box. Cells that are boxes are then left whole, so fewer
    than `count` may be used.
    """
    cell = owner.copy()
    cells = _summarise(simplices, cell, np.arange(owner.max() + 1))
    for _ in range(count - 1):
        chosen = _worst(cells, for_boxes)
        if len(chosen) == 0:
            break
        simplices, cell, cells = _split(simplices, cell, cells, chosen)
    order = np.argsort(cells.owner, kind="stable")
    return Cells(cells.owner[order], cells.mass[order], cells.mean[order], cells.variance[order])


def _summarise(simplices: np.ndarray, cell: np.ndarray, home: np.ndarray) -> Cells:
    """Moments of each cell from those of its simplices; `home` is the shape that each cell belongs to."""
    n, d = len(home), simplices.shape[2]
    mass_of, (mean_of, variance_of) = geometry.volume(simplices), geometry.moments(simplices)

    def total(x: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(cell, mass_of * x[:, k], minlength=n) for k in range(d)], axis=1)

    mass = np.bincount(cell, mass_of, minlength=n)
    mean = total(mean_of) / mass[:, None]
    variance = total(variance_of + (mean_of - mean[cell]) ** 2) / mass[:, None]
    return Cells(home, mass, mean, variance)


def _worst(cells: Cells, for_boxes: bool) -> np.ndarray:
    """For each shape the cell that a cut would help most, unless all its cells are boxes."""
    score = cells.mass * cells.variance.sum(axis=1)
    if for_boxes:
        unlike = np.abs(1.0 - cells.mass / np.prod(cells.width, axis=1))
        score = score * np.where(unlike > 1e-9, np.sqrt(unlike), 0.0)
    order = np.lexsort((score, cells.owner))
    last = np.flatnonzero(np.diff(cells.owner[order], append=-1))
    best = order[last]
    return best[score[best] > 0]


def _split(
    simplices: np.ndarray, cell: np.ndarray, cells: Cells, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Cells]:
    axis = np.argmax(cells.variance, axis=1)
    at = np.take_along_axis(cells.mean, axis[:, None], axis=1)[:, 0]
    number = np.full(len(cells.owner), -1)
    number[chosen] = np.arange(len(chosen))
    touched = number[cell] >= 0
    parent = cell[touched]
    pieces, origin, upper = geometry.cut(simplices[touched], axis[parent], at[parent])
    parent = parent[origin]
    solid = geometry.volume(pieces) > NEGLIGIBLE * cells.mass[parent]
    pieces, parent, upper = pieces[solid], parent[solid], upper[solid]

    local = number[parent] + len(chosen) * upper
    fresh = _summarise(pieces, local, np.tile(cells.owner[chosen], 2))
    simplices = np.concatenate([simplices[~touched], pieces])
    cell = np.concatenate([cell[~touched], np.where(upper, len(cells.owner) + number[parent], parent)])

    def merge(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        out = np.concatenate([old, new[len(chosen) :]])
        out[chosen] = new[: len(chosen)]
        return out

    return (
        simplices,
        cell,
        Cells(*(merge(getattr(cells, f.name), getattr(fresh, f.name)) for f in dataclasses.fields(Cells))),
    )
