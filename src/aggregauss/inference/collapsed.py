"""The Normal model with inducing variables and the best Gaussian q in closed form (Titsias 2009, over supports).

With T = cov(supports, u) whitened to A = T L⁻ᵀ, noise N (diagonal) and B = I + Aᵀ N⁻¹ A,

    bound = log N(y - m; 0, A Aᵀ + N) - ½ tr(N⁻¹ (K - A Aᵀ)),        q(ε) = N(B⁻¹ Aᵀ N⁻¹ (y - m), B⁻¹).

Both follow from the Cholesky factor of B: n m² for each evaluation beside the covariances themselves.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.inference.conditional import Conditional, sparse_conditional
from aggregauss.inference.data import Data, Observations
from aggregauss.inference.exact import refuse_response
from aggregauss.inference.inducing import JITTER, Inducing, inducing_factor, on_device
from aggregauss.inference.optimise import check_search, maximise, open_parameters
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.starts import starts
from aggregauss.inference.variational import Moments2
from aggregauss.kernels.covariance import cross, diagonal
from aggregauss.latent.effects import with_effects
from aggregauss.likelihoods import Conjugate


class Problem(eqx.Module):
    """Observations beside inducing variables."""

    data: Data
    Z: Inducing


@dataclasses.dataclass(frozen=True)
class Collapsed:
    """Closed-form optimal q over inducing variables under Gaussian noise; hyper-parameters by L-BFGS on the bound.

    `inducing` as for `SVI`, `integrate` as for `Exact`. Cost: n m² for each evaluation, and the pairs of individuals
    within each support.
    """

    inducing: Any = None
    restarts: int = 1
    max_iterations: int = 500
    tolerance: float = 1e-9
    optimise: bool = True
    integrate: bool = False

    def fit(self, model: Any, observations: Observations, seed: int = 0, progress: bool = True) -> Posterior:
        """The posterior of `model` given `observations`."""
        if not all(isinstance(g, Conjugate) for g in model.likelihoods) or model.constraint is not None:
            raise TypeError(
                "Collapsed: the best q is known in closed form under Gaussian noise without constraints only. "
                "Use inference=SVI()."
            )
        check_search(self)
        for task in range(len(model.likelihoods)):
            refuse_response(model.of_task(task), "Collapsed")
        inducing = model.inducing(self.inducing, observations.support, seed)
        problem = Problem(observations.on_device(), on_device(inducing))
        fitted, runs = model, ()
        if self.optimise:
            begin = starts(model, observations, self.restarts, seed)
            fitted, runs = maximise(
                bound, problem, begin, max_iterations=self.max_iterations, tolerance=self.tolerance, progress=progress
            )
        value, q = _solve(fitted, problem)

        def conditional(model: Any, _: Any) -> Conditional:
            return sparse_conditional(model, problem.Z, _solve(model, problem)[1], JITTER["float64"])

        if not np.isfinite(value):
            raise FloatingPointError("Collapsed: the bound is not finite. Let the likelihood learn a noise variance.")
        state = sparse_conditional(fitted, problem.Z, q, JITTER["float64"])
        post = Posterior(fitted, observations, None, state, float(value), "Collapsed", runs, inducing=inducing)
        near = open_parameters(bound, problem, fitted) if self.integrate else None
        return post if near is None else post.mixed_over(near, conditional)


def bound(model: Any, problem: Problem) -> Float[Array, ""]:
    """The lower bound of log p(y)."""
    return _evaluate(model, problem)[0]


_solve = eqx.filter_jit(lambda model, problem: _evaluate(model, problem))


def _evaluate(model: Any, problem: Problem) -> tuple[Array, Moments2]:
    data = problem.data
    noise = model.noise(data)
    residual = (data.seen.y - model.mean.integrate(data.moments)) / jnp.sqrt(noise)
    L = inducing_factor(model, problem.Z, JITTER["float64"])
    parts = [] if problem.Z is None else [cross(model.kernel, data.layout, problem.Z)]
    if model.mean.effects:
        parts.append(model.mean.integrate_features(data.moments))
    A = linalg.lower_solve(L, jnp.concatenate(parts, axis=1).T) / jnp.sqrt(noise)[None, :]  # m x n
    prior = diagonal(with_effects(model.kernel, model.mean), data.layout) / noise
    factor = jnp.linalg.cholesky(jnp.eye(len(A)) + A @ A.T)
    c = linalg.lower_solve(factor, A @ residual)
    fit = residual @ residual - c @ c + jnp.sum(jnp.log(2 * jnp.pi * noise))
    value = -0.5 * fit - jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * (jnp.sum(prior) - jnp.sum(A**2))
    value = value + jnp.sum(model.within(data))
    covariance = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(A)))
    return value, Moments2(covariance @ (A @ residual), covariance)
