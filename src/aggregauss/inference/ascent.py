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

from aggregauss.inference.bounds import STILL, expected
from aggregauss.inference.inducing import JITTER, Inducing
from aggregauss.inference.sparse import Group, Prepared, prepare
from aggregauss.inference.still import Still
from aggregauss.inference.variational import Moments2, Target, Variational, by_moments, divergence, towards
from aggregauss.parameters import log_prior, unpack


class Settings(eqx.Module):
    """What stays the same during a fit."""

    bound: str = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    natural: bool = eqx.field(static=True)
    move_inducing: bool = eqx.field(static=True)


class Free(NamedTuple):
    """What Adam moves: packed hyper-parameters, inducing points, and q itself where its gradient is not natural."""

    vector: Float[Array, " p"]
    Z: Inducing
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
    Z: Inducing
    now: Prepared


ADAM = optax.scale_by_adam()


def init(vector: Array, Z: Inducing, m: int, rate: float, rho: float) -> State:
    """q equal to the prior."""
    free = Free(vector, Z, jnp.zeros(m), jnp.zeros((m, m)))
    q = Variational(jnp.eye(m), jnp.zeros(m), jnp.zeros(m), jnp.eye(m))
    return State(free, q, ADAM.init(free), jnp.asarray(rate), jnp.asarray(rho), jnp.asarray(0))  # pyright: ignore[reportArgumentType]


def begin_at(state: State, mean: Float[Array, " m"]) -> State:
    """The same with another mean of q."""
    q = by_moments(Moments2(mean, state.q.covariance))
    return state._replace(free=state.free._replace(mean=mean), q=q)


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


def nothing(free: Free, now: Prepared) -> Gradient:
    """The sum over no groups."""
    vector, Z, now = jax.tree.map(lambda x: jnp.zeros(x.shape), (free.vector, free.Z, now))
    return Gradient(jnp.zeros(()), vector, Z, now)


class Given(NamedTuple):
    """What one group's part of the data term depends on."""

    template: Any
    free: Free
    now: Prepared
    group: Group
    key: Array
    settings: Settings


@eqx.filter_jit(donate="all-except-first")
def with_group(given: Given, total: Gradient) -> Gradient:
    """`total`, whose memory is taken over, and one group's part of the data term with its derivatives."""
    template, free, now, group, key, settings = given

    def value(vector: Array, Z: Inducing, now: Prepared) -> Array:
        model, Z = (cast(x, settings.dtype) for x in (unpack(template, vector), _held(Z, settings)))
        with jax.default_matmul_precision("highest"):  # a GPU would round single precision to ten bits
            terms = expected(model, Z, now, group, settings.bound, key)
        return jnp.sum(terms.astype(float))

    part, slopes = jax.value_and_grad(value, argnums=(0, 1, 2))(free.vector, free.Z, now)
    return jax.tree.map(lambda x, y: x + y.astype(float), total, Gradient(part, *slopes))


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

    def early(vector: Array, Z: Inducing, q: Moments2) -> Prepared:
        now = _prepare(template, vector, _held(Z, settings), q, settings)
        return jax.tree.map(lambda x: x.astype(float), now)

    _, pull = jax.vjp(early, free.vector, free.Z, q)
    vector, Z, towards = pull(gradient.now)
    G_mean = scale * towards.mean
    G_cov = scale * 0.5 * (towards.covariance + towards.covariance.T)
    prior, prior_slope = jax.value_and_grad(lambda v: log_prior(unpack(template, v)))(free.vector)
    objective = scale * gradient.value - divergence(q) + prior
    d_vector = scale * (gradient.vector + vector) + prior_slope
    d_Z = jax.tree.map(lambda x, y: scale * (x + y), gradient.Z, Z)
    target = Target(jnp.eye(len(q.mean)) - 2.0 * G_cov, G_mean - 2.0 * G_cov @ q.mean)
    if settings.natural:
        return Slopes(objective, Free(d_vector, d_Z, jnp.zeros_like(free.mean), jnp.zeros_like(free.root)), target)
    kl_slope = jax.grad(divergence)(q)
    d_root = _pull_root(free.root, G_cov - kl_slope.covariance)
    return Slopes(objective, Free(d_vector, d_Z, G_mean - kl_slope.mean, d_root), target)


@eqx.filter_jit
def hold_still(template: Any, free: Free, now: Prepared, group: Group, settings: Settings) -> Still:
    """What stays of one group while only q moves; under the matched bound, while only its mean does."""
    model = cast(unpack(template, free.vector), settings.dtype).of_task(group.task)
    with jax.default_matmul_precision("highest"):
        return STILL[settings.bound][0](model, cast(free.Z, settings.dtype), now, group)


@eqx.filter_jit
def still_gradient(
    template: Any, free: Free, now: Prepared, still: Still, group: Group, settings: Settings
) -> tuple[Array, Array, Array]:
    """One group's part of the data term, and its derivatives in α and Σ."""

    def value(alpha: Array, covariance: Array) -> Array:
        model = cast(unpack(template, free.vector), settings.dtype).of_task(group.task)
        with jax.default_matmul_precision("highest"):
            at = now._replace(alpha=alpha, covariance=covariance)
            terms = group.present * STILL[settings.bound][1](model, still, at, group)
        return jnp.sum(terms.astype(float))

    total, slopes = jax.value_and_grad(value, argnums=(0, 1))(now.alpha, now.covariance)
    return total, *(x.astype(float) for x in slopes)


@eqx.filter_jit
def still_slopes(template: Any, state: State, whiten: Array, total: Array, d_alpha: Array, d_cov: Array) -> Slopes:
    """The bound and where q goes; what moves the hyper-parameters is left at zero."""
    q = Moments2(state.q.mean, state.q.covariance)
    G_mean, G_cov = whiten.T @ d_alpha, 0.5 * (d_cov + d_cov.T)
    objective = total - divergence(q) + log_prior(unpack(template, state.free.vector))
    target = Target(jnp.eye(len(q.mean)) - 2.0 * G_cov, G_mean - 2.0 * G_cov @ q.mean)
    return Slopes(objective, jax.tree.map(jnp.zeros_like, state.free), target)


@eqx.filter_jit
def advance(state: State, uphill: Slopes, learn: Array, settings: Settings) -> State:
    """The next state; `learn` 0 keeps the hyper-parameters."""
    rise = uphill.free
    vector, Z = jax.tree.map(lambda x: learn * x, (rise.vector, rise.Z))
    downhill = jax.tree.map(jnp.negative, Free(vector, Z, rise.mean, rise.root))
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes integers and floats
        change, adam = ADAM.update(downhill, state.adam)
    fresh = jax.tree.map(lambda x, c: x - state.rate * c, state.free, change)
    q = towards(state.q, uphill.target, state.rho)[0] if settings.natural else state.q
    return State(Free(*fresh), q, adam, state.rate, state.rho, state.step + 1)


def cast(tree: Any, dtype: str) -> Any:
    """The numbers of a model, or of supports, in working precision."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


def _held(Z: Inducing, settings: Settings) -> Inducing:
    """Of the inducing supports nothing moves but, on request, the places of points."""
    still = jax.lax.stop_gradient(Z)
    return eqx.tree_at(lambda x: x.center, still, Z.center) if Z is not None and settings.move_inducing else still


@eqx.filter_jit
def prepared_widely(template: Any, state: State, settings: Settings) -> Prepared:
    """The m x m quantities in double precision."""
    q = moments(state, settings.natural)
    return prepare(unpack(template, state.free.vector), state.free.Z, q, JITTER[settings.dtype])


@eqx.filter_jit
def narrowed(wide: Prepared, state: State, settings: Settings) -> Prepared:
    """The same in working precision, with the state's α and Σ; its Q and P stay."""
    now = wide._replace(alpha=wide.whiten @ state.q.mean, covariance=state.q.covariance)
    return jax.tree.map(lambda x: x.astype(settings.dtype), now)


def _prepare(template: Any, vector: Array, Z: Inducing, q: Moments2, settings: Settings) -> Prepared:
    now = prepare(unpack(template, vector), Z, q, JITTER[settings.dtype])
    return jax.tree.map(lambda x: x.astype(settings.dtype), now)


def _root(raw: Array) -> Array:
    return jnp.tril(raw, -1) + jnp.diag(jnp.exp(jnp.diagonal(raw)))


def _pull_root(raw: Array, slope: Array) -> Array:
    _, pull = jax.vjp(lambda r: _root(r) @ _root(r).T, raw)
    return pull(0.5 * (slope + slope.T))[0]
