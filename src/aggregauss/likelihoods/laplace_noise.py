"""Laplace noise, as the Laplace mechanism of differential privacy adds it: y = f + e + g, p(e) = exp(-|e|/b) / (2b).

g ~ N(0, σ²) is ordinary noise beside it. With s² the variance of f plus σ², d = y - m and the Mills ratio M,

    Z = (1/2b) φ(d/s) [ M(s/b - d/s) + M(s/b + d/s) ],

which, unlike the same in terms of Φ, subtracts no large numbers when b is small beside s.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values
from aggregauss.marginals import GaussianMarginals, LaplaceMarginals, Marginals
from aggregauss.parameters import Param, fixed, parameter
from aggregauss.special import log_mills


class LaplaceNoise(Likelihood):
    """Laplace noise of known `scale` b (a number or one for each observation) beside normal noise of learned variance.

    >>> import aggregauss as ag
    >>> likelihood = ag.LaplaceNoise(scale=1 / 0.1)  # a histogram released with epsilon = 0.1
    """

    scale: Float[Array, "..."] = parameter()
    variance: Float[Array, ""] = parameter(role="noise")
    takes_noise = True

    def __init__(self, scale: Any, variance: Any = None):
        self._declare(scale=scale if isinstance(scale, Param) else fixed(scale), variance=variance)
        self._set_link("identity")

    def log_prob(
        self, y: Float[Array, "..."], eta: Float[Array, "..."], size: Float[Array, "..."] | float = 1.0
    ) -> Float[Array, "..."]:
        """log p(y | η), the ordinary noise integrated out."""
        return self._log_prob(y, eta, jnp.zeros_like(eta))

    def log_smoothed(
        self, y: Float[Array, "..."], mean: Float[Array, "..."], variance: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """log Z."""
        b, total = self.scale, jnp.maximum(variance + self.variance, 1e-30)
        s = jnp.sqrt(total)
        z, r = (y - mean) / s, s / b
        tails = jnp.logaddexp(log_mills(r - z), log_mills(r + z))
        return norm.logpdf(z) - jnp.log(2 * b) + tails

    def log_density(self, seen: Seen, eta: Values) -> Values:
        """log p(y | η) with the known noise beside."""
        if self.scale.ndim:
            raise TypeError(
                "LaplaceNoise: a scale for each observation is known to EP only, which fits a GP. Use "
                "GP(...).fit(..., inference=EP()), or one scale."
            )
        return self._log_prob(seen.y, eta, seen.known)

    def _log_prob(self, y: Values, eta: Values, known: Values) -> Values:
        """log p(y | η) beside normal noise, of which there may be none."""
        plain = -jnp.abs(y - eta) / self.scale - jnp.log(2 * self.scale)
        return jnp.where(self.variance + known > 0, self.log_smoothed(y, eta, known), plain)

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """One scale, or one for each observation."""
        super().check(y, counts, is_mean)
        if self.scale.ndim and self.scale.shape != y.shape:
            raise ValueError(
                f'LaplaceNoise: "scale" must be one number or {len(y)}, one for each observation, but has shape '
                f"{self.scale.shape}."
            )

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """Normal plus Laplace."""
        if not isinstance(response, GaussianMarginals):
            raise TypeError("predict: a new observation under a constraint is known for Gaussian noise only.")
        mean = response.mean
        normal, b = np.asarray(response.variance + self.variance), np.broadcast_to(self.scale, mean.shape)
        return LaplaceMarginals(mean, normal + 2 * b**2, normal, b)
