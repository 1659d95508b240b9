"""Constant: k(x, y) = σ², an unknown level with a Gaussian prior."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels.kernel import Kernel, Wide
from aggregauss.parameters import parameter
from aggregauss.supports.layout import Atoms


class ConstantKernel(Kernel):
    """An unknown constant level of prior variance `variance`; its mean over anything is itself.

    >>> import aggregauss as ag
    >>> ag.cov(ag.ConstantKernel(3.0), ag.Intervals([0.0], [2.0]), ag.Points([5.0]))  # a total over width 2
    Array([[6.]], dtype=float64)
    """

    variance: Float[Array, ""] = parameter(role="variance")

    def __init__(self, variance: Any = None):
        self._declare(variance=variance)
        self.active_dims = None

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ²."""
        return jnp.broadcast_to(self.variance.astype(X.dtype), (*X.shape[:-1], Y.shape[-2]))

    def touches(self, dim: int) -> frozenset[int]:
        """None."""
        return frozenset()

    def integrable(self, wide: Wide) -> bool:
        """Always."""
        return True

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """σ²."""
        return self.points(A.center, B.center)
