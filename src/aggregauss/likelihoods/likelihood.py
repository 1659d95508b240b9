"""What every likelihood offers.

For expectation propagation a likelihood needs one function, its *smoothed log density*

    log Z(y, m, v) = log ∫ p(y | f) N(f; m, v) df,

because the moments of the tilted distribution are its derivatives in m. Known noise of an observation adds to v.
"""

import abc

import numpy as np
from jaxtyping import Array, Float

from aggregauss.marginals import Marginals
from aggregauss.parameters import Parametric


class Likelihood(Parametric):
    """p(y_i | η_i), factorised over observations."""

    @abc.abstractmethod
    def log_prob(self, y: Float[Array, "..."], f: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(y | f)."""

    @abc.abstractmethod
    def log_smoothed(
        self, y: Float[Array, "..."], mean: Float[Array, "..."], variance: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """log ∫ p(y | f) N(f; mean, variance) df."""

    @abc.abstractmethod
    def observation(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:
        """The distribution of a new observation when f ~ N(mean, variance)."""
