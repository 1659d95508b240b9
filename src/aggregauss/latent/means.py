"""Mean functions, integrated over supports.

A mean enters through ∫ m dμ_i alone. For linear functions that needs only the moments ∫ 1 dμ_i and ∫ x dμ_i, which a
support knows exactly.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.parameters import Parametric, parameter
from aggregauss.supports.support import Support


class Moments(eqx.Module):
    """∫ 1 dμ_i and ∫ x dμ_i of a batch of supports."""

    one: Float[Array, " n"]
    x: Float[Array, "n d"]


def moments(support: Support) -> Moments:
    """The moments of a batch of supports."""
    return Moments(
        jnp.asarray(support.integrate(np.ones(len(support.owner)))),
        jnp.asarray(support.integrate(support.center)),
    )


class Mean(Parametric):
    """A mean function."""

    @abc.abstractmethod
    def integrate(self, moments: Moments) -> Float[Array, " n"]:
        """∫ m dμ_i."""

    @property
    def effects(self) -> int:
        """Number of coefficients that have a prior distribution rather than a value."""
        return 0

    def features(self, X: Float[Array, "*n d"]) -> Float[Array, "*n p"]:
        """Covariates of those coefficients, times their prior standard deviations."""
        raise TypeError(f"{type(self).__name__} has no effects.")

    def check_dim(self, dim: int) -> None:
        """A sentence if the mean cannot be used with inputs of `dim` dimensions."""

    def __add__(self, other: Any) -> Any:
        raise TypeError(f"{type(self).__name__} is a mean function; a constant kernel is ConstantKernel.")

    __mul__ = __rmul__ = __radd__ = __add__


class Zero(Mean):
    """m(x) = 0."""

    def __init__(self) -> None:
        self._declare()

    def integrate(self, moments: Moments) -> Float[Array, " n"]:
        """Zero."""
        return jnp.zeros_like(moments.one)


class Constant(Mean):
    """m(x) = value; learned unless fixed.

    >>> import aggregauss as ag
    >>> ag.Constant(2.0).integrate(moments(ag.Intervals([0.0], [3.0]))).tolist()  # a total over a width of 3
    [6.0]
    """

    value: Float[Array, ""] = parameter(constraint="real", role="level")

    def __init__(self, value: Any = None):
        self._declare(value=value)

    def integrate(self, moments: Moments) -> Float[Array, " n"]:
        """value · ∫ 1 dμ."""
        return self.value * moments.one


class LinearMean(Mean):
    """m(x) = value + slope · x; `slope` is one number for each dimension.

    >>> import aggregauss as ag
    >>> mean = ag.LinearMean(value=1.0, slope=[2.0])
    >>> mean.integrate(moments(ag.Intervals([0.0], [3.0], measure="mean"))).tolist()  # 1 + 2 · 1.5
    [4.0]
    """

    value: Float[Array, ""] = parameter(constraint="real", role="level")
    slope: Float[Array, " d"] = parameter(constraint="real", role="slope")

    def __init__(self, slope: Any, value: Any = None):
        self._declare(value=value, slope=slope)
        if self.slope.ndim != 1:
            raise ValueError('LinearMean: "slope" must be a list with one number for each dimension, e.g. [0.0, 0.0].')

    def integrate(self, moments: Moments) -> Float[Array, " n"]:
        """value · ∫ 1 dμ + slope · ∫ x dμ."""
        return self.value * moments.one + moments.x @ self.slope

    def check_dim(self, dim: int) -> None:
        """One slope for each dimension."""
        if len(self.slope) != dim:
            raise ValueError(
                f'LinearMean: "slope" must have {dim} value(s), one for each dimension, but has {len(self.slope)}.'
            )
