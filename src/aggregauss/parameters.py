"""Parameters: plain arrays in natural units, with what an optimiser may do to them kept beside.

A formula reads `self.lengthscale` and sees an array. Whether it is positive is metadata on the field; whether it is
fixed, bounded or has a prior is a `Mark` that the module carries as static data. Both are read once, at the
optimiser's edge, by `pack` and `unpack`.

>>> import aggregauss as ag
>>> kernel = ag.RBF(lengthscale=ag.fixed(5.0), variance=ag.param(2.0, prior=ag.HalfNormal(3.0)))
>>> kernel.lengthscale
Array(5., dtype=float64)
>>> [p.path for p in parameters(kernel) if not p.mark.fixed]
['variance']
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from aggregauss.archive import storable
from aggregauss.priors import Prior

T = TypeVar("T")
P = TypeVar("P", bound="Parametric")

LOG_REACH = 25.0  # how far, in log units, a positive parameter may travel from where its search starts


@storable
@dataclasses.dataclass(frozen=True)
class Mark:
    """What the optimiser may do to one parameter."""

    fixed: bool = False
    start_from_data: bool = False
    prior: Prior | None = None
    bounds: tuple[float, float] | None = None


@dataclasses.dataclass(frozen=True)
class Param:
    """A parameter's value together with its mark: what `fixed` and `param` return."""

    value: Any
    mark: Mark


def fixed(value: Any) -> Param:
    """A parameter that is not learned."""
    return Param(value, Mark(fixed=True))


def param(value: Any = None, *, prior: Prior | None = None, bounds: tuple[Any, Any] | None = None) -> Param:
    """A learned parameter with a prior density or bounds; `value` is where its search starts.

    >>> param(5.0, bounds=(1.0, 15.0)).mark.bounds
    (1.0, 15.0)
    """
    if prior is not None and not isinstance(prior, Prior):
        raise TypeError(f'param: "prior" must be a prior such as LogNormal(1.0, 0.5), but got {prior!r}.')
    if bounds is None:
        return Param(value, Mark(prior=prior))
    low, high = map(float, bounds)
    if not low < high:
        raise ValueError(f'param: "bounds" must be (low, high) with low < high, but got {bounds}.')
    return Param(value, Mark(prior=prior, bounds=(low, high)))


def parameter(constraint: str = "positive", role: str = "other") -> Any:
    """A dataclass field that holds a learnable array.

    `constraint` is "positive" or "real". `role` ("lengthscale", "variance", "noise", "level", "slope", "other") says
    how a starting value can be read off the data.
    """
    return eqx.field(metadata={"constraint": constraint, "role": role})


class Parametric(eqx.Module):
    """A module with learnable fields. Subclasses call `_declare` in their initialiser."""

    marks: tuple[tuple[str, Mark], ...] = eqx.field(static=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        storable(cls)

    def _declare(self, **given: Any) -> None:
        """Set each field to a plain array and remember its mark. None means: start from the data."""
        marks = []
        for name, value in given.items():
            array, mark = _settle(type(self), name, value)
            setattr(self, name, array)
            marks.append((name, mark))
        self.marks = tuple(marks)

    def replace(self: P, changes: dict[str, Any]) -> P:
        """A copy in which parameters, named by path, have other values or marks.

        >>> import aggregauss as ag
        >>> model = ag.GP(ag.RBF()).replace({"kernel.lengthscale": ag.fixed(3.0)})
        >>> model.kernel.lengthscale
        Array(3., dtype=float64)
        """
        known = [p.path for p in parameters(self)]
        module = self
        for path, value in changes.items():
            if path not in known:
                raise KeyError(f'replace: there is no parameter "{path}". The parameters are {", ".join(known)}.')
            module = _replace(module, re.findall(r"[^.\[\]]+", path), value)
        return module

    def freeze(self: P, *paths: str) -> P:
        """A copy in which the named parameters (all of them, if none is named) keep their values."""
        chosen = {p.path: p.value for p in parameters(self)}
        return self.replace({path: fixed(chosen.get(path)) for path in (paths or chosen)})


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a tree of modules, as `parameters` lists it."""

    path: str
    value: Array
    constraint: str
    role: str
    mark: Mark
    owner: Parametric


def parameters(tree: Any) -> tuple[Parameter, ...]:
    """Every parameter of a model, in a fixed order."""
    return tuple(_walk(tree, ""))


def sizes(tree: Any) -> np.ndarray:
    """How much of each packed parameter is a large change: one, unless the model knows better."""
    known = tree.parameter_sizes() if hasattr(tree, "parameter_sizes") else {}
    parts = [np.broadcast_to(known.get(p.path, 1.0), p.value.shape).ravel() for p in learned(tree)]
    return np.concatenate([np.zeros(0), *parts])


def log_prior(tree: Any) -> Float[Array, ""]:
    """Sum of the log prior densities of the learned parameters, in natural units."""
    terms = [jnp.sum(p.mark.prior.log_prob(p.value)) for p in parameters(tree) if p.mark.prior and not p.mark.fixed]
    return sum(terms, jnp.zeros(()))


def pack(tree: Any) -> Float[Array, " p"]:
    """The learned parameters as one unconstrained vector: logarithms of the positive ones."""
    parts = [_to_free(p.value, p.constraint).ravel() for p in learned(tree)]
    return jnp.concatenate(parts) if parts else jnp.zeros(0)


def unpack(tree: T, vector: Float[Array, " p"]) -> T:
    """The tree with its learned parameters read from `vector`, the inverse of `pack`."""
    values, start = {}, 0
    for p in learned(tree):
        values[p.path] = _from_free(vector[start : start + p.value.size], p.constraint).reshape(p.value.shape)
        start += p.value.size
    return with_values(tree, values)


def bounds(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the vector that `pack` makes."""
    low, high = [], []
    for p in learned(tree):
        centre = np.asarray(_to_free(p.value, p.constraint)).ravel()
        lo, hi = -np.inf, np.inf
        if p.constraint == "positive":
            lo, hi = centre - LOG_REACH, centre + LOG_REACH
        if p.mark.bounds is not None:
            lo, hi = (np.asarray(_to_free(jnp.asarray(b, float), p.constraint)) for b in p.mark.bounds)
        low.append(np.broadcast_to(lo, centre.shape))
        high.append(np.broadcast_to(hi, centre.shape))
    return (np.concatenate(low), np.concatenate(high)) if low else (np.zeros(0), np.zeros(0))


def with_values(tree: T, values: dict[str, Array]) -> T:
    """The tree with other values at the given paths; marks stay as they are."""

    def swap(path: tuple, leaf: Any) -> Any:
        return values.get(_name(path), leaf)

    return jax.tree_util.tree_map_with_path(swap, tree)


def settled(tree: T) -> T:
    """The tree after a fit: a later fit starts from its values rather than from the data."""
    if not isinstance(tree, Parametric):
        if isinstance(tree, tuple):
            return tuple(settled(part) for part in tree)  # pyright: ignore[reportReturnType]
        return tree
    changes = {f.name: settled(getattr(tree, f.name)) for f in dataclasses.fields(tree) if f.name != "marks"}
    changes["marks"] = tuple((n, dataclasses.replace(m, start_from_data=False)) for n, m in tree.marks)
    return copy_with(tree, **changes)


def learned(tree: Any) -> list[Parameter]:
    """Those that the optimiser moves, in the order in which `pack` has them."""
    return [p for p in parameters(tree) if not p.mark.fixed]


def _walk(tree: Any, prefix: str) -> Iterator[Parameter]:
    if isinstance(tree, tuple):
        for i, part in enumerate(tree):
            yield from _walk(part, f"{prefix}[{i}]")
    if not isinstance(tree, Parametric):
        return
    marks = dict(tree.marks)
    for field in dataclasses.fields(tree):
        path = f"{prefix}.{field.name}" if prefix else field.name
        value = getattr(tree, field.name)
        if field.name in marks:
            kind = field.metadata
            yield Parameter(path, value, kind["constraint"], kind["role"], marks[field.name], tree)
        elif not field.metadata.get("static", False):
            yield from _walk(value, path)


def _settle(owner: type, name: str, given: Any) -> tuple[Array, Mark]:
    value, mark = (given.value, given.mark) if isinstance(given, Param) else (given, Mark())
    metadata = {f.name: f for f in dataclasses.fields(owner)}[name].metadata  # pyright: ignore[reportArgumentType]
    positive = metadata["constraint"] == "positive"
    if value is None:
        value, mark = (1.0 if positive else 0.0), dataclasses.replace(mark, start_from_data=True)
    try:
        array = jnp.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f'{owner.__name__}: "{name}" must be a number or a list of numbers, but got {value!r}.'
        ) from None
    if not isinstance(array, Tracer):
        _check_value(owner.__name__, name, np.asarray(array), metadata, mark)
    return array, mark


def _check_value(who: str, name: str, array: np.ndarray, metadata: Any, mark: Mark) -> None:
    positive = metadata["constraint"] == "positive"
    if array.ndim > 1:
        raise ValueError(f'{who}: "{name}" must be a number or a list of numbers, but it has shape {array.shape}.')
    zero_is_fine = mark.fixed and (name == "variance" or metadata["role"] == "noise")
    bad = ~np.isfinite(array) | (positive & ~(array > 0) & ~(zero_is_fine & (array == 0)))
    if bad.any():
        wanted = "positive and finite" if positive else "finite"
        raise ValueError(f'{who}: "{name}" must be {wanted}, but got {array[bad].ravel()[0]}.')
    if mark.bounds is not None and not np.all((mark.bounds[0] <= array) & (array <= mark.bounds[1])):
        if mark.start_from_data:
            return
        raise ValueError(f'{who}: "{name}" must start inside its bounds {mark.bounds}, but got {array}.')


def _to_free(value: Array, constraint: str) -> Array:
    return jnp.log(value) if constraint == "positive" else value


def _from_free(value: Array, constraint: str) -> Array:
    return jnp.exp(value) if constraint == "positive" else value


def _name(path: tuple) -> str:
    return jax.tree_util.keystr(path).lstrip(".")


def _replace(module: Any, steps: list[str], value: Any) -> Any:
    head, *rest = steps
    if isinstance(module, tuple):
        index = int(head)
        return (*module[:index], _replace(module[index], rest, value), *module[index + 1 :])
    if rest:
        return copy_with(module, **{head: _replace(getattr(module, head), rest, value)})
    array, mark = _settle(type(module), head, value)
    marks = tuple((name, mark if name == head else old) for name, old in module.marks)
    return copy_with(module, **{head: array, "marks": marks})


def copy_with(module: T, **changes: Any) -> T:
    """A copy of a module with some fields replaced, without running its initialiser."""
    copy = object.__new__(type(module))
    for field in dataclasses.fields(cast(Any, module)):
        object.__setattr__(copy, field.name, changes.get(field.name, getattr(module, field.name)))
    return copy
