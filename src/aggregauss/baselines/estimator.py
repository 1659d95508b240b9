"""The estimators that learn a function of individuals: what they share."""

import dataclasses
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aggregauss.baselines.batches import Bagged
from aggregauss.baselines.inputs import (
    individuals,
    number,
    observed,
    optional_number,
    optional_whole_number,
    pair,
)
from aggregauss.baselines.laplacian import median_bandwidth, random_features, random_frequencies
from aggregauss.baselines.objective import Latent, Model, Penalties, Problem, jitted_bag_nll
from aggregauss.baselines.observation import LIKELIHOODS, LINKS, Likelihood, Link, Observation, constant_tau
from aggregauss.baselines.training import Schedule, Trained, train
from aggregauss.checks import as_matrix, one_of, whole_number
from aggregauss.inference.data import Observations
from aggregauss.supports.support import Support

CHUNK = 16384  # individuals predicted at a time


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class LatentRegressor(BaseEstimator):
    """An estimator of f by penalised likelihood of bags; a subclass says how f starts.

    Parameters that every one of them has:

    * `likelihood` ("poisson" or "normal") and, for the former, `link` ("exp" or "square");
    * `manifold`, `bag_manifold`, `l2`: strengths of the penalties in `objective`; `manifold_bandwidth`: of the kernel
      of the Laplacian, in units of standardised covariates; None takes the median distance over √2;
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
        self,
        support: Support,
        y: Any,
        validation: tuple[Support, Any] | None = None,
        *,
        bag_covariates: Any = None,
        progress: bool = True,
    ) -> Self:
        """Learn from the responses `y` of bags; `validation`, a pair (supports, y), says when to stop.

        `bag_covariates`, one row for each bag, replace the bags' mean embeddings in the bag-level penalty.
        """
        self._check()
        data = observed(support, y, self.likelihood)
        held_out = pair(validation, self.likelihood, support.dim)
        covariates = None if bag_covariates is None else _rows(bag_covariates, len(support))
        self._check_against(support)
        rng = np.random.default_rng(self.seed)
        self.n_features_in_ = support.dim
        self.covariate_mean_, self.covariate_sd_ = _standard(support.center, self.standardise)
        trained = self._train(data, held_out, covariates, rng, progress)
        self._keep(trained)
        return self

    def predict(self, support: Support) -> np.ndarray:
        """Expected response of each support: g(f(x)) at points, Σ w_i g(f(x_i)) at bags (over Σ w_i for means)."""
        check_is_fitted(self)
        individuals(support, "predict", self.n_features_in_)
        x = (support.center - self.covariate_mean_) / self.covariate_sd_
        parts = [_response(self.latent_, jnp.asarray(part), self._observation) for part in _chunks(x)]
        return support.integrate(np.concatenate(parts))

    def score(self, support: Support, y: Any) -> float:
        """Mean log likelihood of a bag: higher is better."""
        check_is_fitted(self)
        data = observed(support, y, self.likelihood, "score", self.n_features_in_)
        model = Model(self.latent_, jnp.log(jnp.asarray(getattr(self, "tau_", 1.0), float)))
        return -float(jitted_bag_nll(model, self._bagged(data).whole(), self._observation))

    @property
    def _observation(self) -> Observation:
        return Observation(self.likelihood, self.link)

    def _start(self, x: np.ndarray, level: float, spread: float, rng: np.random.Generator) -> Latent:
        """The function before training, near `level` and varying by about `spread`."""
        raise NotImplementedError

    def _inputs(self, support: Support) -> Support:
        """The individuals that training sees."""
        return support

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

    def _check_against(self, support: Support) -> None:
        """Whether there are enough individuals for the settings."""

    def _bagged(self, data: Observations, bag_features: np.ndarray | None = None) -> Bagged:
        support = self._inputs(data.support)
        center = (support.center - self.covariate_mean_) / self.covariate_sd_
        features = np.zeros((len(data.y), 0)) if bag_features is None else bag_features
        return Bagged(dataclasses.replace(support, center=center), data.y, features)

    def _train(
        self,
        data: Observations,
        held_out: Observations | None,
        bag_covariates: np.ndarray | None,
        rng: np.random.Generator,
        progress: bool,
    ) -> Trained:
        bags = self._bagged(data, None if bag_covariates is None else _bag_features(bag_covariates, rng))
        mass = bags.support.integrate(np.ones(len(bags.support.owner)))
        squares = np.bincount(bags.support.owner, bags.support.effective_weight**2)
        level, spread = self._observation.start(data.y, mass)
        x = bags.support.center
        frequencies = random_frequencies(x.shape[1], self.manifold_bandwidth or median_bandwidth(x, rng), rng)
        return train(
            Model(self._start(x, level, spread, rng), jnp.log(jnp.asarray(constant_tau(data.y, mass, squares), float))),
            bags,
            None if held_out is None else self._bagged(held_out),
            Penalties(*(jnp.asarray(s, float) for s in (self.manifold, self.bag_manifold, self.l2, frequencies))),
            Problem(self._observation, self.manifold > 0, self.bag_manifold > 0),
            Schedule(self.learning_rate, self.epochs, self.batch_size, self.patience),
            rng,
            progress,
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


def _bag_features(covariates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mean, sd = _standard(covariates, True)
    s = (covariates - mean) / sd
    frequencies = random_frequencies(s.shape[1], median_bandwidth(s, rng), rng)
    return np.asarray(random_features(jnp.asarray(s), jnp.asarray(frequencies)))


def _chunks(x: np.ndarray) -> list[np.ndarray]:
    return np.split(x, range(CHUNK, len(x), CHUNK))


@jax.jit(static_argnames="observation")
def _response(latent: Latent, x: Float[Array, "N d"], observation: Observation) -> Float[Array, " N"]:
    return observation.response(latent(x))
