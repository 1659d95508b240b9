"""Summaries: a region is known by a statistic ȳ of n individuals, and perhaps by the variance s² among them.

With the link g, T = g⁻¹(ȳ) and the variance v(η) of an individual, the sample quasi-likelihood (Shikuri 2024) is

    T ~ N(∫ f dμ, V),        V = v(ȳ) / (n g'(T)²),

the Laplace approximation of each region's likelihood about its own best fit; for Gaussian individuals it is exact. What
the scatter within regions says of the dispersion φ in v enters the evidence beside it:

    within = -½ [(n - 1) log 2πv + log n + n s² / v],

so that for Gaussian individuals the evidence is that of all of them, n-dimensional, at the cost of the m summaries.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from aggregauss.checks import first_bad, one_of, warn
from aggregauss.likelihoods.conjugate import Conjugate
from aggregauss.likelihoods.families import FAMILIES, Family, check_variance, of_user
from aggregauss.likelihoods.likelihood import Seen, Values, sd_of_regions
from aggregauss.marginals import Marginals
from aggregauss.parameters import fixed, parameter

USER_LINKS = ("identity", "exp", "logit", "probit")
ROUNDING = 1e-9
UNLIKE = 2.0  # times a fixed dispersion, or a part of it: more scatter within regions, or less, is worth a warning
ENOUGH = 30  # degrees of freedom, before which scatter is not judged


class SampleQuasi(Conjugate):
    """Summary statistics of many individuals; give their numbers as `counts` to `fit`, and `variances` if known.

    `family` is "gaussian", "poisson", "binomial", "gamma", "exponential", "negative_binomial", "laplace" (whose
    statistic is the median), or a function v(η), which is multiplied by the dispersion. The statistic is the sample
    mean of the individuals in their own units: the link is applied here. `dispersion` is the φ of `families`: the noise
    variance of a Gaussian, 1/r of a negative binomial, 1/shape of a gamma. It is learned, but for "poisson", "binomial"
    and "exponential", where it is one unless a starting value is given.

    `region_effect=True` gives the statistic of each region a normal deviation of its own, with a learned `region_sd`,
    in units of the latent function: regions that differ by more than their individuals' scatter and f explain.

    >>> import aggregauss as ag
    >>> model = ag.GP(ag.RBF(), likelihood=ag.SampleQuasi("poisson"), mean=ag.Constant())
    >>> post = model.fit(ag.Points([0.0, 1.0, 2.0, 3.0]), [0.0, 1.2, 2.5, 2.0], counts=[9, 30, 12, 25])
    >>> post.predict(ag.Points([1.5])).mean.shape  # the rate
    (1,)
    """

    dispersion: Float[Array, ""] = parameter(role="noise")
    region_sd: Float[Array, ""] = parameter(role="region_sd")
    family: str = eqx.field(static=True, kw_only=True)
    variance_function: Callable[[Values], Values] | None = eqx.field(static=True, kw_only=True)
    region_effect: bool = eqx.field(static=True, kw_only=True)
    takes_noise = True

    def __init__(
        self,
        family: str | Callable[[Values], Values] = "gaussian",
        *,
        link: str | None = None,
        dispersion: Any = None,
        region_effect: bool = False,
        region_sd: Any = None,
    ):
        self.variance_function = None if isinstance(family, str) else _function(family)
        self.family = one_of(family, tuple(FAMILIES), "SampleQuasi", "family") if isinstance(family, str) else "user"
        options = FAMILIES[family].links if isinstance(family, str) else USER_LINKS
        self.link = options[0] if link is None else one_of(link, options, "SampleQuasi", "link")
        self.region_effect = bool(region_effect)
        known = dispersion is None and not self.about.open
        effect = sd_of_regions(region_effect, region_sd, "SampleQuasi")
        self._declare(dispersion=fixed(1.0) if known else dispersion, region_sd=effect)

    @property
    def about(self) -> Family:
        """How individuals scatter."""
        if self.variance_function is not None:
            return of_user(self.variance_function, self.link)
        return FAMILIES[self.family]

    def statistic(self, y: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
        """T = g⁻¹(ȳ), from the ends of the range by the rule of half an event."""
        assert counts is not None
        inward = self.about.inward
        return np.asarray(self.g.inverse(jnp.asarray(y if inward is None else inward(y, counts))))

    def noise(self, seen: Seen) -> Values:
        """V, with what is known beside and the effect of the region."""
        mean, slope = self._at(seen)
        own = self.about.share * self.about.variance(mean, self.dispersion.astype(mean.dtype)) / seen.size
        effect = self.region_sd.astype(mean.dtype) ** 2 if self.region_effect else 0.0
        return (own + seen.known) / slope**2 + effect

    def within(self, seen: Seen) -> Values:
        """What the scatter within each region adds, where it is known."""
        mean, _ = self._at(seen)
        v = self.about.variance(mean, self.dispersion.astype(mean.dtype))
        there = seen.free + seen.square > 0
        v = jnp.where(there, v, 1.0)
        return jnp.where(
            there, -0.5 * (seen.free * jnp.log(2 * jnp.pi * v) + jnp.log1p(seen.free) + seen.square / v), 0.0
        )

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log N(T; g⁻¹(η), V)."""
        one = jnp.ones_like(y)
        noise = self.noise(Seen(y, size * one, 0.0 * one, one))
        return norm.logpdf(y, self.g.inverse(eta), jnp.sqrt(noise))

    def noise_share(self, seen: Seen) -> Values:
        """V where the dispersion is one."""
        mean, slope = self._at(seen)
        return self.about.share * self.about.variance(mean, jnp.ones_like(mean)) / seen.size / slope**2

    def typical_noise(self, seen: Seen, residual: np.ndarray) -> float:
        """The scatter within regions, pooled, where it is known."""
        mean, _ = self._at(seen)
        unit = self.about.variance(mean, jnp.ones_like(mean))
        pooled = float(jnp.sum(seen.square / unit) / jnp.maximum(jnp.sum(seen.free), 1.0))
        return pooled or super().typical_noise(seen, residual)

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new individual."""
        return self.about.new(response, float(self.dispersion))

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Means in the range of the family, each of at least one individual."""
        if counts is None:
            raise ValueError('fit: SampleQuasi needs "counts", how many individuals each statistic is of.')
        if (counts <= 0).any():
            row = first_bad(counts <= 0)[0]
            raise ValueError(
                f'fit: "counts" must be positive, but row {row} is {counts[row]}. Leave out regions '
                "without individuals."
            )
        if (counts < 1).any():
            row = first_bad(counts < 1)[0]
            raise ValueError(
                f'fit: "counts" must be at least one individual, but row {row} is {counts[row]}. Give numbers of '
                "individuals, not shares or densities."
            )
        if not is_mean:
            raise ValueError(
                "fit: the statistics of SampleQuasi are means, but the supports take totals. Use "
                'supports.with_measure("mean").'
            )
        bad = ~self.about.inside(y)
        self._refuse(y, bad, f"means {self.about.range}", "Give means of individuals, in their own units.")
        if self.variance_function is not None:
            check_variance(self.variance_function, y)

    def usable_variances(self, y: np.ndarray, variances: np.ndarray | None) -> np.ndarray | None:
        """Not those where individuals are alike, at the ends of the range for one, nor those of zeros and ones."""
        if variances is None:
            return None
        binary = (self.family == "binomial") & np.isclose(variances, y * (1.0 - y))  # whatever the dispersion
        return np.where(self.about.at_end(y) | self._alike(y) | binary, np.nan, variances)

    def check_variances(self, y: np.ndarray, counts: np.ndarray | None, variances: np.ndarray | None) -> None:
        """Not negative, zero where individuals cannot differ, and not more than the family can have."""
        if variances is None:
            return
        assert counts is not None
        some = variances > ROUNDING * (1.0 + y**2)
        at_end = self.family != "user" and self.about.at_end(y)
        most = y * (1.0 - y) * (1.0 + ROUNDING) + ROUNDING
        for bad, wanted, remedy in (
            (variances < 0, "not be negative", "Give variances among individuals, with divisor n."),
            ((counts == 1) & some, "be zero for one individual", "Give variances among individuals, with divisor n."),
            (at_end & some, "be zero where the mean is at an end of its range", "Look at the mean of that row too."),
            (self._alike(y) & some, "be zero under a dispersion that is fixed at zero", "Let it be learned."),
            (
                (self.family == "binomial") & (variances > most),
                "not exceed ȳ (1 - ȳ) for zeros and ones",
                "Multiply variances with divisor n - 1 by (n - 1) / n.",
            ),
        ):
            if np.any(bad):
                row = first_bad(bad)[0]
                raise ValueError(f'fit: "variances" must {wanted}, but row {row} is {variances[row]}. {remedy}')
        self._warn_of_scatter(y, counts, variances)

    def _warn_of_scatter(self, y: np.ndarray, counts: np.ndarray, variances: np.ndarray) -> None:
        """Where individuals scatter quite unlike a dispersion that is not learned."""
        told = np.isfinite(np.asarray(self.usable_variances(y, variances))) & (counts > 1)
        free = np.sum(counts[told] - 1.0)
        if not dict(self.marks)["dispersion"].fixed or free < ENOUGH:
            return
        v = np.asarray(self.about.variance(jnp.asarray(y[told]), self.dispersion))
        ratio = np.sum(counts[told] * variances[told] / v) / free
        if not 1 / UNLIKE <= ratio <= UNLIKE:
            warn(
                f'fit: the "variances" are {ratio:.2g} times those of individuals of one mean under the dispersion '
                f"{float(self.dispersion):g}, which is fixed. SampleQuasi(..., dispersion=2.0) learns it."
            )

    def _alike(self, y: np.ndarray) -> np.ndarray:
        """Where individuals have no variance under a dispersion that is not learned."""
        v = np.asarray(self.about.variance(jnp.asarray(y), self.dispersion))
        return dict(self.marks)["dispersion"].fixed & (v == 0.0)

    def _at(self, seen: Seen) -> tuple[Values, Values]:
        """ȳ and g'(T)."""
        return jax.jvp(self.g.forward, (seen.y,), (jnp.ones_like(seen.y),))


def _function(family: Any) -> Any:
    """What the user gave in place of a name."""
    if isinstance(family, type) or not callable(family):
        got = f"the class {family.__name__}" if isinstance(family, type) else type(family).__name__
        raise TypeError(
            f'SampleQuasi: "family" must be a name such as "poisson", or a function of means, but got {got}.'
        )
    return family
