"""Gaussian noise whose variance varies too: y ~ N(f_1, e^{f_2}).

    E log p(y | f) = -½ [log 2π + m_2 + e^{-m_2 + v_2/2} ((y - m_1 + c)² + v_1)],        c = Cov(f_1, f_2)

because the factor e^{-f_2} moves the mean of f_1 by -c.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.likelihoods.joint import JointLikelihood
from aggregauss.likelihoods.likelihood import Seen, Values
from aggregauss.marginals import GaussianMarginals, Marginals, observed

START, EVEN = 0.1, 0.01  # share of the data's variance that is noise, and variance of its logarithm, to begin with


class HeteroscedasticGaussian(JointLikelihood):
    """Normal noise with a log variance that is a function like the mean; for `MultiTaskGP`.

    The mean and the log variance are averaged over the support and mixed from the shared functions, each with weights
    of its own.

    >>> import aggregauss as ag
    >>> round(float(ag.HeteroscedasticGaussian().log_prob(jnp.array(1.0), jnp.array([0.0, 0.0]))), 6)
    -1.418939
    """

    def __init__(self):
        self._declare()
        self._set_link("identity")

    @property
    def functions(self) -> int:
        """Mean and log variance."""
        return 2

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log N(y; f_1, e^{f_2}), functions along the last axis."""
        mean, log_variance = eta[..., 0], eta[..., 1]
        return -0.5 * (jnp.log(2 * jnp.pi) + log_variance + (y - mean) ** 2 * jnp.exp(-log_variance))

    def expected_jointly(self, seen: Seen, m: Float[Array, "n 2"], C: Float[Array, "n 2 2"]) -> Values:
        """The formula above."""
        scatter = (seen.y - m[:, 0] + C[:, 0, 1]) ** 2 + C[:, 0, 0]
        return -0.5 * (jnp.log(2 * jnp.pi) + m[:, 1] + jnp.exp(-m[:, 1] + 0.5 * C[:, 1, 1]) * scatter)

    def response_jointly(self, m: np.ndarray, C: np.ndarray) -> Marginals:
        """f_1."""
        return GaussianMarginals(m[:, 0], C[:, 0, 0])

    def observation_jointly(self, m: np.ndarray, C: np.ndarray) -> Marginals:
        """f_1 with noise of log-normal variance; mean and variance are exact, f_2 is taken to be independent of f_1."""
        return observed(self.response_jointly(m, C), "normal_lognormal", location=m[:, 1], spread=np.sqrt(C[:, 1, 1]))

    def scales(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A tenth of what scatters may be noise, and that hardly varies: the search begins near Gaussian noise."""
        variance = float(np.var(y)) or 1.0
        return np.array([y.mean(), np.log(START * variance)]), np.array([variance, EVEN])
