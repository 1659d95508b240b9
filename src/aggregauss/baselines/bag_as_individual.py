"""Each bag as if it were one individual at its average covariates."""

import dataclasses

import numpy as np

from aggregauss.baselines.estimator import LatentRegressor
from aggregauss.baselines.network import NetworkFunction, he_normal
from aggregauss.checks import whole_number
from aggregauss.supports.support import Support


def averaged(support: Support) -> Support:
    """One individual for each support, at x_a = Σ w_i x_i / Σ w_i, with the whole weight."""
    center = support.with_measure("mean").integrate(support.center)
    return dataclasses.replace(
        support, center=center, width=np.zeros_like(center), owner=np.arange(support.size), weight=support.mass
    )


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class BagAsIndividual(LatentRegressor):
    """y_a ~ Poisson(w_a g(f(x_a))) or Normal(w_a f(x_a), τ w_a²) at the weighted mean x_a of each bag's covariates.

    The network is that of `NeuralNetwork`. Training, early stopping and `score` see the averaged individuals; `predict`
    applies f to the individuals themselves. What this loses shows why individuals matter during training.
    """

    hidden: int = 30

    def _check(self) -> None:
        super()._check()
        whole_number(self.hidden, "BagAsIndividual", "hidden")

    def _inputs(self, support: Support) -> Support:
        return averaged(support)

    def _start(self, x: np.ndarray, level: float, spread: float, rng: np.random.Generator) -> NetworkFunction:
        return he_normal(x.shape[1], self.hidden, level, spread, rng)
