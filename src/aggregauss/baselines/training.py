"""Adam on batches of bags, stopped early by the likelihood of validation bags."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from aggregauss.baselines.batches import Bagged, Batch
from aggregauss.baselines.objective import Model, Penalties, bag_nll, objective
from aggregauss.baselines.observation import Observation
from aggregauss.checks import warn

FAR = 10.0  # rising by so many times the first objective is divergence


class Schedule(NamedTuple):
    """How long and how fast to train."""

    learning_rate: float
    epochs: int
    batch_size: int | None
    patience: int


class Trained(NamedTuple):
    """The model that was kept, the mean objective of each epoch, and the validation bags' mean NLL after each."""

    model: Model
    objective: np.ndarray
    validation_nll: np.ndarray


class State(NamedTuple):
    """What a step changes."""

    model: Model
    adam: optax.OptState


def train(
    model: Model,
    data: Bagged,
    validation: Bagged | None,
    penalties: Penalties,
    observation: Observation,
    schedule: Schedule,
    rng: np.random.Generator,
    progress: bool,
) -> Trained:
    """The model with the least validation NLL, or the last one where there are no validation bags.

    Training ends when that NLL has not improved for `patience` epochs, after a third of the epochs at the earliest.
    """
    state = State(model, _adam(jnp.zeros(())).init(model))  # pyright: ignore[reportArgumentType]
    rate = jnp.asarray(schedule.learning_rate, float)
    held_out = None if validation is None else validation.whole()
    once = [data.whole()] if schedule.batch_size is None else None
    best, losses, scores = model, [], []
    bar = tqdm(range(schedule.epochs), desc="fit", unit="epoch", delay=2.0, leave=False, disable=not progress)
    for epoch in bar:
        batches = once or data.epoch(schedule.batch_size or len(data.y), rng)
        steps = []
        for batch in batches:
            state, loss = step(state, batch, penalties, rate, observation)
            steps.append(loss)
        losses.append(np.mean([float(loss) for loss in steps]))
        if held_out is None:
            best = state.model
            continue
        scores.append(float(bag_nll(state.model, held_out, observation)))
        bar.set_postfix(validation_nll=f"{scores[-1]:.4f}", refresh=False)
        since = epoch - _best(scores)
        if since == 0:
            best = state.model
        if since >= schedule.patience and epoch + 1 >= schedule.epochs / 3:
            break
    bar.close()
    return _finite(Trained(best, np.asarray(losses), np.asarray(scores)))


@jax.jit(static_argnames="observation")
def step(
    state: State, batch: Batch, penalties: Penalties, rate: Float[Array, ""], observation: Observation
) -> tuple[State, Float[Array, ""]]:
    """One step of Adam; also the objective before it."""
    loss, gradient = jax.value_and_grad(objective)(state.model, batch, penalties, observation)
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to whole powers
        updates, adam = _adam(rate).update(gradient, state.adam)
    return State(optax.apply_updates(state.model, updates), adam), loss  # pyright: ignore


def _adam(rate: Float[Array, ""]) -> optax.GradientTransformation:
    return optax.adam(rate)


def _best(scores: list[float]) -> int:
    return int(np.argmin(np.where(np.isfinite(scores), scores, np.inf)))


def _finite(trained: Trained) -> Trained:
    watched = trained.validation_nll if len(trained.validation_nll) else trained.objective[-1:]
    if not np.isfinite(watched).any():
        raise FloatingPointError(
            "fit: the objective was not finite. Lower the learning_rate, or rescale covariates or responses of "
            "wildly different sizes."
        )
    first, last = trained.objective[0], trained.objective[-1]
    if not len(trained.validation_nll) and last > first + FAR * (1.0 + abs(first)):
        warn(
            f"fit: the objective rose from {first:.3g} to {last:.3g}, so the training diverged. Lower the "
            "learning_rate, or rescale covariates or responses of wildly different sizes."
        )
    return trained
