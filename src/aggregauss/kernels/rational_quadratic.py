"""Rational quadratic: k(x, y) = σ² (1 + |x - y|² / (2 α ℓ²))^{-α}, a mixture of RBF kernels of many lengthscales."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels import distance
from aggregauss.kernels.kernel import Kernel, dims, per_dim
from aggregauss.parameters import parameter


class RationalQuadratic(Kernel):
    """Smooth functions that vary on several scales at once; over boxes by quadrature.

    >>> import aggregauss as ag
    >>> ag.cov(ag.RationalQuadratic(lengthscale=1.0, alpha=1.0), ag.Points([0.0]), ag.Points([2.0])).round(9)
    Array([[0.33333333]], dtype=float64)
    """

    stationary = True
    lengthscale: Float[Array, "..."] = parameter(role="lengthscale")
    alpha: Float[Array, ""] = parameter()
    variance: Float[Array, ""] = parameter(role="variance")

    def __init__(self, lengthscale: Any = None, alpha: Any = 1.0, variance: Any = None, *, active_dims: Any = None):
        self._declare(lengthscale=lengthscale, alpha=alpha, variance=variance)
        self.active_dims = dims(active_dims, "RationalQuadratic")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² (1 + r² / 2α)^{-α}."""
        alpha = self.alpha.astype(X.dtype)
        square = distance.squared(X, Y, per_dim(self.lengthscale, X))
        return self.variance.astype(X.dtype) * jnp.exp(-alpha * jnp.log1p(square / (2.0 * alpha)))
