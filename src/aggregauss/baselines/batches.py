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
    """Some bags: N individuals with their owners, then rows that only fill up."""

    x: Float[Array, "N d"]
    weight: Float[Array, " N"]
    owner: Int[Array, " N"]
    individual: Bool[Array, " N"]
    y: Float[Array, " b"]
    bag: Bool[Array, " b"]
    bag_features: Float[Array, "b p"]

    def totals(self, values: Float[Array, "N *k"]) -> Float[Array, "b *k"]:
        """The sum of the values of each bag's individuals."""
        return jax.ops.segment_sum(values, self.owner, len(self.y), indices_are_sorted=True)

    @property
    def squares(self) -> Float[Array, " b"]:
        """Σ w_i² in each bag, one where a row only fills up."""
        return jnp.where(self.bag, self.totals(self.weight**2), 1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Bagged:
    """Bags with their responses and, where p > 0, features of whole bags, on the host."""

    support: Support
    y: np.ndarray
    bag_features: np.ndarray  # (n, p)

    def whole(self) -> Batch:
        """All bags at once."""
        return self._batch(np.arange(len(self.y)), len(self.support.owner), len(self.y))

    def epoch(self, batch_size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """The bags in random order, in batches whose sizes differ by at most one bag."""
        n = len(self.y)
        count = -(-n // batch_size)
        bags = -(-n // count)
        individuals = int(np.sort(self.support.atom_counts)[-bags:].sum())
        for rows in np.array_split(rng.permutation(n), count):
            yield self._batch(rows, individuals, bags)

    def _batch(self, rows: np.ndarray, individuals: int, bags: int) -> Batch:
        part = self.support[rows]
        spare, spare_bags = individuals - len(part.owner), bags - len(rows)
        return Batch(
            x=jnp.asarray(np.pad(part.center, ((0, spare), (0, 0)))),
            weight=jnp.asarray(np.pad(part.effective_weight, (0, spare))),
            owner=jnp.asarray(np.pad(part.owner, (0, spare), constant_values=bags - 1)),
            individual=jnp.arange(individuals) < len(part.owner),
            y=jnp.asarray(np.pad(self.y[rows], (0, spare_bags))),
            bag=jnp.arange(bags) < len(rows),
            bag_features=jnp.asarray(np.pad(self.bag_features[rows], ((0, spare_bags), (0, 0)))),
        )
