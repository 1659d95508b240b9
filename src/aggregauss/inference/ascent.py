"""One step of stochastic variational inference, as init / step over plain data.

The bound is  n/b Σ_{bags of the batch} E log p(y | η) - KL(q(ε) | N(0, I)) + log prior. q moves along its natural
gradient: with G_μ, G_Σ the derivatives of the data term,

    Λ ← (1 - ρ) Λ + ρ (I - 2 G_Σ),        Λμ ← (1 - ρ) Λμ + ρ (G_μ - 2 G_Σ μ),

which for a conjugate model and ρ = 1 is the exact posterior in one step (Hensman et al. 2013). Hyper-parameters, and on
request inducing points, move by Adam. Both use the same pass over the batch: groups of bags are differentiated with
respect to the m x m quantities of `prepare`, and the sum is pulled back through it once.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.inference.bounds import expected, individuals
from aggregauss.inference.sparse import (
    JITTER,
    Group,
    Moments2,
    Prepared,
    Variational,
    inducing_gram,
    mean_at,
    prepare,
)
from aggregauss.parameters import log_prior, unpack
from aggregauss.supports.layout import at_points

HALVINGS = 30


class Settings(eqx.Module):
    """What stays the same during a fit."""

    bound: str = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    natural: bool = eqx.field(static=True)
    move_inducing: bool = eqx.field(static=True)


class Free(NamedTuple):
    """What Adam moves: packed hyper-parameters, inducing points, and q itself where its gradient is not natural."""

    vector: Float[Array, " p"]
    Z: Float[Array, "mz d"]
    mean: Float[Array, " m"]
    root: Float[Array, "m m"]  # lower triangle; the diagonal is exponentiated


class State(NamedTuple):
    """What a step changes."""

    free: Free
    q: Variational
    adam: Any
    rate: Float[Array, ""]  # of Adam
    rho: Float[Array, ""]  # of the natural gradient
    step: Array


class Gradient(NamedTuple):
    """Sums over groups: the data term, and its derivatives with respect to parameters and m x m quantities."""

    value: Float[Array, ""]
    vector: Float[Array, " p"]
    Z: Float[Array, "mz d"]
    now: Prepared


ADAM = optax.scale_by_adam()


def init(vector: Array, Z: Array, m: int, rate: float, rho: float) -> State:
    """q equal to the prior."""
    free = Free(vector, Z, jnp.zeros(m), jnp.zeros((m, m)))
    q = Variational(jnp.eye(m), jnp.zeros(m), jnp.zeros(m), jnp.eye(m))
    return State(free, q, ADAM.init(free), jnp.asarray(rate), jnp.asarray(rho), jnp.asarray(0))


def moments(state: State, natural: bool) -> Moments2:
    """μ and Σ of q."""
    if natural:
        return Moments2(state.q.mean, state.q.covariance)
    root = _root(state.free.root)
    return Moments2(state.free.mean, root @ root.T)


@eqx.filter_jit
def prepared(template: Any, state: State, settings: Settings) -> Prepared:
    """The m x m quantities in working precision."""
    return _prepare(template, state.free.vector, state.free.Z, moments(state, settings.natural), settings)


@eqx.filter_jit
def data_gradient(template: Any, free: Free, now: Prepared, group: Group, key: Array, settings: Settings) -> Gradient:
    """One group's part of the data term, with its derivatives."""

    def value(vector: Array, Z: Array, now: Prepared) -> Array:
        model = cast(unpack(template, vector), settings.dtype)
        with jax.default_matmul_precision("highest"):  # a GPU would round single precision to ten bits
            terms = expected(model, Z.astype(settings.dtype), now, group, settings.bound, key)
        return jnp.sum(terms.astype(float))

    total, (vector, Z, now) = jax.value_and_grad(value, argnums=(0, 1, 2))(free.vector, free.Z, now)
    return Gradient(total, vector, Z, jax.tree.map(lambda x: x.astype(float), now))


@eqx.filter_jit
def add(a: Gradient, b: Gradient) -> Gradient:
    """Sum of two groups."""
    return jax.tree.map(jnp.add, a, b)


class Target(NamedTuple):
    """The natural parameters that q would have if the present derivatives were those of a conjugate model."""

    precision: Float[Array, "m m"]
    shift: Float[Array, " m"]


class Slopes(NamedTuple):
    """The bound, how it rises, and where q goes along its natural gradient."""

    objective: Float[Array, ""]
    free: Free
    target: Target


@eqx.filter_jit
def slopes(template: Any, state: State, gradient: Gradient, scale: Array, settings: Settings) -> Slopes:
    """The bound at the present state and its derivatives; `scale` is n/b."""
    q = moments(state, settings.natural)
    free = state.free

    def early(vector: Array, Z: Array, q: Moments2) -> Prepared:
        now = _prepare(template, vector, Z, q, settings)
        return jax.tree.map(lambda x: x.astype(float), now)

    _, pull = jax.vjp(early, free.vector, free.Z, q)
    vector, Z, towards = pull(gradient.now)
    G_mean = scale * towards.mean
    G_cov = scale * 0.5 * (towards.covariance + towards.covariance.T)
    prior, prior_slope = jax.value_and_grad(lambda v: log_prior(unpack(template, v)))(free.vector)
    divergence = _divergence(q)
    objective = scale * gradient.value - divergence + prior
    d_vector, d_Z = scale * (gradient.vector + vector) + prior_slope, scale * (gradient.Z + Z)
    target = Target(jnp.eye(len(q.mean)) - 2.0 * G_cov, G_mean - 2.0 * G_cov @ q.mean)
    if settings.natural:
        return Slopes(objective, Free(d_vector, d_Z, jnp.zeros_like(free.mean), jnp.zeros_like(free.root)), target)
    kl_slope = jax.grad(_divergence)(q)
    d_root = _pull_root(free.root, G_cov - kl_slope.covariance)
    return Slopes(objective, Free(d_vector, d_Z, G_mean - kl_slope.mean, d_root), target)


@eqx.filter_jit
def advance(state: State, uphill: Slopes, learn: Array, settings: Settings) -> State:
    """The next state; `learn` 0 keeps the hyper-parameters."""
    rise = uphill.free
    d_Z = learn * rise.Z if settings.move_inducing else jnp.zeros_like(rise.Z)
    downhill = jax.tree.map(jnp.negative, Free(learn * rise.vector, d_Z, rise.mean, rise.root))
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes integers and floats
        change, adam = ADAM.update(downhill, state.adam)
    fresh = jax.tree.map(lambda x, c: x - state.rate * c, state.free, change)
    q = _towards(state.q, uphill.target, state.rho)[0] if settings.natural else state.q
    return State(Free(*fresh), q, adam, state.rate, state.rho, state.step + 1)


@eqx.filter_jit
def natural_step(state: State, target: Target, rho: Array) -> tuple[State, Array]:
    """q a share rho of the way to the target, and the share that kept it positive definite."""
    q, share = _towards(state.q, target, rho)
    return state._replace(q=q), share


@eqx.filter_jit
def bag_precision(template: Any, free: Free, now: Prepared, group: Group, settings: Settings) -> Float[Array, "m m"]:
    """Σ_a h_a c_a c_aᵀ over the bags of a group: what they say of ε, each taken as one individual."""
    model = cast(unpack(template, free.vector), settings.dtype)
    with jax.default_matmul_precision("highest"):
        c, h = individuals(model, free.Z.astype(settings.dtype), now, group)
    return c.T.astype(float) @ (h[:, None] * c).astype(float)


@eqx.filter_jit
def with_precision(state: State, precision: Float[Array, "m m"]) -> State:
    """q with the same mean and another precision."""
    mean, q = state.q.mean, _variational(precision, jnp.zeros(len(precision)))
    return state._replace(q=Variational(precision, precision @ mean, mean, q.covariance))


@eqx.filter_jit
def mean_step(state: State, target: Target, share: Array) -> State:
    """A share of μ + Σ (G_μ - μ), with Σ as it is."""
    q = state.q
    gradient = target.shift + (jnp.eye(len(q.mean)) - target.precision) @ q.mean - q.mean
    mean = q.mean + share * q.covariance @ gradient
    return state._replace(q=Variational(q.precision, q.precision @ mean, mean, q.covariance))


@eqx.filter_jit
def transported(template: Any, state: State, vector: Array) -> State:
    """Other hyper-parameters, while what the data said of f at the inducing points stays.

    The data's part of q is exp(-½ εᵀ P ε + hᵀ ε) with P = Λ - I, h = Λ μ. Where f = m + L ε = m' + L' ε', that is
    P' = Tᵀ P T and h' = Tᵀ (h - P d), with T = L⁻¹ L' and d = L⁻¹ (m' - m).
    """
    Z, m = state.free.Z, len(state.q.mean)
    old, new = (unpack(template, v) for v in (state.free.vector, vector))
    L, ahead = (
        jax.lax.linalg.cholesky(inducing_gram(model, Z, JITTER["float64"]), symmetrize_input=False)
        for model in (old, new)
    )
    step = jnp.zeros(m).at[: len(Z)].set(mean_at(new, at_points(Z)) - mean_at(old, at_points(Z)))
    T, d = linalg.lower_solve(L, ahead), linalg.lower_solve(L, step[:, None])[:, 0]
    P = state.q.precision - jnp.eye(m)
    q = _variational(jnp.eye(m) + T.T @ P @ T, T.T @ (state.q.shift - P @ d))
    sound = jnp.isfinite(q.mean).all() & jnp.isfinite(q.covariance).all()
    q = jax.tree.map(lambda x, y: jnp.where(sound, x, y), q, state.q)
    return state._replace(free=state.free._replace(vector=vector), q=q)


def by_moments(state: State, natural: bool) -> State:
    """The state with its q by natural parameters, however it was moved."""
    mean, covariance = moments(state, natural)
    precision = jnp.linalg.inv(covariance)
    return state if natural else state._replace(q=Variational(precision, precision @ mean, mean, covariance))


@eqx.filter_jit
def carried_slope(template: Any, state: State, uphill: Slopes) -> Float[Array, " p"]:
    """How the bound rises with the hyper-parameters when q is transported with them.

    At the best q this is the partial derivative, and the profile's. A little short of it, the partial derivative is
    far off, since f moves against the data when ε stays and L does not; here f stays.
    """
    q = moments(state, natural=True)
    G_cov = 0.5 * (jnp.eye(len(q.mean)) - uphill.target.precision)
    kl_slope = jax.grad(_divergence)(q)
    rise = Moments2(uphill.target.shift + 2.0 * G_cov @ q.mean - kl_slope.mean, G_cov - kl_slope.covariance)
    _, pull = jax.vjp(lambda v: moments(transported(template, state, v), natural=True), state.free.vector)
    return uphill.free.vector + pull(rise)[0]


def cast(model: Any, dtype: str) -> Any:
    """The model with its parameters in working precision."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, model)


def _prepare(template: Any, vector: Array, Z: Array, q: Moments2, settings: Settings) -> Prepared:
    now = prepare(unpack(template, vector), Z, q, JITTER[settings.dtype])
    return jax.tree.map(lambda x: x.astype(settings.dtype), now)


def _towards(now: Variational, target: Target, rho: Array) -> tuple[Variational, Array]:
    """A share rho of the way, halved until the precision stays positive definite."""

    def mixed(share: Array) -> Variational:
        precision = (1.0 - share) * now.precision + share * target.precision
        return _variational(precision, (1.0 - share) * now.shift + share * target.shift)

    def refused(state: tuple[Array, Variational, Array]) -> Array:
        _, q, done = state
        return ~jnp.isfinite(q.covariance[-1, -1]) & (done < HALVINGS)

    def halve(state: tuple[Array, Variational, Array]) -> tuple[Array, Variational, Array]:
        share, _, done = state
        return 0.5 * share, mixed(0.5 * share), done + 1

    share, q, _ = jax.lax.while_loop(refused, halve, (rho, mixed(rho), jnp.asarray(0)))
    return q, share


def _variational(precision: Array, shift: Array) -> Variational:
    L = jax.lax.linalg.cholesky(precision, symmetrize_input=False)
    inverse = linalg.lower_solve(L, jnp.eye(len(L)))
    covariance = inverse.T @ inverse
    return Variational(precision, shift, covariance @ shift, covariance)


def _divergence(q: Moments2) -> Array:
    """KL(N(μ, Σ) | N(0, I))."""
    L = jnp.linalg.cholesky(q.covariance)
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(L)))
    return 0.5 * (jnp.trace(q.covariance) + q.mean @ q.mean - len(q.mean) - log_det)


def _root(raw: Array) -> Array:
    return jnp.tril(raw, -1) + jnp.diag(jnp.exp(jnp.diagonal(raw)))


def _pull_root(raw: Array, slope: Array) -> Array:
    _, pull = jax.vjp(lambda r: _root(r) @ _root(r).T, raw)
    return pull(0.5 * (slope + slope.T))[0]
