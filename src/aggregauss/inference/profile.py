"""The bound with q at its best, as a function of the hyper-parameters alone, climbed by L-BFGS.

Where a pass over all the data is affordable, q is brought to its optimum by natural-gradient steps, each a pass; by the
envelope theorem the bound's partial derivatives are then those of the profile. A step that loses ground is taken back
and halved.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from aggregauss.inference import ascent
from aggregauss.parameters import bounds

Pass = Callable[[ascent.State], ascent.Slopes]
LEAST_SHARE = 1e-3


@dataclasses.dataclass
class Profile:
    """max_q of the bound; remembers where q was, and every evaluation, so that a search can be repeated."""

    look: Pass
    state: ascent.State
    tolerance: float
    most: int
    report: Callable[[float], None]
    known: list[tuple[float, np.ndarray]]  # evaluations of an earlier run of the same search
    history: list[float]

    def __call__(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """The profile and its gradient."""
        if len(self.history) < len(self.known):
            value, slope = self.known[len(self.history)]
            self.history.append(value)
            return value, slope
        free = self.state.free._replace(vector=jnp.asarray(vector))
        best, uphill = climb(self.look, self.state._replace(free=free), self.tolerance, self.most)
        value, slope = float(uphill.objective), np.asarray(uphill.free.vector)
        if np.isfinite(value) and np.isfinite(slope).all():
            self.state = best
        else:
            value, slope = -np.inf, np.zeros_like(slope)
        self.history.append(value)
        self.known.append((value, slope))
        self.report(value)
        return value, slope


def climb(look: Pass, state: ascent.State, tolerance: float, most: int) -> tuple[ascent.State, ascent.Slopes]:
    """Natural-gradient steps of q until one gains less than `tolerance`; the best state and its slopes."""
    state = state._replace(rho=jnp.asarray(1.0))
    best, uphill = state, look(state)
    for _ in range(most):
        trial = best._replace(q=uphill.q)
        ahead = look(trial)
        gain = float(ahead.objective - uphill.objective)
        if gain >= 0:
            best, uphill = trial, ahead
            if gain < tolerance:
                break
            continue
        share = 0.5 * best.rho
        if -gain < tolerance or float(share) < LEAST_SHARE or not np.isfinite(float(uphill.objective)):
            break
        best = best._replace(rho=share)
        uphill = look(best)
    return best, uphill


def search(
    profile: Profile, template: Any, start: np.ndarray, max_iterations: int, tolerance: float
) -> tuple[np.ndarray, bool, str]:
    """The hyper-parameters at the top, whether the search ended by itself, and why."""
    from scipy.optimize import minimize  # slow to import

    low, high = bounds(template)
    start = np.clip(start, low, high)
    _, slope = profile(start)
    unit = max(1.0, float(np.linalg.norm(slope)))  # within bounds on all sides the first step is the gradient itself

    def cost(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = profile(vector)
        return (1e25, np.zeros_like(slope)) if not np.isfinite(value) else (-value / unit, -slope / unit)

    result = minimize(
        cost, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high)),
        options={"maxiter": max_iterations, "ftol": 0.0, "gtol": tolerance / unit, "maxfun": 3 * max_iterations},
        callback=_Enough(tolerance / unit),
    )  # fmt: skip
    return np.asarray(result.x), bool(result.success) or "StopIteration" in str(result.message), str(result.message)


@dataclasses.dataclass
class _Enough:
    """Stops a search when two iterations in a row gained less than the tolerance."""

    tolerance: float
    last: float = -np.inf
    idle: int = 0

    def __call__(self, intermediate_result: Any) -> None:
        value = -float(intermediate_result.fun)
        self.idle = self.idle + 1 if value - self.last < self.tolerance else 0
        self.last = value
        if self.idle >= 2:
            raise StopIteration
