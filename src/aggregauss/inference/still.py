"""What a bag's bound needs of its individuals, and what of that stays while the hyper-parameters stay.

The mean of f at N atoms moves with q by an N x m product with α. Its covariances need N x m x m products; but those
that the bounds below take are functions of the hyper-parameters alone, or of these and a covariance of q that is kept:

    linearised    r(x, y) = k(x, y) - k_x P k_yᵀ, what the inducing variables leave open
    matched       r(x, y) + c_x Σ c_yᵀ

So q climbs at the cost of N x m, once they are known.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.inference.inducing import Inducing, features
from aggregauss.inference.sparse import Group, Prepared, mean_at, prior_covariance, prior_variance, row_quadratic


class Still(eqx.Module):
    """Features, prior means and (co)variances of f at the atoms of a group and at its probes."""

    K: Float[Array, "a m"]
    mean: Float[Array, " a"]
    variance: Float[Array, " a"]
    probe_K: Float[Array, "b j m"]
    probe_mean: Float[Array, "b j"]
    covariance: Float[Array, "b j j"]
    learned: Float[Array, "b j j"]  # the part of the covariance that q describes


def open_part(model: Any, Z: Inducing, now: Prepared, group: Group) -> Still:
    """With the covariances r."""
    return _still(model, Z, now, group, whole=False)


def whole_part(model: Any, Z: Inducing, now: Prepared, group: Group) -> Still:
    """With those of f under q."""
    return _still(model, Z, now, group, whole=True)


def _still(model: Any, Z: Inducing, now: Prepared, group: Group, whole: bool) -> Still:
    K, mean = features(model, group.atoms, Z), mean_at(model, group.atoms)
    if group.in_rows:
        at, probe_mean = (x.reshape(*group.probe_weight.shape, *x.shape[1:]) for x in (K, mean))
    else:
        at, probe_mean = features(model, group.probes, Z), mean_at(model, group.probes)
    white = (at.reshape(-1, at.shape[-1]) @ now.whiten).reshape(at.shape)  # one product, not one for every bag
    covariance = prior_covariance(model, group.probes) - white @ jnp.swapaxes(white, -1, -2)
    learned = (white @ now.covariance) @ jnp.swapaxes(white, -1, -2) if whole else jnp.zeros_like(covariance)
    covariance = covariance + learned
    if group.in_rows:
        variance = jnp.diagonal(covariance, axis1=-2, axis2=-1).ravel()
    else:
        variance = prior_variance(model, group.atoms) - row_quadratic(K, now.Q if whole else now.P)
    return Still(K, mean, jnp.maximum(variance, 0.0), at, probe_mean, covariance, learned)
