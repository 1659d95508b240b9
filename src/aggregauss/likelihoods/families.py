"""Families of individuals that a summary is of: how they scatter about their mean, and what a new one is like.

An individual with mean η has variance v(η) with one dispersion φ, which is learned where a family leaves it open:

    gaussian             φ               laplace              φ, and the summary is the median
    poisson              φ η             negative_binomial    η + φ η²
    binomial             φ η (1 - η)     gamma, exponential   φ η²

Families of counts have no finite g⁻¹(ȳ) at the ends of their range. There half an event is added: ȳ = 0 of n counts
becomes 1/(2n), and of n trials (nȳ + ½) / (n + 1), which also keeps ȳ = 1 inside. All individuals are alike there,
whatever φ: that they do not scatter says nothing of it.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import first_bad
from aggregauss.marginals import GaussianMarginals, LaplaceMarginals, Marginals, noisy, observed

Values = Float[Array, "..."]
Inward = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Family:
    """What a summary needs to know of its individuals."""

    variance: Callable[[Values, Values], Values]  # of an individual, given η and φ
    new: Callable[[Marginals, float], Marginals]  # a new individual, given the distribution of η and φ
    links: tuple[str, ...]  # the first is the default
    low: float = -np.inf  # range of the means
    high: float = np.inf
    inward: Inward | None = None  # from an end of the range, given ȳ and n; None: the ends are refused
    open: bool = True  # whether φ is learned unless it is given
    share: float = 1.0  # variance of n times the statistic over that of an individual: the median of a Laplace has ½

    def inside(self, y: np.ndarray) -> np.ndarray:
        """Where y can be the mean of individuals."""
        if self.inward is None:
            return (y > self.low) & (y < self.high)
        return (y >= self.low) & (y <= self.high)

    def at_end(self, y: np.ndarray) -> np.ndarray:
        """Where all individuals are at the same end of the range."""
        return (y == self.low) | (y == self.high)

    @property
    def range(self) -> str:
        """Where means can be, in words."""
        if self.inward is not None:
            return f"at least {self.low:g}" + (f" and at most {self.high:g}" if np.isfinite(self.high) else "")
        return f"above {self.low:g}" + (f" and below {self.high:g}" if np.isfinite(self.high) else "")


def of_user(variance: Callable[[Values], Values], link: str) -> Family:
    """φ v(η), normal about its mean."""
    low, high = {"identity": (-np.inf, np.inf), "exp": (0.0, np.inf)}.get(link, (0.0, 1.0))

    def new(response: Marginals, phi: float) -> Marginals:
        return _normal(response, phi * np.maximum(variance(jnp.asarray(response.mean)), 0.0) + 0.0 * response.mean)

    return Family(lambda eta, phi: phi * variance(eta), new, (link,), low, high)


def check_variance(variance: Callable[[Values], Values], y: np.ndarray) -> None:
    """A sentence if a function of the user is no variance at the means `y`.

    >>> check_variance(lambda mean: mean**2, np.array([0.5, 2.0]))
    """
    try:
        found = np.broadcast_to(np.asarray(jax.jit(variance)(jnp.asarray(y)), float), y.shape)
    except Exception as error:
        raise TypeError(
            "SampleQuasi: the variance function must give one number for each of an array of means, by jax.numpy in "
            f"place of numpy or math, but it fails: {type(error).__name__}."
        ) from error
    bad = ~((found > 0) & np.isfinite(found))
    if bad.any():
        row = first_bad(bad)[0]
        raise ValueError(
            f"fit: the variance function of SampleQuasi must be positive and finite, but in row {row}, where the mean "
            f"is {y[row]}, it is {found[row]}. Give one that is, or leave out means that it does not take."
        )


def _half_an_event(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.where(y == 0.0, 0.5 / n, y)


def _half_a_trial(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.where((y == 0.0) | (y == 1.0), (n * y + 0.5) / (n + 1.0), y)


def _normal(response: Marginals, noise: np.ndarray) -> Marginals:
    if isinstance(response, GaussianMarginals):
        return GaussianMarginals(response.mean, response.variance + noise)
    return noisy(response, noise)


def _laplace(response: Marginals, phi: float) -> Marginals:
    scale = np.full_like(response.mean, np.sqrt(phi / 2))
    return LaplaceMarginals(response.mean, response.variance + phi, response.variance, scale)


def _count(response: Marginals, phi: float) -> Marginals:
    """A Poisson count; where φ exceeds one, a negative binomial one with variance φ η at the mean of η."""
    if phi <= 1.0:
        return observed(response, "poisson")
    return observed(response, "negative_binomial", dispersion=response.mean / (phi - 1.0))


def _gamma(response: Marginals, phi: float) -> Marginals:
    return observed(response, "gamma", shape=1.0 / phi)


def _square(eta: Values, phi: Values) -> Values:
    return phi * eta**2


POSITIVE, COUNTS = ("exp",), {"low": 0.0, "inward": _half_an_event}

FAMILIES = {
    "gaussian": Family(lambda eta, phi: phi + 0.0 * eta, lambda r, phi: _normal(r, phi + 0.0 * r.mean), ("identity",)),
    "laplace": Family(lambda eta, phi: phi + 0.0 * eta, _laplace, ("identity",), share=0.5),
    "poisson": Family(lambda eta, phi: phi * eta, _count, POSITIVE, open=False, **COUNTS),
    "negative_binomial": Family(
        lambda eta, phi: eta + phi * eta**2,
        lambda r, phi: observed(r, "negative_binomial", dispersion=1.0 / phi),
        POSITIVE,
        **COUNTS,
    ),
    "binomial": Family(
        lambda eta, phi: phi * eta * (1.0 - eta),
        lambda r, phi: observed(r, "bernoulli"),
        ("logit", "probit"),
        low=0.0,
        high=1.0,
        inward=_half_a_trial,
        open=False,
    ),
    "gamma": Family(_square, _gamma, POSITIVE, low=0.0),
    "exponential": Family(_square, _gamma, POSITIVE, low=0.0, open=False),
}
