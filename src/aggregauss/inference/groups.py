"""Bags on their way to the device: random batches, packed into groups of equal shape.

A group holds whole bags, up to a number of atoms and a number of bags; batches of any bags thus run through one
compiled program in bounded memory. Probes of a bag are all of its atoms when they are few, else a fresh sample of them
in proportion to their weights. Where all bags are small and of about one size, each takes a row of atoms, the last of
which may weigh nothing: sums over bags are then sums over rows, and what is known of the atoms is known of the probes.
"""

import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from aggregauss.inference.data import Observations
from aggregauss.inference.sparse import Group
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.supports.layout import Atoms
from aggregauss.supports.support import Support

TARGET, ON_CPU = 1 << 24, 1 << 19  # entries of K = k(atoms, Z) in one group; a CPU gains nothing from large ones
ROUND, FINENESS = 64, 5
SLACK = 1.04  # room that bags of unequal sizes leave in a group
PADDING = Seen(1.0, 1.0, 1.0, 1.0, 0.0, 0.0)  # pyright: ignore[reportArgumentType]
CROWD = 2.0  # how many more bags than the average a group may hold
ROWS = 1.5  # how many more atoms there may be where each bag takes a row of as many as the largest has


@dataclasses.dataclass(frozen=True)
class Shape:
    """How large the groups of one fit are."""

    atoms: int
    bags: int
    probes: int
    dtype: np.dtype
    every_atom: bool = False  # whether all atoms of every bag are probes
    in_rows: bool = False  # whether the atoms are the probes, one row after another


def choose_shape(counts: np.ndarray, batch: int, inducing: int, probes: int, dtype: np.dtype) -> Shape:
    """Room for the largest bag, and otherwise for an even share of a typical batch that memory can hold at once."""
    largest, typical = int(counts.max()), float(counts.mean()) * batch
    target = ON_CPU if jax.default_backend() == "cpu" else TARGET
    room = max(largest, target // max(inducing, 1))
    if largest <= probes and largest <= ROWS * counts.mean():
        bags = -(-batch // -(-batch * largest // room))
        return Shape(bags * largest, bags, largest, dtype, every_atom=True, in_rows=True)
    parts = -(-typical // room)
    atoms = max(largest, int((1.0 if parts == 1 else SLACK) * typical / parts))
    unit = max(ROUND, 1 << max(0, atoms.bit_length() - FINENESS))  # data of about the same size share one program
    atoms = -(-atoms // unit) * unit
    fullest = int(np.searchsorted(np.cumsum(np.sort(counts)), atoms, side="right"))
    bags = min(batch, max(1, fullest), int(np.ceil(CROWD * batch / parts)))
    return Shape(atoms, bags, min(probes, largest), dtype, largest <= probes)


def choose_shapes(
    observations: Observations, batch: int, inducing: int, probes: int, dtype: np.dtype
) -> tuple[Shape, ...]:
    """One for each task, given its share of a batch."""
    counts, task = observations.support.atom_counts, observations.task
    own = [counts] if task is None else [counts[task == t] for t in range(int(task.max()) + 1)]
    return tuple(choose_shape(c, -(-batch * len(c) // len(counts)), inducing, probes, dtype) for c in own)


def epoch_batches(n: int, batch: int, seed: int, epoch: int, task: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """All rows once, in an order that depends on the seed and the epoch alone; of every task an equal share."""
    if batch >= n:
        yield np.arange(n)
        return
    order = np.random.default_rng([seed, epoch]).permutation(n)
    if task is not None:
        steps = -(-n // batch)
        shares = [np.array_split(order[task[order] == t], steps) for t in np.unique(task)]
        yield from (np.sort(np.concatenate(parts)) for parts in zip(*shares))
        return
    for start in range(0, n, batch):
        yield np.sort(order[start : start + batch])


def groups(
    observations: Observations, rows: np.ndarray, shapes: tuple[Shape, ...], rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, Group]]:
    """The chosen bags in few groups of one task each, with their rows."""
    own = np.zeros(len(rows), int) if observations.task is None else observations.task[rows]
    for task in np.unique(own).tolist():
        yield from _of_task(observations, rows[own == task], shapes[task], rng, task)


def _of_task(
    observations: Observations, rows: np.ndarray, shape: Shape, rng: np.random.Generator, task: int
) -> Iterator[tuple[np.ndarray, Group]]:
    """The largest bags first, each where there is most room."""
    counts = observations.support.atom_counts[rows]
    if shape.in_rows:
        counts = np.full_like(counts, shape.probes)
    few = -(-int(counts.sum()) // shape.atoms)
    room, members = [shape.atoms] * few, [[] for _ in range(few)]
    for i in np.argsort(-counts, kind="stable"):
        open_to = [g for g, own in enumerate(members) if room[g] >= counts[i] and len(own) < shape.bags]
        g = max(open_to, key=lambda g: room[g], default=len(room))
        if g == len(room):
            room.append(shape.atoms)
            members.append([])
        room[g] -= int(counts[i])
        members[g].append(int(i))
    for chosen in members:
        own = rows[np.sort(chosen)]
        yield own, pack(observations, own, shape, rng, task)


def pack(observations: Observations, rows: np.ndarray, shape: Shape, rng: np.random.Generator, task: int = 0) -> Group:
    """Some bags as one padded group."""
    chosen = observations[rows]
    support = chosen.support
    atoms, bags, dtype = len(support.owner), len(rows), shape.dtype
    probed, probed_weight, complete = _probes(support, shape.probes, rng)
    index = np.zeros((shape.bags, shape.probes), int)
    index[:bags] = probed
    probe_weight = np.zeros((shape.bags, shape.probes))
    probe_weight[:bags] = probed_weight
    weight, owner, source = np.zeros(shape.atoms), np.full(shape.atoms, shape.bags - 1), np.zeros(shape.atoms, int)
    if shape.in_rows:
        weight, owner, source = probe_weight.ravel(), np.repeat(np.arange(shape.bags), shape.probes), index.ravel()
    else:
        weight[:atoms], owner[:atoms], source[:atoms] = support.effective_weight, support.owner, np.arange(atoms)
    extremes = np.stack([support.width.min(axis=0), support.width.max(axis=0)])

    def device(x: np.ndarray) -> jnp.ndarray:
        return jnp.asarray(x, dtype)

    def at(index: np.ndarray) -> Atoms:
        return Atoms(device(support.center[index]), device(support.width[index]), device(extremes), support.wide)

    def padded(x: np.ndarray, filler: float) -> jnp.ndarray:
        return device(np.concatenate([x, np.full(shape.bags - bags, filler)]))

    seen = Seen(*(padded(x, filler) for x, filler in zip(chosen.seen(), PADDING)))  # pyright: ignore
    return Group(
        at(source),
        device(weight),
        jnp.asarray(owner, np.int32),
        at(index),
        device(probe_weight),
        padded(complete, 1.0),
        seen,
        padded(np.ones(bags), 0.0),
        task,
        shape.every_atom,
        shape.in_rows,
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
