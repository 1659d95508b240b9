"""What every predictive distribution offers."""

import abc
import dataclasses

import numpy as np
from scipy.special import ndtr

from aggregauss.marginals.chart import REACH, Chart, Number, normal_chart


@dataclasses.dataclass(frozen=True)
class Marginals(abc.ABC):
    """n descriptions of one number each; arguments broadcast against the n rows."""

    mean: np.ndarray
    variance: np.ndarray

    @abc.abstractmethod
    def cdf(self, x: np.ndarray) -> np.ndarray:
        """P(value <= x), elementwise."""

    def quantile(self, p: Number) -> np.ndarray:
        """The p-quantile of each row, by bisection of the cdf unless a formula is known."""
        p = np.asarray(p)
        reach = np.sqrt(self.variance) / np.sqrt(np.minimum(p, 1 - p))  # Chebyshev's inequality
        low, high = self.mean - reach, self.mean + reach
        for _ in range(100):
            middle = (low + high) / 2
            if np.all((middle == low) | (middle == high)):
                break
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    @abc.abstractmethod
    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Log density, or log probability of a count, elementwise."""

    def chart(self) -> Chart:
        """A smooth coordinate for averages over this distribution: quantile(Φ(z)) unless a cheaper one is known."""
        return normal_chart(lambda z: self.quantile(ndtr(z)), REACH)
