"""Shares strictly between zero and one: y ~ Beta(φη, φ(1 - η)), of mean η and variance η (1 - η) / (1 + φ)."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from aggregauss.likelihoods.binomial import EDGE
from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values
from aggregauss.likelihoods.links import expectation_at_once
from aggregauss.marginals import Marginals, observed
from aggregauss.parameters import parameter


class Beta(Likelihood):
    """Shares, such as cover by vegetation; `precision` φ is learned.

    >>> import aggregauss as ag
    >>> round(float(ag.Beta(2.0).log_prob(jnp.array(0.3), jnp.array(0.5))), 6)  # uniform
    0.0
    """

    precision: Float[Array, ""] = parameter(role="dispersion")
    links = ("logit", "probit")

    def __init__(self, precision: Any = 10.0, link: Literal["logit", "probit"] = "logit"):
        self._declare(precision=precision)
        self._set_link(link)

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """(φη - 1) log y + (φ(1 - η) - 1) log(1 - y) - log B(φη, φ(1 - η))."""
        phi = self.precision.astype(eta.dtype)
        eta = jnp.clip(eta, EDGE, 1.0 - EDGE)
        a, b = phi * eta, phi * (1.0 - eta)
        return (a - 1.0) * jnp.log(y) + (b - 1.0) * jnp.log1p(-y) + gammaln(phi) - gammaln(a) - gammaln(b)

    def expected_log_prob(self, seen: Seen, a: Values, b: Values) -> Values:
        """By quadrature."""
        return expectation_at_once(lambda v: self.log_density(seen, self.g.forward(v)), a, b)

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new share."""
        return observed(response, "beta", precision=float(self.precision))

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Strictly between zero and one, and supports over which they are averaged."""
        super().check(y, counts, is_mean)
        self._refuse(y, ~((y > 0) & (y < 1)), "shares strictly between 0 and 1", "For counts of trials use Binomial.")
        if not is_mean:
            raise ValueError(
                "fit: Beta averages shares over each support, but these supports are totals with a mass other than "
                'one. Make them with measure="mean".'
            )
