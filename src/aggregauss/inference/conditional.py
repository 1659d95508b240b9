"""Moments of the latent function given what a scheme learned, over any supports.

Whatever the scheme, the latent values given the data are Gaussian with

    mean(s) = m(s) + k(s, T) α,        cov(s, s') = k(s, s') - (R k(T, s))ᵀ (R k(T, s')),        R = L⁻¹ diag(w),

for training supports T (virtual points included). Under Gaussian noise L is the Cholesky factor of K + Σ and w = 1;
with Gaussian sites of precision τ it is that of I + diag(√τ) K diag(√τ) and w = √τ. Where T are inducing variables with
q(u) = N(·, L Σ Lᵀ), L Lᵀ = Kzz, what q leaves uncertain comes back: + (Cᵀ R k(T, s))ᵀ (Cᵀ R k(T, s')) with C Cᵀ = Σ.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.archive import storable
from aggregauss.heap import give_back
from aggregauss.inference.bounds import response_moments
from aggregauss.inference.data import Observations
from aggregauss.inference.groups import choose_shapes, groups
from aggregauss.inference.inducing import Inducing, entries, inducing_factor
from aggregauss.inference.sparse import Group, Prepared, prepare_white
from aggregauss.inference.variational import Moments2
from aggregauss.kernels.covariance import cross, diagonal, gram, symmetric
from aggregauss.latent.effects import with_effects
from aggregauss.latent.means import Moments, moments
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support

Rule = Callable[[Any, Inducing, Prepared, Group], tuple[Array, Array]]
BLOCK = 1 << 20  # entries of k(s, T) held at once: 8 MB, which caches hold
ATOMS = 1 << 18  # atoms of supports that are predicted together
PROBES = 128  # individuals of a bag whose covariances stand for all


@storable
class Conditional(eqx.Module):
    """α, L, w and C of the formulas above."""

    alpha: Float[Array, " n"]
    factor: Float[Array, "n n"]
    weight: Float[Array, " n"]
    root: Float[Array, "n n"] | None = None


@eqx.filter_jit
def sparse_conditional(model: Any, Z: Inducing, q: Moments2, jitter: float) -> Conditional:
    """The conditional given a Gaussian q over inducing variables that were whitened with this jitter."""
    L = inducing_factor(model, Z, jitter)
    alpha = jax.scipy.linalg.solve_triangular(L, q.mean, lower=True, trans=1)
    return Conditional(alpha, L, jnp.ones_like(alpha), jnp.linalg.cholesky(q.covariance))


def latent_moments(
    model: Any, train: Layout | None, state: Conditional, support: Support
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance in blocks; each is filled up to a power of two, so that few shapes are compiled."""
    means, variances = [], []
    for index in _blocks(support, len(state.alpha)):
        size = 1 << max(4, (len(index) - 1).bit_length())
        block = support[np.concatenate([index, np.full(size - len(index), index[-1])])]
        mean, variance = _condition(model, train, state, layout(block), moments(block))
        means.append(np.asarray(mean)[: len(index)])
        variances.append(np.asarray(variance)[: len(index)])
        give_back()
    return np.concatenate(means), np.concatenate(variances)


def _blocks(support: Support, columns: int) -> Iterator[np.ndarray]:
    """Consecutive supports, by a power of two of them, up to BLOCK entries of k(s, T) and a number of atoms."""
    rows = 1 << max(4, (BLOCK // max(1, columns)).bit_length() - 1)
    share = (np.cumsum(support.atom_counts) - 1) // ATOMS
    cuts = np.flatnonzero(np.diff(share)) + 1
    for part in np.split(np.arange(len(support)), cuts):
        for start in range(0, len(part), rows):
            yield part[start : start + rows]


def several_moments(
    model: Any, train: Layout | None, state: Conditional, channels: Sequence[Support]
) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances, shapes (n, P) and (n, P, P), of the same supports in several channels."""
    means, covariances = [], []
    for index in _blocks(channels[0], len(channels) * len(state.alpha)):
        size = 1 << max(4, (len(index) - 1).bit_length())
        filled = np.concatenate([index, np.full(size - len(index), index[-1])])
        own = [(layout(block), moments(block)) for block in (support[filled] for support in channels)]
        mean, covariance = _condition_several(model, train, state, own)
        means.append(np.asarray(mean)[: len(index)])
        covariances.append(np.asarray(covariance)[: len(index)])
    return np.concatenate(means), np.concatenate(covariances)


def latent_joint(
    model: Any, train: Layout | None, state: Conditional, support: Support
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance matrix."""
    mean, covariance = _condition_jointly(model, train, state, layout(support), moments(support))
    return np.asarray(mean), np.asarray(covariance)


def aggregate_moments(
    model: Any, Z: Inducing, state: Conditional, support: Support, of: Rule = response_moments
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of Σ_i w_i g(f(x_i)) over each bag, or of what another rule makes of it."""
    n = len(support)
    target = Observations(support, np.ones(n), np.zeros(n))
    shapes = choose_shapes(target, n, entries(Z, model.mean.effects), PROBES, np.dtype(float))
    now = _prepared(state)
    mean, variance = np.zeros(n), np.zeros(n)
    for rows, group in groups(target, np.arange(n), shapes, np.random.default_rng(0)):
        first, second = _by_rule(of, model, Z, now, group)
        mean[rows], variance[rows] = np.asarray(first)[: len(rows)], np.asarray(second)[: len(rows)]
        give_back()
    return mean, variance


def effect_moments(model: Any, train_support: Support | None, state: Conditional) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of the coefficients of linear effects, in prior standard deviations."""
    p = model.mean.effects
    if state.root is not None:
        K = jnp.eye(p, len(state.alpha), len(state.alpha) - p)
    else:
        assert train_support is not None
        K = model.mean.integrate_features(moments(train_support)).T
    V, back = _solves(state, K)
    return np.asarray(K @ state.alpha), np.asarray(jnp.eye(p) - V.T @ V + back.T @ back)


def _features(model: Any, train: Layout | None, state: Conditional, test: Layout, where: Moments) -> Array:
    if state.root is None:
        assert train is not None
        return cross(with_effects(model.kernel, model.mean), test, train)
    parts = [] if train is None else [cross(model.kernel, test, train)]
    if model.mean.effects:
        parts.append(model.mean.integrate_features(where))
    return jnp.concatenate(parts, axis=1)


def _solves(state: Conditional, K: Array) -> tuple[Array, Array]:
    """R k and Cᵀ R k."""
    V = linalg.lower_solve(state.factor, (K * state.weight[None, :]).T)
    return V, jnp.zeros_like(V[:1]) if state.root is None else state.root.T @ V


@eqx.filter_jit
def _condition(
    model: Any, train: Layout | None, state: Conditional, test: Layout, where: Moments
) -> tuple[Array, Array]:
    K = _features(model, train, state, test, where)
    V, back = _solves(state, K)
    prior = diagonal(with_effects(model.kernel, model.mean), test)
    variance = prior - jnp.sum(V**2, axis=0) + jnp.sum(back**2, axis=0)
    return model.mean.integrate(where) + K @ state.alpha, jnp.maximum(variance, 0.0)


@eqx.filter_jit
def _condition_several(
    model: Any, train: Layout | None, state: Conditional, channels: list[tuple[Layout, Moments]]
) -> tuple[Array, Array]:
    K = [_features(model, train, state, test, where) for test, where in channels]
    V, back = (jnp.stack(x) for x in zip(*(_solves(state, k) for k in K)))
    mean = [model.mean.integrate(where) + k @ state.alpha for (_, where), k in zip(channels, K)]
    known = jnp.einsum("jmn,kmn->njk", V, V) - jnp.einsum("jmn,kmn->njk", back, back)
    rows = [jnp.stack([diagonal(model.kernel, a, b) for b, _ in channels], axis=-1) for a, _ in channels]
    return jnp.stack(mean, axis=-1), jnp.stack(rows, axis=-2) - known


@eqx.filter_jit
def _condition_jointly(
    model: Any, train: Layout | None, state: Conditional, test: Layout, where: Moments
) -> tuple[Array, Array]:
    K = _features(model, train, state, test, where)
    V, back = _solves(state, K)
    prior = symmetric(gram(with_effects(model.kernel, model.mean), test))
    return model.mean.integrate(where) + K @ state.alpha, prior - V.T @ V + back.T @ back


@eqx.filter_jit
def _prepared(state: Conditional) -> Prepared:
    assert state.root is not None
    whiten = linalg.lower_solve(state.factor, jnp.eye(len(state.alpha))).T
    return prepare_white(whiten, state.alpha, state.root @ state.root.T)


@eqx.filter_jit
def _by_rule(of: Rule, model: Any, Z: Inducing, now: Prepared, group: Group) -> tuple[Array, Array]:
    return of(model, Z, now, group)
