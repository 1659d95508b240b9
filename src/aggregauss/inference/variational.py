"""The Gaussian q(ε) over whitened inducing variables, by its natural parameters, and how it is moved."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss import linalg

HALVINGS = 30


class Variational(eqx.Module):
    """q(ε) by its natural parameters, precision Λ = Σ⁻¹ and shift Λ μ, with μ and Σ beside."""

    precision: Float[Array, "m m"]
    shift: Float[Array, " m"]
    mean: Float[Array, " m"]
    covariance: Float[Array, "m m"]


class Moments2(NamedTuple):
    """μ and Σ of q(ε)."""

    mean: Float[Array, " m"]
    covariance: Float[Array, "m m"]


class Target(NamedTuple):
    """The natural parameters I - 2 G_Σ and G_μ - 2 G_Σ μ that q would have, were the model conjugate."""

    precision: Float[Array, "m m"]
    shift: Float[Array, " m"]

    def gradient(self, mean: Float[Array, " m"]) -> Moments2:
        """G_μ and G_Σ again, given the μ at which they were taken."""
        G_cov = 0.5 * (jnp.eye(len(mean)) - self.precision)
        return Moments2(self.shift + 2.0 * G_cov @ mean, G_cov)


def by_natural(precision: Array, shift: Array) -> Variational:
    """q from Λ and Λ μ; not a number where Λ is not positive definite."""
    covariance = linalg.inverse(precision)
    return Variational(precision, shift, covariance @ shift, covariance)


def by_moments(q: Moments2) -> Variational:
    """q from μ and Σ."""
    precision = linalg.inverse(q.covariance)
    return Variational(precision, precision @ q.mean, q.mean, q.covariance)


def towards(now: Variational, target: Target, rho: Array) -> tuple[Variational, Array]:
    """A share rho of the way, halved until the precision stays positive definite, and that share."""

    def mixed(share: Array) -> Variational:
        precision = (1.0 - share) * now.precision + share * target.precision
        return by_natural(precision, (1.0 - share) * now.shift + share * target.shift)

    def refused(state: tuple[Array, Variational, Array]) -> Array:
        _, q, done = state
        return ~jnp.isfinite(q.covariance[-1, -1]) & (done < HALVINGS)

    def halve(state: tuple[Array, Variational, Array]) -> tuple[Array, Variational, Array]:
        share, _, done = state
        return 0.5 * share, mixed(0.5 * share), done + 1

    share, q, _ = jax.lax.while_loop(refused, halve, (rho, mixed(rho), jnp.asarray(0)))
    return q, share


def mean_towards(now: Variational, target: Target, share: Array) -> tuple[Variational, Array]:
    """A share of the Newton step μ + Σ (G_μ - μ), with Σ as it is."""
    return with_mean(now, now.mean + share * now.covariance @ (target.gradient(now.mean).mean - now.mean)), share


def with_mean(q: Variational, mean: Float[Array, " m"]) -> Variational:
    """q with another mean."""
    return Variational(q.precision, q.precision @ mean, mean, q.covariance)


def divergence(q: Moments2) -> Float[Array, ""]:
    """KL(N(μ, Σ) | N(0, I))."""
    L = jnp.linalg.cholesky(q.covariance)
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(L)))
    return 0.5 * (jnp.trace(q.covariance) + q.mean @ q.mean - len(q.mean) - log_det)


def divergence_slope(q: Variational) -> Moments2:
    """Its derivatives, μ and ½ (I - Λ)."""
    return Moments2(q.mean, 0.5 * (jnp.eye(len(q.mean)) - q.precision))
