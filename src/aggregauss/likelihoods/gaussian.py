"""Gaussian noise: y = f + e, e ~ N(0, σ²), or N(0, σ² Σ_i w_i²) when the noise belongs to the individuals of a bag."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from aggregauss.checks import one_of
from aggregauss.likelihoods.conjugate import Conjugate
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.marginals import GaussianMarginals, Marginals, noisy
from aggregauss.parameters import parameter


class Gaussian(Conjugate):
    """Normal noise of one learned variance; `noise_variance` in `fit` adds what is known of each observation.

    `Gaussian(ag.fixed(0.0))` leaves only the known noise. With `per="individual"` every individual of a bag has noise
    of that variance, so that a total with weights w has Σ_i w_i² times as much.
    """

    variance: Float[Array, ""] = parameter(role="noise")
    per: str = eqx.field(static=True, kw_only=True)
    takes_noise = True

    def __init__(self, variance: Any = None, *, per: Literal["observation", "individual"] = "observation"):
        self._declare(variance=variance)
        self.per = one_of(per, ("observation", "individual"), "Gaussian", "per")
        self._set_link("identity")

    def noise_share(self, seen: Seen) -> Float[Array, "..."]:
        """Σ w² over the individuals, or one."""
        return seen.scale if self.per == "individual" else jnp.ones_like(seen.y)

    def noise(self, seen: Seen) -> Float[Array, "..."]:
        """What is known and what is learned."""
        return seen.known + self.variance * self.noise_share(seen)

    def log_prob(
        self, y: Float[Array, "..."], eta: Float[Array, "..."], size: Float[Array, "..."] | float = 1.0
    ) -> Float[Array, "..."]:
        """log N(y; η, σ²)."""
        return norm.logpdf(y, eta, jnp.sqrt(self.variance))

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
