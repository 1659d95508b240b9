"""Matern kernels of order 1/2, 3/2 and 5/2.

With t = √(2ν) r / ℓ, k = σ² ρ(t) and ρ(t) = Σ_j c_j t^j e^{-t}:

    1/2:  e^{-t}        3/2:  (1 + t) e^{-t}        5/2:  (1 + t + t²/3) e^{-t}

`form="isotropic"` takes r = |x - y| over all dimensions. `form="product"` multiplies one factor for each dimension, and
then the mean over two boxes is known.
"""

import math
from typing import Any, ClassVar, Literal

import equinox as eqx
from jaxtyping import Array, Float

from aggregauss.checks import one_of
from aggregauss.kernels import distance
from aggregauss.kernels.exponential import Exponential
from aggregauss.kernels.kernel import Wide, dims, per_dim
from aggregauss.kernels.profile import Profile
from aggregauss.kernels.separable import Separable
from aggregauss.parameters import parameter

Form = Literal["isotropic", "product"]


class _Matern(Separable):
    lengthscale: Float[Array, "..."] = parameter(role="lengthscale")
    variance: Float[Array, ""] = parameter(role="variance")
    form: Form = eqx.field(static=True, kw_only=True)

    def _set(self, lengthscale: Any, variance: Any, form: Form, active_dims: Any) -> None:
        who = type(self).__name__
        self._declare(lengthscale=lengthscale, variance=variance)
        self.form = one_of(form, ("isotropic", "product"), who, "form")
        self.active_dims = dims(active_dims, who)

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² ρ of the distance, or σ² times the product of ρ over dimensions."""
        if self.form == "product":
            return super().points(X, Y)
        distances = distance.euclidean(X, Y, per_dim(self.lengthscale, X))
        return self.variance.astype(X.dtype) * self.profile.value(distances)

    def integrable(self, wide: Wide) -> bool:
        """In one dimension both forms agree; in more, only the product form factorises."""
        return self.form == "product" or len(wide) == 1


class Matern12(_Matern):
    """Continuous but rough functions: the exponential kernel, or Ornstein-Uhlenbeck process.

    >>> import aggregauss as ag
    >>> ag.cov(ag.Matern12(lengthscale=2.0), ag.Points([0.0]), ag.Points([2.0]))
    Array([[0.36787944]], dtype=float64)
    """

    profile: ClassVar[Profile] = Exponential((1.0,), 1.0)

    def __init__(
        self, lengthscale: Any = None, variance: Any = None, *, form: Form = "isotropic", active_dims: Any = None
    ):
        self._set(lengthscale, variance, form, active_dims)


class Matern32(_Matern):
    """Functions with one derivative. In several dimensions, `form="product"` has closed-form means over boxes."""

    profile: ClassVar[Profile] = Exponential((1.0, 1.0), math.sqrt(3.0))

    def __init__(
        self, lengthscale: Any = None, variance: Any = None, *, form: Form = "isotropic", active_dims: Any = None
    ):
        self._set(lengthscale, variance, form, active_dims)


class Matern52(_Matern):
    """Functions with two derivatives. In several dimensions, `form="product"` has closed-form means over boxes."""

    profile: ClassVar[Profile] = Exponential((1.0, 1.0, 1.0 / 3.0), math.sqrt(5.0))

    def __init__(
        self, lengthscale: Any = None, variance: Any = None, *, form: Form = "isotropic", active_dims: Any = None
    ):
        self._set(lengthscale, variance, form, active_dims)
