"""One-dimensional predictive distributions, one for each row of a prediction."""

import abc
import dataclasses

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

Probability = float | np.ndarray  # one for all rows, or an array that broadcasts against them


@dataclasses.dataclass(frozen=True)
class Marginals(abc.ABC):
    """n descriptions of one number each."""

    mean: np.ndarray
    variance: np.ndarray

    @abc.abstractmethod
    def cdf(self, x: np.ndarray) -> np.ndarray:
        """P(value <= x), elementwise."""

    def quantile(self, p: Probability) -> np.ndarray:
        """The p-quantile of each row, by bisection of the cdf unless a formula is known."""
        p = np.asarray(p)
        reach = np.sqrt(self.variance) / np.sqrt(np.minimum(p, 1 - p))  # Chebyshev's inequality
        low, high = self.mean - reach, self.mean + reach
        for _ in range(100):
            middle = (low + high) / 2
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2


@dataclasses.dataclass(frozen=True)
class GaussianMarginals(Marginals):
    """N(mean, variance)."""

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Φ((x - mean) / sd)."""
        return ndtr((x - self.mean) / np.sqrt(self.variance))

    def quantile(self, p: Probability) -> np.ndarray:
        """mean + sd Φ⁻¹(p)."""
        return self.mean + np.sqrt(self.variance) * ndtri(p)


@dataclasses.dataclass(frozen=True)
class TruncatedMarginals(Marginals):
    """N(location, spread²) given that the value is not negative."""

    location: np.ndarray
    spread: np.ndarray

    @property
    def clean_variance(self) -> np.ndarray:
        """The variance itself: no noise is in it."""
        return self.variance

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """1 - Φ((location - x) / spread) / Φ(location / spread), through logarithms."""
        kept = log_ndtr((self.location - np.maximum(x, 0.0)) / self.spread) - log_ndtr(self.location / self.spread)
        return -np.expm1(kept)

    def quantile(self, p: Probability) -> np.ndarray:
        """Where the share 1 - p of what lies above zero is still above."""
        above = np.log1p(-np.asarray(p)) + log_ndtr(self.location / self.spread)
        return np.maximum(self.location - self.spread * ndtri_exp(above), 0.0)


def truncated(location: np.ndarray, spread: np.ndarray) -> TruncatedMarginals:
    """The part of N(location, spread²) above zero; with a = location / spread and the hazard h = φ(a) / Φ(a),

    its mean is location + spread · h and its variance spread² (1 - h (h + a)).
    """
    a = location / spread
    hazard = np.exp(-0.5 * a**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(a))
    far = a < -1e3  # where both formulas cancel, to leading order an exponential distribution of scale -spread / a
    safe = np.where(far, a, -1.0)
    mean = np.where(far, -spread / safe, location + spread * hazard)
    variance = np.where(far, (spread / safe) ** 2, spread**2 * (1.0 - hazard * (hazard + a)))
    return TruncatedMarginals(mean, variance, location, spread)


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


@dataclasses.dataclass(frozen=True)
class NoisyMarginals(Marginals):
    """Any other distribution plus normal noise, by the midpoint rule over its quantiles."""

    quantiles: np.ndarray  # (nodes, n)
    noise_variance: np.ndarray

    @property
    def clean_variance(self) -> np.ndarray:
        """The variance without the noise."""
        return self.variance - self.noise_variance

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """The average of Φ((x - q_k) / sd) over the quantiles q_k of the clean value."""
        return np.mean([ndtr((x - q) / np.sqrt(self.noise_variance)) for q in self.quantiles], axis=0)


def noisy(clean: Marginals, noise_variance: np.ndarray, nodes: int = 64) -> NoisyMarginals:
    """`clean` plus independent normal noise."""
    quantiles = np.stack([clean.quantile((k + 0.5) / nodes) for k in range(nodes)])
    return NoisyMarginals(clean.mean, clean.variance + noise_variance, quantiles, noise_variance)
