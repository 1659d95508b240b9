"""Probabilities of classes that are themselves uncertain."""

import dataclasses

import numpy as np

from aggregauss.marginals.chart import Number
from aggregauss.marginals.marginals import Marginals


@dataclasses.dataclass(frozen=True)
class ClassMarginals(Marginals):
    """Rows of class probabilities, shape (n, classes), by weighted draws of them, shape (n, s, classes)."""

    draws: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, draws: np.ndarray, weights: np.ndarray) -> "ClassMarginals":
        """With their means and variances.

        >>> ClassMarginals.of(np.array([[[0.2, 0.8], [0.4, 0.6]]]), np.array([0.5, 0.5])).mean.round(3)
        array([[0.3, 0.7]])
        """
        mean = np.einsum("s,nsc->nc", weights, draws)
        return cls(mean, np.einsum("s,nsc->nc", weights, (draws - mean[:, None]) ** 2), draws, weights)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """P(probability <= x)."""
        return np.einsum("s,nsc->nc", self.weights, self.draws <= np.asarray(x)[:, None])

    def quantile(self, p: Number) -> np.ndarray:
        """Quantiles of the probability of each class."""
        order = np.argsort(self.draws, axis=1)
        reached = np.cumsum(self.weights[order], axis=1) >= np.asarray(p) - 1e-12
        first = np.argmax(reached, axis=1)[:, None]
        return np.take_along_axis(np.take_along_axis(self.draws, order, axis=1), first, axis=1)[:, 0]

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Log probability of labels."""
        return np.log(np.take_along_axis(self.mean, np.asarray(y, int)[:, None], axis=1)[:, 0])
