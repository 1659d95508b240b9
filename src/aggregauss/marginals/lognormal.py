"""What the exponential link makes of a normal number."""

import dataclasses

import numpy as np
from scipy.special import ndtr, ndtri, xlogy

from aggregauss.marginals.chart import TINY, Chart, Number, log_normal_density, normal_chart
from aggregauss.marginals.marginals import Marginals

LARGEST = 300.0  # exponents are kept below, so that squares stay in double precision


@dataclasses.dataclass(frozen=True)
class LogNormalMarginals(Marginals):
    """exp(N(location, spread²))."""

    location: np.ndarray
    spread: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Φ((log x - location) / spread)."""
        return ndtr((xlogy(1.0, np.maximum(x, 0.0)) - self.location) / self.spread)

    def quantile(self, p: Number) -> np.ndarray:
        """exp(location + spread Φ⁻¹(p))."""
        return self._value(ndtri(p))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log φ((log y - location) / spread) - log(spread y)."""
        log_y = np.log(np.where(y > 0, y, 1.0))
        inside = log_normal_density((log_y - self.location) / self.spread) - np.log(self.spread) - log_y
        return np.where(y > 0, inside, -np.inf)

    def chart(self) -> Chart:
        """exp(location + spread z)."""
        return normal_chart(self._value)

    def _value(self, z: Number) -> np.ndarray:
        return np.exp(np.minimum(self.location + self.spread * z, LARGEST))


def log_normal(location: np.ndarray, variance: np.ndarray, scale: Number = 1.0) -> LogNormalMarginals:
    """scale · exp(N(location, variance)): mean scale · e^{location + variance/2}, variance mean² (e^variance - 1).

    >>> import numpy as np
    >>> log_normal(np.zeros(1), np.ones(1), scale=2.0).quantile(0.5)
    array([2.])
    """
    location = location + np.log(scale)
    mean = np.exp(location + variance / 2)
    return LogNormalMarginals(mean, mean**2 * np.expm1(variance), location, np.sqrt(np.maximum(variance, TINY)))
