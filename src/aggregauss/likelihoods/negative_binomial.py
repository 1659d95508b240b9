"""Overdispersed counts: y ~ NegativeBinomial with mean η and variance η + η² / r."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values, log_factorial, safe_log, whole
from aggregauss.likelihoods.sums import Sums
from aggregauss.marginals import Marginals, observed
from aggregauss.parameters import parameter


class NegativeBinomial(Likelihood):
    """Counts that vary more than Poisson counts do; as `dispersion` r grows they become Poisson.

    >>> import aggregauss as ag
    >>> round(float(ag.NegativeBinomial(1.0).log_prob(jnp.array(0.0), jnp.array(1.0))), 6)  # log r / (r + η)
    -0.693147
    """

    dispersion: Float[Array, ""] = parameter(role="dispersion")
    links = ("exp", "square")

    def __init__(self, dispersion: Any = 10.0, link: Literal["exp", "square"] = "exp"):
        self._declare(dispersion=dispersion)
        self._set_link(link)

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log Γ(y+r) / (Γ(r) y!) + r log r + y log η - (y + r) log(r + η)."""
        r = self.dispersion.astype(eta.dtype)
        return self._constant(y, r) + y * safe_log(eta) - (y + r) * jnp.log(r + eta)

    def jensen(self, seen: Seen, sums: Sums) -> Values:
        """y log Σ w e^{E log g} - (y + r) log(r + E η) + ...: both by concavity of the logarithm."""
        y, r = seen.y, self.dispersion.astype(sums.mean.dtype)
        return self._constant(y, r) + y * sums.log_below() - (y + r) * jnp.log(r + sums.expected())

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new count."""
        return observed(response, "negative_binomial", dispersion=float(self.dispersion))

    def scatter(self, eta: np.ndarray) -> np.ndarray:
        """η + η² / r."""
        return eta + eta**2 / float(self.dispersion)

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Counts only."""
        super().check(y, counts, is_mean)
        self._refuse(y, ~whole(y), "counts 0, 1, 2, ...", "Give counts, with populations as weights, not rates.")

    def _constant(self, y: Values, r: Values) -> Values:
        return gammaln(y + r) - gammaln(r) - log_factorial(y) + r * jnp.log(r)
