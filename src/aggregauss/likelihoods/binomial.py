"""Successes out of trials: y ~ Binomial(n, η), where η is the mean probability over the support."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import first_bad
from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values, log_factorial, whole
from aggregauss.likelihoods.sums import Sums
from aggregauss.marginals import Marginals, observed

EDGE = 1e-12  # probabilities are kept this far from zero and one


class _Binary(Likelihood):
    """What counts of successes share."""

    links = ("logit", "probit")

    @property
    def concave(self) -> bool:
        """Yes."""
        return True

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log C(n, y) + y log η + (n - y) log(1 - η)."""
        eta = jnp.clip(eta, EDGE, 1.0 - EDGE)
        return _choices(y, size) + y * jnp.log(eta) + (size - y) * jnp.log1p(-eta)

    def jensen(self, seen: Seen, sums: Sums) -> Values:
        """Lemma 1 for η and for 1 - η = Σ w (1 - g)."""
        failures = seen.size - seen.y
        return _choices(seen.y, seen.size) + seen.y * sums.log_below() + failures * sums.log_complement_below()

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Whole numbers, and supports over which probabilities are averaged."""
        super().check(y, counts, is_mean)
        if not is_mean:
            raise ValueError(
                f"fit: {type(self).__name__} averages probabilities over each support, but these supports are totals "
                'with a mass other than one. Make them with measure="mean".'
            )


class Binomial(_Binary):
    """Positives `y` out of `counts` examined; `fit(support, y, counts=n)`.

    >>> import aggregauss as ag
    >>> round(float(ag.Binomial().log_prob(jnp.array(1.0), jnp.array(0.5), jnp.array(2.0))), 6)
    -0.693147
    """

    counts_trials = True

    def __init__(self, link: Literal["logit", "probit"] = "logit"):
        self._declare()
        self._set_link(link)

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new number of successes."""
        return observed(response, "binomial", trials=size)

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Successes between zero and the number of trials."""
        super().check(y, counts, is_mean)
        if counts is None:
            raise ValueError("fit: Binomial needs the numbers of trials. Give fit(support, y, counts=n).")
        bad = ~whole(counts) | (counts < 1)
        if bad.any():
            row = first_bad(bad)[0]
            raise ValueError(f'fit: "counts" must be whole numbers of at least 1, but row {row} is {counts[row]}.')
        self._refuse(y, ~whole(y) | (y > counts), 'whole numbers from 0 to "counts"', "Swap the two if need be.")


class Bernoulli(_Binary):
    """One yes or no for each support, with the mean probability of its individuals.

    >>> import aggregauss as ag
    >>> round(float(ag.Bernoulli().log_prob(jnp.array(1.0), jnp.array(0.25))), 6)
    -1.386294
    """

    def __init__(self, link: Literal["logit", "probit"] = "logit"):
        self._declare()
        self._set_link(link)

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """A new yes or no."""
        return observed(response, "bernoulli")

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Zeros and ones."""
        super().check(y, counts, is_mean)
        self._refuse(y, (y != 0) & (y != 1), "0 or 1", "For numbers of successes use Binomial.")


def _choices(y: Values, size: Values | float) -> Float[Array, "..."]:
    n = jnp.broadcast_to(jnp.asarray(size, y.dtype), y.shape)
    return log_factorial(n) - log_factorial(y) - log_factorial(n - y)
