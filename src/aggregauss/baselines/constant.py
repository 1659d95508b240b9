"""The same rate all over a bag."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aggregauss.baselines.inputs import individuals, observed, pair
from aggregauss.baselines.observation import LIKELIHOODS, Likelihood, Observation, constant_tau, masses, squares
from aggregauss.checks import one_of
from aggregauss.supports.support import Support


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class ConstantRate(BaseEstimator):
    """λ_i = y_a / w_a for an individual i of a bag a seen in training, Σ y_a / Σ w_a for every other one.

    >>> import aggregauss as ag
    >>> from aggregauss.baselines import ConstantRate
    >>> bags = ag.Bags([0.0, 1.0, 5.0], bag=["north", "north", "south"], weights=[2.0, 1.0, 4.0])
    >>> fitted = ConstantRate().fit(bags, [6.0, 1.0])
    >>> fitted.predict(ag.Points([0.0, 1.0, 5.0, 9.0])).tolist()
    [2.0, 2.0, 0.25, 1.0]

    An individual is known by its covariates; where several bags share them, their rates are averaged. Here w_a is the
    mass of a bag of totals, and one for a bag of means. After `fit`: `rates_` of the bags, the global `rate_`, and
    `tau_` around it under the normal likelihood.
    """

    likelihood: Likelihood = "poisson"

    def fit(
        self, support: Support, y: Any, validation: tuple[Support, Any] | None = None, *, progress: bool = True
    ) -> "ConstantRate":
        """Read the rates off; there is nothing to stop early or to wait for."""
        one_of(self.likelihood, LIKELIHOODS, "ConstantRate", "likelihood")
        data = observed(support, y, self.likelihood)
        pair(validation, self.likelihood, support.dim)
        mass = masses(support)
        self.n_features_in_ = support.dim
        self.rates_ = data.y / mass
        self.rate_ = float(data.y.sum() / mass.sum())
        self.rate_at_ = _by_location(support, self.rates_)
        if self.likelihood == "normal":
            self.tau_ = constant_tau(data.y, mass, squares(support))
        return self

    def predict(self, support: Support) -> np.ndarray:
        """Expected response of each support: λ at points, Σ w_i λ_i at bags (over Σ w_i for means)."""
        check_is_fitted(self)
        individuals(support, "predict", self.n_features_in_)
        return support.integrate(np.array([self.rate_at_.get(key, self.rate_) for key in _keys(support)]))

    def score(self, support: Support, y: Any) -> float:
        """Mean log likelihood of a bag: higher is better."""
        check_is_fitted(self)
        data = observed(support, y, self.likelihood, "score", self.n_features_in_)
        tau = jnp.asarray(getattr(self, "tau_", 1.0), float)
        y, mean, square = (jnp.asarray(v) for v in (data.y, self.predict(support), squares(support)))
        return -float(jnp.mean(Observation(self.likelihood, "exp").nll(y, mean, square, tau)))


def _keys(support: Support) -> list[bytes]:
    return [row.tobytes() for row in support.center + 0.0]  # -0.0 becomes 0.0


def _by_location(support: Support, rates: np.ndarray) -> dict[bytes, float]:
    found: dict[bytes, list[float]] = {}
    for key, rate in zip(_keys(support), rates[support.owner]):
        found.setdefault(key, []).append(float(rate))
    return {key: float(np.mean(several)) for key, several in found.items()}
