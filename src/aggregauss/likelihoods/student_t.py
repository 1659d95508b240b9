"""Noise with heavy tails: (y - η) / σ ~ Student's t with ν degrees of freedom."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values
from aggregauss.likelihoods.links import expectation_at_once
from aggregauss.marginals import Marginals, observed
from aggregauss.parameters import param, parameter

LEAST, MOST = 2.1, 200.0  # degrees of freedom: with two or fewer there is no variance


class StudentT(Likelihood):
    """Observations with outliers; σ² is `variance`, and `degrees` of freedom are learned between 2.1 and 200.

    >>> import aggregauss as ag
    >>> round(float(ag.StudentT(1.0, 3.0).log_prob(jnp.array(0.0), jnp.array(0.0))), 6)  # log 2 / (π √3)
    -1.000889
    """

    variance: Float[Array, ""] = parameter(role="noise")
    degrees: Float[Array, ""] = parameter(role="degrees")

    def __init__(self, variance: Any = None, degrees: Any = None):
        self._declare(variance=variance, degrees=param(4.0, bounds=(LEAST, MOST)) if degrees is None else degrees)
        self._set_link("identity")

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log Γ((ν+1)/2) / (Γ(ν/2) √(πν) σ) - (ν+1)/2 log(1 + (y - η)² / (ν σ²))."""
        v, s2 = self.degrees.astype(eta.dtype), self.variance.astype(eta.dtype)
        constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * jnp.log(jnp.pi * v * s2)
        return constant - 0.5 * (v + 1) * jnp.log1p((y - eta) ** 2 / (v * s2))

    def expected_log_prob(self, seen: Seen, a: Values, b: Values) -> Values:
        """By quadrature."""
        return expectation_at_once(lambda v: self.log_density(seen, self.g.forward(v)), a, b)

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """The response with noise beside."""
        return observed(response, "student_t", noise=float(self.variance), degrees=float(self.degrees))
