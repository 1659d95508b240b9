"""Many individuals of a bag as fewer, each in the middle of those it stands for.

The atoms of a support are halved, again and again where their weighted scatter is largest, along the column in which
they scatter most; each part becomes one atom of its weight at its weighted mean. For a function g the total changes by

    Σ_i w_i g(x_i) - Σ_parts w g(x̄)  ≈  ½ Σ_parts w tr(g''(x̄) C),

C the covariance of x within a part: nothing for a linear g, and about the square of the parts' size for any other.
"""

import dataclasses
import heapq

import numpy as np

from aggregauss.checks import whole_number
from aggregauss.supports.support import SAMPLE, Support


def pool(support: Support, most: int) -> Support:
    """The same supports with at most `most` atoms each; masses and weighted means of all columns stay the same.

    >>> import aggregauss as ag
    >>> bags = ag.Bags([[0.0], [1.0], [10.0], [5.0]], bag=[0, 0, 0, 1], weights=[1.0, 3.0, 1.0, 1.0])
    >>> small = ag.pool(bags, 2)
    >>> small.center.ravel().tolist(), small.weight.tolist()
    ([0.75, 10.0, 5.0], [4.0, 1.0, 1.0])
    """
    most = whole_number(most, "pool", "most")
    if not hasattr(support, "center"):
        raise TypeError(f"pool: the individuals must be in memory, but {support!r} reads them from a file. Use Bags.")
    if any(support.wide):
        raise TypeError(f"pool: only points can be pooled, but {support!r} has atoms with width. Use Bags.")
    sd = support.sample(SAMPLE).center.std(axis=0)
    scaled = support.center / np.where(sd > 0, sd, 1.0)
    ends = np.cumsum(support.atom_counts)
    part = np.empty(len(support.owner), int)
    count = 0
    for start, end in zip(ends - support.atom_counts, ends):
        own = _parts(scaled[start:end], support.weight[start:end], most)
        part[start:end] = count + own
        count += int(own.max()) + 1
    weight = np.bincount(part, support.weight, count)
    share = np.where(weight[part] > 0, support.weight / np.where(weight[part] > 0, weight[part], 1.0), 0.0)
    share = np.where(weight[part] > 0, share, 1.0 / np.bincount(part)[part])  # where nobody lives, the plain mean
    center = np.stack([np.bincount(part, share * column, count) for column in support.center.T], axis=1)
    owner = np.zeros(count, int)
    owner[part] = support.owner
    return dataclasses.replace(support, center=center, width=np.zeros_like(center), owner=owner, weight=weight)


def _parts(X: np.ndarray, w: np.ndarray, most: int) -> np.ndarray:
    """The number of the part that each row belongs to."""
    part = np.zeros(len(X), int)
    if len(X) <= most:
        return np.arange(len(X))
    queue = [_entry(X, w, np.arange(len(X)), 0)]
    for fresh in range(1, most):
        _, number, rows, above = queue[0]
        if not above.any():  # the largest scatter is none
            break
        part[rows[above]] = fresh
        heapq.heapreplace(queue, _entry(X, w, rows[~above], number))
        heapq.heappush(queue, _entry(X, w, rows[above], fresh))
    return part


def _entry(X: np.ndarray, w: np.ndarray, rows: np.ndarray, number: int) -> tuple[float, int, np.ndarray, np.ndarray]:
    """Minus the scatter of a part, its number, its rows, and which of them lie above the mean of the widest column."""
    own = w[rows]
    total = own.sum()
    if len(rows) == 1 or total <= 0:
        return 0.0, number, rows, np.zeros(len(rows), bool)
    away = X[rows] - own @ X[rows] / total
    scatter = own @ away**2
    above = away[:, int(np.argmax(scatter))] > 0
    return -float(scatter.sum()), number, rows, above if not above.all() else np.zeros(len(rows), bool)
