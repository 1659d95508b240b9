"""Linear: k(x, y) = Σ_j σ_j² (x_j - c_j)(y_j - c_j). The mean of x over a box is its centre, so boxes are exact."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels.kernel import Kernel, Wide, dims, per_dim
from aggregauss.parameters import parameter
from aggregauss.supports.layout import Atoms


class Linear(Kernel):
    """Straight lines through `center` with random slopes, of prior variance `variance` (a list: one per dimension).

    >>> import aggregauss as ag
    >>> ag.cov(ag.Linear(variance=2.0), ag.Intervals([0.0], [2.0], measure="mean"), ag.Points([3.0]))
    Array([[6.]], dtype=float64)
    """

    variance: Float[Array, "..."] = parameter(role="slope_variance")
    center: Float[Array, "..."] = parameter(constraint="real", role="location")

    def __init__(self, variance: Any = None, center: Any = 0.0, *, active_dims: Any = None):
        self._declare(variance=variance, center=center)
        self.active_dims = dims(active_dims, "Linear")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """Σ_j σ_j² (x_j - c_j)(y_j - c_j)."""
        shape = (1,) * (X.ndim - 1) + X.shape[-1:]
        scale, center = (per_dim(x, X).reshape(shape) for x in (self.variance, self.center))
        return ((X - center) * scale) @ jnp.swapaxes(Y - center, -1, -2)

    def integrable(self, wide: Wide) -> bool:
        """Always."""
        return True

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """The value at the centres."""
        return self.points(A.center, B.center)
