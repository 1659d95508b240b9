"""Gaussian noise: y = f + e, e ~ N(0, σ²)."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood
from aggregauss.marginals import GaussianMarginals, Marginals
from aggregauss.parameters import parameter


class Gaussian(Likelihood):
    """Normal noise of one learned variance; `noise_variance` in `fit` adds what is known of each observation.

    `Gaussian(ag.fixed(0.0))` leaves only the known noise.
    """

    variance: Float[Array, ""] = parameter(role="noise")

    def __init__(self, variance: Any = None):
        self._declare(variance=variance)

    def log_prob(self, y: Float[Array, "..."], f: Float[Array, "..."]) -> Float[Array, "..."]:
        """log N(y; f, σ²)."""
        return norm.logpdf(y, f, jnp.sqrt(self.variance))

    def log_smoothed(
        self, y: Float[Array, "..."], mean: Float[Array, "..."], variance: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """log N(y; mean, variance + σ²)."""
        return norm.logpdf(y, mean, jnp.sqrt(variance + self.variance))

    def observation(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:
        """N(mean, variance + σ²)."""
        return GaussianMarginals(mean, variance + float(self.variance))
