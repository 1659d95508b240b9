"""A new observation whose rate is uncertain: p(y) = ∫ p(y | η) p(η) dη."""

import dataclasses

import numpy as np
from scipy.special import ndtr

from aggregauss.marginals.chart import Number, log_average, step_average
from aggregauss.marginals.conditionals import KINDS, Conditional
from aggregauss.marginals.marginals import Marginals

LARGEST_COUNT = 2.0**53


@dataclasses.dataclass(frozen=True)
class MixedMarginals(Marginals):
    """y ~ p(y | η), η ~ rate."""

    rate: Marginals
    conditional: Conditional

    @property
    def clean_variance(self) -> np.ndarray:
        """Var E(y | η), the part of the variance that the rate causes."""
        return _moments(self.rate, self.conditional)[1]

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """E P(y <= x | η)."""
        return step_average(lambda eta: self.conditional.cdf(x, eta), self.rate.chart())

    def quantile(self, p: Number) -> np.ndarray:
        """The p-quantile by bisection; of counts the smallest k with cdf(k) >= p."""
        return self._smallest_count(np.asarray(p)) if self.conditional.counts else super().quantile(p)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log E p(y | η)."""
        return log_average(lambda eta: self.conditional.log_prob(y, eta), self.rate.chart())

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draws given standard normal scores of the rates: dependent scores make dependent rates."""
        return self.conditional.sample(self.rate.quantile(np.clip(ndtr(z), 1e-15, 1 - 1e-15)), rng)

    def _smallest_count(self, p: np.ndarray) -> np.ndarray:
        sd = np.sqrt(self.variance)
        low = np.fmax(np.floor(self.mean - sd * np.sqrt((1 - p) / p)) - 1, -1.0)  # Cantelli's inequality
        high = np.fmin(np.ceil(self.mean + sd * np.sqrt(p / (1 - p))) + 1, LARGEST_COUNT)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            enough = self.cdf(middle) >= p
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high


def mixed(rate: Marginals, conditional: Conditional) -> MixedMarginals:
    """A new observation with the given distribution of the rate, and of the observation given the rate.

    >>> import numpy as np
    >>> from aggregauss.marginals import conditionals, log_normal
    >>> counts = mixed(log_normal(np.log([100.0]), np.array([0.01])), conditionals.Poisson())
    >>> counts.quantile(0.025), counts.quantile(0.975)
    (array([74.]), array([130.]))
    """
    rate, conditional = conditional.absorbed(rate)
    mean, explained, noise = _moments(rate, conditional)
    return MixedMarginals(mean, explained + noise, rate, conditional)


def observed(rate: Marginals, kind: str, **parameters: Number) -> MixedMarginals:
    """The same with the conditional by its name: "poisson", "negative_binomial" (dispersion), "gamma" (shape), ...

    >>> import numpy as np
    >>> from aggregauss.marginals import squared
    >>> observed(squared(np.array([3.0]), np.array([1.0])), "negative_binomial", dispersion=5.0).mean
    array([10.])
    """
    if kind not in KINDS:
        raise ValueError(f'observed: "kind" must be one of {", ".join(sorted(KINDS))}, but got {kind!r}.')
    return mixed(rate, KINDS[kind](**parameters))


def _moments(rate: Marginals, conditional: Conditional) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E y, Var E(y | η) and E Var(y | η): averages at E η ± sd η, exact for polynomials of degree two."""
    sd = np.sqrt(rate.variance)
    low, high = rate.mean - sd, rate.mean + sd
    lower, upper = conditional.mean(low), conditional.mean(high)
    return (upper + lower) / 2, ((upper - lower) / 2) ** 2, (conditional.variance(high) + conditional.variance(low)) / 2
