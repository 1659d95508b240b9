"""Ragged bags as flat arrays of one size, so that every batch runs the same compiled step."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from aggregauss.supports.support import Support


class Batch(NamedTuple):
    """Some bags and their individuals, then rows that only fill up: weights and features of zero, no `bag`."""

    x: Float[Array, "N d"]
    weight: Float[Array, " N"]
    owner: Int[Array, " N"]
    share: Float[Array, " N"]  # one over the number of individuals in the bag
    features: Float[Array, "N p"]
    y: Float[Array, " b"]
    bag: Bool[Array, " b"]
    bag_features: Float[Array, "b q"]

    def totals(self, values: Float[Array, " N"]) -> Float[Array, " b"]:
        """The sum of the values of each bag's individuals."""
        return jax.ops.segment_sum(values, self.owner, len(self.y), indices_are_sorted=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Bagged:
    """Bags with their responses on the host, and random features for each penalty that is wanted."""

    support: Support
    y: np.ndarray
    features: np.ndarray  # (individuals, p), no columns without a manifold penalty
    bag_features: np.ndarray  # (n, q), no columns without a bag manifold penalty

    def whole(self) -> Batch:
        """All bags at once."""
        return self.batch(np.arange(len(self.y)), len(self.support.owner), len(self.y))

    def epoch(self, batch_size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """The bags in random order, in batches whose sizes differ by at most one bag."""
        n = len(self.y)
        count = -(-n // batch_size)
        bags = -(-n // count)
        individuals = int(np.sort(self.support.atom_counts)[-bags:].sum())
        for rows in np.array_split(rng.permutation(n), count):
            yield self.batch(rows, individuals, bags)

    def batch(self, rows: np.ndarray, individuals: int, bags: int) -> Batch:
        """The bags in `rows`, filled up to the given numbers of individuals and of bags."""
        counts = self.support.atom_counts[rows]
        first = np.searchsorted(self.support.owner, rows)
        atoms = np.concatenate([np.arange(i, i + count) for i, count in zip(first, counts)])
        owner = np.full(individuals, bags - 1)
        owner[: len(atoms)] = np.repeat(np.arange(len(rows)), counts)
        return Batch(
            x=_filled(self.support.center, atoms, individuals),
            weight=_filled(self.support.effective_weight, atoms, individuals),
            owner=jnp.asarray(owner),
            share=_filled((1 / self.support.atom_counts)[self.support.owner], atoms, individuals),
            features=_filled(self.features, atoms, individuals),
            y=_filled(self.y, rows, bags),
            bag=jnp.arange(bags) < len(rows),
            bag_features=_filled(self.bag_features, rows, bags),
        )


def bag_means(values: np.ndarray, support: Support) -> np.ndarray:
    """The mean over each bag's individuals, all alike whatever their weights."""
    return (
        np.add.reduceat(values, np.searchsorted(support.owner, np.arange(support.size))) / support.atom_counts[:, None]
    )


def _filled(values: np.ndarray, rows: np.ndarray, length: int) -> Array:
    """The chosen rows, then zeros."""
    out = np.zeros((length, *values.shape[1:]))
    np.take(values, rows, axis=0, out=out[: len(rows)], mode="clip")
    return jnp.asarray(out)
