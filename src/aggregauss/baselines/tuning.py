"""Choosing settings by the likelihood of validation bags."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from tqdm.auto import tqdm

from aggregauss.supports.support import Support

E = TypeVar("E")


def tuned(
    estimator: E,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    bags: Support,
    y: Any,
    validation: tuple[Support, Any],
    *,
    stopping: tuple[Support, Any] | None = None,
    progress: bool = True,
) -> E:
    """The fitted copy of `estimator`, over all combinations in `grid`, that makes the validation bags most likely.

    Early stopping watches `stopping`, a pair (supports, y), or the validation bags if it is not given.

    >>> import aggregauss as ag
    >>> from aggregauss.baselines import NeuralNetwork, tuned
    >>> bags, y = ag.Bags([0.0, 1.0, 2.0, 3.0], bag=[0, 0, 1, 1]), [3.0, 5.0]
    >>> best = tuned(NeuralNetwork(epochs=20), {"hidden": [2, 4], "l2": [0.0, 1.0]}, bags, y, validation=(bags, y))
    >>> best.n_iter_ <= 20
    True
    """
    settings = list(ParameterGrid(grid))  # pyright: ignore[reportArgumentType]
    best, highest = None, -np.inf
    for setting in tqdm(settings, desc="tuned", unit="fit", delay=2.0, leave=False, disable=not progress):
        candidate: Any = clone(estimator).set_params(**setting)  # pyright: ignore
        candidate.fit(bags, y, validation=stopping or validation, progress=False)
        score = candidate.score(*validation)
        if score > highest:
            best, highest = candidate, score
    if best is None:
        raise FloatingPointError(
            'tuned: the likelihood of the validation bags was not finite under any setting in "grid".'
        )
    return best
