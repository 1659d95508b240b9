"""Expected log likelihoods of bags: E log p(y | Σ_i w_i g(v_i)) under a Gaussian q(v).

    matched   the bag is handled as one individual g(a + bZ) with the same mean and variance as the sum (the default);
              exact for one individual, and for many that move together or that average out
    taylor    second order about the mean η̄ = E η:  h(η̄) + ½ h''(η̄) Var η,  h(η) = log p(y | η)
    jensen    Lemma 1 of Law et al. (2018): a lower bound, blind to covariances within a bag
    mc        average over draws of v, differentiated through them

Var η = Σ_ij w_i w_j Cov(g(v_i), g(v_j)) is split: what is linear in the part of the covariance that q describes,
c Σ cᵀ with c = Σ_i d_i c_i and d_i = w_i E g'(v_i), is summed over all individuals, because there large terms cancel;
the rest is summed over pairs of probes. Cost: products of bags x m x m, and bags x probes² x m.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.inference.sparse import (
    Group,
    Prepared,
    features,
    learned_variance,
    mean_at,
    pair_sum,
    prior_variance,
    probe,
    row_quadratic,
)
from aggregauss.likelihoods.sums import Sums

DRAWS = 32  # of v, in pairs of opposite sign
BOUNDS = ("matched", "taylor", "jensen", "mc")


class Field(NamedTuple):
    """The latent function over the atoms of a group."""

    K: Float[Array, "a m"]
    mean: Float[Array, " a"]
    variance: Float[Array, " a"]


def expected(model: Any, Z: Array, now: Prepared, group: Group, bound: str, key: Array) -> Float[Array, " b"]:
    """E log p(y | η) for every bag of the group; zero for padding."""
    linear = model.aggregation == "latent" or model.likelihood.link == "identity"
    rule: Callable[..., Array] = _aggregate_first if linear else _RULES[bound]
    return group.present * rule(model, Z, now, group, key)


def _aggregate_first(model: Any, Z: Array, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    """The integral of f over each support is itself normal."""
    K, mean = features(model, group.atoms, Z), mean_at(model, group.atoms)
    a = _total(group, group.weight * (mean + K @ now.alpha))
    T = _total(group, group.weight[:, None] * K)
    at = probe(model, Z, now, group)
    b = learned_variance(now, T) + pair_sum(group, at.open)
    return model.likelihood.expected_log_prob(group.seen, a, jnp.maximum(b, 0.0))


def _matched(model: Any, Z: Array, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    mean, variance = response_moments(model, Z, now, group)
    a, b = model.likelihood.g.match(mean, variance)
    return model.likelihood.expected_log_prob(group.seen, a, b)


def _taylor(model: Any, Z: Array, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    mean, variance = response_moments(model, Z, now, group)
    one = jnp.ones_like(mean)

    def h(eta: Array) -> Array:
        return model.likelihood.log_density(group.seen, eta)

    def slope(eta: Array) -> Array:
        return jax.jvp(h, (eta,), (one,))[1]

    return h(mean) + 0.5 * variance * jax.jvp(slope, (mean,), (one,))[1]


def _jensen(model: Any, Z: Array, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    f = _field(model, Z, now, group)
    size, link = len(group.present), model.likelihood.link
    sums = Sums(f.mean, f.variance, group.weight, group.owner, size, link)
    return model.likelihood.jensen(group.seen, sums)


def _mc(model: Any, Z: Array, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    """Draws of u give f up to r, which is drawn for each individual by itself."""
    f = _field(model, Z, now, group)
    left = prior_variance(model, group.atoms) - row_quadratic(f.K, now.whiten @ now.whiten.T)
    sd = jnp.sqrt(jnp.maximum(left, jnp.finfo(left.dtype).tiny))
    first, second = jax.random.split(key)
    m, dtype = f.K.shape[1], f.K.dtype
    root = jnp.linalg.cholesky(now.covariance.astype(float)).astype(dtype)
    through_u = f.K @ (now.whiten @ (root @ _pairs(first, m, dtype)))
    v = f.mean[:, None] + through_u + sd[:, None] * _pairs(second, len(sd), dtype)
    eta = _total(group, group.weight[:, None] * model.likelihood.g.forward(v))
    safe = jnp.where(group.present[:, None] > 0, eta, 0.5)
    densities = jax.vmap(lambda e: model.likelihood.log_density(group.seen, e), in_axes=1)(safe)
    return jnp.mean(densities, axis=0)


_RULES: dict[str, Callable[..., Array]] = {"matched": _matched, "taylor": _taylor, "jensen": _jensen, "mc": _mc}


def _pairs(key: Array, rows: int, dtype: Any) -> Float[Array, "rows draws"]:
    half = jax.random.normal(key, (rows, DRAWS // 2), dtype)
    return jnp.concatenate([half, -half], axis=1)


def _field(model: Any, Z: Array, now: Prepared, group: Group) -> Field:
    K = features(model, group.atoms, Z)
    variance = prior_variance(model, group.atoms) - row_quadratic(K, now.Q)
    return Field(K, mean_at(model, group.atoms) + K @ now.alpha, jnp.maximum(variance, 0.0))


class Individual(NamedTuple):
    """Each bag as one individual g(v), v = a + c (ε - μ) to first order: c, and the curvature -E ∂²log p/∂v²."""

    direction: Float[Array, "b m"]
    curvature: Float[Array, " b"]


def individuals(model: Any, Z: Array, now: Prepared, group: Group) -> Individual:
    """The direction in which a bag's response moves, and how sharply its observation pins it."""
    likelihood = model.likelihood
    if model.aggregation == "latent" or likelihood.link == "identity":
        K, mean = features(model, group.atoms, Z), mean_at(model, group.atoms)
        T, slope = _total(group, group.weight[:, None] * K), 1.0
        a = _total(group, group.weight * (mean + K @ now.alpha))
        b = learned_variance(now, T) + pair_sum(group, probe(model, Z, now, group).open)
    else:
        mean, variance, T = _response(model, Z, now, group)
        a, b = likelihood.g.match(mean, variance)
        slope = jax.jvp(lambda m: likelihood.g.mean(m, b), (a,), (jnp.ones_like(a),))[1][:, None]
    rise = jax.jvp(lambda s: likelihood.expected_log_prob(group.seen, a, s), (b,), (jnp.ones_like(b),))[1]
    return Individual(T @ now.whiten / slope, group.present * jnp.maximum(-2.0 * rise, 0.0))


def response_moments(model: Any, Z: Array, now: Prepared, group: Group) -> tuple[Array, Array]:
    """Mean and variance of η = Σ_i w_i g(v_i)."""
    return _response(model, Z, now, group)[:2]


def _response(model: Any, Z: Array, now: Prepared, group: Group) -> tuple[Array, Array, Array]:
    """Mean and variance of η, and the covariance of its linear part with the inducing variables."""
    f, g = _field(model, Z, now, group), model.likelihood.g
    one = jnp.ones_like(f.mean)
    each, slope = jax.jvp(lambda m: g.mean(m, f.variance), (f.mean,), (one,))
    mean = _total(group, group.weight * each)
    T = _total(group, (group.weight * slope)[:, None] * f.K)
    at = probe(model, Z, now, group)
    d = jax.jvp(lambda m: g.mean(m, at.variance), (at.mean,), (jnp.ones_like(at.mean),))[1]
    C = g.covariance(at.mean, at.variance, at.open + at.learned)
    rest = pair_sum(group, C - d[:, :, None] * d[:, None, :] * at.learned)
    variance = learned_variance(now, T) + rest
    safe = jnp.where(group.present > 0, mean, 0.5)  # padding must not make a logarithm infinite
    return safe, jnp.maximum(variance, 1e-12 * safe**2), T


def _total(group: Group, values: Array) -> Array:
    return jax.ops.segment_sum(values, group.owner, len(group.present), indices_are_sorted=True)
