"""Polytopes: a total or a mean over a union of d-dimensional simplices."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from aggregauss.checks import one_of, whole_number
from aggregauss.supports import simplices as geometry
from aggregauss.supports.placement import sobol_points, uniform_points
from aggregauss.supports.support import Measure, Support
from aggregauss.supports.tiling import tile

Method = Literal["boxes", "centroids", "uniform", "sobol"]
METHODS = ("boxes", "centroids", "uniform", "sobol")


def Polytopes(
    simplices: Sequence[Any],
    method: Method = "boxes",
    atoms: int = 16,
    measure: Measure = "total",
    seed: int = 0,
) -> Support:
    """One shape per item of `simplices`, each an array of shape (k, d + 1, d): the corners of its k simplices.

    `method` says how a shape becomes atoms, `atoms` how many it may use. "boxes" cuts it into boxes with the same
    moments and is the most accurate for each atom; "centroids" takes the centres of those boxes as points; "uniform"
    places random points as in Algorithm 1 of the paper and "sobol" points of a low-discrepancy sequence. Weights are
    scaled so that the mass is the exact volume. Simplices of one shape must not overlap. Allow at least as many boxes
    as a shape has parts that lie apart: a box that has to stand for several of them reaches over the gap.

    >>> import numpy as np
    >>> square = [[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]
    >>> Polytopes([np.array(square)], atoms=4).width.tolist()  # a box is its own tiling
    [[1.0, 1.0]]
    """
    shapes = [_checked(i, s) for i, s in enumerate(simplices)]
    if not shapes:
        raise ValueError('Polytopes: "simplices" is empty. Give at least one shape.')
    dims = {s.shape[2] for s in shapes}
    if len(dims) > 1:
        raise ValueError(f"Polytopes: all shapes must have the same number of dimensions, but have {sorted(dims)}.")
    owner = np.repeat(np.arange(len(shapes)), [len(s) for s in shapes])
    return atomise(np.concatenate(shapes), owner, method, atoms, measure, seed, "Polytopes")


def atomise(
    simplices: np.ndarray,
    owner: np.ndarray,
    method: Method,
    atoms: int,
    measure: Measure,
    seed: int,
    kind: str,
) -> Support:
    """Shapes given by their simplices, as a `Support`."""
    one_of(method, METHODS, kind, "method")
    atoms = whole_number(atoms, kind, "atoms")
    mass = np.bincount(owner, geometry.volume(simplices))
    if method in ("boxes", "centroids"):
        cells = tile(simplices, owner, atoms, for_boxes=method == "boxes")
        center, home, share = cells.mean, cells.owner, cells.mass
        width = cells.width if method == "boxes" else np.zeros_like(center)
    else:
        place = uniform_points if method == "uniform" else sobol_points
        center, home = place(simplices, owner, atoms, seed)
        width, share = np.zeros_like(center), np.ones(len(center))
    weight = share * (mass / np.bincount(home, share))[home]
    return Support(center, width, home, weight, len(mass), measure, kind)


def _checked(row: int, simplices: Any) -> np.ndarray:
    array = np.asarray(simplices, dtype=float)
    if array.ndim != 3 or array.shape[1] != array.shape[2] + 1 or len(array) == 0:
        raise ValueError(
            f'Polytopes: "simplices" must hold arrays of shape (k, d + 1, d), but row {row} has shape {array.shape}.'
        )
    if not np.isfinite(array).all():
        raise ValueError(f'Polytopes: "simplices" must be finite, but row {row} is not. Remove or repair it.')
    if not geometry.volume(array).sum() > 0:
        raise ValueError(f"Polytopes: every shape must have volume, but row {row} has none. Remove it or use Points.")
    return array[geometry.volume(array) > 0]
