"""Expected log likelihoods of bags: E log p(y | Σ_i w_i g(v_i)) under a Gaussian q(v).

    linearised  the bag is one individual g(v), v = a + c (ε - μ) + rest: its response at μ, and how that moves with ε,
                to first order (the default)
    matched     the bag is one individual g(a + bZ) with the same mean and variance as the sum
    taylor      second order about the mean η̄ = E η:  h(η̄) + ½ h''(η̄) Var η,  h(η) = log p(y | η)
    jensen      Lemma 1 of Law et al. (2018): a lower bound, blind to covariances within a bag
    mc          average over draws of v, differentiated through them

The first two are exact for one individual, and for many that move together. Where a precise total
leaves its parts open, the true posterior lies along the curved surface Σ_i w_i g(v_i) = y. All but the first keep a
Gaussian q close to it by making q narrow; and then the evidence favours smooth functions, which leave less open.

Var η = Σ_ij w_i w_j Cov(g(v_i), g(v_j)) is split: what is linear in the part of the covariance that q describes,
c Σ cᵀ with c = Σ_i d_i c_i and d_i = w_i E g'(v_i), is summed over all individuals, because there large terms cancel;
the rest is summed over pairs of probes. Cost: products of bags x m x m, and bags x probes² x m.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.inference.inducing import Inducing, features
from aggregauss.inference.products import product_moments
from aggregauss.inference.sparse import (
    Group,
    Prepared,
    learned_variance,
    mean_at,
    pair_sum,
    prior_covariance,
    prior_variance,
    probe,
    row_quadratic,
)
from aggregauss.inference.still import Still, open_part, whole_part
from aggregauss.latent.coregionalisation import channels_on
from aggregauss.likelihoods.sums import Sums

DRAWS = 32  # of v, in pairs of opposite sign
BOUNDS = ("linearised", "matched", "taylor", "jensen", "mc")


class Field(NamedTuple):
    """The latent function over the atoms of a group."""

    K: Float[Array, "a m"]
    mean: Float[Array, " a"]
    variance: Float[Array, " a"]


def expected(model: Any, Z: Inducing, now: Prepared, group: Group, bound: str, key: Array) -> Float[Array, " b"]:
    """E log p(y | η) for every bag of the group; zero for padding."""
    model = model.of_task(group.task)
    linear = model.aggregation == "latent" or model.likelihood.link == "identity"
    rule: Callable[..., Array] = _aggregate_first if linear else _RULES[bound]
    if model.likelihood.functions > 1:
        rule = _aggregate_each
    if getattr(model, "varies", False):
        rule = _products
    return group.present * rule(model, Z, now, group, key)


def _aggregate_first(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    """The integral of f over each support is itself normal, of variance wᵀ k w - T Q Tᵀ with T its covariances.

    Where the first term would be an estimate it must not be the larger part: then what T explains is taken out of it.
    """
    K, mean = features(model, group.atoms, Z), mean_at(model, group.atoms)
    a = _total(group, group.weight * (mean + K @ now.alpha))
    T = _total(group, group.weight[:, None] * K)
    if group.every_atom:
        b = pair_sum(group, prior_covariance(model, group.probes)) - row_quadratic(T, now.Q)
    else:
        b = learned_variance(now, T) + pair_sum(group, probe(model, Z, now, group).open)
    return model.likelihood.expected_log_prob(group.seen, a, jnp.maximum(b, 0.0))


def _aggregate_each(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    """The integrals of several functions over each support are jointly normal."""
    each = range(model.likelihood.functions)
    atoms, probes = ([channels_on(where, j) for j in each] for where in (group.atoms, group.probes))
    K = [features(model, own, Z) for own in atoms]
    m = [_total(group, group.weight * (mean_at(model, own) + k @ now.alpha)) for own, k in zip(atoms, K)]
    T = [_total(group, group.weight[:, None] * k) for k in K]

    def covariance(j: int, k: int) -> Array:
        left = model.kernel.block(probes[j], probes[k])
        if group.every_atom:
            return pair_sum(group, left) - jnp.sum((T[j] @ now.Q) * T[k], axis=1)
        a, b = (features(model, probes[i], Z) @ now.whiten for i in (j, k))
        learned = jnp.sum((T[j] @ now.whiten @ now.covariance) * (T[k] @ now.whiten), axis=1)
        return learned + pair_sum(group, left - a @ jnp.swapaxes(b, -1, -2))

    C = jnp.stack([jnp.stack([covariance(min(j, k), max(j, k)) for k in each], axis=-1) for j in each], axis=-2)
    return model.likelihood.expected_jointly(group.seen, jnp.stack(m, axis=-1), C)


def _products(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    """Integrals of Σ_r W_r u_r, as if they were normal."""
    a, b = product_moments(model, Z, now, group)
    return model.likelihood.expected_log_prob(group.seen, a, b)


def _linearised(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    return linearised_at(model, open_part(model, Z, now, group), now, group)


def linearised_at(model: Any, still: Still, now: Prepared, group: Group) -> Float[Array, " b"]:
    """v is found at μ, where only what the inducing variables leave open varies; its slope is that of E g there."""
    g = model.likelihood.g
    each, slope = _with_slope(lambda m: g.mean(m, still.variance), still.mean + still.K @ now.alpha)
    at, own = still.probe_mean + still.probe_K @ now.alpha, jnp.diagonal(still.covariance, axis1=-2, axis2=-1)
    spread = g.covariance(at, jnp.maximum(own, 0.0), still.covariance)
    mean, variance = _safe(group, _total(group, group.weight * each), pair_sum(group, spread))
    a, b = g.match(mean, variance)
    T = _total(group, (group.weight * slope)[:, None] * still.K)
    direction = T / _with_slope(lambda m: g.mean(m, b), a)[1][:, None]
    return model.likelihood.expected_log_prob(group.seen, a, b + learned_variance(now, direction))


def _matched(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    return matched_at(model, whole_part(model, Z, now, group), now, group)


def matched_at(model: Any, still: Still, now: Prepared, group: Group) -> Float[Array, " b"]:
    """One individual with the mean and the variance of the sum."""
    a, b = model.likelihood.g.match(*_moments_at(model, still, now, group))
    return model.likelihood.expected_log_prob(group.seen, a, b)


def _taylor(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    mean, variance = response_moments(model, Z, now, group)
    one = jnp.ones_like(mean)

    def h(eta: Array) -> Array:
        return model.likelihood.log_density(group.seen, eta)

    def slope(eta: Array) -> Array:
        return jax.jvp(h, (eta,), (one,))[1]

    return h(mean) + 0.5 * variance * jax.jvp(slope, (mean,), (one,))[1]


def _jensen(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    f = _field(model, Z, now, group)
    size, link = len(group.present), model.likelihood.link
    sums = Sums(f.mean, f.variance, group.weight, group.owner, size, link)
    return model.likelihood.jensen(group.seen, sums)


def _mc(model: Any, Z: Inducing, now: Prepared, group: Group, key: Array) -> Float[Array, " b"]:
    """Draws of u give f up to r, which is drawn for each individual by itself."""
    f = _field(model, Z, now, group)
    left = _open_variance(model, now, group, f.K)
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


_RULES: dict[str, Callable[..., Array]] = {
    "linearised": _linearised,
    "matched": _matched,
    "taylor": _taylor,
    "jensen": _jensen,
    "mc": _mc,
}


STILL = {"linearised": (open_part, linearised_at), "matched": (whole_part, matched_at)}


def stays(model: Any, bound: str, covariance_kept: bool) -> bool:
    """Whether it is known what of the bound stays while the hyper-parameters do, and perhaps q's covariance."""
    linear = model.aggregation == "latent" or model.likelihood.link == "identity"
    known = bound == "linearised" or (bound == "matched" and covariance_kept)
    return known and not linear and model.likelihood.functions == 1 and not getattr(model, "varies", False)


def _pairs(key: Array, rows: int, dtype: Any) -> Float[Array, "rows draws"]:
    half = jax.random.normal(key, (rows, DRAWS // 2), dtype)
    return jnp.concatenate([half, -half], axis=1)


def _field(model: Any, Z: Inducing, now: Prepared, group: Group) -> Field:
    K = features(model, group.atoms, Z)
    variance = prior_variance(model, group.atoms) - row_quadratic(K, now.Q)
    return Field(K, mean_at(model, group.atoms) + K @ now.alpha, jnp.maximum(variance, 0.0))


def response_moments(model: Any, Z: Inducing, now: Prepared, group: Group) -> tuple[Array, Array]:
    """Mean and variance of η = Σ_i w_i g(v_i)."""
    return _moments_at(model, whole_part(model, Z, now, group), now, group)


def _moments_at(model: Any, still: Still, now: Prepared, group: Group) -> tuple[Array, Array]:
    g = model.likelihood.g
    each, slope = _with_slope(lambda m: g.mean(m, still.variance), still.mean + still.K @ now.alpha)
    T = _total(group, (group.weight * slope)[:, None] * still.K)
    at, own = still.probe_mean + still.probe_K @ now.alpha, jnp.diagonal(still.covariance, axis1=-2, axis2=-1)
    d = _with_slope(lambda m: g.mean(m, own), at)[1]
    C = g.covariance(at, own, still.covariance)
    rest = pair_sum(group, C - d[:, :, None] * d[:, None, :] * still.learned)
    return _safe(group, _total(group, group.weight * each), learned_variance(now, T) + rest)


def _open_variance(model: Any, now: Prepared, group: Group, K: Array) -> Float[Array, " a"]:
    """Prior variance at the atoms that the inducing variables do not explain."""
    left = prior_variance(model, group.atoms) - row_quadratic(K, now.P)
    return jnp.maximum(left, 0.0)


def _safe(group: Group, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Moments of responses that can be matched: padding must not make a logarithm infinite."""
    mean = jnp.where(group.present > 0, mean, 0.5)
    return mean, jnp.maximum(variance, 1e-12 * mean**2)


def _with_slope(h: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    """h(x) and h'(x), elementwise."""
    return jax.jvp(h, (x,), (jnp.ones_like(x),))


def _total(group: Group, values: Array) -> Array:
    """Sums over the atoms of each bag."""
    if group.in_rows:
        return jnp.sum(values.reshape(*group.probe_weight.shape, *values.shape[1:]), axis=1)
    return jax.ops.segment_sum(values, group.owner, len(group.present), indices_are_sorted=True)
