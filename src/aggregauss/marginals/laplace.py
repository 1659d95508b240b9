"""A normal number with Laplace noise on it."""

import dataclasses

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from aggregauss.marginals.chart import log_normal_density
from aggregauss.marginals.marginals import Marginals


@dataclasses.dataclass(frozen=True)
class LaplaceMarginals(Marginals):
    """N(mean, normal_variance) plus Laplace noise; variance = normal_variance + 2 scale²."""

    normal_variance: np.ndarray
    scale: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Φ(d/s) + ½ e^{s²/2b²} (e^{d/b} Φ(-d/s - s/b) - e^{-d/b} Φ(d/s - s/b)), d = x - mean."""
        b, s, d = self.scale, np.sqrt(self.normal_variance), x - self.mean
        shift = s**2 / (2 * b**2)
        rise = np.exp(shift + d / b + log_ndtr(-d / s - s / b))
        fall = np.exp(shift - d / b + log_ndtr(d / s - s / b))
        return ndtr(d / s) + (rise - fall) / 2

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log φ(d/s) - log 2b + log(M(s/b - d/s) + M(s/b + d/s)), M the Mills ratio and d = y - mean."""
        s = np.sqrt(self.normal_variance)
        z, r = (y - self.mean) / s, s / self.scale
        tails = np.logaddexp(_log_mills(r - z), _log_mills(r + z))
        return log_normal_density(z) - np.log(2 * self.scale) + tails


def _log_mills(t: np.ndarray) -> np.ndarray:
    """log M(t), M(t) = Φ(-t) / φ(t) = √(π/2) erfcx(t/√2)."""
    above = np.log(np.sqrt(np.pi / 2) * erfcx(np.maximum(t, 0.0) / np.sqrt(2)))
    return np.where(t >= 0, above, log_ndtr(-t) - log_normal_density(t))
