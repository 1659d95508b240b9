"""Gaussian sites: the one loop of expectation propagation.

Each factor t_i(f_i) of the posterior (a likelihood term, or a constraint at a virtual point) is replaced by a Gaussian
site exp(ν_i f_i - ½ τ_i f_i²) whose parameters make the moments right in the context of all the others (the cavity).
The moments come from derivatives of the smoothed log factor log Z_i(m, v) = log ∫ t_i(f) N(f; m, v) df in m.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from aggregauss import linalg

LogZ = Callable[[Float[Array, " n"], Float[Array, " n"]], Float[Array, " n"]]


class Sites(eqx.Module):
    """Natural parameters of the sites."""

    tau: Float[Array, " n"]
    nu: Float[Array, " n"]


class Marginal(NamedTuple):
    """Means and variances."""

    mean: Float[Array, " n"]
    variance: Float[Array, " n"]


class _State(NamedTuple):
    sites: Sites
    done: Array
    change: Array  # of the marginals, in standard deviations
    share: Array
    before: Marginal


class Outcome(NamedTuple):
    """Where the loop ended."""

    sites: Sites
    sweeps: Array
    change: Array


def propagate(
    K: Float[Array, "n n"],
    m: Float[Array, " n"],
    log_z: LogZ,
    damping: float,
    max_sweeps: int,
    tolerance: float,
) -> Outcome:
    """Refresh all sites at once until the marginals stop moving.

    Sites move by a share of the way, `damping` at first; whenever the marginals moved more than in the sweep before,
    the share is lowered.
    """

    def sweep(state: _State) -> _State:
        now = marginals(K, m, state.sites)
        moved = jnp.abs(now.mean - state.before.mean) / jnp.sqrt(now.variance)
        change = jnp.max(moved + jnp.abs(now.variance / state.before.variance - 1.0))
        share = jnp.where(change > state.change, 0.7 * state.share, state.share)
        fresh = _refresh(now, state.sites, log_z)
        valid = jnp.isfinite(fresh.tau) & jnp.isfinite(fresh.nu) & (fresh.tau >= 0)
        sites = jax.tree.map(lambda a, b: jnp.where(valid, (1 - share) * a + share * b, a), state.sites, fresh)
        return _State(sites, state.done + 1, change, share, now)

    def going(state: _State) -> Array:
        return (state.done < max_sweeps) & ((state.change > tolerance) | (state.done < 2))

    none = Sites(jnp.zeros_like(m), jnp.zeros_like(m))
    first = _State(none, jnp.array(0), jnp.array(jnp.inf), jnp.array(damping), Marginal(m, jnp.diagonal(K)))
    last = jax.lax.while_loop(going, sweep, first)
    return Outcome(last.sites, last.done, last.change)


def log_normaliser(K: Float[Array, "n n"], m: Float[Array, " n"], sites: Sites) -> Float[Array, ""]:
    """log ∫ N(f; m, K) Π_i exp(ν_i f_i - ½ τ_i f_i²) df."""
    L, root = _root(K, sites)
    b = sites.nu - sites.tau * m
    inner = linalg.lower_solve(L, root * (K @ b))
    quadratic = b @ K @ b - inner @ inner
    return 0.5 * quadratic - jnp.sum(jnp.log(jnp.diagonal(L))) + jnp.sum(sites.nu * m - 0.5 * sites.tau * m**2)


def marginals(K: Float[Array, "n n"], m: Float[Array, " n"], sites: Sites) -> Marginal:
    """Means and variances of the f_i under the Gaussian approximation."""
    L, root = _root(K, sites)
    V = linalg.lower_solve(L, root[:, None] * K)
    covariance = K - V.T @ V
    return Marginal(m + covariance @ (sites.nu - sites.tau * m), jnp.diagonal(covariance))


def cavities(now: Marginal, sites: Sites) -> Marginal:
    """The marginals without each one's own site."""
    variance = 1.0 / (1.0 / now.variance - sites.tau)
    return Marginal(variance * (now.mean / now.variance - sites.nu), variance)


def log_site_integral(cavity: Marginal, sites: Sites) -> Float[Array, " n"]:
    """log ∫ N(f; cavity) exp(ν f - ½ τ f²) df."""
    inflation = 1.0 + sites.tau * cavity.variance
    natural = cavity.mean / cavity.variance + sites.nu
    exponent = natural**2 * cavity.variance / inflation - cavity.mean**2 / cavity.variance
    return 0.5 * (exponent - jnp.log(inflation))


def solve(K: Float[Array, "n n"], m: Float[Array, " n"], sites: Sites) -> tuple[Array, Array, Array]:
    """(α, L, √τ) of the posterior with these sites: mean m + k α, and L the factor of I + √τ K √τ."""
    L, root = _root(K, sites)
    b = sites.nu - sites.tau * m
    return b - root * cho_solve((L, True), root * (K @ b)), L, root


def _refresh(now: Marginal, sites: Sites, log_z: LogZ) -> Sites:
    cavity = cavities(now, sites)
    slope = jax.grad(lambda mean: jnp.sum(log_z(mean, cavity.variance)))
    first, second = jax.jvp(slope, (cavity.mean,), (jnp.ones_like(cavity.mean),))
    shrink = 1.0 + cavity.variance * second
    return Sites(-second / shrink, (first - cavity.mean * second) / shrink)


def _root(K: Array, sites: Sites) -> tuple[Array, Array]:
    root = jnp.sqrt(sites.tau)
    B = jnp.eye(K.shape[0], dtype=K.dtype) + root[:, None] * K * root[None, :]
    return jax.lax.linalg.cholesky(B, symmetrize_input=False), root
