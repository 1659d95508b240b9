"""Prior densities for parameters, in the parameter's own units.

Each is a small frozen record, so a model that carries priors stays a hashable, comparable value.

>>> import jax.numpy as jnp
>>> float(LogNormal(median=2.0, spread=0.5).log_prob(jnp.array(2.0)))  # = -log(2.0 * 0.5 * sqrt(2 pi))
-0.9189385332046727
"""

import abc
import dataclasses

import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Float

from aggregauss.archive import storable


class Prior(abc.ABC):
    """A density over one positive or real parameter; arrays are taken elementwise."""

    @abc.abstractmethod
    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Elementwise log density."""


@storable
@dataclasses.dataclass(frozen=True)
class LogNormal(Prior):
    """log x ~ N(log median, spread²)."""

    median: float
    spread: float

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.norm.logpdf(jnp.log(x), jnp.log(self.median), self.spread) - jnp.log(x)


@storable
@dataclasses.dataclass(frozen=True)
class Gamma(Prior):
    """p(x) ∝ x^(shape-1) exp(-rate x)."""

    shape: float
    rate: float

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.gamma.logpdf(x, self.shape, scale=1.0 / self.rate)


@storable
@dataclasses.dataclass(frozen=True)
class InverseGamma(Prior):
    """p(x) ∝ x^(-shape-1) exp(-scale / x): keeps a lengthscale away from zero."""

    shape: float
    scale: float

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.gamma.logpdf(1.0 / x, self.shape, scale=1.0 / self.scale) - 2.0 * jnp.log(x)


@storable
@dataclasses.dataclass(frozen=True)
class Normal(Prior):
    """x ~ N(mean, sd²)."""

    mean: float
    sd: float

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return stats.norm.logpdf(x, self.mean, self.sd)


@storable
@dataclasses.dataclass(frozen=True)
class HalfNormal(Prior):
    """The absolute value of N(0, sd²)."""

    sd: float

    def log_prob(self, x: Float[Array, "..."]) -> Float[Array, "..."]:  # noqa: D102
        return jnp.log(2.0) + stats.norm.logpdf(x, 0.0, self.sd)
