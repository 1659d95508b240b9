"""Expectation propagation: non-negative functions, and noise that is not Gaussian."""

import dataclasses
import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.inference import sites as ep
from aggregauss.inference.data import Observations
from aggregauss.inference.exact import Exact
from aggregauss.inference.optimise import maximise
from aggregauss.inference.posterior import Conditional, Posterior
from aggregauss.inference.starts import starts
from aggregauss.kernels.covariance import gram, symmetric, warn_if_coarse
from aggregauss.latent.constraints import RELATIVE_SCALE, NonNegative
from aggregauss.latent.means import Moments, moments
from aggregauss.likelihoods import Gaussian
from aggregauss.parameters import copy_with
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support, concatenate

ADAPTIVE_ROUNDS, ACCEPTED_RISK = 8, 0.05


class Problem(eqx.Module):
    """Observations, then virtual points. Gaussian observations are conditioned on exactly; all others get sites."""

    layout: Layout
    moments: Moments
    y: Float[Array, " observed"]
    noise_variance: Float[Array, " observed"]
    nu: Float[Array, ""]  # scale of the probit factors
    exact: int = eqx.field(static=True)  # how many observations are Gaussian: all or none
    damping: float = eqx.field(static=True)
    max_sweeps: int = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)


class Conditioned(NamedTuple):
    """The prior of the remaining values given the Gaussian observations."""

    factor: Float[Array, "exact exact"]
    cross: Float[Array, "exact rest"]  # L⁻¹ K between the two
    mean: Float[Array, " rest"]
    covariance: Float[Array, "rest rest"]
    log_density: Float[Array, ""]  # of the Gaussian observations


@dataclasses.dataclass(frozen=True)
class EP:
    """Gaussian sites by expectation propagation; hyper-parameters by L-BFGS on its approximate evidence.

    Gaussian observations are conditioned on exactly, so without a constraint and with Gaussian noise this is `Exact`.
    All sites are refreshed together, moving by the share `damping`, up to `max_sweeps` times.
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
        if constraint is None and isinstance(model.likelihood, Gaussian):
            exact = Exact(self.restarts, self.max_iterations, self.tolerance, self.optimise)  # no site is needed
            return exact.fit(model, observations, seed, progress)
        if constraint is None or not constraint.is_adaptive(observations.support.dim):
            low, high = observations.support.bounding_box()
            virtual = None if constraint is None else constraint.locations(low, high)
            return self._fit(model, observations, virtual, seed, progress)
        return self._fit_adaptively(model, observations, constraint, seed, progress)

    def _fit(
        self, model: Any, observations: Observations, virtual: Support | None, seed: int, progress: bool
    ) -> Posterior:
        problem = self._problem(model, observations, virtual)
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

    def _problem(self, model: Any, observations: Observations, virtual: Support | None) -> Problem:
        support = observations.support if virtual is None else concatenate([observations.support, virtual])
        nu = 1.0 if model.constraint is None else model.constraint.scale
        if nu is None:
            nu = RELATIVE_SCALE * float(np.std(observations.density) or np.abs(observations.density).mean() or 1.0)
        return Problem(
            layout=layout(support),
            moments=moments(support),
            y=jnp.asarray(observations.y),
            noise_variance=jnp.asarray(observations.noise_variance),
            nu=jnp.asarray(float(nu)),
            exact=len(observations.y) if isinstance(model.likelihood, Gaussian) else 0,
            damping=self.damping,
            max_sweeps=self.max_sweeps,
            tolerance=self.sweep_tolerance,
        )


def log_evidence(model: Any, problem: Problem) -> Float[Array, ""]:
    """The EP approximation of log p(y, constraints).

    At a fixed point it is stationary in the sites, so its gradient holds them, and the cavities, fixed.
    """
    given = _condition(model, problem)
    sites = jax.lax.stop_gradient(_run(model, problem, given).sites)
    cavity = jax.lax.stop_gradient(ep.cavities(ep.marginals(given.covariance, given.mean, sites), sites))
    factors = _log_z(model, problem)(cavity.mean, cavity.variance) - ep.log_site_integral(cavity, sites)
    return given.log_density + ep.log_normaliser(given.covariance, given.mean, sites) + jnp.sum(factors)


@eqx.filter_jit
def _solve(model: Any, problem: Problem) -> tuple[Conditional, Array, ep.Outcome]:
    """The posterior in the form of `Conditional`: the factor of [[K_oo + Σ, K_ov √τ], [√τ K_vo, I + √τ K_vv √τ]]."""
    given, n = _condition(model, problem), problem.exact
    outcome = _run(model, problem, given)
    alpha, inner, root = ep.solve(given.covariance, given.mean, outcome.sites)
    residual = problem.y[:n] - model.mean.integrate(problem.moments)[:n]
    outer = linalg.lower_solve(given.factor, residual) - given.cross @ alpha
    alpha_exact = jax.scipy.linalg.solve_triangular(given.factor.T, outer, lower=False)
    factor = jnp.block([[given.factor, jnp.zeros_like(given.cross)], [root[:, None] * given.cross.T, inner]])
    state = Conditional(jnp.concatenate([alpha_exact, alpha]), factor, jnp.concatenate([jnp.ones(n), root]))
    return state, log_evidence(model, problem), outcome


def _condition(model: Any, problem: Problem) -> Conditioned:
    n = problem.exact
    K, m = symmetric(gram(model.kernel, problem.layout)), model.mean.integrate(problem.moments)
    noisy = linalg.add_diagonal(K[:n, :n], problem.noise_variance[:n] + model.likelihood.variance)
    residual = problem.y[:n] - m[:n]
    L = linalg.cholesky(noisy)
    V = linalg.lower_solve(L, K[:n, n:])
    # What the data leave of a virtual point's variance may vanish in rounding; sites need it positive.
    covariance = linalg.add_diagonal(K[n:, n:] - V.T @ V, linalg.JITTER * jnp.diagonal(K)[n:])
    mean = m[n:] + V.T @ linalg.lower_solve(L, residual)
    return Conditioned(L, V, mean, covariance, linalg.log_density(noisy, residual) if n else jnp.zeros(()))


def _run(model: Any, problem: Problem, given: Conditioned) -> ep.Outcome:
    model, given = jax.lax.stop_gradient((model, given))
    return ep.propagate(
        given.covariance, given.mean, _log_z(model, problem), problem.damping, problem.max_sweeps, problem.tolerance
    )


def _log_z(model: Any, problem: Problem) -> ep.LogZ:
    """Smoothed log factors of the observations that are not exact, then of the virtual points."""
    y, noise = problem.y[problem.exact :], problem.noise_variance[problem.exact :]

    def log_z(mean: Array, variance: Array) -> Array:
        k = len(y)
        observed = model.likelihood.log_smoothed(y, mean[:k], variance[:k] + noise)
        probit = log_ndtr(mean[k:] / jnp.sqrt(problem.nu**2 + variance[k:]))
        return jnp.concatenate([observed, probit])

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
