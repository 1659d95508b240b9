"""What is minimised: the bags' negative log likelihood with penalties.

    Σ_a -log p(y_a) / b  +  manifold · fᵀ L f / N²  +  bag_manifold · Fᵀ L_bag F / b²  +  l2 · |β|² / b

over b bags and their N individuals, with F_a the mean of f in bag a. Under the square link f stands for |f| in the
Laplacian forms. L comes from an RBF kernel of individuals; L_bag from the inner product of mean embeddings
(1/N_a) Σ_i φ(x_i), or from an RBF kernel of covariates of the bags. Reference: Law et al. (2018), (33), with the
divisors of their code.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.baselines.batches import Batch
from aggregauss.baselines.laplacian import laplacian_form, random_features
from aggregauss.baselines.observation import Observation


class Latent(eqx.Module):
    """A function f of individuals, with weights β in it."""

    def __call__(self, x: Float[Array, "N d"]) -> Float[Array, " N"]:
        """f at each row of `x`."""
        raise NotImplementedError

    def squared_norm(self) -> Float[Array, ""]:
        """|β|²."""
        raise NotImplementedError


class Model(eqx.Module):
    """The function and log τ, which the Poisson likelihood does not use."""

    latent: Latent
    log_tau: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is fixed when a step is compiled: the likelihood, and which penalties there are."""

    observation: Observation
    manifold: bool
    bag_manifold: bool


class Penalties(NamedTuple):
    """Strengths of the penalties, and frequencies of the random features of individuals."""

    manifold: Float[Array, ""]
    bag_manifold: Float[Array, ""]
    l2: Float[Array, ""]
    frequencies: Float[Array, "d m"]


def objective(model: Model, batch: Batch, penalties: Penalties, problem: Problem) -> Float[Array, ""]:
    """The penalised negative log likelihood per bag."""
    f = model.latent(batch.x)
    bags = jnp.sum(batch.bag, dtype=f.dtype)
    smooth = _roughness(problem.observation.unsigned(f), batch, penalties, problem)
    return _bag_nll(model, f, batch, problem.observation) + smooth + penalties.l2 * model.latent.squared_norm() / bags


def bag_nll(model: Model, batch: Batch, observation: Observation) -> Float[Array, ""]:
    """Mean negative log likelihood per bag."""
    return _bag_nll(model, model.latent(batch.x), batch, observation)


def _bag_nll(model: Model, f: Float[Array, " N"], batch: Batch, observation: Observation) -> Float[Array, ""]:
    mean = jnp.where(batch.bag, batch.totals(batch.weight * observation.response(f)), 1.0)
    nll = observation.nll(batch.y, mean, batch.squares, jnp.exp(model.log_tau))
    return jnp.sum(jnp.where(batch.bag, nll, 0.0)) / jnp.sum(batch.bag, dtype=f.dtype)


def _roughness(f: Float[Array, " N"], batch: Batch, penalties: Penalties, problem: Problem) -> Float[Array, ""]:
    total = jnp.zeros(())
    if not (problem.manifold or problem.bag_manifold):
        return total
    inside = batch.individual.astype(f.dtype)
    features = random_features(batch.x, penalties.frequencies) * inside[:, None]
    if problem.manifold:
        total += penalties.manifold * laplacian_form(f, features) / jnp.sum(inside) ** 2
    if problem.bag_manifold:
        counts = jnp.maximum(batch.totals(inside), 1.0)
        given = batch.bag_features.shape[1] > 0
        bag_features = batch.bag_features if given else batch.totals(features) / counts[:, None]
        means = batch.totals(f * inside) / counts
        total += penalties.bag_manifold * laplacian_form(means, bag_features) / jnp.sum(batch.bag, dtype=f.dtype) ** 2
    return total


jitted_bag_nll = jax.jit(bag_nll, static_argnames="observation")
