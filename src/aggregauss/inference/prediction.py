"""What a posterior says about some supports."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from scipy.special import ndtr

from aggregauss.checks import as_key, as_numbers, as_rows, as_vector, probability, whole_number
from aggregauss.marginals import GaussianMarginals, LaplaceMarginals, Marginals, MixedMarginals
from aggregauss.supports.support import Support

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False)
class Prediction:
    """Predictive distributions, one for each support, with their joint distribution on request."""

    marginals: Marginals
    support: Support
    joint: Callable[[], tuple[np.ndarray, np.ndarray]]  # mean and covariance of the latent values
    kind: str

    @property
    def mean(self) -> np.ndarray:
        """Expected values."""
        return self.marginals.mean

    @property
    def variance(self) -> np.ndarray:
        """Variances."""
        return self.marginals.variance

    @property
    def std(self) -> np.ndarray:
        """Standard deviations."""
        return np.sqrt(self.variance)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrix over all supports; computed when it is first asked for.

        Where a constraint or a link makes marginals other than normal, it has their variances and the correlations that
        the latent values have.
        """
        _, covariance = self.joint()
        if not isinstance(self.marginals, GaussianMarginals | LaplaceMarginals):
            clean = getattr(self.marginals, "clean_variance", self.marginals.variance)
            ratio = np.sqrt(clean / np.diag(covariance))
            covariance = covariance * np.outer(ratio, ratio)
        return covariance + np.diag(np.maximum(self.variance - np.diag(covariance), 0.0))

    def quantile(self, p: Any) -> np.ndarray:
        """The value that each number stays below with probability p; of several p, one row for each."""
        several = as_numbers(p, "quantile", "p")
        if several.ndim:
            return np.stack([self.quantile(each) for each in as_vector(several, "quantile", "p")])
        return self.marginals.quantile(probability(p, "quantile", "p"))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the central intervals of the given probability."""
        level = probability(level, "interval", "level")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def joint_interval(self, level: float = 0.95, key: Any = 0, draws: int = 10_000) -> tuple[np.ndarray, np.ndarray]:
        """Ends of intervals that hold all the values at once with the given probability.

        Each is a central interval of the same, higher level, which is found from draws of the normal dependence.
        """
        level = probability(level, "joint_interval", "level")
        covariance = self.joint()[1] if self.kind != "observation" else self.covariance
        sd = np.sqrt(np.diag(covariance))
        scores = _normal_draws(covariance / np.outer(sd, sd), as_key(key, "joint_interval"), draws)
        return self.interval(2 * ndtr(np.quantile(np.abs(scores).max(axis=1), level)) - 1)

    def exceedance(self, threshold: Any) -> np.ndarray:
        """P(value > threshold), for one threshold or one for each row; of classes, P(probability > threshold)."""
        given = as_rows(threshold, "exceedance", "threshold", len(self), infinite=True)
        each = np.broadcast_to(given.reshape(-1, *(1,) * (self.mean.ndim - 1)), self.mean.shape)
        finite = np.isfinite(each)
        return np.where(finite, 1.0 - self.marginals.cdf(np.where(finite, each, self.mean)), each < 0)

    def log_density(self, y: Any) -> np.ndarray:
        """Log predictive density at `y`, or log probability of a count, elementwise."""
        return self.marginals.log_prob(as_rows(y, "log_density", "y", len(self)))

    def sample(self, key: Any = 0, n: int = 1) -> np.ndarray:
        """`n` joint draws, shape (n, len(support)); `key` is an integer seed or a JAX key.

        Where the marginals are not normal, the draws have those marginals and the normal dependence (a copula).
        """
        if self.mean.ndim == 2:
            raise TypeError(
                "sample: joint draws of classes are not known. Use the mean, which has their probabilities."
            )
        whole_number(n, "sample", "n", 0)
        key = as_key(key, "sample")
        if isinstance(self.marginals, MixedMarginals):
            latent = self.joint()[1]
            scores = _normal_draws(latent / np.sqrt(np.outer(np.diag(latent), np.diag(latent))), key, n)
            seed = int(jax.random.bits(jax.random.fold_in(key, 1)))
            return self.marginals.sample(scores, np.random.default_rng(seed))
        mean, covariance = self.joint()[0], self.covariance
        draws = _normal_draws(covariance, key, n)
        if isinstance(self.marginals, GaussianMarginals):
            return mean + draws
        sd = np.sqrt(np.diag(covariance))
        return self.marginals.quantile(np.clip(ndtr(draws / sd), 1e-12, 1 - 1e-12))

    def to_frame(self, level: float = 0.95) -> "pd.DataFrame":
        """A table with mean, standard deviation and the ends of the central intervals; of classes, probabilities."""
        import pandas as pd

        index = None if self.support.labels is None else pd.Index(self.support.labels)
        if self.mean.ndim == 2:  # probabilities of classes
            return pd.DataFrame(self.mean, index=index, columns=[f"class {c}" for c in range(self.mean.shape[1])])
        lower, upper = self.interval(level)
        columns = {"mean": self.mean, "std": self.std, "lower": lower, "upper": upper}
        return pd.DataFrame(columns, index=index)

    def __len__(self) -> int:
        return len(self.support)

    def __repr__(self) -> str:
        return f"Prediction of {self.support!r}, kind={self.kind!r}"


def _normal_draws(covariance: np.ndarray, key: Any, n: int) -> np.ndarray:
    """`n` draws of N(0, covariance), which may be singular."""
    z = np.asarray(jax.random.normal(key, (n, len(covariance))))
    values, vectors = np.linalg.eigh(covariance)
    return z @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
