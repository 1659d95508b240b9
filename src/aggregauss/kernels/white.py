"""White: k(x, y) = σ² if x = y, else 0: a value of its own at every point. Its mean over any box with width is zero."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels.algebra import Product, Sum
from aggregauss.kernels.kernel import Kernel, Wide, dims
from aggregauss.parameters import parameter
from aggregauss.supports.layout import Atoms


class White(Kernel):
    """A nugget: variation at points that averages out over boxes.

    >>> import aggregauss as ag
    >>> ag.cov(ag.White(2.0), ag.Points([0.0, 1.0]), ag.Points([1.0]))
    Array([[0.],
           [2.]], dtype=float64)
    """

    variance: Float[Array, ""] = parameter(role="noise")

    def __init__(self, variance: Any = None, *, active_dims: Any = None):
        self._declare(variance=variance)
        self.active_dims = dims(active_dims, "White")

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """σ² where all coordinates are equal."""
        return jnp.where(_equal(X, Y), self.variance.astype(X.dtype), 0.0)

    def integrable(self, wide: Wide) -> bool:
        """Always."""
        return True

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """σ² for pairs of equal points, zero as soon as an atom has width."""
        flat = (A.width == 0).all(axis=-1)[..., :, None] & (B.width == 0).all(axis=-1)[..., None, :]
        return jnp.where(flat & _equal(A.center, B.center), self.variance.astype(A.center.dtype), 0.0)


def _equal(X: Array, Y: Array) -> Array:
    same = X[..., :, None, 0] == Y[..., None, :, 0]
    for j in range(1, X.shape[-1]):
        same = same & (X[..., :, None, j] == Y[..., None, :, j])
    return same


def continuous(kernel: Kernel) -> Kernel | None:
    """The kernel without white parts, whose values are of one point alone; None if nothing else is there.

    >>> import aggregauss as ag
    >>> type(continuous(ag.RBF() + 0.1 * ag.White())).__name__, continuous(ag.White())
    ('RBF', None)
    """
    if not isinstance(kernel, Sum | Product):
        return None if isinstance(kernel, White) else kernel
    parts = [continuous(part) for part in kernel.parts]
    kept = [part for part in parts if part is not None]
    if not kept or (isinstance(kernel, Product) and len(kept) < len(parts)):
        return None
    return kept[0] if len(kept) == 1 else Sum(*kept) if isinstance(kernel, Sum) else Product(*kept)
