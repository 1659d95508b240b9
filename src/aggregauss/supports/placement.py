"""Point atoms inside unions of simplices: uniform as in Algorithm 1, or from a low-discrepancy sequence."""

import numpy as np

from aggregauss.supports import simplices as geometry


def uniform_points(simplices: np.ndarray, owner: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` points in each shape, spread over its simplices in proportion to their volumes.

    A simplex that expects e points receives floor(e) or ceil(e) of them, with mean e (systematic rounding), so that
    large simplices are never missed. `owner` ascends. Returns the points and the shape each belongs to.
    """
    rng = np.random.default_rng(seed)
    size = geometry.volume(simplices)
    end = np.searchsorted(owner, np.arange(owner[-1] + 1), side="right")  # of each shape's simplices
    reached = np.concatenate([[0.0], np.cumsum(size)])
    before = reached[np.concatenate([[0], end[:-1]])]
    share = (reached[1:] - before[owner]) / (reached[end] - before)[owner]  # exactly 1 at the end of a shape
    marks = np.floor(count * share + rng.random(len(end))[owner]).astype(int) + count * owner
    chosen = np.repeat(np.arange(len(size)), np.diff(marks, prepend=0))
    return geometry.map_unit_cube(simplices[chosen], rng.random((len(chosen), simplices.shape[2]))), owner[chosen]


def sobol_points(simplices: np.ndarray, owner: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` points in each shape from a scrambled Sobol sequence of d + 1 dimensions.

    The first coordinate picks a simplex by its share of the volume, the others a point inside it.
    """
    from scipy.stats import qmc  # slow to import

    size = geometry.volume(simplices)
    points, home = [], []
    for shape in range(owner.max() + 1):
        rows = np.flatnonzero(owner == shape)
        sampler = qmc.Sobol(simplices.shape[2] + 1, rng=np.random.default_rng([seed, shape]))
        u = sampler.random(1 << max(count - 1, 0).bit_length())[:count]
        share = np.cumsum(size[rows]) / size[rows].sum()
        chosen = rows[np.minimum(np.searchsorted(share, u[:, 0], side="right"), len(rows) - 1)]
        points.append(geometry.map_unit_cube(simplices[chosen], u[:, 1:]))
        home.append(np.full(count, shape))
    return np.concatenate(points), np.concatenate(home)
