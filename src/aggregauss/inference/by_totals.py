"""Hyper-parameters by the evidence of totals, and then q at its best given them.

The evidence (`totals`) is climbed by L-BFGS with the effects at which totals are expanded held; these then follow, and
it is climbed again until they rest. Only at the top, and at the few values around it that a mixture takes, is q needed.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from aggregauss.inference import ascent
from aggregauss.inference.checkpoint import Checkpoint
from aggregauss.inference.hyperparameters import Around, around
from aggregauss.inference.passes import Passes
from aggregauss.inference.profile import FINER, Evaluation, best_q, first_q, summit
from aggregauss.inference.totals import Found, Totals, evidence
from aggregauss.inference.transport import transported

ROUNDS, RESTS = 8, 0.01  # expansions, and prior standard deviations of an effect that do not matter
SETTLING = 20  # evaluations until the effects rest while hyper-parameters stay


@eqx.filter_jit
def _rising(template: Any, vector: Array, data: Totals, effects: Array) -> tuple[Found, Array]:
    def value(vector: Array) -> tuple[Array, Found]:
        found = evidence(template, vector, data, effects)
        return found.value, found

    (_, found), slope = jax.value_and_grad(value, has_aux=True)(vector)
    return found, slope


_level = eqx.filter_jit(evidence)


@dataclasses.dataclass
class Profile:
    """The evidence as a function of the hyper-parameters; remembers every evaluation, so that a search can resume."""

    template: Any
    data: Totals
    effects: Float[Array, " e"]
    start: ascent.State
    checkpoint: Checkpoint
    bar: tqdm
    known: list[Evaluation] = dataclasses.field(default_factory=list)
    history: list[float] = dataclasses.field(default_factory=list)
    top: ascent.State | None = None  # with q at its best where the search ended

    def __call__(self, vector: np.ndarray) -> Evaluation:
        """The evidence and its gradient."""
        if len(self.history) == len(self.known):
            self.known.append(self.at(vector))
            if self.checkpoint.due(self.history):
                self.save()
        value, slope = self.known[len(self.history)]
        self.history.append(value)
        self.bar.set_postfix(objective=f"{value:.3f}", refresh=False)
        self.bar.update()
        return value, slope

    def at(self, vector: np.ndarray) -> Evaluation:
        """The same, not written down."""
        found, slope = _rising(self.template, jnp.asarray(vector), self.data, self.effects)
        value, rise = float(found.value), np.asarray(slope)
        return (value, rise) if np.isfinite(value) and np.isfinite(rise).all() else (-np.inf, np.zeros_like(rise))

    def settle(self, vector: np.ndarray) -> float:
        """The effects at rest for these hyper-parameters; how far they moved."""
        before = self.effects
        for _ in range(SETTLING if len(before) else 0):
            after = _level(self.template, jnp.asarray(vector), self.data, self.effects).effects
            moved = float(jnp.max(jnp.abs(after - self.effects)))
            if not np.isfinite(moved):
                break
            self.effects = after
            if moved < 0.1 * RESTS:
                break
        return float(jnp.max(jnp.abs(self.effects - before), initial=0.0))

    def save(self) -> None:
        """To the checkpoint."""
        state, ended = (self.start, False) if self.top is None else (self.top, True)
        self.checkpoint.write(state, self.history, (ended, *(x for pair in self.known for x in pair)))

    def resume(self) -> None:
        """What an earlier run saved."""
        saved = self.checkpoint.read(self.start)
        if saved is not None:
            state, _, (ended, *known) = saved
            self.top = state if ended else None
            self.known = [(float(known[i]), np.asarray(known[i + 1])) for i in range(0, len(known), 2)]


def by_totals(
    passes: Passes,
    data: Totals,
    start: ascent.State,
    checkpoint: Checkpoint,
    tolerance: float,
    most: int,
    bar: tqdm,
    integrate: bool,
    others: Sequence[np.ndarray] = (),
) -> tuple[ascent.State, list[float], str, Around | None]:
    """What `whole_passes` gives, from the evidence of totals; q is that of the passes."""
    template, dtype = passes.template, passes.settings.dtype
    vector, profile, message = searched(template, data, start, checkpoint, tolerance, most, bar, others)
    if not np.isfinite(max(profile.history)):
        return start, [], "not finite at the start", None
    held, close = passes.hold(), FINER * tolerance
    if profile.top is None:
        begun = start._replace(free=start.free._replace(vector=jnp.asarray(vector)))
        profile.top = first_q(passes, held, begun, close)
        profile.save()
    top = profile.top
    mixture = around(lambda v: (*profile.at(v), None), template, vector) if integrate and vector.size else None
    if mixture is not None:
        bar.set_postfix_str("uncertainty of hyper-parameters", refresh=False)
        known = []
        for near in mixture.vectors:
            best, _ = best_q(passes, held, transported(template, top, jnp.asarray(near), dtype), close)
            known.append(best)
            bar.update()
        mixture = dataclasses.replace(mixture, known=known)
    return top, profile.history, message, mixture


def searched(
    template: Any,
    data: Totals,
    start: ascent.State,
    checkpoint: Checkpoint,
    tolerance: float,
    most: int,
    bar: tqdm,
    others: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, Profile, str]:
    """The hyper-parameters at the top of the evidence, and why the search ended."""
    profile = Profile(template, data, jnp.zeros(template.mean.effects), start, checkpoint, bar)
    profile.resume()
    vector, message = np.asarray(start.free.vector), "converged"
    profile.settle(vector)
    for count in range(ROUNDS):
        vector, message = summit(profile, [vector, *(others if count == 0 else [])], most, tolerance)
        if profile.settle(vector) < RESTS:
            break
    profile(vector)
    profile.save()
    return vector, profile, message
