"""Cosine: k(x, y) = σ² Π_j cos((x_j - y_j) / ℓ_j). Its mean over intervals is cos(d) sinc(p/2) sinc(q/2)."""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels.kernel import dims
from aggregauss.kernels.profile import Profile, Rule, stretched
from aggregauss.kernels.separable import Separable
from aggregauss.parameters import parameter


@dataclasses.dataclass(frozen=True)
class Wave(Profile):
    """ρ(t) = cos t."""

    def value(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """cos t."""
        return jnp.cos(t)

    def rules(self) -> tuple[Rule]:
        """cos(d) sinc(p/2) sinc(q/2)."""
        return (lambda d, p, q, scale: stretched(_mean, d / scale, p / scale, q / scale),)


def _mean(d: Array, p: Array, q: Array) -> Array:
    return jnp.cos(d) * jnp.sinc(p / (2 * jnp.pi)) * jnp.sinc(q / (2 * jnp.pi))


class Cosine(Separable):
    """One undamped wave of length 2π ℓ in each dimension.

    >>> import aggregauss as ag, math
    >>> ag.cov(ag.Cosine(lengthscale=1.0), ag.Points([0.0]), ag.Intervals([-math.pi], [math.pi])).round(9)
    Array([[0.]], dtype=float64)
    """

    lengthscale: Float[Array, "..."] = parameter(role="lengthscale")
    variance: Float[Array, ""] = parameter(role="variance")
    profile: ClassVar[Profile] = Wave()

    def __init__(self, lengthscale: Any = None, variance: Any = None, *, active_dims: Any = None):
        self._declare(lengthscale=lengthscale, variance=variance)
        self.active_dims = dims(active_dims, "Cosine")
