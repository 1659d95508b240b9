"""Sums and products of kernels. A number times a kernel is a product with a constant kernel."""

import abc
import functools
import operator
from collections.abc import Iterable
from typing import Any

from jaxtyping import Array, Float

from aggregauss.kernels.constant import ConstantKernel
from aggregauss.kernels.kernel import Kernel, Wide
from aggregauss.parameters import Param
from aggregauss.supports.layout import Atoms, at_points


class _Composite(Kernel):
    """A kernel made of others, each with its own rule over boxes."""

    parts: tuple[Kernel, ...]

    def _combine(self, parts: tuple[Any, ...]) -> None:
        self.parts = tuple(inner for part in parts for inner in self._flat(part))
        self.active_dims, self.marks = None, ()

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """The parts at points."""
        return self.boxes(at_points(X), at_points(Y))

    @abc.abstractmethod
    def _join(self, values: Iterable[Array]) -> Array:
        """Sum or product."""

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """The parts, joined."""
        return self._join(part.block(A, B) for part in self.parts)

    def own(self, A: Atoms) -> Float[Array, "*n"]:
        """The parts, joined, where each has its own rule."""
        return self._join(part.own(A) for part in self.parts) if self.integrable(A.wide) else super().own(A)

    def touches(self, dim: int) -> frozenset[int]:
        """Whatever some part depends on."""
        return frozenset().union(*(part.touches(dim) for part in self.parts))

    def check_dim(self, dim: int) -> None:
        """Each part's own check."""
        for part in self.parts:
            part.check_dim(dim)

    def rules(self, wide: Wide) -> list[str]:
        """The rule of each part, or of the whole where it is integrated as one."""
        if any(wide) and not self.integrable(wide):
            return super().rules(wide)
        return [rule for part in self.parts for rule in part.rules(wide)]

    def _flat(self, part: Any) -> tuple[Kernel, ...]:
        """Nested sums, or nested products, as one."""
        if isinstance(part, type(self)):
            return part.parts
        if isinstance(part, Kernel):
            return (part,)
        if isinstance(self, Product) and isinstance(part, int | float | Param):
            return (ConstantKernel(part),)
        raise TypeError(
            f"{type(self).__name__}: every part must be a kernel, but got {type(part).__name__}. "
            "A constant level is ConstantKernel; Constant is a mean function."
        )


class Sum(_Composite):
    """k_1 + k_2 + ...: independent functions that add up.

    >>> import aggregauss as ag
    >>> [part.rules((True,))[0] for part in (ag.RBF() + ag.RationalQuadratic()).parts]  # doctest: +ELLIPSIS
    ['RBF: closed form over boxes', 'RationalQuadratic: Gauss-Legendre quadrature...']
    """

    def __init__(self, *parts: Kernel):
        self._combine(parts)

    def integrable(self, wide: Wide) -> bool:
        """Always: the mean of a sum is the sum of the means."""
        return True

    def _join(self, values: Iterable[Array]) -> Array:
        return functools.reduce(operator.add, values)


class Product(_Composite):
    """k_1 · k_2 · ...; over boxes it factorises if no two parts share a dimension with width.

    >>> import aggregauss as ag
    >>> space_time = 2.0 * ag.RBF(active_dims=[0, 1]) * ag.Matern32(active_dims=[2])
    >>> space_time.integrable((True, True, True)), (ag.RBF() * ag.Cosine()).integrable((True,))
    (True, False)
    """

    def __init__(self, *parts: Any):
        self._combine(parts)

    def integrable(self, wide: Wide) -> bool:
        """If the parts have no dimension with width in common."""
        used = [j for part in self.parts for j in part.touches(len(wide)) if wide[j]]
        return len(used) == len(set(used))

    def _join(self, values: Iterable[Array]) -> Array:
        return functools.reduce(operator.mul, values)
