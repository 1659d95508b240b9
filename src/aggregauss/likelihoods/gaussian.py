"""Gaussian noise: y = f + e, e ~ N(0, σ²), or N(0, σ² Σ_i w_i²) when the noise belongs to the individuals of a bag."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from aggregauss.checks import one_of
from aggregauss.likelihoods.likelihood import Likelihood, Seen
from aggregauss.marginals import GaussianMarginals, Marginals, noisy
from aggregauss.parameters import parameter


class Gaussian(Likelihood):
    """Normal noise of one learned variance; `noise_variance` in `fit` adds what is known of each observation.

    `Gaussian(ag.fixed(0.0))` leaves only the known noise. With `per="individual"` every individual of a bag has noise
    of that variance, so that a total with weights w has Σ_i w_i² times as much.
    """

    variance: Float[Array, ""] = parameter(role="noise")
    per: str = eqx.field(static=True, kw_only=True)

    def __init__(self, variance: Any = None, *, per: Literal["observation", "individual"] = "observation"):
        self._declare(variance=variance)
        self.per = one_of(per, ("observation", "individual"), "Gaussian", "per")
        self._set_link("identity")

    def noise(self, scale: Float[Array, " n"], known: Float[Array, " n"]) -> Float[Array, " n"]:
        """Variance of each observation, given Σ w² over its individuals and what is known beside."""
        return known + self.variance * (scale if self.per == "individual" else jnp.ones_like(scale))

    def log_prob(
        self, y: Float[Array, "..."], eta: Float[Array, "..."], size: Float[Array, "..."] | float = 1.0
    ) -> Float[Array, "..."]:
        """log N(y; η, σ²)."""
        return norm.logpdf(y, eta, jnp.sqrt(self.variance))

    def log_density(self, seen: Seen, eta: Float[Array, "..."]) -> Float[Array, "..."]:
        """log N(y; η, noise)."""
        return norm.logpdf(seen.y, eta, jnp.sqrt(self.noise(seen.scale, seen.known)))

    def expected_log_prob(self, seen: Seen, a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
        """log N(y; a, noise) - b / (2 noise)."""
        noise = self.noise(seen.scale, seen.known)
        return norm.logpdf(seen.y, a, jnp.sqrt(noise)) - 0.5 * b / noise

    def log_smoothed(
        self, y: Float[Array, "..."], mean: Float[Array, "..."], variance: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """log N(y; mean, variance + σ²)."""
        return norm.logpdf(y, mean, jnp.sqrt(variance + self.variance))

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """The response with noise beside."""
        noise = float(self.variance) * (scale if self.per == "individual" else np.ones_like(scale))
        if isinstance(response, GaussianMarginals):
            return GaussianMarginals(response.mean, response.variance + noise)
        return noisy(response, noise)
