"""The covariance of q from bags taken as single individuals, and the mean that is best with it.

A total that is known precisely confines f to a curved surface, Σ_i w_i g(f_i) = y. A Gaussian that maximises the bound
stays close to it by being too narrow *along* it. With each bag taken as one individual g(v), v = a + c (ε - μ) to first
order, the precision is

    Λ = I + Σ_a h_a c_a c_aᵀ,        h_a = -E ∂² log p(y_a | g(v)) / ∂v²,

that of a regression with Gaussian sites. For bags of one individual it is the variational one itself. Then the mean
alone climbs the bound again, so that the fitted totals stay where they were.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.inference import ascent
from aggregauss.inference.bounds import individuals
from aggregauss.inference.passes import Passes
from aggregauss.inference.profile import climb
from aggregauss.inference.sparse import Group, Prepared
from aggregauss.inference.variational import Moments2, by_moments, by_precision, mean_towards
from aggregauss.parameters import unpack


def linearised(passes: Passes, held: Iterable[Group], state: ascent.State, tolerance: float) -> Moments2:
    """μ and Σ as above, from a q near the top of the bound."""
    q = ascent.moments(state, passes.settings.natural)
    passes = dataclasses.replace(passes, settings=dataclasses.replace(passes.settings, natural=True))
    state = state._replace(q=by_moments(q))
    precision = jnp.eye(len(q.mean)) + bag_precision(passes, held, state)
    state = state._replace(q=by_precision(precision, q.mean))
    top, _ = climb(lambda s: passes.over(s, held), state, tolerance, _mean_step)
    return ascent.moments(top, natural=True)


def bag_precision(passes: Passes, held: Iterable[Group], state: ascent.State) -> Float[Array, "m m"]:
    """Σ_a h_a c_a c_aᵀ: what the bags say of ε, each taken as one individual."""
    now = ascent.prepared(passes.template, state, passes.settings)
    total = jnp.zeros_like(state.q.precision)
    for group in held:
        total = total + _of_group(passes.template, state.free, now, group, passes.settings)
    return total


@eqx.filter_jit
def _of_group(template: Any, free: ascent.Free, now: Prepared, group: Group, settings: ascent.Settings) -> Array:
    model = ascent.cast(unpack(template, free.vector), settings.dtype)
    with jax.default_matmul_precision("highest"):
        c, h = individuals(model, free.Z.astype(settings.dtype), now, group)
    return c.T.astype(float) @ (h[:, None] * c).astype(float)


_mean_step = eqx.filter_jit(mean_towards)
