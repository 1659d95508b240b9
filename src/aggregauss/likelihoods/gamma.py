"""Positive amounts: y ~ Gamma with mean η and shape k; the exponential distribution is k = 1.

    log p(y | η) = k log k - log Γ(k) + (k - 1) log y - k log η - k y / η

Under the exp link E[1/g(v)] = e^{-m + S/2}. Under the square link E[1/v²] diverges, so it is not offered.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values, safe_log
from aggregauss.likelihoods.sums import Sums
from aggregauss.marginals import Marginals, observed
from aggregauss.parameters import fixed, parameter


class _Positive(Likelihood):
    """What gamma-distributed amounts share."""

    shape: Float[Array, ""] = parameter(role="shape")
    links = ("exp",)

    def _set_link(self, link: str) -> None:
        if link == "square":
            raise ValueError(
                f'{type(self).__name__}: "link" must be "exp". Under the square link the expected log likelihood '
                "contains E[1/v²], which diverges for a normal v."
            )
        super()._set_link(link)

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """The formula above."""
        return self._constant(y) - self._k(y) * (safe_log(eta) + y / jnp.maximum(eta, jnp.finfo(eta.dtype).tiny))

    def expected_log_prob(self, seen: Seen, a: Values, b: Values) -> Values:
        """E log η = a and E 1/η = e^{-a + b/2}."""
        return self._constant(seen.y) - self._k(seen.y) * (a + seen.y * jnp.exp(-a + 0.5 * b))

    def jensen(self, seen: Seen, sums: Sums) -> Values:
        """-k log E η - k y / Σ_i (w_i / E[1/g_i])."""
        y = seen.y
        return self._constant(y) - self._k(y) * (safe_log(sums.expected()) + y * sums.reciprocal_above())

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new amount."""
        return observed(response, "gamma", shape=float(self.shape))

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Positive amounts only."""
        super().check(y, counts, is_mean)
        self._refuse(y, ~(y > 0), "positive", "Leave out zeros, or use a likelihood for counts.")

    def _k(self, y: Values) -> Values:
        return self.shape.astype(y.dtype)

    def _constant(self, y: Values) -> Values:
        k = self._k(y)
        return k * jnp.log(k) - gammaln(k) + (k - 1.0) * jnp.log(y)


class GammaResponse(_Positive):
    """Amounts with mean η and variance η² / shape, the shape learned (`Gamma` is a prior density).

    >>> import aggregauss as ag
    >>> round(float(ag.GammaResponse(1.0).log_prob(jnp.array(2.0), jnp.array(1.0))), 6)
    -2.0
    """

    def __init__(self, shape: Any = 2.0, link: str = "exp"):
        self._declare(shape=shape)
        self._set_link(link)


class Exponential(_Positive):
    """Waiting times and the like: p(y) = e^{-y/η} / η.

    >>> import aggregauss as ag
    >>> round(float(ag.Exponential().log_prob(jnp.array(2.0), jnp.array(1.0))), 6)
    -2.0
    """

    def __init__(self, link: str = "exp"):
        self._declare(shape=fixed(1.0))
        self._set_link(link)
