"""The estimators that learn a function of individuals: what they share."""

import abc
import dataclasses
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aggregauss.baselines.batches import Bagged, bag_means
from aggregauss.baselines.inputs import (
    individuals,
    number,
    observed,
    optional_number,
    optional_whole_number,
    pair,
)
from aggregauss.baselines.laplacian import rbf_features
from aggregauss.baselines.objective import Latent, Model, Penalties, bag_nll
from aggregauss.baselines.observation import (
    LIKELIHOODS,
    LINKS,
    Likelihood,
    Link,
    Observation,
    constant_tau,
    masses,
    squares,
)
from aggregauss.baselines.training import Schedule, Trained, train
from aggregauss.checks import as_matrix, one_of, whole_number
from aggregauss.inference.data import Observations
from aggregauss.supports.support import Support

R = TypeVar("R", bound="LatentRegressor")
CHUNK = 16384  # individuals predicted at a time


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class LatentRegressor(BaseEstimator, abc.ABC):
    """An estimator of f by penalised likelihood of bags; a subclass says how f starts.

    Parameters that every one of them has:

    * `likelihood` ("poisson" or "normal") and, for the former, `link` ("exp" or "square");
    * `manifold`, `bag_manifold`, `l2`: strengths of the penalties in `objective`. A manifold penalty keeps 500 numbers
      for each individual; its kernel has `manifold_bandwidth`, in units of the standardised covariates, or the median
      distance over √2;
    * `standardise`: whether covariates are centred and scaled to unit deviation first;
    * `learning_rate`, `epochs`, `batch_size` (bags; None takes all at once), `patience` (epochs) and `seed`.
    """

    likelihood: Likelihood = "poisson"
    link: Link = "exp"
    manifold: float = 0.0
    bag_manifold: float = 0.0
    l2: float = 0.0
    manifold_bandwidth: float | None = None
    standardise: bool = True
    learning_rate: float = 0.01
    epochs: int = 1000
    batch_size: int | None = None
    patience: int = 10
    seed: int = 0

    def fit(
        self: R,
        support: Support,
        y: Any,
        validation: tuple[Support, Any] | None = None,
        *,
        bag_covariates: Any = None,
        progress: bool = True,
    ) -> R:
        """Learn from the responses `y` of bags; `validation`, a pair (supports, y), says when to stop.

        `bag_covariates`, one row for each bag, replace the bags' mean embeddings in the bag-level penalty.
        """
        self._check()
        data = observed(support, y, self.likelihood)
        held_out = pair(validation, self.likelihood, support.dim)
        covariates = None if bag_covariates is None else _rows(bag_covariates, len(support))
        self._check_against(support)
        self.n_features_in_ = support.dim
        self.covariate_mean_, self.covariate_sd_ = _standard(support.center, self.standardise)
        self._keep(self._train(data, held_out, covariates, progress))
        return self

    def predict(self, support: Support) -> np.ndarray:
        """Expected response of each support: g(f(x)) at points, Σ w_i g(f(x_i)) at bags (over Σ w_i for means)."""
        check_is_fitted(self)
        individuals(support, "predict", self.n_features_in_)
        x = self._scaled(support).center
        parts = np.split(x, range(CHUNK, len(x), CHUNK))
        rates = [_response(self.latent_, jnp.asarray(part), self._observation) for part in parts]
        return support.integrate(np.concatenate(rates))

    def score(self, support: Support, y: Any) -> float:
        """Mean log likelihood of a bag: higher is better."""
        check_is_fitted(self)
        data = observed(support, y, self.likelihood, "score", self.n_features_in_)
        model = Model(self.latent_, jnp.log(jnp.asarray(getattr(self, "tau_", 1.0), float)))
        return -float(bag_nll(model, self._bagged(data).whole(), self._observation))

    @property
    def _observation(self) -> Observation:
        return Observation(self.likelihood, self.link)

    @abc.abstractmethod
    def _start(self, x: np.ndarray, level: float, spread: float, rng: np.random.Generator) -> Latent:
        """The function before training, near `level` and varying by about `spread`."""

    def _inputs(self, support: Support) -> Support:
        """The individuals that training sees."""
        return support

    def _check_against(self, support: Support) -> None:
        """Whether there are enough individuals for the settings."""

    def _check(self) -> None:
        who = type(self).__name__
        one_of(self.likelihood, LIKELIHOODS, who, "likelihood")
        if self.likelihood == "poisson":
            one_of(self.link, LINKS, who, "link")
        for name in ("manifold", "bag_manifold", "l2"):
            number(getattr(self, name), who, name)
        number(self.learning_rate, who, "learning_rate", positive=True)
        optional_number(self.manifold_bandwidth, who, "manifold_bandwidth")
        optional_whole_number(self.batch_size, who, "batch_size")
        for name, least in (("epochs", 1), ("patience", 1), ("seed", 0)):
            whole_number(getattr(self, name), who, name, least)

    def _train(
        self, data: Observations, held_out: Observations | None, bag_covariates: np.ndarray | None, progress: bool
    ) -> Trained:
        start, features, order = np.random.default_rng(self.seed).spawn(3)
        bags = self._penalised(self._bagged(data), bag_covariates, features)
        latent = self._start(bags.support.center, *self._observation.start(data.y, masses(bags.support)), start)
        tau = constant_tau(data.y, masses(bags.support), squares(bags.support))
        return train(
            Model(latent, jnp.log(jnp.asarray(tau, float))),
            bags,
            None if held_out is None else self._bagged(held_out),
            Penalties(*(jnp.asarray(strength, float) for strength in (self.manifold, self.bag_manifold, self.l2))),
            self._observation,
            Schedule(self.learning_rate, self.epochs, self.batch_size, self.patience),
            order,
            progress,
        )

    def _scaled(self, support: Support) -> Support:
        return dataclasses.replace(support, center=(support.center - self.covariate_mean_) / self.covariate_sd_)

    def _bagged(self, data: Observations) -> Bagged:
        support = self._scaled(self._inputs(data.support))
        return Bagged(support, data.y, np.zeros((len(support.owner), 0)), np.zeros((support.size, 0)))

    def _penalised(self, bags: Bagged, covariates: np.ndarray | None, rng: np.random.Generator) -> Bagged:
        """The bags with random features for the penalties that are on."""
        features, bag_features = bags.features, bags.bag_features
        if self.manifold > 0 or (self.bag_manifold > 0 and covariates is None):
            features = rbf_features(bags.support.center, self.manifold_bandwidth, rng)
        if self.bag_manifold > 0 and covariates is None:
            bag_features = bag_means(features, bags.support)
        elif self.bag_manifold > 0 and covariates is not None:
            mean, sd = _standard(covariates, True)
            bag_features = rbf_features((covariates - mean) / sd, None, rng)
        return dataclasses.replace(
            bags, features=features if self.manifold > 0 else bags.features, bag_features=bag_features
        )

    def _keep(self, trained: Trained) -> None:
        self.latent_ = trained.model.latent
        self.objective_ = trained.objective
        self.validation_nll_ = trained.validation_nll
        self.n_iter_ = len(trained.objective)
        if self.likelihood == "normal":
            self.tau_ = float(jnp.exp(trained.model.log_tau))


def _standard(x: np.ndarray, standardise: bool) -> tuple[np.ndarray, np.ndarray]:
    if not standardise:
        return np.zeros(x.shape[1]), np.ones(x.shape[1])
    sd = x.std(axis=0)
    return x.mean(axis=0), np.where(sd > 0, sd, 1.0)


def _rows(bag_covariates: Any, n: int) -> np.ndarray:
    rows = as_matrix(bag_covariates, "fit", "bag_covariates")
    if len(rows) != n:
        raise ValueError(f'fit: "bag_covariates" must have one row per bag, but has {len(rows)} rows for {n} bags.')
    return rows


@jax.jit(static_argnames="observation")
def _response(latent: Latent, x: Float[Array, "N d"], observation: Observation) -> Float[Array, " N"]:
    return observation.response(latent(x))
