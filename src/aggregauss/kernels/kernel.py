"""What every kernel offers: its value at points, and its mean over pairs of atoms.

`block(A, B)` is the one entry: the matrix of (mean over a of mean over b of k) for atoms a of A and b of B. Where both
are points it is the kernel's value. Where a kernel knows its integral over boxes it says so in `integrable` and gives
it in `boxes`. Otherwise Gauss-Legendre quadrature on the atoms stands in.
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.kernels import quadrature
from aggregauss.parameters import Parametric
from aggregauss.supports.layout import Atoms

if TYPE_CHECKING:
    from aggregauss.kernels.algebra import Product, Sum

Wide = tuple[bool, ...]


class Kernel(Parametric):
    """A covariance function on R^d."""

    active_dims: tuple[int, ...] | None = eqx.field(static=True)
    stationary: ClassVar[bool] = False  # then k(x, x) is its `variance` everywhere

    @abc.abstractmethod
    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """k(x, y) along the active dimensions."""

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """Means of k over pairs of atoms; called only where `integrable` says yes."""
        raise TypeError(f"{type(self).__name__} has no closed form over boxes.")

    def integrable(self, wide: Wide) -> bool:
        """Whether `boxes` is known for atoms with width in these active dimensions."""
        return False

    def rules(self, wide: Wide) -> list[str]:
        """In words, which formula `block` uses for atoms with width in these dimensions."""
        name = type(self).__name__
        own = wide if self.active_dims is None else tuple(wide[j] for j in self.active_dims)
        if not any(own):
            return [f"{name}: value at points"]
        if self.integrable(own):
            return [f"{name}: closed form over boxes"]
        order = quadrature.order(sum(own))
        return [f"{name}: Gauss-Legendre quadrature, {order} nodes in each of {sum(own)} dimension(s) with width"]

    def block(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """Means of k over all pairs of atoms."""
        return self._means(A.select(self.active_dims), B.select(self.active_dims))

    def own(self, A: Atoms) -> Float[Array, "*n"]:
        """Means of k over each atom paired with itself."""
        A = A.select(self.active_dims)
        if self.stationary and not any(A.wide):
            variance = getattr(self, "variance").astype(A.center.dtype)  # noqa: B009
            return jnp.broadcast_to(variance, A.center.shape[:-1])
        alone = Atoms(A.center[..., None, :], A.width[..., None, :], A.extremes, A.wide)
        return self._means(alone, alone)[..., 0, 0]

    def _means(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        wide = tuple(a or b for a, b in zip(A.wide, B.wide))
        if not any(wide):
            return self.points(A.center, B.center)
        if self.integrable(wide):
            return self.boxes(A, B)
        return quadrature.block(self.points, A, B)

    def check_dim(self, dim: int) -> None:
        """A sentence if the kernel cannot be used with inputs of `dim` dimensions."""
        name = type(self).__name__
        if self.active_dims is not None and max(self.active_dims) >= dim:
            raise ValueError(
                f'{name}: "active_dims" must lie in 0..{dim - 1} for inputs of {dim} dimension(s), '
                f"but is {self.active_dims}."
            )
        own = dim if self.active_dims is None else len(self.active_dims)
        for field, _ in self.marks:
            value = getattr(self, field)
            if value.ndim == 1 and len(value) != own:
                raise ValueError(
                    f'{name}: "{field}" must be one number or {own}, one for each active dimension, '
                    f"but has {len(value)}."
                )

    def touches(self, dim: int) -> frozenset[int]:
        """The input dimensions, of `dim`, that the kernel depends on."""
        return frozenset(range(dim) if self.active_dims is None else self.active_dims)

    def __add__(self, other: "Kernel") -> "Sum":
        from aggregauss.kernels.algebra import Sum

        return Sum(self, other)

    def __mul__(self, other: Any) -> "Product":
        from aggregauss.kernels.algebra import Product

        return Product(self, other)

    def __rmul__(self, factor: Any) -> "Product":
        from aggregauss.kernels.algebra import Product

        return Product(factor, self)


def dims(active_dims: Any, who: str) -> tuple[int, ...] | None:
    """`active_dims` as a tuple of distinct non-negative integers, or None for all."""
    return None if active_dims is None else column_numbers(active_dims, who, "active_dims")


def column_numbers(given: Any, who: str, name: str) -> tuple[int, ...]:
    """`given` as a tuple of distinct non-negative integers."""
    chosen = np.atleast_1d(np.asarray(given))
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1 or len(chosen) == 0 or (chosen < 0).any():
        raise ValueError(f'{who}: "{name}" must be a list of column numbers from 0, but got {given!r}.')
    if len(np.unique(chosen)) != len(chosen):
        raise ValueError(f'{who}: "{name}" must not repeat a column, but got {given!r}.')
    return tuple(int(j) for j in chosen)


def per_dim(value: Float[Array, "..."], X: Float[Array, "*b n d"]) -> Float[Array, " d"]:
    """A scalar or vector parameter as one value for each dimension of `X`, in its precision."""
    return jnp.broadcast_to(value, X.shape[-1:]).astype(X.dtype)
