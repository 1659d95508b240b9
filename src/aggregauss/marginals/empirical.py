"""Distributions that are known by draws from them."""

import dataclasses

import numpy as np

from aggregauss.marginals.chart import Number
from aggregauss.marginals.marginals import Marginals


@dataclasses.dataclass(frozen=True)
class EmpiricalMarginals(Marginals):
    """Draws of n numbers, shape (draws, n)."""

    draws: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """The share of the draws that are not above x."""
        return np.mean(self.draws <= x, axis=0)

    def quantile(self, p: Number) -> np.ndarray:
        """Quantiles of the draws, interpolated."""
        p = np.asarray(p)
        if p.ndim == 0:
            return np.quantile(self.draws, p, axis=0)
        ranked = np.sort(self.draws, axis=0)
        place = np.clip(p, 0.0, 1.0) * (len(ranked) - 1)
        below = np.floor(place).astype(int)
        rest, column = place - below, np.arange(ranked.shape[1])
        above = np.minimum(below + 1, len(ranked) - 1)
        return ranked[below, column] * (1 - rest) + ranked[above, column] * rest

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """The log density of a normal distribution with the moments of the draws."""
        return -0.5 * (np.log(2 * np.pi * self.variance) + (y - self.mean) ** 2 / self.variance)


def empirical(draws: np.ndarray) -> EmpiricalMarginals:
    """What the draws, shape (draws, n), show.

    >>> import numpy as np
    >>> empirical(np.array([[1.0], [2.0], [3.0]])).quantile(0.5)
    array([2.])
    """
    return EmpiricalMarginals(draws.mean(axis=0), draws.var(axis=0), draws)
