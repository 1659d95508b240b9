"""The normal distribution."""

import dataclasses

import numpy as np
from scipy.special import ndtr, ndtri

from aggregauss.marginals.chart import Chart, Number, log_normal_density, normal_chart
from aggregauss.marginals.marginals import Marginals


@dataclasses.dataclass(frozen=True)
class GaussianMarginals(Marginals):
    """N(mean, variance)."""

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Φ((x - mean) / sd)."""
        return ndtr((x - self.mean) / np.sqrt(self.variance))

    def quantile(self, p: Number) -> np.ndarray:
        """mean + sd Φ⁻¹(p)."""
        return self.mean + np.sqrt(self.variance) * ndtri(p)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log φ((y - mean) / sd) - log sd."""
        sd = np.sqrt(self.variance)
        return log_normal_density((y - self.mean) / sd) - np.log(sd)

    def chart(self) -> Chart:
        """mean + sd z."""
        return normal_chart(lambda z: self.mean + np.sqrt(self.variance) * z)
