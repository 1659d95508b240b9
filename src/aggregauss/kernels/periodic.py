"""Periodic: k(x, y) = σ² Π_j exp(-2 sin²(π (x_j - y_j) / T) / ℓ²).

Its Fourier series Σ_n a_n cos(2π n x / T) converges like e^{-n² ℓ² / 2}; a term's mean over intervals of widths p and q
is a_n cos(2π n d / T) sinc(n p / T) sinc(n q / T). The coefficients a_n are a cosine transform of the kernel itself.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.kernels.kernel import Kernel, Wide, dims
from aggregauss.parameters import parameter
from aggregauss.supports.layout import Atoms

HARMONICS = 96  # enough for 1e-12 down to a lengthscale of 0.08 (of at most 0.5, half a period)


class Periodic(Kernel):
    """Functions that repeat after `period` in every active dimension; `lengthscale` is relative, not in input units.

    >>> import aggregauss as ag
    >>> ag.cov(ag.Periodic(period=24.0), ag.Points([0.0]), ag.Points([24.0])).round(9)
    Array([[1.]], dtype=float64)
    """

    stationary = True
    lengthscale: Float[Array, ""] = parameter()
    period: Float[Array, ""] = parameter(role="lengthscale")
    variance: Float[Array, ""] = parameter(role="variance")

    def __init__(self, lengthscale: Any = 1.0, period: Any = None, variance: Any = None, *, active_dims: Any = None):
        self._declare(lengthscale=lengthscale, period=period, variance=variance)
        self.active_dims = dims(active_dims, "Periodic")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² Π_j exp(-2 sin² / ℓ²)."""
        period, scale = self.period.astype(X.dtype), self.lengthscale.astype(X.dtype)
        turns = [(X[..., :, None, j] - Y[..., None, :, j]) / period for j in range(X.shape[-1])]
        square = sum((jnp.sin(jnp.pi * t) ** 2 for t in turns), jnp.zeros((), X.dtype))
        return self.variance.astype(X.dtype) * jnp.exp(-2.0 * square / scale**2)

    def integrable(self, wide: Wide) -> bool:
        """Always, by the Fourier series."""
        return True

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """σ² Π_j (Fourier features of a) · (Fourier features of b)."""
        weight = self._coefficients().astype(A.center.dtype).reshape((1,) * (A.center.ndim - 1) + (-1,))
        out = self.variance.astype(A.center.dtype)
        for j in range(len(A.wide)):
            (ca, sa), (cb, sb) = self._features(A, j), self._features(B, j)
            out = out * ((ca * weight) @ jnp.swapaxes(cb, -1, -2) + (sa * weight) @ jnp.swapaxes(sb, -1, -2))
        return out

    def _features(self, atoms: Atoms, j: int) -> tuple[Array, Array]:
        center, width = (x[..., j, None] / self.period.astype(x.dtype) for x in (atoms.center, atoms.width))
        n = jnp.arange(HARMONICS + 1, dtype=center.dtype).reshape((1,) * (center.ndim - 1) + (-1,))
        angle, damp = 2.0 * jnp.pi * n * center, jnp.sinc(n * width)
        return jnp.cos(angle) * damp, jnp.sin(angle) * damp

    def _coefficients(self) -> Array:
        """a_n from equally spaced values over one period: the trapezoid rule, which here converges geometrically."""
        samples = 4 * HARMONICS
        phase = np.arange(samples) / samples
        values = jnp.exp(-2.0 * jnp.asarray(np.sin(np.pi * phase) ** 2) / self.lengthscale**2)
        table = np.cos(2 * np.pi * np.outer(np.arange(HARMONICS + 1), phase)) * (2.0 / samples)
        table[0] /= 2
        return jnp.asarray(table) @ values
