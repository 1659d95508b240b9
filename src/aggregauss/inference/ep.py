"""Expectation propagation: non-negative functions, and noise that is not Gaussian."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Bool, Float

from aggregauss import linalg
from aggregauss.checks import positive_number, warn, whole_number
from aggregauss.inference import sites as ep
from aggregauss.inference.conditional import Conditional
from aggregauss.inference.data import Observations
from aggregauss.inference.exact import Exact
from aggregauss.inference.optimise import Run, check_search, maximise
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.starts import starts
from aggregauss.kernels.covariance import gram, symmetric, warn_if_coarse
from aggregauss.latent.constraints import RELATIVE_SCALE
from aggregauss.latent.effects import with_effects
from aggregauss.latent.means import Moments, moments
from aggregauss.likelihoods import Conjugate, Gaussian, LaplaceNoise
from aggregauss.likelihoods.likelihood import Seen
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
    scale: Float[Array, " observed"]  # of the learned noise
    nu: Float[Array, ""]  # scale of the probit factors
    idle: Bool[Array, " virtual"]  # virtual points that impose nothing
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
        _check(model, observations)
        check_search(self)
        positive_number(self.damping, "EP", "damping", most=1.0)
        whole_number(self.max_sweeps, "EP", "max_sweeps")
        positive_number(self.sweep_tolerance, "EP", "sweep_tolerance")
        constraint = model.constraint
        if constraint is None and isinstance(model.likelihood, Gaussian):
            exact = Exact(self.restarts, self.max_iterations, self.tolerance, self.optimise)  # no site is needed
            return exact.fit(model, observations, seed, progress)
        low, high = observations.support.bounding_box()
        if constraint is None:
            virtual = None
        elif constraint.is_adaptive(observations.support.dim):
            virtual = self._place(model, observations, constraint.candidates(low, high, seed), seed, progress)
        else:
            virtual = constraint.locations(low, high)
        return self._fit(model, observations, virtual, seed, progress)

    def _fit(
        self, model: Any, observations: Observations, virtual: Support | None, seed: int, progress: bool
    ) -> Posterior:
        core, runs = self._learn(model, observations, virtual, seed, progress)
        warn_if_coarse(with_effects(core.kernel, core.mean), observations.support)
        state, evidence, outcome = _solve(core, self._problem(model, observations, virtual))
        if not np.isfinite(evidence):
            raise FloatingPointError("EP: the sites diverged. Lower the damping, or give some noise_variance.")
        if outcome.change > self.sweep_tolerance:
            warn(
                f"EP: the sites still moved by {float(outcome.change):.1e} standard deviations after {self.max_sweeps} "
                "sweeps. Raise max_sweeps or lower the damping."
            )
        fitted = copy_with(core, constraint=model.constraint)
        return Posterior(fitted, observations, virtual, state, float(evidence), "EP", runs)

    def _learn(
        self, model: Any, observations: Observations, virtual: Support | None, seed: int, progress: bool
    ) -> tuple[Any, tuple[Run, ...]]:
        core = copy_with(model, constraint=None)  # what is compiled does not depend on it
        if not self.optimise:
            return core, ()
        problem, begin = (
            self._problem(model, observations, virtual),
            starts(core, observations, self.restarts, seed),
        )
        return maximise(
            log_evidence,
            problem,
            begin,
            max_iterations=self.max_iterations,
            tolerance=self.tolerance,
            progress=progress,
        )

    def _place(self, model: Any, observations: Observations, candidates: Support, seed: int, progress: bool) -> Support:
        """Virtual points under the hyper-parameters that a few of them give; each round adds the most doubtful places.

        The arrays have their final size from the start, with idle points among them, so that all rounds share one
        compiled program.
        """
        total = int(model.constraint.points)
        share = -(-total // ADAPTIVE_ROUNDS)
        chosen = np.arange(share)
        core, _ = self._learn(model, observations, candidates[chosen], seed, progress)
        core = copy_with(core, constraint=model.constraint)
        while True:
            virtual = candidates[np.concatenate([chosen, np.zeros(total - len(chosen), int)])]
            problem = self._problem(core, observations, virtual, active=len(chosen))
            state, _, _ = _solve(copy_with(core, constraint=None), problem)
            post = Posterior(core, observations, virtual, state, 0.0, "EP")
            risk = 1.0 - post.predict(candidates, "latent").exceedance(0.0)
            fresh = _spread_out(candidates, risk, chosen, min(share, total - len(chosen)))
            if len(fresh) == 0:
                return candidates[chosen]
            chosen = np.concatenate([chosen, fresh])

    def _problem(
        self, model: Any, observations: Observations, virtual: Support | None, active: int | None = None
    ) -> Problem:
        support = observations.support if virtual is None else concatenate([observations.support, virtual])
        nu = 1.0 if model.constraint is None else model.constraint.scale
        if nu is None:
            nu = RELATIVE_SCALE * float(np.std(observations.density) or np.abs(observations.density).mean() or 1.0)
        return Problem(
            layout=layout(support),
            moments=moments(support),
            y=jnp.asarray(observations.y),
            noise_variance=jnp.asarray(observations.noise_variance),
            scale=jnp.asarray(model.likelihood.noise_share(Seen(*map(jnp.asarray, observations.seen())))),
            nu=jnp.asarray(float(nu)),
            idle=jnp.arange(0 if virtual is None else len(virtual)) >= (len(support) if active is None else active),
            exact=len(observations.y) if isinstance(model.likelihood, Gaussian) else 0,
            damping=self.damping,
            max_sweeps=self.max_sweeps,
            tolerance=self.sweep_tolerance,
        )


def _check(model: Any, observations: Observations) -> None:
    """Of one task, with noise whose sites are known."""
    if observations.task is not None:
        raise TypeError(
            "EP: known for GP, not for several tasks. Use inference=Exact() if all noise is Gaussian, else SVI()."
        )
    (likelihood,) = model.likelihoods
    if isinstance(likelihood, Conjugate) and not isinstance(likelihood, Gaussian):
        raise TypeError(
            f"EP: not known for {type(likelihood).__name__}. Use inference=Exact(); for a non-negative function give "
            "the means to Gaussian() with noise_variance=variances / counts."
        )
    if not isinstance(likelihood, Gaussian | LaplaceNoise):
        raise TypeError(
            f"EP: sites are known for Gaussian noise and LaplaceNoise, but the likelihood is "
            f"{type(likelihood).__name__}. Use inference=SVI()."
        )


def log_evidence(model: Any, problem: Problem) -> Float[Array, ""]:
    """The EP approximation of log p(y, constraints).

    At a fixed point it is stationary in the sites, so its gradient holds them, and the cavities, fixed.
    """
    given = _condition(model, problem)
    return _evidence(model, problem, given, _run(model, problem, given).sites)


def _evidence(model: Any, problem: Problem, given: Conditioned, sites: ep.Sites) -> Float[Array, ""]:
    sites = jax.lax.stop_gradient(sites)
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
    return state, _evidence(model, problem, given, outcome.sites), outcome


def _condition(model: Any, problem: Problem) -> Conditioned:
    n = problem.exact
    K = symmetric(gram(with_effects(model.kernel, model.mean), problem.layout))
    m = model.mean.integrate(problem.moments)
    noisy = linalg.add_diagonal(K[:n, :n], problem.noise_variance[:n] + model.likelihood.variance * problem.scale[:n])
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
        given.covariance,
        given.mean,
        _log_z(model, problem),
        problem.damping,
        problem.max_sweeps,
        problem.tolerance,
    )


def _log_z(model: Any, problem: Problem) -> ep.LogZ:
    """Smoothed log factors of the observations that are not exact, then of the virtual points."""
    y, noise = problem.y[problem.exact :], problem.noise_variance[problem.exact :]

    def log_z(mean: Array, variance: Array) -> Array:
        k = len(y)
        observed = model.likelihood.log_smoothed(y, mean[:k], variance[:k] + noise)
        probit = log_ndtr(mean[k:] / jnp.sqrt(problem.nu**2 + variance[k:]))
        return jnp.concatenate([observed, jnp.where(problem.idle, 0.0, probit)])

    return log_z


def _spread_out(candidates: Support, risk: np.ndarray, chosen: np.ndarray, count: int) -> np.ndarray:
    """The riskiest candidates, leaving out those close to one already taken."""
    low, high = candidates.bounding_box()
    unit = (candidates.center - low) / (high - low)
    apart = 0.5 * len(unit) ** (-1 / unit.shape[1])
    taken: list[int] = []
    for i in np.argsort(-risk):
        if len(taken) == count or risk[i] <= ACCEPTED_RISK:
            break
        if np.linalg.norm(unit[[*chosen, *taken]] - unit[i], axis=1).min() > apart:
            taken.append(int(i))
    return np.array(taken, int)
