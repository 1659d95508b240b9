"""Saving to one file that holds numbers and names only, never code.

The file is a zip archive: `manifest.json` describes the object as a tree of registered class names and plain values,
and each array is a `.npy` member written without pickling. Reading looks class names up in a table of known classes and
fills their fields; nothing in a file can be executed.
"""

import dataclasses
import io
import json
import os
import zipfile
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from aggregauss.files import whole_file

FORMAT, VERSION = "aggregauss", 1
C = TypeVar("C", bound=type)

_known: dict[str, type] = {}


class _Refused(ValueError):
    """A file that is whole, but not for this release."""


def storable(cls: C) -> C:
    """Class decorator: instances may be written to and read from archives. The class must be a dataclass."""
    _known[cls.__name__] = cls
    return cls


def write(path: str | os.PathLike, value: Any) -> None:
    """Write `value` to `path`; an existing file is replaced only when the new one is complete."""
    arrays: dict[str, np.ndarray] = {}
    manifest = {"format": FORMAT, "version": VERSION, "object": _encode(value, arrays)}
    with whole_file(path) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def load(path: str | os.PathLike) -> Any:
    """Read what `write` (or `Posterior.save`) wrote.

    >>> import aggregauss as ag, tempfile
    >>> post = ag.GP(ag.RBF(2.0)).fit(ag.Points([0.0, 1.0, 2.0]), [0.0, 1.0, 0.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     post.save(f"{folder}/fit.agz")
    ...     again = ag.load(f"{folder}/fit.agz")
    >>> bool((again.predict(ag.Points([0.5])).mean == post.predict(ag.Points([0.5])).mean).all())
    True
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
                raise KeyError("format")
            if manifest["version"] > VERSION:
                raise _Refused(
                    f"load: {path} has format version {manifest['version']}, but this release reads up to {VERSION}. "
                    "Upgrade aggregauss."
                )
            return _decode(manifest["object"], archive)
    except (_Refused, OSError, MemoryError):
        raise
    except Exception as problem:  # a damaged file may break any reader in its way
        line = str(problem).partition("\n")[0]
        raise ValueError(
            f"load: {path} is not a complete aggregauss file ({line}). Save the posterior again."
        ) from None


def _encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return {"tuple": [_encode(v, arrays) for v in value]}
    if isinstance(value, jax.Array | np.ndarray):
        return _encode_array(value, arrays)
    name = type(value).__name__
    if _known.get(name) is not type(value):
        raise TypeError(f"save: {name} cannot be saved. Decorate the class with aggregauss.archive.storable.")
    skipped = getattr(type(value), "not_stored", ())
    fields = {
        f.name: _encode(getattr(value, f.name), arrays) for f in dataclasses.fields(value) if f.name not in skipped
    }
    return {"class": name, "fields": fields}


def _encode_array(value: Any, arrays: dict[str, np.ndarray]) -> dict:
    array = np.asarray(value)
    if array.dtype == object:
        return {"names": [str(v) for v in array]}
    name = f"array{len(arrays)}"
    arrays[name] = array
    return {"array": name, "device": isinstance(value, jax.Array)}


def _decode(node: Any, archive: zipfile.ZipFile) -> Any:
    if not isinstance(node, dict):
        return node
    if "tuple" in node:
        return tuple(_decode(v, archive) for v in node["tuple"])
    if "names" in node:
        return np.array(node["names"])
    if "array" in node:
        array = np.lib.format.read_array(io.BytesIO(archive.read(f"{node['array']}.npy")), allow_pickle=False)
        return jnp.asarray(array) if node["device"] else array
    cls = _known.get(node["class"])
    if cls is None:
        raise _Refused(f'load: the file needs the class "{node["class"]}". Import the module that defines it first.')
    fields = {name: _decode(v, archive) for name, v in node["fields"].items()}
    wanted = {f.name: f for f in dataclasses.fields(cls)}
    if not set(fields) <= set(wanted):
        raise _Refused(
            f'load: "{node["class"]}" has no field "{sorted(set(fields) - set(wanted))[0]}" in this release.'
        )
    made = object.__new__(cls)
    for name, field in wanted.items():
        object.__setattr__(made, name, fields[name] if name in fields else _default(cls, field))
    return made


def _default(cls: type, field: dataclasses.Field) -> Any:
    """Of a field that the file lacks: it is not stored, or younger than the file."""
    if field.name in getattr(cls, "not_stored", ()):
        return None
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise KeyError(f"{cls.__name__}.{field.name}")
    return field.default
