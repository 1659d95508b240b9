"""Expectation propagation: non-negative functions, and noise that is not Gaussian."""

import dataclasses
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Bool, Float

from aggregauss.inference import sites as ep
from aggregauss.inference.data import Data, Observations
from aggregauss.inference.optimise import maximise
from aggregauss.inference.posterior import Gaussian, Posterior
from aggregauss.inference.starts import starts
from aggregauss.kernels.covariance import gram, symmetric, warn_if_coarse
from aggregauss.latent.constraints import RELATIVE_SCALE, NonNegative
from aggregauss.latent.means import Moments, moments
from aggregauss.likelihoods import Gaussian as GaussianNoise
from aggregauss.parameters import copy_with
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support, concatenate

NOISE_FLOOR = 1e-10  # of the variance of the data: sites need a finite precision
ADAPTIVE_ROUNDS, ACCEPTED_RISK = 8, 0.05


class Problem(eqx.Module):
    """Observations followed by virtual points."""

    layout: Layout
    moments: Moments
    y: Float[Array, " n"]
    noise_variance: Float[Array, " n"]
    nu: Float[Array, ""]  # scale of the probit factors
    virtual: Bool[Array, " n"]
    damping: float = eqx.field(static=True)
    max_sweeps: int = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)


@dataclasses.dataclass(frozen=True)
class EP:
    """Gaussian sites by expectation propagation; hyper-parameters by L-BFGS on its approximate evidence.

    Gaussian observations keep their exact sites, so without constraint and with Gaussian noise this is `Exact`. All
    sites are refreshed together, moving by the share `damping`, up to `max_sweeps` times.
    """

    restarts: int = 2
    max_iterations: int = 200
    tolerance: float = 1e-9
    optimise: bool = True
    damping: float = 0.7
    max_sweeps: int = 500
    sweep_tolerance: float = 1e-8

    def fit(self, model: Any, observations: Observations, seed: int = 0, progress: bool = True) -> Posterior:
        """The posterior of `model` given `observations`."""
        constraint = model.constraint
        if constraint is None or not constraint.is_adaptive(observations.support.dim):
            low, high = observations.support.bounding_box()
            virtual = None if constraint is None else constraint.locations(low, high)
            return self._fit(model, observations, virtual, seed, progress)
        return self._fit_adaptively(model, observations, constraint, seed, progress)

    def _fit(
        self, model: Any, observations: Observations, virtual: Support | None, seed: int, progress: bool
    ) -> Posterior:
        problem = self._problem(model.constraint, observations, virtual)
        core, runs = copy_with(model, constraint=None), ()
        if self.optimise:
            begin = starts(core, observations, self.restarts, seed)
            core, runs = maximise(
                log_evidence, problem, begin, max_iterations=self.max_iterations, tolerance=self.tolerance, progress=progress
            )
        warn_if_coarse(core.kernel, observations.support)
        state, evidence, outcome = _solve(core, problem)
        if not np.isfinite(evidence):
            raise FloatingPointError("EP: the sites diverged. Lower the damping, or give some noise_variance.")
        if outcome.change > self.sweep_tolerance:
            warnings.warn(
                f"EP: the sites still moved by {float(outcome.change):.1e} standard deviations after {self.max_sweeps} "
                "sweeps. Raise max_sweeps or lower the damping.",
                stacklevel=4,
            )
        fitted = copy_with(core, constraint=model.constraint)
        return Posterior(fitted, observations, virtual, state, float(evidence), "EP", runs)

    def _fit_adaptively(
        self, model: Any, observations: Observations, constraint: NonNegative, seed: int, progress: bool
    ) -> Posterior:
        """Start with a few points, then add the most doubtful candidates until none is or all points are used."""
        low, high = observations.support.bounding_box()
        candidates = constraint.candidates(low, high, seed)
        share = max(1, int(constraint.points) // ADAPTIVE_ROUNDS)
        virtual = candidates[np.arange(share)]
        while True:
            post = self._fit(model, observations, virtual, seed, progress)
            latent = post.predict(candidates, "latent")
            risk = 1.0 - latent.exceedance(0.0)
            room = int(constraint.points) - len(virtual)
            if room <= 0 or risk.max() <= ACCEPTED_RISK:
                return post
            virtual = concatenate([virtual, candidates[_spread_out(candidates, risk, min(share, room))]])

    def _problem(self, constraint: NonNegative | None, observations: Observations, virtual: Support | None) -> Problem:
        support = observations.support if virtual is None else concatenate([observations.support, virtual])
        extra = 0 if virtual is None else len(virtual)
        nu = constraint.scale if constraint is not None else 1.0
        if nu is None:
            nu = RELATIVE_SCALE * float(np.std(observations.density) or np.abs(observations.density).mean() or 1.0)
        floor = NOISE_FLOOR * float(np.var(observations.y) or 1.0)
        return Problem(
            layout=layout(support),
            moments=moments(support),
            y=jnp.asarray(np.concatenate([observations.y, np.zeros(extra)])),
            noise_variance=jnp.asarray(np.concatenate([np.maximum(observations.noise_variance, floor), np.ones(extra)])),
            nu=jnp.asarray(nu),
            virtual=jnp.asarray(np.arange(len(support)) >= len(observations.y)),
            damping=self.damping,
            max_sweeps=self.max_sweeps,
            tolerance=self.sweep_tolerance,
        )


def log_evidence(model: Any, problem: Problem) -> Float[Array, ""]:
    """The EP approximation of log p(y, constraints).

    At a fixed point it is stationary in the sites, so its gradient holds them (and the cavities) fixed.
    """
    K, m = symmetric(gram(model.kernel, problem.layout)), model.mean.integrate(problem.moments)
    held = jax.lax.stop_gradient(_run(model, problem, K, m).sites)
    sites = _with_exact_sites(model, problem, held)
    cavity = jax.lax.stop_gradient(ep.cavities(ep.marginals(K, m, sites), sites))
    factors = _log_z(model, problem)(cavity.mean, cavity.variance)
    correction = factors - ep.log_site_integral(cavity, jax.lax.stop_gradient(sites))
    if isinstance(model.likelihood, GaussianNoise):
        noise = problem.noise_variance + model.likelihood.variance
        exact = -0.5 * (jnp.log(2 * jnp.pi * noise) + problem.y**2 / noise)
        correction = jnp.where(problem.virtual, correction, exact)
    return ep.log_normaliser(K, m, sites) + jnp.sum(correction)


@eqx.filter_jit
def _solve(model: Any, problem: Problem) -> tuple[Gaussian, Array, ep.Outcome]:
    K, m = symmetric(gram(model.kernel, problem.layout)), model.mean.integrate(problem.moments)
    outcome = _run(model, problem, K, m)
    state = Gaussian(*ep.solve(K, m, outcome.sites))
    return state, log_evidence(model, problem), outcome


def _run(model: Any, problem: Problem, K: Array, m: Array) -> ep.Outcome:
    K, m, model = jax.lax.stop_gradient((K, m, model))
    n = len(problem.y)
    start = _with_exact_sites(model, problem, ep.Sites(jnp.zeros(n), jnp.zeros(n)))
    if isinstance(model.likelihood, GaussianNoise):
        updated = problem.virtual
    else:
        updated = jnp.ones(n, bool)
    return ep.propagate(
        K, m, _log_z(model, problem), start, updated, problem.damping, problem.max_sweeps, problem.tolerance
    )


def _with_exact_sites(model: Any, problem: Problem, sites: ep.Sites) -> ep.Sites:
    """Gaussian observations are their own sites."""
    if not isinstance(model.likelihood, GaussianNoise):
        return sites
    tau = 1.0 / (problem.noise_variance + model.likelihood.variance)
    return ep.Sites(jnp.where(problem.virtual, sites.tau, tau), jnp.where(problem.virtual, sites.nu, tau * problem.y))


def _log_z(model: Any, problem: Problem) -> ep.LogZ:
    def log_z(mean: Array, variance: Array) -> Array:
        observed = model.likelihood.log_smoothed(problem.y, mean, variance + problem.noise_variance)
        probit = log_ndtr(mean / jnp.sqrt(problem.nu**2 + variance))
        return jnp.where(problem.virtual, probit, observed)

    return log_z


def _spread_out(candidates: Support, risk: np.ndarray, count: int) -> np.ndarray:
    """The riskiest candidates, leaving out those close to one already taken."""
    low, high = candidates.bounding_box()
    unit = (candidates.center - low) / (high - low)
    apart = 0.5 * len(unit) ** (-1 / unit.shape[1])
    taken: list[int] = []
    for i in np.argsort(-risk):
        if len(taken) == count or risk[i] <= ACCEPTED_RISK:
            break
        if all(np.linalg.norm(unit[i] - unit[j]) > apart for j in taken):
            taken.append(int(i))
    return np.array(taken, int)
