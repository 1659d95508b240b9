"""L-BFGS on a compiled objective, from several starts."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from aggregauss.archive import storable
from aggregauss.checks import share_of_one, whole_number
from aggregauss.inference.hyperparameters import Around, around
from aggregauss.parameters import bounds, log_prior, pack, settled, sizes, unpack

M = TypeVar("M")
Objective = Callable[[Any, Any], Float[Array, ""]]
UNACCEPTABLE = 1e25  # what a point where the objective is not finite costs


@storable
@dataclasses.dataclass(frozen=True)
class Run:
    """One search: where it ended, how good that is, and how it went."""

    objective: float
    iterations: int
    evaluations: int
    converged: bool
    message: str
    path: tuple[float, ...]


def check_search(scheme: Any) -> None:
    """A sentence if the settings of a search make no sense."""
    who = type(scheme).__name__
    whole_number(scheme.restarts, who, "restarts", 0)
    whole_number(scheme.max_iterations, who, "max_iterations")
    share_of_one(scheme.tolerance, who, "tolerance")


def maximise(
    objective: Objective, data: Any, starts: list[M], *, max_iterations: int, tolerance: float, progress: bool
) -> tuple[M, tuple[Run, ...]]:
    """The best model found from any start, and a record of every run; none is made if there is nothing to learn.

    `objective(model, data)` is a log evidence; log priors are added here.
    """
    template = starts[0]
    if pack(template).size == 0:
        return template, ()
    runs, ends = [], []
    bar = tqdm(total=len(starts), desc="fit", unit="start", delay=2.0, leave=False, disable=not progress)
    with bar:
        for start in starts:
            run, vector = _search(objective, data, template, start, max_iterations, tolerance, bar)
            runs.append(run)
            ends.append(vector)
            bar.update()
    best = int(np.argmax([run.objective for run in runs]))
    if not np.isfinite(runs[best].objective) or runs[best].objective <= -UNACCEPTABLE:
        raise FloatingPointError(
            "fit: the log marginal likelihood was not finite at any start. Look for observations of wildly different "
            "sizes, or give starting values or bounds with ag.param(value, bounds=(low, high))."
        )
    return settled(unpack(template, jnp.asarray(ends[best]))), tuple(runs)


def open_parameters(objective: Objective, data: Any, model: Any) -> Around | None:
    """What the data leave open about the parameters of a fitted model."""

    def near(vector: np.ndarray) -> tuple[float, np.ndarray, None]:
        value, slope = _value_and_grad(objective, vector, model, data)
        return float(value), np.asarray(slope), None

    return around(near, model, np.asarray(pack(model))) if pack(model).size else None


def _search(
    objective: Objective,
    data: Any,
    template: Any,
    start: Any,
    max_iterations: int,
    tolerance: float,
    bar: tqdm,
) -> tuple[Run, np.ndarray]:
    from scipy.optimize import minimize  # slow to import

    path: list[float] = []
    unit = sizes(start)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = (np.asarray(x) for x in _value_and_grad(objective, unit * x, template, data))
        path.append(float(value))
        bar.set_postfix(objective=f"{path[-1]:.4f}", refresh=False)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return UNACCEPTABLE, np.zeros_like(x)
        return -float(value), -unit * gradient

    low, high = bounds(start)
    result = minimize(
        cost,
        np.clip(np.asarray(pack(start)), low, high) / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / unit, high / unit)),
        options={"maxiter": max_iterations, "ftol": tolerance, "gtol": 1e-6, "maxfun": 20 * max_iterations},
    )
    run = Run(-float(result.fun), int(result.nit), len(path), bool(result.success), str(result.message), tuple(path))
    return run, unit * np.asarray(result.x)


@eqx.filter_jit
def _value_and_grad(objective: Objective, vector: Array | np.ndarray, template: Any, data: Any) -> tuple[Array, Array]:
    def value(vector: Array) -> Array:
        model = unpack(template, vector)
        return objective(model, data) + log_prior(model)

    return jax.value_and_grad(value)(jnp.asarray(vector))
