"""Counts: y ~ Poisson(η), and with an effect of the region y ~ Poisson(η e^v), v ~ N(0, s²).

The effect is integrated out: with ℓ(v) = y log η + y v - η e^v - v²/(2s²) and its mode v̂, adaptive Gauss-Hermite
quadrature around v̂ in units of (-ℓ'')^{-1/2} stays accurate however large the counts.
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values, log_factorial, safe_log, sd_of_regions, whole
from aggregauss.likelihoods.links import expectation_at_once
from aggregauss.likelihoods.sums import Sums
from aggregauss.marginals import Marginals, observed
from aggregauss.parameters import parameter

NODES, WEIGHTS = (x.astype(float) for x in np.polynomial.hermite_e.hermegauss(16))
MODE_STEPS = 8


class Poisson(Likelihood):
    """Counts with mean η = g(f) at a point, or Σ_i w_i g(f_i) over a bag whose weights are populations.

    `link` is "exp" or "square". `region_effect=True` multiplies the mean of every observation by an independent e^v,
    v ~ N(0, region_sd²) with a learned `region_sd`: counts that vary more than Poisson counts do.

    >>> import aggregauss as ag
    >>> float(ag.Poisson().log_prob(jnp.array(0.0), jnp.array(2.0)))
    -2.0
    """

    region_sd: Float[Array, ""] = parameter(role="region_sd")
    region_effect: bool = eqx.field(static=True, kw_only=True)
    links = ("exp", "square")

    def __init__(self, link: Literal["exp", "square"] = "exp", *, region_effect: bool = False, region_sd: Any = None):
        self.region_effect = bool(region_effect)
        self._declare(region_sd=sd_of_regions(region_effect, region_sd, "Poisson"))
        self._set_link(link)

    @property
    def concave(self) -> bool:
        """Yes, unless the effect of the region is integrated out."""
        return not self.region_effect

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """y log η - η - log y!, the effect of the region integrated out."""
        if self.region_effect:
            return _mixed(y, eta, self.region_sd.astype(eta.dtype))
        return y * safe_log(eta) - eta - log_factorial(y)

    def expected_log_prob(self, seen: Seen, a: Values, b: Values) -> Values:
        """y E log g - E g - log y!."""
        if self.region_effect:
            return expectation_at_once(lambda v: self.log_density(seen, self.g.forward(v)), a, b)
        return seen.y * self.g.log_mean(a, b) - self.g.mean(a, b) - log_factorial(seen.y)

    def jensen(self, seen: Seen, sums: Sums) -> Values:
        """y log Σ w e^{E log g} - Σ w E g - log y!."""
        if self.region_effect:
            return super().jensen(seen, sums)
        return seen.y * sums.log_below() - sums.expected() - log_factorial(seen.y)

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new count."""
        if self.region_effect:
            return observed(response, "poisson_lognormal", sd=float(self.region_sd))
        return observed(response, "poisson")

    def scatter(self, eta: np.ndarray) -> np.ndarray:
        """η, and what the effect of the region adds."""
        if not self.region_effect:
            return eta
        return eta + eta**2 * np.expm1(float(self.region_sd) ** 2)

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Counts only."""
        super().check(y, counts, is_mean)
        self._refuse(y, ~whole(y), "counts 0, 1, 2, ...", "Give counts, with populations as weights, not rates.")


def _mixed(y: Values, eta: Values, s: Values) -> Values:
    precision = 1.0 / s**2
    log_eta = safe_log(eta)
    fixed_log_eta, fixed_precision = jax.lax.stop_gradient((log_eta, precision))

    def newton(_: Any, v: Values) -> Values:
        rate = jnp.exp(fixed_log_eta + v)
        return v + jnp.clip((y - rate - v * fixed_precision) / (rate + fixed_precision), -1.0, 1.0)

    start = (jnp.log(y + 0.5) - fixed_log_eta) * (y + 0.5) / (y + 0.5 + fixed_precision)
    mode = jax.lax.stop_gradient(jax.lax.fori_loop(0, MODE_STEPS, newton, start))
    width = jax.lax.stop_gradient(1.0 / jnp.sqrt(jnp.exp(fixed_log_eta + mode) + fixed_precision))
    column = (-1,) + (1,) * log_eta.ndim  # an axis of their own: one term for each would take long to compile
    nodes = jnp.asarray(NODES, log_eta.dtype).reshape(column)
    weights = jnp.asarray(np.log(WEIGHTS) + 0.5 * NODES**2, log_eta.dtype).reshape(column)
    v = mode[None] + width[None] * nodes
    y_each, log_each = (jnp.broadcast_to(x, log_eta.shape)[None] for x in (y, log_eta))
    density = y_each * (log_each + v) - jnp.exp(log_each + v) - 0.5 * precision * v**2
    inside = jax.scipy.special.logsumexp(density + weights, axis=0)
    return inside + jnp.log(width) - 0.5 * jnp.log(2 * jnp.pi * s**2) - log_factorial(y)
