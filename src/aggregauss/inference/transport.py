"""q moves with the hyper-parameters: what the data said of the inducing variables stays, the prior is exchanged.

The data's part of q is exp(-½ εᵀ P ε + hᵀ ε) with P = Λ - I, h = Λ μ. Where u = m + L ε = m' + L' ε', that is

    P' = Tᵀ P T,        h' = Tᵀ (h - P d),        T = L⁻¹ L',        d = L⁻¹ (m' - m).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.inference.ascent import Slopes, State
from aggregauss.inference.inducing import JITTER, inducing_factor, inducing_mean
from aggregauss.inference.variational import Moments2, Variational, by_natural, divergence_slope
from aggregauss.parameters import unpack


@eqx.filter_jit
def transported(template: Any, state: State, vector: Float[Array, " p"], dtype: str) -> State:
    """The state with other hyper-parameters."""
    return state._replace(free=state.free._replace(vector=vector), q=_carried(template, state, vector, dtype))


@eqx.filter_jit
def carried_slope(template: Any, state: State, uphill: Slopes, dtype: str) -> Float[Array, " p"]:
    """How the bound rises with the hyper-parameters when q is transported with them.

    At the best q this is the partial derivative, and the profile's. A little short of it, the partial derivative is
    far off, since f moves against the data when ε stays and L does not; here f stays.
    """
    rise = jax.tree.map(jnp.subtract, uphill.target.gradient(state.q.mean), divergence_slope(state.q))

    def moments(vector: Array) -> Moments2:
        carried = _carried(template, state, vector, dtype)
        return Moments2(carried.mean, carried.covariance)

    _, pull = jax.vjp(moments, state.free.vector)
    return uphill.free.vector + pull(rise)[0]


def _carried(template: Any, state: State, vector: Array, dtype: str) -> Variational:
    Z, m = state.free.Z, len(state.q.mean)
    old, new = (unpack(template, v) for v in (state.free.vector, vector))
    L, ahead = (inducing_factor(model, Z, JITTER[dtype]) for model in (old, new))
    step = inducing_mean(new, Z) - inducing_mean(old, Z)
    T, d = linalg.lower_solve(L, ahead), linalg.lower_solve(L, step[:, None])[:, 0]
    P = state.q.precision - jnp.eye(m)
    q = by_natural(jnp.eye(m) + T.T @ P @ T, T.T @ (state.q.shift - P @ d))
    sound = jnp.isfinite(q.mean).all() & jnp.isfinite(q.covariance).all()
    return jax.tree.map(lambda x, y: jnp.where(sound, x, y), q, state.q)
