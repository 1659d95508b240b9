"""Positive numbers whose logarithm is skew.

log x is itself a shifted log-normal number, mirrored where its skewness is negative:

    log x = location + spread s (e^{g s z} - e^{g²/2}) / (e^{g²/2} √(e^{g²} - 1)),    z ~ N(0, 1),  s = sign(skewness),

with mean `location`, standard deviation `spread` and skewness s (e^{g²} + 2) √(e^{g²} - 1). With g → 0 it is normal. A
part of a sum that is known has such a law: it may be far less than its share, but hardly more than the sum.
"""

import dataclasses

import numpy as np
from scipy.special import ndtr, ndtri

from aggregauss.marginals.chart import TINY, Chart, Number, log_normal_density, normal_chart
from aggregauss.marginals.lognormal import LARGEST
from aggregauss.marginals.marginals import Marginals

LEAST_SPREAD = 1e-12
LEAST, MOST = 1e-4, 2.0  # skewness


@dataclasses.dataclass(frozen=True)
class SkewLogNormalMarginals(Marginals):
    """As above; mean and variance are given with it."""

    location: np.ndarray
    spread: np.ndarray
    skewness: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Φ(z) where value(z) = x."""
        above = ndtr(self._score(np.log(np.where(x > 0, x, 1.0)))[0])
        return np.where(x > 0, above, np.where((self.mean > 0) | (x < 0), 0.0, 1.0))

    def quantile(self, p: Number) -> np.ndarray:
        """value(Φ⁻¹(p))."""
        return self._value(ndtri(p))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log φ(z) - log(dlog y / dz) - log y."""
        log_y = np.log(np.where(y > 0, y, 1.0))
        z, log_slope = self._score(log_y)
        inside = np.where(np.isfinite(z), log_normal_density(np.where(np.isfinite(z), z, 0.0)), -np.inf)
        return np.where(y > 0, inside - log_slope - log_y, -np.inf)

    def chart(self) -> Chart:
        """value(z)."""
        return normal_chart(self._value)

    @property
    def _bend(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """s, g and the scale of e^{g s z} in log x."""
        sign, w = np.where(self.skewness < 0, -1.0, 1.0), _lift(np.clip(np.abs(self.skewness), LEAST, MOST))
        return sign, np.sqrt(np.log1p(w)), self.spread / np.sqrt((1.0 + w) * w)

    def _value(self, z: Number) -> np.ndarray:
        sign, g, scale = self._bend
        log_x = self.location + sign * scale * (np.expm1(g * sign * z) - np.expm1(g**2 / 2))
        return np.where(self.mean > 0, np.exp(np.minimum(log_x, LARGEST)), 0.0)

    def _score(self, log_x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z, infinite beyond the end of the support, and the logarithm of dlog x / dz there."""
        sign, g, scale = self._bend
        above = sign * (log_x - self.location) / scale + np.expm1(g**2 / 2)  # e^{g s z} - 1
        inside = above > -1.0
        log_u = np.log1p(np.where(inside, above, 0.0))
        return np.where(inside, sign * log_u / g, -sign * np.inf), np.log(scale * g) + log_u


def skew_log_normal(draws: np.ndarray) -> SkewLogNormalMarginals:
    """The law whose mean and variance, and those and the skewness of its logarithm, are those of draws (draws, n).

    Numbers are positive in every draw, or zero in all of them.

    >>> import numpy as np
    >>> found = skew_log_normal(np.exp(np.random.default_rng(0).normal(1.0, 0.5, (100_000, 1))))
    >>> found.quantile(0.5).round(1)
    array([2.7])
    """
    logs = np.log(np.maximum(draws, TINY))
    location, spread = logs.mean(axis=0), np.maximum(logs.std(axis=0), LEAST_SPREAD)
    skewness = np.mean(((logs - location) / spread) ** 3, axis=0)
    return SkewLogNormalMarginals(draws.mean(axis=0), draws.var(axis=0), location, spread, skewness)


def with_factor(rate: SkewLogNormalMarginals, sd: Number) -> SkewLogNormalMarginals:
    """Times an independent e^v, v ~ N(0, sd²): logarithms add their means, variances and third central moments."""
    grown = np.exp(np.square(sd))
    mean = rate.mean * np.sqrt(grown)
    variance = grown * (rate.variance * grown + rate.mean**2 * (grown - 1.0))
    spread = np.hypot(rate.spread, sd)
    return SkewLogNormalMarginals(mean, variance, rate.location, spread, rate.skewness * (rate.spread / spread) ** 3)


def _lift(skewness: np.ndarray) -> np.ndarray:
    """e^{g²} - 1 of a positive skewness γ: the root w of (w + 3)² w = γ²."""
    half = 1.0 + skewness**2 / 2
    cube = np.cbrt(half + skewness * np.sqrt(1.0 + skewness**2 / 4))
    return np.maximum(cube + 1.0 / cube - 2.0, TINY)
