"""Kernels that are products over dimensions: k(x, y) = σ² Π_j ρ(|x_j - y_j| / ℓ_j).

The mean of such a kernel over two boxes is the product of means of the profile ρ over intervals.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels.kernel import Kernel, Wide, per_dim
from aggregauss.kernels.profile import Profile, interval_means
from aggregauss.supports.layout import Atoms


class Separable(Kernel):
    """A stationary kernel that factorises over dimensions."""

    stationary = True
    lengthscale: eqx.AbstractVar[Float[Array, "..."]]
    variance: eqx.AbstractVar[Float[Array, ""]]
    profile: ClassVar[Profile]  # each kernel's own

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² Π_j ρ."""
        scale = per_dim(self.lengthscale, X)
        out = self.variance.astype(X.dtype)
        for j in range(X.shape[-1]):
            out = out * self.profile.value(jnp.abs(X[..., :, None, j] - Y[..., None, :, j]) / scale[j])
        return out

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """σ² Π_j (mean of ρ along dimension j)."""
        scale = per_dim(self.lengthscale, A.center)
        out = self.variance.astype(A.center.dtype)
        for j in range(len(A.wide)):
            a, b = ((x.center[..., j], x.width[..., j]) for x in (A, B))
            if A.wide[j] or B.wide[j]:
                (low_a, high_a), (low_b, high_b) = A.extremes[:, j], B.extremes[:, j]
                extremes = jnp.stack([jnp.minimum(low_a, low_b), jnp.maximum(high_a, high_b)])
                out = out * interval_means(self.profile, a, b, extremes, scale[j])
            else:
                out = out * self.profile.value(jnp.abs(a[0][..., :, None] - b[0][..., None, :]) / scale[j])
        return out

    def integrable(self, wide: Wide) -> bool:
        """Always: that is what the product form is for."""
        return True
