"""Moments of f = level + Σ_r W_r u_r, where weights W_r and functions u_r are all Gaussian.

For jointly Gaussian numbers (Isserlis 1918)

    E[W u] = m_W m_u + Cov(W, u),
    Cov(W u, W' u') = m_W m_W' Cov(u, u') + m_W m_u' Cov(u, W') + m_u m_W' Cov(W, u') + m_u m_u' Cov(W, W')
                      + Cov(W, W') Cov(u, u') + Cov(W, u') Cov(u, W'),

so mean and variance of integrals of f are exact; they are passed on as if f were normal.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.inference.inducing import Inducing, features
from aggregauss.inference.sparse import Group, Prepared, pair_sum
from aggregauss.latent.coregionalisation import channels_on
from aggregauss.supports.layout import Atoms


class Factors(NamedTuple):
    """(W_1 ... W_R, u_1 ... u_R) at some atoms: where they are, how large, their means and whitened features."""

    atoms: list[Atoms]
    scale: list[Array]
    mean: list[Float[Array, "*n"]]
    white: list[Float[Array, "*n m"]]


def product_moments(model: Any, Z: Inducing, now: Prepared, group: Group) -> tuple[Array, Array]:
    """Mean and variance of ∫ f over every support of a group."""
    at, R = _factors(model, Z, now, group.atoms), len(model.weights)
    each = [
        at.mean[r] * at.mean[R + r] + jnp.sum((at.white[r] @ _gained(now)) * at.white[R + r], axis=-1) for r in range(R)
    ]
    f = model.level + sum(each[1:], each[0])
    mean = jax.ops.segment_sum(group.weight * f, group.owner, len(group.present))
    return mean, jnp.maximum(pair_sum(group, _covariance(model, now, _factors(model, Z, now, group.probes))), 0.0)


def _factors(model: Any, Z: Inducing, now: Prepared, atoms: Atoms) -> Factors:
    """W_r(x) = w_r + |w| g_r(x): its variation is in units of the weights."""
    w = model.weights
    size, R = jnp.sqrt(jnp.sum(w**2)), len(w)
    places, scale = [channels_on(atoms, step) for step in model.steps], [size] * R + [jnp.ones_like(size)] * R
    K = [s * features(model, place, Z) for s, place in zip(scale, places)]
    mean = [k @ now.alpha + (w[j] if j < R else 0.0) for j, k in enumerate(K)]
    return Factors(places, scale, mean, [k @ now.whiten for k in K])


def _covariance(model: Any, now: Prepared, at: Factors) -> Float[Array, "b j j"]:
    """Of Σ_r W_r u_r between the probes of each support."""
    R, gained = len(at.mean) // 2, _gained(now)

    def between(j: int, k: int) -> Array:
        learned = (at.white[j] @ gained) @ jnp.swapaxes(at.white[k], -1, -2)
        return learned + at.scale[j] ** 2 * model.kernel.block(at.atoms[j], at.atoms[j]) if j == k else learned

    total = jnp.zeros_like(between(0, 0))
    for r in range(R):
        W, u = (at.mean[j][..., :, None] for j in (r, R + r))
        for s in range(R):
            V, v = (at.mean[j][..., None, :] for j in (s, R + s))
            WV, Wv, uV, uv = between(r, s), between(r, R + s), between(R + r, s), between(R + r, R + s)
            total = total + W * V * uv + W * v * uV + u * V * Wv + u * v * WV + WV * uv + Wv * uV
    return total


def _gained(now: Prepared) -> Float[Array, "m m"]:
    """Σ - I: how q's covariance differs from the prior's."""
    return now.covariance - jnp.eye(len(now.covariance), dtype=now.covariance.dtype)
