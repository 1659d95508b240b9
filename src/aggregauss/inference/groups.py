"""Bags on their way to the device: random batches, packed into groups of equal shape.

A group holds whole bags, up to a number of atoms and a number of bags; batches of any bags thus run through one
compiled program in bounded memory. Probes of a bag are all of its atoms when they are few, else a fresh sample of them
in proportion to their weights.
"""

import dataclasses
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from aggregauss.inference.data import Observations
from aggregauss.inference.sparse import Group
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.supports.layout import Atoms
from aggregauss.supports.support import Support

TARGET = 1 << 24  # entries of K = k(atoms, Z) in one group
ROUND = 64


@dataclasses.dataclass(frozen=True)
class Shape:
    """How large the groups of one fit are."""

    atoms: int
    bags: int
    probes: int
    dtype: np.dtype


def choose_shape(counts: np.ndarray, batch: int, inducing: int, probes: int, dtype: np.dtype) -> Shape:
    """Room for the largest bag, and otherwise for as many atoms as memory should hold at once."""
    largest = int(counts.max())
    wanted = min(int(np.sort(counts)[-batch:].sum()), max(largest, TARGET // max(inducing, 1)))
    atoms = -(-wanted // ROUND) * ROUND
    bags = min(batch, max(1, int(np.searchsorted(np.cumsum(np.sort(counts)), atoms, side="right"))))
    return Shape(atoms, bags, min(probes, largest), dtype)


def epoch_batches(n: int, batch: int, seed: int, epoch: int) -> Iterator[np.ndarray]:
    """All rows once, in an order that depends on the seed and the epoch alone."""
    if batch >= n:
        yield np.arange(n)
        return
    order = np.random.default_rng([seed, epoch]).permutation(n)
    for start in range(0, n, batch):
        yield np.sort(order[start : start + batch])


def groups(observations: Observations, rows: np.ndarray, shape: Shape, rng: np.random.Generator) -> Iterator[Group]:
    """The chosen bags in as few groups as they fit."""
    counts = observations.support.atom_counts[rows]
    start, used = 0, 0
    for stop in range(len(rows) + 1):
        full = stop == len(rows) or used + counts[stop] > shape.atoms or stop - start == shape.bags
        if full and stop > start:
            yield pack(observations, rows[start:stop], shape, rng)
            start, used = stop, 0
        if stop < len(rows):
            used += int(counts[stop])


def pack(observations: Observations, rows: np.ndarray, shape: Shape, rng: np.random.Generator) -> Group:
    """Some bags as one padded group."""
    support = observations.support[rows]
    atoms, bags, dtype = len(support.owner), len(rows), shape.dtype
    weight = np.zeros(shape.atoms)
    weight[:atoms] = support.effective_weight
    owner = np.full(shape.atoms, shape.bags - 1, np.int32)
    owner[:atoms] = support.owner
    source = np.zeros(shape.atoms, int)
    source[:atoms] = np.arange(atoms)

    chosen, chosen_weight, complete = _probes(support, shape.probes, rng)
    index = np.zeros((shape.bags, shape.probes), int)
    index[:bags] = chosen
    probe_weight = np.zeros((shape.bags, shape.probes))
    probe_weight[:bags] = chosen_weight
    extremes = np.stack([support.width.min(axis=0), support.width.max(axis=0)])

    def device(x: np.ndarray) -> jnp.ndarray:
        return jnp.asarray(x, dtype)

    def at(index: np.ndarray) -> Atoms:
        return Atoms(device(support.center[index]), device(support.width[index]), device(extremes), support.wide)

    def padded(x: np.ndarray, filler: float) -> jnp.ndarray:
        return device(np.concatenate([x, np.full(shape.bags - bags, filler)]))

    seen = Seen(
        padded(observations.y[rows], 1.0),
        padded(np.ones(bags) if observations.counts is None else observations.counts[rows], 1.0),
        padded(observations.noise_variance[rows], 1.0),
        padded(support.square_weight, 1.0),
    )
    return Group(
        at(source),
        device(weight),
        jnp.asarray(owner),
        at(index),
        device(probe_weight),
        padded(complete, 1.0),
        seen,
        padded(np.ones(bags), 0.0),
    )


def _probes(support: Support, most: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each bag: indices of atoms, their weights, and whether these are all atoms."""
    counts, weight = support.atom_counts, support.effective_weight
    first = np.cumsum(counts) - counts
    complete = counts <= most
    slot = np.arange(most)[None, :]
    index = first[:, None] + np.minimum(slot, counts[:, None] - 1)
    probe_weight = np.where(slot < counts[:, None], weight[index], 0.0)
    large = np.flatnonzero(~complete)
    if len(large):
        above = np.cumsum(weight)
        mass = above[first[large] + counts[large] - 1] - (above[first[large]] - weight[first[large]])
        below = above[first[large]] - weight[first[large]]
        targets = below[:, None] + rng.uniform(size=(len(large), most)) * mass[:, None]
        drawn = np.searchsorted(above, targets, side="right")
        last = (first + counts - 1)[large][:, None]
        index[large] = np.clip(drawn, first[large][:, None], last)
        probe_weight[large] = (mass / np.sqrt(most * (most - 1)))[:, None]
    return index, probe_weight, complete.astype(float)
