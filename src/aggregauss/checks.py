"""Sentences for bad input: what is wrong, where, what was expected, what to do."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

BETWEEN = ("aggregauss", "equinox", "jaxtyping")  # packages whose frames stand between a user's line and a warning


def warn(message: str) -> None:
    """A warning that points at the user's line, whatever called what inside the package."""
    depth = 1
    while sys._getframe(depth).f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        depth += 1
    warnings.warn(message, stacklevel=depth + 1)


@contextlib.contextmanager
def of_task(task: str) -> Iterator[None]:
    """Sentences that are said within name the task."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f'task "{task}": {error}') from error


def as_vector(x: Any, who: str, name: str, length: int | None = None, infinite: bool = False) -> np.ndarray:
    """A float64 vector, finite unless it may be `infinite`, or a sentence that says which row is not."""
    array = as_numbers(x, who, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0:
        array = array[None]
    if array.ndim != 1:
        raise ValueError(f'{who}: "{name}" must be one number per row, but it has shape {array.shape}.')
    if length is not None and len(array) != length:
        raise ValueError(
            f'{who}: "{name}" must have one value per row, but it has {len(array)} values for {length} rows.'
        )
    return _finite(array, who, name, infinite)


def as_rows(x: Any, who: str, name: str, length: int, infinite: bool = False) -> np.ndarray:
    """A vector of one number for each row, where one alone is that of all."""
    array = as_numbers(x, who, name)
    if array.ndim == 0:
        return np.full(length, as_vector(array, who, name, infinite=infinite))
    return as_vector(array, who, name, length, infinite)


def as_matrix(x: Any, who: str, name: str) -> np.ndarray:
    """A finite float64 matrix with one row per location; a flat list means one dimension."""
    array = as_numbers(x, who, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f'{who}: "{name}" must be a table with one row per location and one column per dimension, '
            f"but it has shape {array.shape}."
        )
    if len(array) == 0:
        raise ValueError(f'{who}: "{name}" is empty. Give at least one row.')
    return _finite(array, who, name)


def one_of(value: Any, options: tuple[str, ...], who: str, name: str) -> Any:
    """`value`, when it is one of the options."""
    if value not in options:
        listed = " or ".join(f'"{option}"' for option in options)
        raise ValueError(f'{who}: "{name}" must be {listed}, but got {value!r}.')
    return value


def whole_number(value: Any, who: str, name: str, least: int = 1) -> int:
    """`value` as an int of at least `least`."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f'{who}: "{name}" must be a whole number of at least {least}, but got {value!r}.')
    return int(value)


def as_seed(value: Any) -> int:
    """A whole number for generators of random numbers, from such a number or a JAX key."""
    import jax

    if is_key(value):
        return int(jax.random.bits(value, dtype="uint32"))
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**32:
        raise ValueError(
            f'fit: "seed" must be a whole number from 0 to {2**32 - 1} or a JAX key, but got {_shown(value)}. The same '
            "seed gives the same fit."
        )
    return int(value)


def as_key(value: Any, who: str) -> Any:
    """A JAX key, from one or from a whole number."""
    import jax

    if is_key(value):
        return value
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f'{who}: "key" must be a whole number or a JAX key, but got {_shown(value)}.')
    return jax.random.key(int(value))


def is_key(value: Any) -> bool:
    """Whether a value is one JAX key, of the new kind or the old."""
    import jax
    import jax.numpy as jnp

    if not isinstance(value, jax.Array):
        return False
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return value.ndim == 0
    return value.dtype == jnp.uint32 and value.shape == jax.random.PRNGKey(0).shape


def positive_number(value: Any, who: str, name: str, most: float = np.inf) -> float:
    """`value` as a finite float above zero, and no larger than `most`."""
    value = _plain(value)
    good = isinstance(value, int | float | np.number) and 0 < value <= most and value < np.inf
    if not good:
        limit = "" if most == np.inf else f" and at most {most:g}"
        raise ValueError(f'{who}: "{name}" must be a positive number{limit}, but got {value!r}.')
    return float(value)


def share_of_one(value: Any, who: str, name: str) -> float:
    """`value` as a float of at least zero and less than one."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < 1:
        raise ValueError(f'{who}: "{name}" must be at least 0 and less than 1, but got {value!r}.')
    return float(value)


def probability(value: Any, who: str, name: str) -> float:
    """`value` as a float between zero and one, the ends excluded."""
    value = _plain(value)
    if not (isinstance(value, int | float | np.number) and 0.0 < value < 1.0):
        raise ValueError(f'{who}: "{name}" must lie strictly between 0 and 1, but got {value!r}.')
    return float(value)


def as_names(x: Any, who: str, name: str) -> np.ndarray:
    """A vector of names of one kind, none of them missing."""
    names = np.asarray(x, dtype=None if hasattr(x, "dtype") else object)
    missing = names != names if names.dtype.kind in "fmM" else np.zeros(names.shape, bool)
    if names.dtype == object and names.ndim == 1:
        kinds = [_kind(value) for value in names]
        missing = np.array([kind == "missing" for kind in kinds], bool)
        other = np.array([kind != kinds[0] for kind in kinds], bool)
        if not missing.any() and other.any():
            row = first_bad(other)[0]
            raise TypeError(
                f'{who}: "{name}" must hold names of one kind, but row 0 is {names[0]!r} and row {row} is '
                f"{names[row]!r}. Write all of them as numbers, or all as text."
            )
        names = names if missing.any() else np.asarray(names.tolist())
    if missing.any():
        raise ValueError(
            f'{who}: "{name}" must have a name in every row, but row {first_bad(missing)[0]} has none. Drop the '
            f"{missing.sum()} such row(s), or give them a name."
        )
    return names


def kind_of(value: Any) -> str:
    """What a value is, in words: a class where an instance was wanted often lacks its brackets."""
    return f"the class {value.__name__}, without brackets" if isinstance(value, type) else type(value).__name__


def first_bad(bad: np.ndarray) -> tuple[int, ...]:
    """Index of the first True."""
    return tuple(int(i) for i in np.argwhere(bad)[0])


def place(index: tuple[int, ...]) -> str:
    """An index in words."""
    return f"row {index[0]}" + (f", dimension {index[1]}" if len(index) > 1 else "")


def _kind(value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return "missing"
    return "number" if isinstance(value, int | float | np.number) else "text" if isinstance(value, str) else "other"


def as_numbers(x: Any, who: str, name: str) -> np.ndarray:
    """Floats of any shape; what is missing becomes not a number."""
    if x is None:
        raise TypeError(f'{who}: "{name}" must hold numbers, but is None.')
    try:
        if np.iscomplexobj(x):
            raise TypeError
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f'{who}: "{name}" must hold numbers only, in rows of equal length. Convert or drop what is not.'
        ) from None


def _plain(value: Any) -> Any:
    """The number in an array without dimensions."""
    number = getattr(value, "ndim", None) == 0 and getattr(value.dtype, "kind", "") in "iuf"
    return value.item() if number else value


def _shown(value: Any) -> str:
    return f"an array of shape {value.shape}" if getattr(value, "shape", ()) else repr(value)


def _finite(array: np.ndarray, who: str, name: str, infinite: bool = False) -> np.ndarray:
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        index = first_bad(bad)
        closing = "; close open-ended classes at a finite bound" if np.isinf(array[index]) else ""
        raise ValueError(
            f'{who}: "{name}" must be {"numbers" if infinite else "finite"}, but {place(index)} is {array[index]}. '
            f"Remove or fill in the {bad.sum()} such value(s){closing}."
        )
    return array
