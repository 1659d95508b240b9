"""What a bag's bound needs of its individuals, and what of that stays while the hyper-parameters stay.

The mean of f at N atoms moves with q by an N x m product with α. Its covariances need N x m x m products; but those
that the bounds below take are functions of the hyper-parameters alone, or of these and a covariance of q that is kept:

    linearised    r(x, y) = k(x, y) - k_x P k_yᵀ, what the inducing variables leave open
    matched       r(x, y) + c_x Σ c_yᵀ

So q climbs at the cost of N x m, once they are known.
"""

import dataclasses
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
    return _still(model, Z, now, group, now.P)


def whole_part(model: Any, Z: Inducing, now: Prepared, group: Group) -> Still:
    """With those of f under q."""
    still = _still(model, Z, now, group, now.Q)
    white = still.probe_K @ now.whiten
    learned = (white @ now.covariance) @ jnp.swapaxes(white, -1, -2)
    return dataclasses.replace(still, covariance=still.covariance + learned, learned=learned)


def _still(model: Any, Z: Inducing, now: Prepared, group: Group, explained: Array) -> Still:
    K, at = features(model, group.atoms, Z), features(model, group.probes, Z)
    variance = jnp.maximum(prior_variance(model, group.atoms) - row_quadratic(K, explained), 0.0)
    white = at @ now.whiten
    left = prior_covariance(model, group.probes) - white @ jnp.swapaxes(white, -1, -2)
    mean, probe_mean = mean_at(model, group.atoms), mean_at(model, group.probes)
    return Still(K, mean, variance, at, probe_mean, left, jnp.zeros_like(left))
