"""Observations that are normal about the latent integral: y ~ N(v, noise), v = ∫ f dμ.

A likelihood may know more of an observation than its value. What that adds to the evidence does not depend on f:

    log p(y, rest | v) = log N(y; v, noise) + within,        noise and `within` may hold learned parameters.
"""

import abc

import jax.numpy as jnp
from jax.scipy.stats import norm

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values


class Conjugate(Likelihood):
    """A likelihood under which the posterior is exact."""

    @abc.abstractmethod
    def noise(self, seen: Seen) -> Values:
        """Variance of each observation about the latent integral."""

    def within(self, seen: Seen) -> Values:
        """What else is known of the observations, as a term of the log evidence."""
        return jnp.zeros_like(seen.y)

    def log_density(self, seen: Seen, eta: Values) -> Values:
        """log N(y; g⁻¹(η), noise) + within."""
        return norm.logpdf(seen.y, self.g.inverse(eta), jnp.sqrt(self.noise(seen))) + self.within(seen)

    def expected_log_prob(self, seen: Seen, a: Values, b: Values) -> Values:
        """log N(y; a, noise) - b / (2 noise) + within."""
        noise = self.noise(seen)
        return norm.logpdf(seen.y, a, jnp.sqrt(noise)) - 0.5 * b / noise + self.within(seen)
