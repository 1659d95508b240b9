"""Our step on the malaria-sized problem: what `SVI` does on a batch that holds all the data."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from malaria import Data

import aggregauss as ag
from aggregauss.inference import ascent, groups
from aggregauss.inference.data import Observations, observe
from aggregauss.inference.inducing import on_device
from aggregauss.inference.starts import starts
from aggregauss.parameters import pack

LANDMARKS, PROBES = 576, 32


def model() -> ag.GP:
    """ARD RBF on 18 covariates, Matern-3/2 on the coordinates, counts."""
    covariates = ag.RBF(4.0 * np.ones(18), 0.5, active_dims=range(18))
    field = ag.Matern32([2.0, 2.0], 0.5, active_dims=[18, 19])
    return ag.GP(covariates + field, likelihood=ag.Poisson(), aggregation="response", mean=ag.Constant())


class Step:
    """The compiled step of a model on given data."""

    def __init__(self, model: Any, observations: Observations, inducing: ag.Support, dtype: str, entries: int):
        self.observations, m, n = observations, len(inducing), len(observations.y)
        self.template = starts(model, observations, 0, 0)[0]
        self.settings = ascent.Settings("linearised", dtype, True, False)
        self.state = ascent.init(pack(self.template), on_device(inducing), m, 0.01, 0.1)
        groups.TARGET = entries
        shapes = groups.choose_shapes(observations, n, m, PROBES, np.dtype(dtype))
        packed = groups.groups(observations, np.arange(n), shapes, np.random.default_rng(0))
        self.held = [group for _, group in packed]

    def slopes(self) -> ascent.Slopes:
        """The bound and all its derivatives."""
        now = ascent.prepared(self.template, self.state, self.settings)
        total, key = ascent.nothing(self.state.free, now), jax.random.key(0)
        for group in self.held:
            total = ascent.with_group(
                ascent.Given(self.template, self.state.free, now, group, key, self.settings), total
            )
        return ascent.slopes(self.template, self.state, total, jnp.asarray(1.0), self.settings)

    def __call__(self) -> ascent.State:
        return ascent.advance(self.state, self.slopes(), jnp.asarray(1.0), self.settings)


def malaria_step(data: Data, dtype: str, entries: int, m: int = LANDMARKS) -> Step:
    """The step on pixels of districts, inducing points at some of the pixels."""
    bags = ag.Bags(data.X, data.bag, weights=data.population)
    Z = np.asarray(data.X, float)[np.random.default_rng(0).choice(len(data.X), m, replace=False)]
    return Step(model(), observe(bags, data.y, None), ag.Points(Z), dtype, entries)
