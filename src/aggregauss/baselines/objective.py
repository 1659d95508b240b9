"""What is minimised: the bags' negative log likelihood with penalties.

    Σ_a -log p(y_a) / b  +  manifold · fᵀ L f / N²  +  bag_manifold · Fᵀ L_bag F / b²  +  l2 · |β|² / b

over b bags and their N individuals, with F_a the mean of f in bag a. Under the square link f stands for |f| in the
Laplacian forms. L comes from an RBF kernel of individuals; L_bag from the inner product of mean embeddings
(1/N_a) Σ_i φ(x_i), or from an RBF kernel of covariates of the bags. Reference: Law et al. (2018), (33), with the
divisors of their code.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.baselines.batches import Batch
from aggregauss.baselines.laplacian import laplacian_form
from aggregauss.baselines.observation import Observation


class Latent(eqx.Module):
    """A function f of individuals, with weights β in it."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "N d"]) -> Float[Array, " N"]:
        """f at each row of `x`."""

    @abc.abstractmethod
    def squared_norm(self) -> Float[Array, ""]:
        """|β|²."""


class Model(eqx.Module):
    """The function and log τ, which the Poisson likelihood does not use."""

    latent: Latent
    log_tau: Float[Array, ""]


class Penalties(NamedTuple):
    """Strengths of the penalties."""

    manifold: Float[Array, ""]
    bag_manifold: Float[Array, ""]
    l2: Float[Array, ""]


def objective(model: Model, batch: Batch, penalties: Penalties, observation: Observation) -> Float[Array, ""]:
    """The penalised negative log likelihood per bag; a penalty without features in the batch is left out."""
    f = model.latent(batch.x)
    bags = jnp.sum(batch.bag, dtype=f.dtype)
    total = _nll(model, f, batch, observation) + penalties.l2 * model.latent.squared_norm() / bags
    smooth = observation.unsigned(f)
    if batch.features.shape[1]:
        individuals = jnp.sum(batch.share > 0, dtype=f.dtype)
        total += penalties.manifold * laplacian_form(smooth, batch.features) / individuals**2
    if batch.bag_features.shape[1]:
        means = batch.totals(smooth * batch.share)
        total += penalties.bag_manifold * laplacian_form(means, batch.bag_features) / bags**2
    return total


@jax.jit(static_argnames="observation")
def bag_nll(model: Model, batch: Batch, observation: Observation) -> Float[Array, ""]:
    """Mean negative log likelihood per bag."""
    return _nll(model, model.latent(batch.x), batch, observation)


def _nll(model: Model, f: Float[Array, " N"], batch: Batch, observation: Observation) -> Float[Array, ""]:
    mean, squares = batch.totals(batch.weight * observation.response(f)), batch.totals(batch.weight**2)
    mean, squares = (jnp.where(batch.bag, values, 1.0) for values in (mean, squares))
    nll = observation.nll(batch.y, mean, squares, jnp.exp(model.log_tau))
    return jnp.sum(jnp.where(batch.bag, nll, 0.0)) / jnp.sum(batch.bag, dtype=f.dtype)
