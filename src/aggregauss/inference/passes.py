"""Passes over the data: the bound and its derivatives, group by group."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from aggregauss.heap import kept
from aggregauss.inference import ascent
from aggregauss.inference.bounds import stays
from aggregauss.inference.data import Observations
from aggregauss.inference.groups import Shape, groups
from aggregauss.inference.sparse import Group
from aggregauss.inference.still import Still

EARLY = 20  # epochs before Monte Carlo draws are used: from a q as wide as the prior they are too noisy to follow


@dataclasses.dataclass(frozen=True, eq=False)
class Passes:
    """A model's data, ready to be summed over; `template` holds what is not learned."""

    template: Any
    observations: Observations
    settings: ascent.Settings
    shapes: tuple[Shape, ...]
    seed: int

    def hold(self) -> list[Group]:
        """All the data on the device, probes drawn once; the same groups whenever they are asked for."""
        return self._held

    @functools.cached_property
    def _held(self) -> list[Group]:
        return list(self.again())

    def over(self, state: ascent.State, held: Iterable[Group]) -> ascent.Slopes:
        """The bound and its derivatives over all the data."""
        return self._slopes(state, held, jax.random.key(self.seed), 1.0, self.settings)

    def with_q(
        self, start: ascent.State, held: Iterable[Group], covariance_kept: bool = False
    ) -> Callable[[ascent.State], ascent.Slopes]:
        """`over` for states that differ from `start` in q alone, or in its mean alone.

        Where the bound allows and the data are kept, N x m x m products are made once; the slopes of hyper-parameters
        are then left at zero.
        """
        views = [self.template.of_task(task) for task in range(len(self.template.likelihoods))]
        if not isinstance(held, list) or not all(stays(view, self.settings.bound, covariance_kept) for view in views):
            return lambda state: self.over(state, held)
        wide = ascent.prepared_widely(self.template, start, self.settings)
        now = ascent.narrowed(wide, start, self.settings)

        @functools.cache  # when it is first asked for, so that programs are compiled before much is held
        def still(group: int) -> Still:
            return ascent.hold_still(self.template, start.free, now, held[group], self.settings)

        def look(state: ascent.State) -> ascent.Slopes:
            now = ascent.narrowed(wide, state, self.settings)
            parts = (
                kept(ascent.still_gradient(self.template, state.free, now, still(i), group, self.settings))
                for i, group in enumerate(held)
            )
            total = functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), parts)
            return ascent.still_slopes(self.template, state, wide.whiten, *total)

        return look

    def again(self) -> "Again":
        """All the data as `hold` has them, packed afresh whenever they are gone through."""
        return Again(self)

    def batch(self, state: ascent.State, rows: np.ndarray, epoch: int, number: int, scale: float) -> ascent.Slopes:
        """The same estimated from some observations; all that is random depends on seed, epoch and number alone."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), epoch), number)
        rng = np.random.default_rng([self.seed, epoch, number])
        packed = (group for _, group in groups(self.observations, rows, self.shapes, rng))
        draws_too_early = self.settings.bound == "mc" and epoch < EARLY
        settings = dataclasses.replace(self.settings, bound="matched") if draws_too_early else self.settings
        return self._slopes(state, packed, key, scale, settings)

    def _slopes(
        self, state: ascent.State, held: Iterable[Group], key: Array, scale: float, settings: ascent.Settings
    ) -> ascent.Slopes:
        now = ascent.prepared(self.template, state, settings)
        total = ascent.nothing(state.free, now)
        for group in held:
            key, own = jax.random.split(key)
            total = kept(ascent.with_group(ascent.Given(self.template, state.free, now, group, own, settings), total))
        return ascent.slopes(self.template, state, total, jnp.asarray(scale), settings)


@dataclasses.dataclass(frozen=True)
class Again:
    """Groups that are not kept."""

    passes: Passes

    def __iter__(self) -> Iterator[Group]:
        seen, rng = self.passes.observations, np.random.default_rng(self.passes.seed)
        return (group for _, group in groups(seen, np.arange(len(seen.y)), self.passes.shapes, rng))
