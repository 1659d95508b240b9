"""Exact inference under Gaussian noise: y ~ N(∫ m dμ, K + diag(noise))."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.inference.conditional import Conditional
from aggregauss.inference.data import Data, Observations, refuse_duplicates
from aggregauss.inference.optimise import check_search, maximise, open_parameters
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.starts import starts
from aggregauss.kernels.covariance import gram, warn_if_coarse
from aggregauss.latent.effects import with_effects
from aggregauss.likelihoods import Conjugate


@dataclasses.dataclass(frozen=True)
class Exact:
    """Closed-form posterior; hyper-parameters by L-BFGS on the log marginal likelihood plus log priors.

    `restarts` random starts are tried beside the model's own values; `optimise=False` keeps those values.
    `integrate=True` makes the posterior a mixture over hyper-parameters that fit about as well, so that intervals also
    say how little the data may know about them. Cost: n³ for each evaluation, so up to about 5,000 observations.
    """

    restarts: int = 4
    max_iterations: int = 500
    tolerance: float = 1e-10
    optimise: bool = True
    integrate: bool = False

    def fit(self, model: Any, observations: Observations, seed: int = 0, progress: bool = True) -> Posterior:
        """The posterior of `model` given `observations`."""
        _check(model)
        check_search(self)
        data = observations.on_device()
        refuse_duplicates(observations, np.asarray(model.noise(data)))
        fitted, runs = model, ()
        if self.optimise:
            begin = starts(model, observations, self.restarts, seed)
            fitted, runs = maximise(
                log_evidence,
                data,
                begin,
                max_iterations=self.max_iterations,
                tolerance=self.tolerance,
                progress=progress,
            )
        warn_if_coarse(with_effects(fitted.kernel, fitted.mean), observations.support)
        state, evidence = _solve(fitted, data)
        if not np.isfinite(evidence):
            raise FloatingPointError(
                "Exact: the covariance of the observations is not positive definite. Give noise_variance, or let "
                "the likelihood learn a noise variance."
            )
        post = Posterior(fitted, observations, None, state, float(evidence), "Exact", runs)
        near = open_parameters(log_evidence, data, fitted) if self.integrate else None
        return post if near is None else post.mixed_over(near, lambda model, _: _solve(model, data)[0])


def log_evidence(model: Any, data: Data) -> Float[Array, ""]:
    """log p(y) with everything but the hyper-parameters integrated out."""
    residual = data.seen.y - model.mean.integrate(data.moments)
    return linalg.log_density(_noisy(model, data), residual) + jnp.sum(model.within(data))


def _noisy(model: Any, data: Data) -> Float[Array, "n n"]:
    return linalg.add_diagonal(gram(with_effects(model.kernel, model.mean), data.layout), model.noise(data))


@eqx.filter_jit
def _solve(model: Any, data: Data) -> tuple[Conditional, Float[Array, ""]]:
    residual = data.seen.y - model.mean.integrate(data.moments)
    L = linalg.factor(_noisy(model, data))
    alpha = cho_solve((L, True), residual)
    evidence = linalg.gaussian_log_density(L, residual, alpha) + jnp.sum(model.within(data))
    return Conditional(alpha, L, jnp.ones_like(alpha)), evidence


def refuse_response(model: Any, who: str) -> None:
    """A sentence if the link comes before the integral, which then is not normal."""
    if model.aggregation == "response" and model.likelihood.link != "identity":
        raise TypeError(
            f'{who}: under aggregation="response" the {model.likelihood.link} link comes before the aggregate, which '
            'is then not normal. Use inference=SVI(), or aggregation="latent".'
        )


def _check(model: Any) -> None:
    for view in (model.of_task(t) for t in range(len(model.likelihoods))):
        likelihood = view.likelihood
        if not isinstance(likelihood, Conjugate):
            raise TypeError(
                f"Exact: the posterior is exact under Gaussian noise only, but the likelihood is "
                f"{type(likelihood).__name__}. Use inference=EP() for LaplaceNoise, SVI() for others."
            )
        refuse_response(view, "Exact")
    if model.constraint is not None:
        raise TypeError("Exact: a non-negative function has no exact posterior. Use inference=EP().")
