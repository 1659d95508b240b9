"""Where the inducing variables lie: as given, one for each bag, or spread over the individuals by k-means++ seeding."""

import dataclasses
from typing import Any

import numpy as np

from aggregauss.checks import as_matrix, whole_number
from aggregauss.supports.points import Points
from aggregauss.supports.standardise import Standardiser
from aggregauss.supports.support import SAMPLE, Support

DEFAULT = 200
BLOCK = 64  # bags looked at together


def landmarks(inducing: Any, support: Support, seed: int) -> Support:
    """Supports whose integrals are the inducing variables: what was given, or points."""
    given = given_places(inducing)
    if given is not None:
        if given.dim != support.dim:
            raise ValueError(f'fit: "inducing" must have {support.dim} column(s) like the data, but has {given.dim}.')
        return given
    if isinstance(inducing, str):
        if inducing != "bags":
            raise ValueError(f'fit: "inducing" must be a number, points, supports or "bags", but got {inducing!r}.')
        return Points(_one_per_bag(support))
    pool = np.unique(support.sample(SAMPLE, seed).center, axis=0)
    if inducing is None:
        return Points(_spread(pool, min(DEFAULT, len(pool)), seed))
    wanted = whole_number(inducing, "fit", "inducing")
    if wanted > len(pool):
        raise ValueError(
            f'fit: "inducing" must not exceed the number of distinct locations, but {wanted} were asked for and there '
            f"are {len(pool)}. Ask for fewer."
        )
    return Points(_spread(pool, wanted, seed))


def given_places(inducing: Any) -> Support | None:
    """The supports that the user gave, or the points; None if places are yet to be found."""
    if isinstance(inducing, Support):
        if len(inducing) == 0:
            raise ValueError('fit: "inducing" has no supports. Give some, or a number of points.')
        return inducing[:]  # in memory, wherever they were
    if inducing is None or isinstance(inducing, str) or np.ndim(inducing) == 0:
        return None
    return Points(as_matrix(inducing, "fit", "inducing"))


def with_places_scaled(scheme: Any, scaler: Standardiser) -> Any:
    """The scheme with the places that it was given in the coordinates that the model will see."""
    places = given_places(getattr(scheme, "inducing", None))
    return scheme if places is None else dataclasses.replace(scheme, inducing=scaler(places))


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
