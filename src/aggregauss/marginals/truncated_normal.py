"""A normal distribution of which only what lies above zero is left."""

import dataclasses

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from aggregauss.marginals.chart import FAR, REACH, Chart, Number, log_normal_density
from aggregauss.marginals.marginals import Marginals


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

    def quantile(self, p: Number) -> np.ndarray:
        """Where the share 1 - p of what lies above zero is still above."""
        above = np.log1p(-np.asarray(p)) + log_ndtr(self.location / self.spread)
        return np.maximum(self.location - self.spread * ndtri_exp(above), 0.0)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log φ((y - location) / spread) - log spread - log Φ(location / spread)."""
        inside = log_normal_density((y - self.location) / self.spread) - np.log(self.spread)
        return np.where(y >= 0, inside - log_ndtr(self.location / self.spread), -np.inf)

    def chart(self) -> Chart:
        """location + spread t, where t is standard normal above -location / spread."""
        a = self.location / self.spread
        log_kept = log_ndtr(a)
        low, high = np.maximum(-a, -REACH), -ndtri_exp(log_kept + np.log(1e-15))
        return Chart(
            lambda t: self.location + self.spread * t,
            lambda t: log_normal_density(t) - log_kept,
            lambda t: -np.expm1(log_ndtr(-t) - log_kept),
            (low, high),
            (np.maximum(-a, -REACH - FAR), high + FAR),
        )


def truncated(location: np.ndarray, spread: np.ndarray) -> TruncatedMarginals:
    """The part of N(location, spread²) above zero; with a = location / spread and the hazard h = φ(a) / Φ(a),

    its mean is location + spread · h and its variance spread² (1 - h (h + a)).
    """
    a = location / spread
    hazard = np.exp(log_normal_density(a) - log_ndtr(a))
    far = a < -1e3  # where both formulas cancel, to leading order an exponential distribution of scale -spread / a
    safe = np.where(far, a, -1.0)
    mean = np.where(far, -spread / safe, location + spread * hazard)
    variance = np.where(far, (spread / safe) ** 2, spread**2 * (1.0 - hazard * (hazard + a)))
    return TruncatedMarginals(mean, variance, location, spread)
