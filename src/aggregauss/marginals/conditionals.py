"""Distributions of one observation given its rate η.

Each grows with η: at any x the cdf falls from 1 to 0. The mean is linear in η and the variance at most quadratic, so
that two points are enough for their averages over η. Parameters are numbers, or arrays with one entry for each row.
"""

import abc
import dataclasses
from typing import ClassVar

import numpy as np
from scipy.special import (
    betainc,
    betaincc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    logsumexp,
    ndtr,
    stdtr,
    wrightomega,
    xlog1py,
    xlogy,
)

from aggregauss.marginals.chart import Number, log_normal_density, step_average
from aggregauss.marginals.lognormal import LogNormalMarginals, log_normal
from aggregauss.marginals.marginals import Marginals
from aggregauss.marginals.skew_lognormal import SkewLogNormalMarginals, with_factor

PEAK = np.linspace(-10, 10, 61)
HERMITE, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
HERMITE_WEIGHTS = HERMITE_WEIGHTS / HERMITE_WEIGHTS.sum()


class Conditional(abc.ABC):
    """p(y | η)."""

    counts: ClassVar[bool]

    @abc.abstractmethod
    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """P(y <= x | η)."""

    @abc.abstractmethod
    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """log p(y | η)."""

    @abc.abstractmethod
    def mean(self, eta: np.ndarray) -> np.ndarray:
        """E(y | η), linear in η."""

    @abc.abstractmethod
    def variance(self, eta: np.ndarray) -> np.ndarray:
        """Var(y | η), at most quadratic in η."""

    @abc.abstractmethod
    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One draw of y for each entry of η."""

    def absorbed(self, rate: Marginals) -> "tuple[Marginals, Conditional]":
        """An equivalent pair that is cheaper to average, where one is known."""
        return rate, self


@dataclasses.dataclass(frozen=True)
class Poisson(Conditional):
    """η^y e^{-η} / y!."""

    counts = True

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Q(⌊x⌋ + 1, η), the upper incomplete gamma function."""
        return np.where(x < 0, 0.0, gammaincc(np.floor(np.maximum(x, 0.0)) + 1, eta))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """y log η - η - log y!."""
        return xlogy(y, eta) - eta - gammaln(y + 1.0)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A count."""
        return rng.poisson(eta).astype(float)


@dataclasses.dataclass(frozen=True)
class NegativeBinomial(Conditional):
    """Γ(y + r) / (Γ(r) y!) (r / (r + η))^r (η / (r + η))^y, with r the dispersion."""

    dispersion: Number
    counts = True

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """1 - I(⌊x⌋ + 1, r) at η / (r + η), the incomplete beta function."""
        share = eta / (self.dispersion + eta)
        return np.where(x < 0, 0.0, betaincc(np.floor(np.maximum(x, 0.0)) + 1, self.dispersion, share))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """-log(y + r) - log B(r, y + 1) - r log(1 + η / r) + y log(η / (r + η))."""
        r = self.dispersion
        return -np.log(y + r) - betaln(r, y + 1.0) - xlog1py(r, eta / r) + xlogy(y, eta / (r + eta))

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """η + η² / r."""
        return eta + eta**2 / self.dispersion

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A Poisson count whose rate is gamma distributed."""
        return rng.poisson(rng.gamma(self.dispersion, eta / self.dispersion)).astype(float)


@dataclasses.dataclass(frozen=True)
class Binomial(Conditional):
    """C(n, y) η^y (1 - η)^{n - y}, n the number of trials; one trial: Bernoulli."""

    trials: Number = 1.0
    counts = True

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """1 - I(⌊x⌋ + 1, n - ⌊x⌋) at η, the incomplete beta function."""
        k = np.floor(np.clip(x, 0.0, self.trials))
        inside = betaincc(k + 1, np.maximum(self.trials - k, 1.0), eta)
        return np.where(x < 0, 0.0, np.where(x >= self.trials, 1.0, inside))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """-log(n + 1) - log B(y + 1, n - y + 1) + y log η + (n - y) log(1 - η)."""
        rest = self.trials - y
        return -np.log(self.trials + 1.0) - betaln(y + 1.0, rest + 1.0) + xlogy(y, eta) + xlog1py(rest, -eta)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """n η."""
        return self.trials * eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """n η (1 - η)."""
        return self.trials * eta * (1 - eta)

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A number of successes."""
        return rng.binomial(np.asarray(self.trials, int), np.clip(eta, 0.0, 1.0)).astype(float)


@dataclasses.dataclass(frozen=True)
class Gamma(Conditional):
    """(k / η)^k y^{k - 1} e^{-k y / η} / Γ(k), k the shape and η the mean; shape one: exponential."""

    shape: Number = 1.0
    counts = False

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """P(k, k x / η), the lower incomplete gamma function."""
        return gammainc(self.shape, self.shape * self._ratio(np.maximum(x, 0.0), eta))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """k log(k y / η) - k y / η - log y - log Γ(k)."""
        positive = np.where(y > 0, y, 1.0)
        scaled = self.shape * self._ratio(positive, eta)
        return np.where(y > 0, xlogy(self.shape, scaled) - scaled - np.log(positive) - gammaln(self.shape), -np.inf)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """η² / k."""
        return eta**2 / self.shape

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A positive amount."""
        return rng.gamma(self.shape, eta / self.shape)

    @staticmethod
    def _ratio(y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        return np.minimum(y, 1e100) / np.maximum(eta, 1e-200)


@dataclasses.dataclass(frozen=True)
class Normal(Conditional):
    """N(η, noise)."""

    noise: Number
    counts = False

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Φ((x - η) / sd)."""
        return ndtr((x - eta) / np.sqrt(self.noise))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """log φ((y - η) / sd) - log sd."""
        return log_normal_density((y - eta) / np.sqrt(self.noise)) - 0.5 * np.log(self.noise)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """The noise, whatever η."""
        return self.noise + 0.0 * eta

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A number."""
        return rng.normal(eta, np.sqrt(self.noise))


@dataclasses.dataclass(frozen=True)
class NormalLogNormal(Conditional):
    """N(η, e^u), u ~ N(location, spread²); by Gauss-Hermite quadrature in u."""

    location: Number
    spread: Number
    counts = False

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """E Φ((x - η) e^{-u/2})."""
        return np.sum([w * ndtr((x - eta) / sd) for w, sd in self._scales()], axis=0)

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """log E φ((y - η) e^{-u/2}) e^{-u/2}."""
        logs = [np.log(w) + log_normal_density((y - eta) / sd) - np.log(sd) for w, sd in self._scales()]
        return np.asarray(logsumexp(logs, axis=0))

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """E e^u, whatever η."""
        return np.exp(self.location + 0.5 * np.square(self.spread)) + 0.0 * eta

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A number."""
        return rng.normal(eta, np.exp(0.5 * (self.location + self.spread * rng.standard_normal(np.shape(eta)))))

    def _scales(self) -> list[tuple[float, np.ndarray]]:
        """Weights and standard deviations."""
        return [(float(w), np.exp(0.5 * (self.location + self.spread * z))) for z, w in zip(HERMITE, HERMITE_WEIGHTS)]


@dataclasses.dataclass(frozen=True)
class StudentT(Conditional):
    """η + √noise t, t with so many degrees of freedom, more than two."""

    noise: Number
    degrees: Number
    counts = False

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """That of t."""
        return stdtr(self.degrees, (x - eta) / np.sqrt(self.noise))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """log Γ((ν+1)/2) / (Γ(ν/2) √(πν s)) - (ν+1)/2 log(1 + (y - η)² / (ν s))."""
        v, s = self.degrees, self.noise
        constant = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(np.pi * v * s)
        return constant - 0.5 * (v + 1) * np.log1p((y - eta) ** 2 / (v * s))

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """noise ν / (ν - 2), whatever η."""
        return self.noise * self.degrees / (self.degrees - 2) + 0.0 * eta

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A number."""
        return eta + np.sqrt(self.noise) * rng.standard_t(self.degrees, np.shape(eta))


@dataclasses.dataclass(frozen=True)
class Beta(Conditional):
    """Beta(φη, φ(1 - η)), φ the precision."""

    precision: Number
    counts = False

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """The incomplete beta function."""
        a, b = self._shapes(eta)
        return betainc(a, b, np.clip(x, 0.0, 1.0))

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """(φη - 1) log y + (φ(1 - η) - 1) log(1 - y) - log B(φη, φ(1 - η))."""
        a, b = self._shapes(eta)
        inside = np.where((y > 0) & (y < 1), y, 0.5)
        density = (a - 1) * np.log(inside) + (b - 1) * np.log1p(-inside) - betaln(a, b)
        return np.where((y > 0) & (y < 1), density, -np.inf)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η."""
        return eta

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """η (1 - η) / (1 + φ)."""
        return eta * (1 - eta) / (1 + self.precision)

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A share."""
        return rng.beta(*self._shapes(eta))

    def _shapes(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        eta = np.clip(eta, 1e-12, 1 - 1e-12)
        return self.precision * eta, self.precision * (1 - eta)


@dataclasses.dataclass(frozen=True)
class PoissonLogNormal(Conditional):
    """Poisson(η e^v), v ~ N(0, sd²) an effect of the region; by quadrature in v, unless a log-normal η absorbs it."""

    sd: Number
    counts = True

    def cdf(self, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """E Q(⌊x⌋ + 1, η e^v)."""
        return step_average(lambda factor: Poisson().cdf(x, eta * factor), self._factor.chart())

    def log_prob(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """log E Poisson(y; η e^v), by the trapezium rule in widths of the peak, whose place is a Wright omega function.

        v̂ = sd² (y - η e^v̂) has the solution η e^v̂ = ω(log(sd² η) + sd² y) / sd².
        """
        eta = np.maximum(eta, 1e-250)
        omega = wrightomega(np.log(np.square(self.sd) * eta) + np.square(self.sd) * y)
        z, width = np.log(omega / (np.square(self.sd) * eta)) / self.sd, 1 / np.sqrt(1 + omega)
        scores = [z + width * t for t in PEAK]
        logs = [Poisson().log_prob(y, eta * np.exp(self.sd * t)) + log_normal_density(t) for t in scores]
        return logsumexp(logs, axis=0) + np.log(width * (PEAK[1] - PEAK[0]))

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """η e^{sd²/2}."""
        return eta * self._factor.mean

    def variance(self, eta: np.ndarray) -> np.ndarray:
        """η e^{sd²/2} + η² Var(e^v)."""
        return eta * self._factor.mean + eta**2 * self._factor.variance

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A Poisson count whose rate is log-normal."""
        return rng.poisson(eta * np.exp(self.sd * rng.standard_normal(np.shape(eta)))).astype(float)

    def absorbed(self, rate: Marginals) -> tuple[Marginals, Conditional]:
        """e^f e^v is log-normal too, or skew as e^f is."""
        if isinstance(rate, LogNormalMarginals):
            return log_normal(rate.location, rate.spread**2 + np.square(self.sd)), Poisson()
        if isinstance(rate, SkewLogNormalMarginals):
            return with_factor(rate, self.sd), Poisson()
        return rate, self

    @property
    def _factor(self) -> LogNormalMarginals:
        variance = np.square(np.atleast_1d(self.sd))
        return log_normal(np.zeros_like(variance), variance)


KINDS: dict[str, type[Conditional]] = {
    "bernoulli": Binomial,
    "beta": Beta,
    "binomial": Binomial,
    "exponential": Gamma,
    "gamma": Gamma,
    "negative_binomial": NegativeBinomial,
    "normal": Normal,
    "normal_lognormal": NormalLogNormal,
    "poisson": Poisson,
    "poisson_lognormal": PoissonLogNormal,
    "student_t": StudentT,
}
