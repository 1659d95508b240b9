"""Small steps on random batches until the objective stops rising."""

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from aggregauss.inference import ascent
from aggregauss.inference.checkpoint import Checkpoint
from aggregauss.inference.groups import epoch_batches
from aggregauss.inference.passes import Passes
from aggregauss.inference.progress import Watch

WARM_UP = 5  # steps of q before the hyper-parameters move
FAR = 10.0  # losing so many times the first objective is divergence, finite or not
FAILURES = 8  # epochs that may be repeated with smaller steps


def random_batches(
    passes: Passes,
    start: ascent.State,
    checkpoint: Checkpoint,
    tolerance: float,
    batch: int,
    most: int,
    learn: bool,
    bar: tqdm,
) -> tuple[ascent.State, list[float], str]:
    """The state at the end, the mean objective of each epoch, and why the run ended.

    An epoch's objective is that of the states before its steps, so the step that led astray may be the last of the
    epoch before: both are repeated with half the step. After several of these the last good state is returned.
    """
    state, history, kept = checkpoint.read(start) or (start, [], ())
    watch = Watch(tolerance, *(int(x) for x in kept))
    steps = -(-len(passes.observations.y) // batch)
    good, failures, message = state, 0, "reached max_epochs"
    while len(history) < most:
        after, objective = _epoch(passes, state, len(history), batch, learn)
        if _lost(objective, history):
            failures += 1
            if failures > FAILURES or not history:
                state, message = good, f"diverged in epoch {len(history)}"
                break
            share = 0.5**failures
            state = good._replace(rate=share * good.rate, rho=share * good.rho)
            history.pop()
            continue
        good, state = state, after
        history.append(objective)
        bar.set_postfix(objective=f"{objective:.2f}", refresh=False)
        bar.update()
        verdict = watch.look(history, steps)
        if verdict == "stop":
            message = "converged"
            break
        if verdict == "slow":
            state = state._replace(rate=0.3 * state.rate, rho=state.rho * (1.0 if steps == 1 else 0.5))
        if checkpoint.due(history):
            checkpoint.write(state, history, (watch.since, watch.reductions))
    checkpoint.write(state, history, (watch.since, watch.reductions))
    return state, history, message


def _lost(objective: float, history: list[float]) -> bool:
    """Not finite, or far below where the run began."""
    return not np.isfinite(objective) or (bool(history) and objective < history[0] - FAR * (1.0 + abs(history[0])))


def _epoch(passes: Passes, state: ascent.State, epoch: int, batch: int, learn: bool) -> tuple[ascent.State, float]:
    values = []
    seen = passes.observations
    for i, rows in enumerate(epoch_batches(len(seen.y), batch, passes.seed, epoch, seen.task)):
        steps = -(-len(seen.y) // batch)
        scale = len(seen.y) / len(rows) if seen.task is None else float(steps)  # every row is in one batch of an epoch
        uphill = passes.batch(state, rows, epoch, i, scale)
        values.append(float(uphill.objective))
        if not np.isfinite(values[-1]):
            break
        moving = float(learn and int(state.step) >= WARM_UP)
        state = ascent.advance(state, uphill, jnp.asarray(moving), passes.settings)
    sound = all(np.isfinite(x).all() for x in jax.tree.leaves((state.free, state.q)))
    return state, float(np.mean(values)) if sound else np.nan
