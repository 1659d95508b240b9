"""The bound with q at its best, as a function of the hyper-parameters alone, climbed by L-BFGS.

Where a pass over all the data is affordable, q is brought to its optimum (`climb`); by the envelope theorem the bound's
partial derivatives are then those of the profile. Checkpoints hold every evaluation: a search that is resumed is given
the same answers again, and so goes the same way.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from aggregauss.inference import ascent
from aggregauss.inference.checkpoint import Checkpoint
from aggregauss.inference.climb import Pass, Top, climb
from aggregauss.inference.hyperparameters import Around, around
from aggregauss.inference.passes import Passes
from aggregauss.inference.sparse import Group
from aggregauss.inference.transport import carried_slope, transported
from aggregauss.inference.variational import Moments2, by_moments
from aggregauss.parameters import bounds, learned, sizes

Evaluation = tuple[float, np.ndarray]
REACH, BOXES = 3.0, 8  # logarithms of positive parameters may go this far before the search begins again, this often
FINER = 0.1  # how much closer q is brought to its optimum than the hyper-parameters to theirs
NARROW = (0.1, 0.01, 1e-3, 1e-4)  # shares of q's covariance to begin from, where the whole of it leads nowhere
CLOSE = 1e-3  # how close q is brought to its optimum where the profile's curvature is wanted


def whole_passes(
    passes: Passes,
    start: ascent.State,
    checkpoint: Checkpoint,
    tolerance: float,
    most: int,
    learn: bool,
    bar: tqdm,
    integrate: bool = False,
    others: Sequence[np.ndarray] = (),
) -> tuple[ascent.State, list[float], str, Around | None]:
    """The state at the top, the profile along the way, why the search ended, and hyper-parameters around the top.

    `others` are hyper-parameters from which the search begins again if they are better than what it found.
    """
    held, dtype = passes.hold(), passes.settings.dtype
    saved = checkpoint.read(start)

    def top_of(state: ascent.State, tolerance: float) -> Top:
        """q at its best, with the slopes of the hyper-parameters there."""
        best, _ = best_q(passes, held, state, tolerance)
        return best, passes.over(best, held)

    profile = Profile(top_of, passes.template, dtype, start, FINER * tolerance, checkpoint, bar)
    if saved is not None:
        profile.resume(saved[0], saved[2])
    else:
        profile.state = first_q(passes, held, start, tolerance)
    vector, message = summit(profile, [np.asarray(start.free.vector), *others], most if learn else 0, tolerance)
    profile.save()
    if not np.isfinite(max(profile.history)):
        return start, [], "not finite at the start", None
    rounding = float(jnp.finfo(dtype).eps)
    close = max(min(CLOSE, FINER * tolerance), 4 * rounding * abs(max(profile.history)))
    top, uphill = top_of(transported(passes.template, profile.state, jnp.asarray(vector), dtype), close)
    if profile.best is not None and not uphill.objective >= profile.best[0] - tolerance:  # the search came down again
        _, top = profile.best
        vector, uphill = np.asarray(top.free.vector), passes.over(top, held)

    def near(vector: np.ndarray) -> tuple[float, np.ndarray, ascent.State]:
        best, rise = top_of(transported(passes.template, top, jnp.asarray(vector), dtype), close)
        bar.set_postfix_str("uncertainty of hyper-parameters", refresh=False)
        bar.update()
        slope = np.asarray(carried_slope(passes.template, best, rise, dtype))
        return float(rise.objective), slope, best

    mixture = around(near, passes.template, vector) if learn and integrate and vector.size else None
    return top, [*profile.history, float(uphill.objective)], message, mixture


def best_q(passes: Passes, held: Iterable[Group], state: ascent.State, tolerance: float) -> Top:
    """q at its best while hyper-parameters stay."""
    return climb(passes.with_q(state, held), state, tolerance)


def first_q(passes: Passes, held: Iterable[Group], start: ascent.State, tolerance: float) -> ascent.State:
    """The same from the prior, or where that leads nowhere from a narrower q."""
    best, _ = best_q(passes, held, start, tolerance)
    begun = narrower(passes.with_q(start, held), start) if best is start else start
    return best if begun is start else best_q(passes, held, begun, tolerance)[0]


def narrower(look: Pass, state: ascent.State) -> ascent.State:
    """The state, or one whose q is so much narrower about the same mean that the bound is better.

    Where q is wide, the tails of what it allows may dominate every total; no natural-gradient step then gains.
    """
    q = state.q
    trials = [by_moments(Moments2(q.mean, share * q.covariance)) for share in NARROW]
    found = [state, *(state._replace(q=trial) for trial in trials)]
    values = np.array([float(look(each).objective) for each in found])
    return found[int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))]


def summit(profile: Any, starts: Sequence[np.ndarray], most: int, tolerance: float) -> tuple[np.ndarray, str]:
    """The hyper-parameters at the top of a profile, and why the search ended; without steps, those that were given.

    A profile gives the value and gradient at packed hyper-parameters, and keeps their `template` and the `history`.
    """
    vector = starts[0]
    if most == 0 or vector.size == 0:
        profile(vector)
        return vector, "converged"
    unit = sizes(profile.template)

    def scaled(x: np.ndarray) -> Evaluation:
        value, slope = profile(unit * x)
        return value, unit * slope

    found, message = search(scaled, profile.template, vector / unit, most, tolerance)
    for other in starts[1:]:
        top = max(profile.history)
        if profile(other)[0] > top + tolerance:
            found, message = search(scaled, profile.template, other / unit, most, tolerance)
    if len(starts) > 1:
        profile(unit * found)  # q returns from the last of the others
    return unit * found, message


@dataclasses.dataclass
class Profile:
    """max_q of the bound; remembers where q was, and every evaluation."""

    top_of: Callable[[ascent.State, float], Top]
    template: Any
    dtype: str
    state: ascent.State
    tolerance: float
    checkpoint: Checkpoint
    bar: tqdm
    known: list[Evaluation] = dataclasses.field(default_factory=list)  # an earlier run of the same search comes first
    history: list[float] = dataclasses.field(default_factory=list)
    best: tuple[float, ascent.State] | None = None

    def __call__(self, vector: np.ndarray) -> Evaluation:
        """The profile and its gradient."""
        if len(self.history) < len(self.known):
            value, slope = self.known[len(self.history)]
            self.history.append(value)
            return value, slope
        start = transported(self.template, self.state, jnp.asarray(vector), self.dtype)
        best, uphill = self.top_of(start, self.tolerance)
        value = float(uphill.objective)
        slope = np.asarray(carried_slope(self.template, best, uphill, self.dtype))
        if np.isfinite(value) and np.isfinite(slope).all():
            self.state = best
            if self.best is None or value > self.best[0]:
                self.best = value, best
        else:
            value, slope = -np.inf, np.zeros_like(slope)
        self.history.append(value)
        self.known.append((value, slope))
        self.bar.set_postfix(objective=f"{value:.3f}", refresh=False)
        self.bar.update()
        if self.checkpoint.due(self.history):
            self.save()
        return value, slope

    def save(self) -> None:
        """To the checkpoint."""
        value, best = self.best or (-np.inf, self.state)
        leaves = [np.asarray(x) for x in jax.tree.leaves(best)]
        self.checkpoint.write(self.state, self.history, (value, *leaves, *(x for pair in self.known for x in pair)))

    def resume(self, state: ascent.State, extra: tuple[Any, ...]) -> None:
        """What `save` wrote beside the state."""
        structure = jax.tree.structure(state)
        value, known = float(extra[0]), extra[1 + structure.num_leaves :]
        best = jax.tree.unflatten(structure, [jnp.asarray(x) for x in extra[1 : 1 + structure.num_leaves]])
        self.state, self.best = state, (value, best) if np.isfinite(value) else None
        self.known = [(float(known[i]), np.asarray(known[i + 1])) for i in range(0, len(known), 2)]


def search(
    profile: Callable[[np.ndarray], Evaluation], template: Any, start: np.ndarray, most: int, tolerance: float
) -> tuple[np.ndarray, str]:
    """The hyper-parameters at the top, in units of their sizes, and why the search ended.

    L-BFGS stays in a box around where it begins, because far outside nothing is finite; at its edge it begins again.
    """
    low, high = (end / sizes(template) for end in bounds(template))
    at, message = np.clip(start, low, high), "converged"
    logs = [p.constraint == "positive" for p in learned(template) for _ in range(p.value.size)]
    reach = np.where(logs, REACH, np.inf)
    for _ in range(BOXES):
        lower, upper = np.maximum(low, at - reach), np.minimum(high, at + reach)
        at, message = _in_box(profile, at, lower, upper, most, tolerance)
        if not (((at <= lower) & (at > low)) | ((at >= upper) & (at < high))).any():
            break
    return at, message


def _in_box(
    profile: Callable[[np.ndarray], Evaluation],
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    most: int,
    tolerance: float,
) -> tuple[np.ndarray, str]:
    from scipy.optimize import minimize  # slow to import

    first = profile(start)
    unit = max(1.0, float(np.linalg.norm(first[1])))  # within bounds on all sides the first step is the gradient itself

    def cost(vector: np.ndarray) -> Evaluation:
        value, slope = first if np.array_equal(vector, start) else profile(vector)
        return (1e25, np.zeros_like(slope)) if not np.isfinite(value) else (-value / unit, -slope / unit)

    result = minimize(
        cost,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower, upper)),
        options={"maxiter": most, "ftol": 0.0, "gtol": tolerance / unit, "maxfun": 3 * most},
        callback=_Enough(tolerance / unit),
    )
    stopped = bool(result.success) or "StopIteration" in str(result.message)
    return np.asarray(result.x), "converged" if stopped else str(result.message)


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
