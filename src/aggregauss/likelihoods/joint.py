"""What observations that depend on several functions offer: p(y | f_1 ... f_P).

Each function is integrated over the support by itself. Schemes ask for E log p(y | f) under f ~ N(m, C), and
predictions for the distributions that such an f makes.
"""

import abc

import numpy as np
from jaxtyping import Array, Float

from aggregauss.likelihoods.likelihood import Likelihood, Seen, Values
from aggregauss.marginals import Marginals


class JointLikelihood(Likelihood):
    """p(y_i | f_i1 ... f_iP), factorised over observations; for `MultiTaskGP`."""

    @property
    @abc.abstractmethod
    def functions(self) -> int:
        """P."""

    @abc.abstractmethod
    def expected_jointly(self, seen: Seen, m: Float[Array, "n p"], C: Float[Array, "n p p"]) -> Values:
        """E log p(y | f), f ~ N(m, C)."""

    @abc.abstractmethod
    def response_jointly(self, m: np.ndarray, C: np.ndarray) -> Marginals:
        """The distribution of the mean response."""

    @abc.abstractmethod
    def observation_jointly(self, m: np.ndarray, C: np.ndarray) -> Marginals:
        """The distribution of a new observation."""

    @abc.abstractmethod
    def scales(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Levels and variances of the functions, as the data suggest them."""

    def observation(self, response: Marginals, scale: np.ndarray, size: np.ndarray) -> Marginals:
        """Not known from one function alone."""
        raise TypeError(f"{type(self).__name__}: needs {self.functions} functions.")

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Supports over which functions are averaged."""
        super().check(y, counts, is_mean)
        if not is_mean:
            raise ValueError(
                f"fit: {type(self).__name__} averages its functions over each support, but these supports are totals "
                'with a mass other than one. Make them with measure="mean".'
            )
