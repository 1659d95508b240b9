"""Covariates on one scale: x → (x - center) / scale, remembered so that predictions undergo the same."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from aggregauss.archive import storable
from aggregauss.supports.support import Support


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Standardiser:
    """Location and scale of each dimension of the training data."""

    center: np.ndarray
    scale: np.ndarray

    def __call__(self, support: Support) -> Support:
        """The supports with standardised coordinates; weights stay as they are."""
        return support.rescaled(self.center, self.scale)


def standardiser(support: Support, columns: Sequence[int] | None = None) -> Standardiser:
    """Mean and standard deviation over the individuals, or many of them; a constant dimension keeps its scale.

    With `columns`, only these are scaled, and the others stay as they are.

    >>> from aggregauss.supports import Points
    >>> standardiser(Points([[0.0, 5.0], [2.0, 5.0]])).scale.tolist()
    [1.0, 1.0]
    >>> standardiser(Points([[0.0, 5.0], [6.0, 9.0]]), columns=[0]).scale.tolist()
    [3.0, 1.0]
    """
    center = support.sample().center
    sd = center.std(axis=0)
    chosen = np.isin(np.arange(support.dim), np.arange(support.dim) if columns is None else np.asarray(columns, int))
    return Standardiser(np.where(chosen, center.mean(axis=0), 0.0), np.where(chosen & (sd > 0), sd, 1.0))
