"""A run on disk: what it needs to go on as if it had not stopped."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aggregauss.archive import load, storable, write
from aggregauss.inference.ascent import State


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Saved:
    """A state, the objective so far, and what the way up remembers beside."""

    fingerprint: str
    history: tuple[float, ...]
    leaves: tuple[Any, ...]
    extra: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Reads and writes the file of one run; without a path it does nothing."""

    path: str | Path | None
    fingerprint: str
    every: int

    def read(self, like: State) -> tuple[State, list[float], tuple[Any, ...]] | None:
        """The saved state in the form of `like`, or None if there is no file."""
        if self.path is None or not Path(self.path).exists():
            return None
        try:
            saved = load(self.path)
        except ValueError as problem:
            raise ValueError(
                f'SVI: "checkpoint" {self.path} cannot be read as a saved run. Delete it, or give another "checkpoint".'
            ) from problem
        if not isinstance(saved, Saved) or saved.fingerprint != self.fingerprint:
            raise ValueError(
                f"SVI: {self.path} belongs to another model, other data or other settings. Delete it, or give another "
                '"checkpoint".'
            )
        state = jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(x) for x in saved.leaves])
        return state, list(saved.history), saved.extra

    def write(self, state: State, history: list[float], extra: tuple[Any, ...]) -> None:
        """Replace the file; an interrupted write leaves the old one."""
        if self.path is not None and history:
            leaves = tuple(np.asarray(x) for x in jax.tree.leaves(state))
            write(self.path, Saved(self.fingerprint, tuple(history), leaves, extra))

    def due(self, history: list[float]) -> bool:
        """Whether it is time to write."""
        return self.path is not None and len(history) % self.every == 0


def check_path(path: str | Path) -> None:
    """A sentence if no file can be written there."""
    file = Path(path).resolve()
    if not file.parent.is_dir():
        raise FileNotFoundError(f'SVI: "checkpoint" must lie in a folder that exists, but {file.parent} does not.')
    if file.is_dir():
        raise IsADirectoryError(f'SVI: "checkpoint" must be a file, but {path} is a folder. Give a name in it.')


def fingerprint(words: list[str], arrays: list[Any]) -> str:
    """Of all that determines a run."""
    digest = hashlib.sha256("|".join(words).encode())
    for array in arrays:
        digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()
