"""What every likelihood offers: p(y | η) of the mean response η, and expectations of its logarithm.

A likelihood with a link g sees η = g(f). Schemes ask for

    E log p(y | g(v)),  v ~ N(a, b²)               variational inference; Gauss-Hermite unless a formula is known
    log ∫ p(y | f) N(f; m, v) df                    expectation propagation, whose moments are its derivatives in m

`Seen` carries what is known of the observations: their values, numbers of trials or individuals, and known noise.
"""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import first_bad, one_of
from aggregauss.likelihoods.links import LINKS, Link, expectation
from aggregauss.likelihoods.sums import Sums
from aggregauss.marginals import Marginals
from aggregauss.parameters import Parametric, fixed

Values = Float[Array, "..."]


class Seen(NamedTuple):
    """Observations as a likelihood sees them."""

    y: Float[Array, " n"]
    size: Float[Array, " n"]  # numbers of trials, or of individuals that a summary is of; one where there are none
    known: Float[Array, " n"]  # variance of known normal noise
    scale: Float[Array, " n"]  # Σ w² over the individuals of the support
    free: Float[Array, " n"] | float = 0.0  # degrees of freedom of the scatter within a summary; zero if not known
    square: Float[Array, " n"] | float = 0.0  # squared deviations of its individuals from their mean, summed


class Likelihood(Parametric):
    """p(y_i | η_i), factorised over observations."""

    link: str = eqx.field(static=True)
    links: ClassVar[tuple[str, ...]] = ("identity",)  # the first is the default
    counts_trials: ClassVar[bool] = False  # whether `counts` in `fit` is a number of trials
    takes_noise: ClassVar[bool] = False  # whether `noise_variance` in `fit` has a meaning

    @property
    def functions(self) -> int:
        """How many latent functions an observation depends on."""
        return 1

    @property
    def concave(self) -> bool:
        """Whether log p(y | η) is concave in η, so that an expansion to second order has a maximum in the variance."""
        return False

    @property
    def g(self) -> Link:
        """The link."""
        return LINKS[self.link]

    def _set_link(self, link: str) -> None:
        self.link = one_of(link, self.links, type(self).__name__, "link")

    @abc.abstractmethod
    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log p(y | η)."""

    @abc.abstractmethod
    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """The distribution of a new observation given that of η; `scale` multiplies noise known per individual."""

    def log_density(self, seen: Seen, eta: Values) -> Values:
        """log p(y | η) with all that is known of the observations."""
        return self.log_prob(seen.y, eta, seen.size)

    def expected_log_prob(self, seen: Seen, a: Values, b: Values) -> Values:
        """E log p(y | g(v)), v ~ N(a, b)."""
        return expectation(lambda v: self.log_density(seen, self.g.forward(v)), a, b)

    def jensen(self, seen: Seen, sums: Sums) -> Values:
        """A lower bound of E log p(y | Σ_i w_i g(v_i))."""
        raise TypeError(f'{type(self).__name__}: bound="jensen" is not known for this likelihood. Use the default.')

    def scatter(self, eta: np.ndarray) -> np.ndarray:
        """Variance of a count whose mean, all effects included, is η."""
        raise TypeError(f"dispersion: known for counts, but the likelihood is {type(self).__name__}.")

    def noise_share(self, seen: Seen) -> Values:
        """What the learned noise variance of each observation is multiplied by."""
        return jnp.ones_like(seen.y)

    def typical_noise(self, seen: Seen, residual: np.ndarray) -> float:
        """Where the search for the noise variance starts: a tenth of what scatters."""
        share = np.asarray(self.noise_share(seen))
        return 0.1 * (float(np.var(residual / np.sqrt(share))) or float(np.mean(seen.y**2 / share)) or 1.0)

    def statistic(self, y: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
        """The observations as this likelihood works with them."""
        return y

    def usable_variances(self, y: np.ndarray, variances: np.ndarray | None) -> np.ndarray | None:
        """Variances within summaries that say something; the others are not a number."""
        return variances

    def check_variances(self, y: np.ndarray, counts: np.ndarray | None, variances: np.ndarray | None) -> None:
        """A sentence if variances within summaries were given and make no sense."""
        if variances is not None:
            raise ValueError(
                f'fit: "variances" are those within summaries, for SampleQuasi, but the likelihood is '
                f'{type(self).__name__}. Give known noise as "noise_variance".'
            )

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """A sentence if the likelihood cannot have produced `y`."""
        if counts is not None and not self.counts_trials:
            raise ValueError(
                f'fit: "counts" is for binomial observations and for SampleQuasi, but the likelihood is '
                f"{type(self).__name__}."
            )

    def _refuse(self, y: np.ndarray, bad: np.ndarray, wanted: str, remedy: str) -> None:
        if bad.any():
            row = first_bad(bad)[0]
            raise ValueError(
                f'fit: {type(self).__name__} needs "y" to be {wanted}, but row {row} is {y[row]}. {remedy}'
            )


def sd_of_regions(effect: bool, sd: Any, who: str) -> Any:
    """The standard deviation of regions' own effects as it was given; without effects one that is not used."""
    if effect:
        return 0.3 if sd is None else sd
    if sd is not None:
        raise ValueError(f'{who}: "region_sd" is that of effects of regions. Give region_effect=True with it.')
    return fixed(1.0)


def whole(y: np.ndarray) -> np.ndarray:
    """Where y is a count: not negative and without a fraction."""
    return (y >= 0) & (y == np.round(y))


def log_factorial(y: Values) -> Values:
    """log y!."""
    from jax.scipy.special import gammaln

    return gammaln(y + 1.0)


def safe_log(x: Values) -> Values:
    """log x, finite at zero."""
    tiny = jnp.finfo(x.dtype).tiny
    return jnp.log(jnp.where(x > tiny, x, tiny))  # the slope at zero is zero, however large what multiplies it
