"""Any distribution with normal noise on it."""

import dataclasses

import numpy as np
from scipy.special import ndtr

from aggregauss.marginals.chart import log_average
from aggregauss.marginals.conditionals import Normal
from aggregauss.marginals.marginals import Marginals


@dataclasses.dataclass(frozen=True)
class NoisyMarginals(Marginals):
    """`clean` plus normal noise; the cdf by the midpoint rule over its quantiles."""

    quantiles: np.ndarray  # (nodes, n)
    noise_variance: np.ndarray
    clean: Marginals

    @property
    def clean_variance(self) -> np.ndarray:
        """The variance without the noise."""
        return self.variance - self.noise_variance

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """The average of Φ((x - q_k) / sd) over the quantiles q_k of the clean value."""
        return np.mean([ndtr((x - q) / np.sqrt(self.noise_variance)) for q in self.quantiles], axis=0)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log E N(y; value, noise_variance)."""
        return log_average(lambda value: Normal(self.noise_variance).log_prob(y, value), self.clean.chart())


def noisy(clean: Marginals, noise_variance: np.ndarray, nodes: int = 64) -> NoisyMarginals:
    """`clean` plus independent normal noise."""
    quantiles = np.stack([clean.quantile((k + 0.5) / nodes) for k in range(nodes)])
    return NoisyMarginals(clean.mean, clean.variance + noise_variance, quantiles, noise_variance, clean)
