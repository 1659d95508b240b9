"""Supports as weighted points, for what can be evaluated at points only."""

import dataclasses
import itertools

import numpy as np

from aggregauss.supports.support import Support

ORDER = {1: 6, 2: 4, 3: 3}  # Gauss-Legendre points along each side, by the number of sides with width


def at_nodes(support: Support) -> Support:
    """Every atom with width replaced by the points of a product Gauss-Legendre rule.

    >>> import aggregauss as ag
    >>> at_nodes(ag.Intervals([0.0], [2.0], measure="mean")).center.ravel().round(3)
    array([0.068, 0.339, 0.761, 1.239, 1.661, 1.932])
    """
    wide = np.flatnonzero(support.wide)
    if not len(wide):
        return support
    x, w = np.polynomial.legendre.leggauss(ORDER.get(len(wide), 2))
    places = np.zeros((len(x) ** len(wide), support.dim))
    places[:, wide] = list(itertools.product(x / 2, repeat=len(wide)))
    share = np.prod(list(itertools.product(w / 2, repeat=len(wide))), axis=1)
    center = (support.center[:, None] + places * support.width[:, None]).reshape(-1, support.dim)
    return dataclasses.replace(
        support,
        center=center,
        width=np.zeros_like(center),
        owner=np.repeat(support.owner, len(share)),
        weight=np.outer(support.weight, share).ravel(),
    )
