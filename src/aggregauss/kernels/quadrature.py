"""Gauss-Legendre quadrature over atoms: the universal fallback.

Each atom becomes the same weighted points wherever it appears, so the matrices it gives are covariances of weighted
sums of function values: positive semi-definite, and consistent with the kernel at points.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.supports.layout import Atoms

ORDERS = {1: 24, 2: 8, 3: 5, 4: 4}  # nodes along each dimension with width, by how many there are


def order(wide_dims: int) -> int:
    """Number of nodes along each of `wide_dims` dimensions."""
    return ORDERS.get(wide_dims, 3)


def nodes(wide: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets in widths, shape (q, d), and weights that sum to one, of the tensor rule over the wide dimensions."""
    x, w = np.polynomial.legendre.leggauss(order(sum(wide)))
    axes = [(x / 2, w / 2) if is_wide else (np.zeros(1), np.ones(1)) for is_wide in wide]
    offsets = np.stack(np.meshgrid(*(a for a, _ in axes), indexing="ij"), axis=-1).reshape(-1, len(wide))
    weights = np.prod(np.stack(np.meshgrid(*(b for _, b in axes), indexing="ij"), axis=-1), axis=-1).ravel()
    return offsets, weights


def block(points: Callable[[Array, Array], Array], A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
    """Means of a kernel, known at points, over all pairs of atoms: one pair of nodes at a time."""
    dtype = A.center.dtype
    (u, a), (v, b) = nodes(A.wide), nodes(B.wide)
    left, right = np.divmod(np.arange(len(a) * len(b)), len(b))
    steps = (
        jnp.asarray(u[left], dtype),
        jnp.asarray(v[right], dtype),
        jnp.asarray(a[left] * b[right], dtype),
    )

    def add(total: Array, step: tuple[Array, Array, Array]) -> tuple[Array, None]:
        shift_a, shift_b, weight = step
        shape = (1,) * (A.center.ndim - 1) + (-1,)
        left, right = A.center + A.width * shift_a.reshape(shape), B.center + B.width * shift_b.reshape(shape)
        return total + weight * points(left, right), None

    start = jnp.zeros((*A.center.shape[:-1], B.center.shape[-2]), dtype)
    return jax.lax.scan(jax.checkpoint(add), start, steps)[0]
