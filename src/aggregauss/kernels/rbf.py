"""RBF (squared exponential): k(x, y) = σ² exp(-½ Σ_j (x_j - y_j)² / ℓ_j²).

In one dimension, in units of ℓ:  ρ = e^{-t²/2},  R' = -∫_t^∞ ρ = -ρ M(t) with the Mills ratio M,  R = ρ + t R'.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels import distance
from aggregauss.kernels.kernel import dims, per_dim
from aggregauss.kernels.potential import Smooth
from aggregauss.kernels.profile import Profile
from aggregauss.kernels.separable import Separable
from aggregauss.parameters import parameter
from aggregauss.special import mills


@dataclasses.dataclass(frozen=True)
class SquaredExponential(Smooth):
    """ρ(t) = e^{-t²/2}."""

    def tail(self, t: Float[Array, "..."]) -> tuple[Array, Array, Array]:
        """(R, R', ρ) from one exponential and one polynomial."""
        return _tail(t)

    def value(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """e^{-t²/2}."""
        return jnp.exp(-0.5 * t * t)

    def slope_mean(self, t: Array, q: Array) -> Array:
        """R' + q²/24 ρ' + q⁴/1920 ρ⁽³⁾ + q⁶/322560 ρ⁽⁵⁾."""
        _, slope, rho = _tail(t)
        t2, q2 = t * t, q * q
        series = -1.0 / 24 + q2 * ((3.0 - t2) * (1 / 1920) - q2 * (t2 * (t2 - 10.0) + 15.0) * (1 / 322560))
        return slope + rho * t * q2 * series

    def value_mean(self, d: Array, p: Array, q: Array) -> Array:
        """ρ(d) Σ_j He_{2j}(d) m_{2j} / (2j)!, with m the even moments of a sum of two uniform variables."""
        x, a, b = d * d, p * p / 12, q * q / 12
        m2 = a + b
        m4 = 1.8 * (a * a + b * b) + 6 * a * b
        m6 = 27 / 7 * (a**3 + b**3) + 27 * a * b * (a + b)
        m8 = 9 * (a**4 + b**4) + 108 * a * b * (a * a + b * b) + 226.8 * (a * b) ** 2
        h4 = x * (x - 6) + 3
        h6 = x * (x * (x - 15) + 45) - 15
        h8 = x * (x * (x * (x - 28) + 210) - 420) + 105
        series = 1 + m2 * (x - 1) / 2 + m4 * h4 * (1 / 24) + m6 * h6 * (1 / 720) + m8 * h8 * (1 / 40320)
        return jnp.exp(-0.5 * x) * series


@jax.custom_jvp
def _tail(t: Array) -> tuple[Array, Array, Array]:
    rho, ratio = jnp.exp(-0.5 * t * t), mills(t)
    return rho * (1.0 - t * ratio), -rho * ratio, rho


@_tail.defjvp
def _tail_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple, tuple]:
    (t,), (t_dot,) = primals, tangents
    potential, slope, rho = _tail(t)
    return (potential, slope, rho), (slope * t_dot, rho * t_dot, -t * rho * t_dot)


class RBF(Separable):
    """Smooth functions with one lengthscale, or one for each dimension (ARD) if it is a list.

    >>> import aggregauss as ag
    >>> ag.cov(ag.RBF(lengthscale=2.0), ag.Points([0.0]), ag.Points([2.0]))
    Array([[0.60653066]], dtype=float64)
    """

    lengthscale: Float[Array, "..."] = parameter(role="lengthscale")
    variance: Float[Array, ""] = parameter(role="variance")
    profile: ClassVar[Profile] = SquaredExponential()

    def __init__(self, lengthscale: Any = None, variance: Any = None, *, active_dims: Any = None):
        self._declare(lengthscale=lengthscale, variance=variance)
        self.active_dims = dims(active_dims, "RBF")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² exp(-½ |x - y|²), one exponential for all dimensions."""
        scale = per_dim(self.lengthscale, X)
        return self.variance.astype(X.dtype) * jnp.exp(-0.5 * distance.squared(X, Y, scale))
