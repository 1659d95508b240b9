"""Prior densities for parameters, in the parameter's own units.

Each is a small frozen record, so a model that carries priors stays a hashable, comparable value.

>>> import jax.numpy as jnp
>>> float(LogNormal(median=2.0, spread=0.5).log_prob(jnp.array(2.0)))  # = -log(2.0 * 0.5 * sqrt(2 pi))
-0.9189385332046727
"""

import abc
import dataclasses
import math
from typing import ClassVar

import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Float

from aggregauss.archive import storable
from aggregauss.checks import positive_number, probability


class Prior(abc.ABC):
    """A density over one positive or real parameter; arrays are taken elementwise."""

    positive: ClassVar[tuple[str, ...]] = ()  # fields that must be
    share: ClassVar[str | None] = None  # a field that must lie between zero and one

    def __post_init__(self) -> None:
        who = type(self).__name__
        for name in self.positive:
            positive_number(getattr(self, name), who, name)
        if self.share is not None:
            probability(getattr(self, self.share), who, self.share)

    @abc.abstractmethod
    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Elementwise log density."""


@storable
@dataclasses.dataclass(frozen=True)
class LogNormal(Prior):
    """log x ~ N(log median, spread²)."""

    median: float
    spread: float
    positive = ("median", "spread")

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.norm.logpdf(jnp.log(x), jnp.log(self.median), self.spread) - jnp.log(x)


@storable
@dataclasses.dataclass(frozen=True)
class Gamma(Prior):
    """p(x) ∝ x^(shape-1) exp(-rate x)."""

    shape: float
    rate: float
    positive = ("shape", "rate")

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.gamma.logpdf(x, self.shape, scale=1.0 / self.rate)


@storable
@dataclasses.dataclass(frozen=True)
class InverseGamma(Prior):
    """p(x) ∝ x^(-shape-1) exp(-scale / x): keeps a lengthscale away from zero."""

    shape: float
    scale: float
    positive = ("shape", "scale")

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.gamma.logpdf(1.0 / x, self.shape, scale=1.0 / self.scale) - 2.0 * jnp.log(x)


@storable
@dataclasses.dataclass(frozen=True)
class Normal(Prior):
    """x ~ N(mean, sd²)."""

    mean: float
    sd: float
    positive = ("sd",)

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.norm.logpdf(x, self.mean, self.sd)


@storable
@dataclasses.dataclass(frozen=True)
class HalfNormal(Prior):
    """The absolute value of N(0, sd²)."""

    sd: float
    positive = ("sd",)

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return jnp.log(2.0) + stats.norm.logpdf(x, 0.0, self.sd)


@storable
@dataclasses.dataclass(frozen=True)
class RangePrior(Prior):
    """A lengthscale's prior from one statement: the practical range is below `below` with this `probability`.

    The range is the distance at which the correlation of a Matern kernel has fallen to about 0.14, twice the
    lengthscale, in the units of the coordinates (km, years). The penalised-complexity prior of Fuglstad et al. (2019):
    with ρ = 2 ℓ in d dimensions, p(ρ) ∝ ρ^{-d/2-1} exp(-λ ρ^{-d/2}), λ = -log(probability) below^{d/2}.

    >>> import aggregauss as ag
    >>> field = ag.Matern32(lengthscale=ag.param(50.0, prior=ag.RangePrior(below=30.0, probability=0.05)))
    """

    below: float
    probability: float = 0.05
    dim: int = 2
    positive, share = ("below", "dim"), "probability"

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        half = self.dim / 2
        rate = -math.log(self.probability) * self.below**half
        rho = 2.0 * x
        return jnp.log(2.0 * half * rate) - (half + 1.0) * jnp.log(rho) - rate * rho**-half


@storable
@dataclasses.dataclass(frozen=True)
class SdPrior(Prior):
    """A variance's prior from one statement: the standard deviation exceeds `above` with this `probability`.

    The standard deviation is exponentially distributed (Simpson et al. 2017); for a log rate, `above=1` says that
    places rarely differ from the average by more than a factor of e² either way.

    >>> import aggregauss as ag
    >>> field = ag.Matern32(variance=ag.param(0.5, prior=ag.SdPrior(above=1.0, probability=0.05)))
    """

    above: float
    probability: float = 0.05
    positive, share = ("above",), "probability"

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        rate = -math.log(self.probability) / self.above
        sd = jnp.sqrt(x)
        return math.log(rate) - rate * sd - jnp.log(2.0 * sd)
