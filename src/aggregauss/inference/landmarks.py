"""Where the inducing points lie: given, one for each bag, or spread over the individuals by k-means++ seeding."""

from typing import Any

import numpy as np

from aggregauss.checks import as_matrix, whole_number
from aggregauss.supports.support import Support

DEFAULT = 200
SAMPLE = 20_000  # individuals among which landmarks are chosen


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
    pool = _pool(support, seed)
    if inducing is None:
        return _spread(pool, min(DEFAULT, len(pool)), seed)
    wanted = whole_number(inducing, "SVI", "inducing")
    if wanted > len(pool):
        raise ValueError(
            f'SVI: "inducing" must not exceed the number of distinct locations, but {wanted} were asked for and there '
            f"are {len(pool)}. Ask for fewer."
        )
    return _spread(pool, wanted, seed)


def _pool(support: Support, seed: int) -> np.ndarray:
    """Distinct locations of individuals, at most `SAMPLE` of them."""
    center = support.center
    if len(center) > SAMPLE:
        center = center[np.sort(np.random.default_rng(seed).choice(len(center), SAMPLE, replace=False))]
    return np.unique(center, axis=0)


def _spread(pool: np.ndarray, m: int, seed: int) -> np.ndarray:
    from sklearn.cluster import kmeans_plusplus  # slow to import

    sd = pool.std(axis=0)
    scaled = (pool - pool.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    return pool[kmeans_plusplus(scaled, m, random_state=seed)[1]]


def _one_per_bag(support: Support) -> np.ndarray:
    """The individual nearest to the centre of each bag."""
    means = support.with_measure("mean").integrate(support.center)
    sd = support.center.std(axis=0)
    away = ((support.center - means[support.owner]) / np.where(sd > 0, sd, 1.0)) ** 2
    order = np.lexsort((away.sum(axis=1), support.owner))
    first = np.searchsorted(support.owner[order], np.arange(support.size))
    return np.unique(support.center[order[first]], axis=0)
