"""Where the inducing points lie: given, one for each bag, or spread over the individuals by k-means++ seeding."""

from typing import Any

import numpy as np

from aggregauss.checks import as_matrix, whole_number
from aggregauss.supports.support import SAMPLE, Support

DEFAULT = 200
BLOCK = 64  # bags looked at together


def landmarks(inducing: Any, support: Support, seed: int) -> np.ndarray:
    """Inducing points, shape (m, d)."""
    if isinstance(inducing, str):
        if inducing != "bags":
            raise ValueError(f'SVI: "inducing" must be a number, points or "bags", but got {inducing!r}.')
        return _one_per_bag(support)
    if isinstance(inducing, Support):
        inducing = inducing.center
    if inducing is not None and np.ndim(inducing) > 0:
        Z = as_matrix(inducing, "SVI", "inducing")
        if Z.shape[1] != support.dim:
            raise ValueError(f'SVI: "inducing" must have {support.dim} column(s) like the data, but has {Z.shape[1]}.')
        return Z
    pool = np.unique(support.sample(SAMPLE, seed).center, axis=0)
    if inducing is None:
        return _spread(pool, min(DEFAULT, len(pool)), seed)
    wanted = whole_number(inducing, "SVI", "inducing")
    if wanted > len(pool):
        raise ValueError(
            f'SVI: "inducing" must not exceed the number of distinct locations, but {wanted} were asked for and there '
            f"are {len(pool)}. Ask for fewer."
        )
    return _spread(pool, wanted, seed)


def _spread(pool: np.ndarray, m: int, seed: int) -> np.ndarray:
    from sklearn.cluster import kmeans_plusplus  # slow to import

    sd = pool.std(axis=0)
    scaled = (pool - pool.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    return pool[kmeans_plusplus(scaled, m, random_state=seed)[1]]


def _one_per_bag(support: Support) -> np.ndarray:
    """The individual nearest to the centre of each bag."""
    sd = support.sample().center.std(axis=0)
    scale = np.where(sd > 0, sd, 1.0)
    blocks = (support[start : start + BLOCK] for start in range(0, len(support), BLOCK))
    return np.unique(np.concatenate([_most_central(block, scale) for block in blocks]), axis=0)


def _most_central(support: Support, scale: np.ndarray) -> np.ndarray:
    means = support.with_measure("mean").integrate(support.center)
    away = ((support.center - means[support.owner]) / scale) ** 2
    order = np.lexsort((away.sum(axis=1), support.owner))
    first = np.searchsorted(support.owner[order], np.arange(support.size))
    return support.center[order[first]]
