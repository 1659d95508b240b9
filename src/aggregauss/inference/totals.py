"""The evidence of totals of exponentials: each bag as one log-normal variable.

With f ~ GP(m + h·β, k), β ~ N(0, I), a total is e^{t_a} = Σ_i w_i e^{f_i}. Given β its mean M_a and its variance are
known, and t_a is taken for the normal variable whose exponential has the same (Fenton 1960):

    M_a = Σ_i w_i e^{m_i + h_i β + k_ii/2},     p_i = w_i e^{m_i + h_i β + k_ii/2} / M_a,
    C_aa = log(1 + Σ_ij p_i p_j (e^{k_ij} - 1)),     E t_a = log M_a - C_aa/2.

Different bags vary together to first order, C_ab = Σ_ij p_i p_j k_ij: the logarithms of the covariances of totals,
which lie close, need not belong to any density. The effects move t by H_a = Σ_i p_i h_i, about their posterior mean b:

    t ~ N(log M(b) - diag(C)/2 - H b, C + H Hᵀ),     y_a ~ p(y | e^{t_a}),

and t is integrated out by Laplace's approximation. No q is involved, so nothing is asked of its shape: where precise
totals confine f to a curved surface that no normal density can follow, the bound prefers functions that hardly vary
within a bag; this evidence does not.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.inference.data import Observations
from aggregauss.inference.sparse import mean_at
from aggregauss.kernels.covariance import diagonal, gram, symmetric
from aggregauss.kernels.kernel import Kernel
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.parameters import log_prior, unpack
from aggregauss.supports.layout import Atoms, Layout, at_points, layout
from aggregauss.supports.pool import pool

ATOMS, LEAST, BAGS = 2048, 8, 1000  # individuals in all, in a bag at least, and bags that take part
STEPS, CLOSE, HALVINGS = 50, 1e-8, 20


class Totals(NamedTuple):
    """Bags of pooled individuals and what was observed of each."""

    layout: Layout
    seen: Seen


class Found(NamedTuple):
    """The log evidence with the log prior of the parameters, and the posterior mean of the effects (whitened)."""

    value: Float[Array, ""]
    effects: Float[Array, " e"]


def totals(observations: Observations, seed: int) -> Totals:
    """The bags that weigh something, with few individuals each; of very many, some that are drawn at random."""
    rows = np.flatnonzero(observations.support.mass > 0)
    if len(rows) > BAGS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, BAGS, replace=False))
    observations = observations[rows]
    few = pool(observations.support, max(LEAST, ATOMS // len(rows)))
    return Totals(layout(few), Seen(*map(jnp.asarray, observations.seen())))


class _Exponentials(Kernel):
    """e^k - 1, the covariance of e^f relative to its means."""

    inner: Kernel

    def __init__(self, inner: Kernel):
        self.inner, self.active_dims, self.marks = inner, None, ()

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """At points."""
        return self.block(at_points(X), at_points(Y))

    def block(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """Where atoms have width, that of the exponentials of f's means over them."""
        return jnp.expm1(self.inner.block(A, B))


def evidence(template: Any, vector: Float[Array, " p"], data: Totals, effects: Float[Array, " e"]) -> Found:
    """As above, at packed hyper-parameters, the totals expanded about `effects`."""
    model = unpack(template, vector)
    mean, H, C = _moments(model, data.layout, effects)
    T = C + H @ H.T

    def density(t: Array) -> Array:
        return model.likelihood.log_density(data.seen, jnp.exp(t))

    y = data.seen.y
    t, a, W = _mode(density, mean, T, jnp.where(y > 0, jnp.log(jnp.where(y > 0, y, 1.0)), jnp.minimum(mean, 0.0)))
    s = jnp.sqrt(W)
    log_det = jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(jnp.eye(len(t)) + s[:, None] * T * s[None, :]))))
    value = jnp.sum(density(t)) - 0.5 * a @ (t - mean) - log_det + log_prior(model)
    return Found(value, H.T @ a)


def _moments(model: Any, bags: Layout, effects: Array) -> tuple[Array, Array, Array]:
    """Mean of t when the effects are zero, H, and C."""
    atoms = Atoms(bags.center, bags.width, bags.extremes, bags.wide)
    level, H = mean_at(model, atoms), jnp.zeros((*bags.weight.shape, 0))
    if model.mean.effects:
        H = model.mean.features(bags.center)
        level = level + H @ effects
    if model.kernel is not None:
        level = level + 0.5 * model.kernel.own(atoms)
    top = jax.lax.stop_gradient(jnp.max(level))
    share = bags.weight * jnp.exp(level - top)
    total = _by_bag(bags, share)
    owner = _owners(bags)
    share = share / jnp.append(total, 1.0)[owner][..., None]
    H = _by_bag(bags, share[..., None] * H)
    C = jnp.zeros((bags.size, bags.size))
    if model.kernel is not None:
        within = eqx.tree_at(lambda x: x.weight, bags, share)
        C = symmetric(gram(model.kernel, within))
        own = jnp.log1p(diagonal(_Exponentials(model.kernel), within))  # at least as much, by Jensen's inequality
        C = C + jnp.diag(own - jnp.diagonal(C))
    return jnp.log(total) + top - 0.5 * jnp.diagonal(C) - H @ effects, H, C


def _owners(bags: Layout) -> Array:
    """The bag of each piece in (tiles, s); pieces of padding belong to one more."""
    owner = jnp.arange(bags.size) if bags.owner is None else bags.owner
    tiles, pieces = bags.weight.shape[:2]
    return jnp.pad(owner, (0, tiles * pieces - len(owner)), constant_values=bags.size).reshape(tiles, pieces)


def _by_bag(bags: Layout, values: Float[Array, "tiles s a *k"]) -> Float[Array, "n *k"]:
    """Sums over the atoms of each bag."""
    pieces = jnp.sum(values, axis=2)
    owner = _owners(bags).ravel()
    return jax.ops.segment_sum(pieces.reshape(len(owner), *pieces.shape[2:]), owner, bags.size + 1)[: bags.size]


def _mode(density: Any, mean: Array, T: Array, start: Array) -> tuple[Array, Array, Array]:
    """t̂, T⁻¹ (t̂ - mean) and the curvature W there, by Newton's method (Rasmussen and Williams 2006, algorithm 3.1).

    The derivative passes through one last step alone: at the mode that is the derivative of the mode.
    """

    def aim(t: Array, mean: Array, T: Array) -> Array:
        slope, W = _bent(density, t)
        s = jnp.sqrt(W)
        root = jnp.linalg.cholesky(jnp.eye(len(t)) + s[:, None] * T * s[None, :])
        b = W * (t - mean) + slope
        return b - s * jax.scipy.linalg.cho_solve((root, True), s * (T @ b))

    start, still_mean, still_T = jax.lax.stop_gradient((start, mean, T))

    def height(a: Array) -> Array:
        t = still_mean + still_T @ a
        return jnp.sum(density(t)) - 0.5 * a @ (t - still_mean)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        a, _, count = state
        way = aim(still_mean + still_T @ a, still_mean, still_T) - a
        shares = 0.5 ** jnp.arange(float(HALVINGS))
        heights = jax.lax.map(lambda share: height(a + share * way), shares)
        better = heights >= height(a) - 1e-9 * (1.0 + jnp.abs(height(a)))
        share = jnp.where(jnp.any(better), shares[jnp.argmax(better)], 0.0)
        return a + share * way, jnp.max(jnp.abs(share * (still_T @ way))), count + 1

    def going(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] > CLOSE) & (state[2] < STEPS)

    first = aim(start, still_mean, still_T)  # as if each count stood alone
    a, _, _ = jax.lax.stop_gradient(jax.lax.while_loop(going, step, (first, jnp.asarray(jnp.inf), jnp.asarray(0))))
    a = aim(still_mean + still_T @ a, mean, T)
    t = mean + T @ a
    return t, a, _bent(density, t)[1]


def _bent(density: Any, t: Array) -> tuple[Array, Array]:
    """Slope of the log density in each t, and minus its second derivative where that is positive."""
    slope, bend = jax.jvp(jax.grad(lambda x: jnp.sum(density(x))), (t,), (jnp.ones_like(t),))
    return slope, jnp.maximum(-bend, 0.0)
