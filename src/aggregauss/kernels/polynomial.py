"""Polynomial: k(x, y) = (σ² x·y + c)^n.

Expanded in monomials, k = Σ_α n!/(α! (n - |α|)!) c^{n-|α|} σ^{2|α|} x^α y^α, so means over boxes need only the moments
of intervals: the mean of x^m over centre z and width w is Σ_j C(m, 2j) z^{m-2j} (w/2)^{2j} / (2j + 1).
"""

import functools
import itertools
import math
import operator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.checks import whole_number
from aggregauss.kernels.kernel import Kernel, Wide, dims
from aggregauss.parameters import parameter
from aggregauss.supports.layout import Atoms


class Polynomial(Kernel):
    """Polynomials of the given degree; `offset` c weighs the lower powers.

    >>> import aggregauss as ag
    >>> ag.cov(ag.Polynomial(degree=2), ag.Points([1.0]), ag.Points([2.0]))
    Array([[9.]], dtype=float64)
    """

    variance: Float[Array, ""] = parameter(role="slope_variance")
    offset: Float[Array, ""] = parameter()
    degree: int = eqx.field(static=True, kw_only=True)

    def __init__(self, degree: int = 2, variance: Any = 1.0, offset: Any = 1.0, *, active_dims: Any = None):
        self._declare(variance=variance, offset=offset)
        self.degree = whole_number(degree, "Polynomial", "degree")
        self.active_dims = dims(active_dims, "Polynomial")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """(σ² x·y + c)^n."""
        return (
            self.variance.astype(X.dtype) * (X @ jnp.swapaxes(Y, -1, -2)) + self.offset.astype(X.dtype)
        ) ** self.degree

    def integrable(self, wide: Wide) -> bool:
        """Always, by moments."""
        return True

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """The sum over monomials of products of moments."""
        variance, offset = self.variance.astype(A.center.dtype), self.offset.astype(A.center.dtype)
        left, right = self._moments(A), self._moments(B)
        out = jnp.zeros((), A.center.dtype)
        for powers in itertools.product(range(self.degree + 1), repeat=len(A.wide)):
            rest = self.degree - sum(powers)
            if rest < 0:
                continue
            ways = math.factorial(self.degree) / math.prod(math.factorial(k) for k in (*powers, rest))
            u, v = (functools.reduce(operator.mul, (m[j][k] for j, k in enumerate(powers))) for m in (left, right))
            out = out + ways * offset**rest * variance ** sum(powers) * u[..., :, None] * v[..., None, :]
        return out

    def _moments(self, atoms: Atoms) -> list[list[Array]]:
        return [
            [_interval_moment(atoms.center[..., j], atoms.width[..., j] / 2, k) for k in range(self.degree + 1)]
            for j in range(len(atoms.wide))
        ]


def _interval_moment(center: Array, half: Array, m: int) -> Array:
    return sum(
        (math.comb(m, 2 * j) / (2 * j + 1) * center ** (m - 2 * j) * half ** (2 * j) for j in range(m // 2 + 1)),
        jnp.zeros_like(center),
    )
