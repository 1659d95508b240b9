"""Matern kernel of order one: k(x, y) = σ² t K₁(t),  t = √2 r / ℓ,  K₁ the modified Bessel function.

In the plane it is the covariance of the stationary solution of (κ² - Δ) f = white noise, κ = √2 / ℓ, the field of SPDE
software with α = 2 (Lindgren et al. 2011). What is called the range there, √8 / κ, is 2ℓ.
"""

from typing import Any

from jaxtyping import Array, Float

from aggregauss.kernels import distance
from aggregauss.kernels.bessel import t_k1
from aggregauss.kernels.kernel import Kernel, dims, per_dim
from aggregauss.parameters import parameter

SQRT2 = 2.0**0.5


class Matern1(Kernel):
    """Functions between those of `Matern12` and `Matern32`, as in SPDE models; means over boxes by quadrature.

    >>> import aggregauss as ag
    >>> field = ag.Matern1(lengthscale=1.5, variance=0.6)  # range 3
    >>> ag.cov(field, ag.Points([[0.0, 0.0]]), ag.Points([[0.0, 3.0]])).round(9)
    Array([[0.08380048]], dtype=float64)
    """

    stationary = True
    lengthscale: Float[Array, "..."] = parameter(role="lengthscale")
    variance: Float[Array, ""] = parameter(role="variance")

    def __init__(self, lengthscale: Any = None, variance: Any = None, *, active_dims: Any = None):
        self._declare(lengthscale=lengthscale, variance=variance)
        self.active_dims = dims(active_dims, "Matern1")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² t K₁(t)."""
        t = SQRT2 * distance.euclidean(X, Y, per_dim(self.lengthscale, X))
        return self.variance.astype(X.dtype) * t_k1(t)
