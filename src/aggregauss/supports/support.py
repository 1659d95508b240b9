"""Where a number was measured: weighted bags of atoms.

An atom is an axis-parallel box whose sides may have no width; a point is a box with no width at all. The i-th support
is the measure

    μ_i = Σ_j w_j · Uniform(atom_j),   over the atoms j that i owns,

so that ∫ h dμ_i = Σ_j w_j · (mean of h over atom j). `measure="total"` (extensive: counts, deaths, rainfall in mm)
takes this integral; `measure="mean"` (intensive: rates, averages, densities) divides it by the mass Σ_j w_j.
"""

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from aggregauss.archive import storable
from aggregauss.checks import one_of

Measure = Literal["total", "mean"]
MEASURES = ("total", "mean")
SAMPLE = 20_000  # individuals that show what is typical


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Support(metaclass=abc.ABCMeta):
    """A batch of n supports, as one ragged array of atoms.

    Make one with `Points`, `Intervals`, `Boxes`, `Bags`, `Polygons`, `Polytopes` or `Product`. Supports can be
    indexed like an array and joined with `concatenate`.

    Atoms may also stay elsewhere, as with `ParquetBags`: a class registered as a virtual subclass offers everything
    but what is one number for each atom. Code that keeps to counts, masses, `sample` and `[rows]` works with both.
    """

    center: np.ndarray  # (atoms, d)
    width: np.ndarray  # (atoms, d), zero where an atom has no width
    owner: np.ndarray  # (atoms,), sorted: which support each atom belongs to
    weight: np.ndarray  # (atoms,), volumes or the user's weights
    size: int  # n
    measure: Measure
    kind: str = "Support"
    labels: np.ndarray | None = None  # (n,), names of the rows
    geometry: np.ndarray | None = None  # (n,), shapes to draw

    not_stored: ClassVar[tuple[str, ...]] = ("geometry",)

    def __post_init__(self) -> None:
        one_of(self.measure, MEASURES, self.kind, "measure")

    @property
    def dim(self) -> int:
        """Number of input dimensions."""
        return self.center.shape[1]

    @property
    def wide(self) -> tuple[bool, ...]:
        """Which dimensions have width in some atom."""
        return tuple(bool(self.width[:, j].any()) for j in range(self.dim))

    @property
    def mass(self) -> np.ndarray:
        """Volume of each support, or the sum of its weights."""
        return np.bincount(self.owner, self.weight, minlength=self.size)

    @property
    def atom_counts(self) -> np.ndarray:
        """Number of atoms of each support."""
        return np.bincount(self.owner, minlength=self.size)

    @property
    def effective_weight(self) -> np.ndarray:
        """What each atom's mean is multiplied by: its weight, over the mass if the measure is a mean."""
        return self.weight if self.measure == "total" else self.weight / self.mass[self.owner]

    @property
    def effective_mass(self) -> np.ndarray:
        """∫ 1 dμ_i: the mass, or one if the measure is a mean."""
        return self.mass if self.measure == "total" else np.ones(self.size)

    @property
    def square_weight(self) -> np.ndarray:
        """Σ w² over the atoms of each support: what independent noise of every atom is multiplied by."""
        squares = np.bincount(self.owner, self.weight**2, minlength=self.size)
        return squares if self.measure == "total" else squares / self.mass**2

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """∫ h dμ_i for every i, given the mean of h over every atom; `values` is (atoms,) or (atoms, k)."""
        values = np.asarray(values)
        weighted = values * self.effective_weight.reshape(-1, *(1,) * (values.ndim - 1))
        out = np.zeros((self.size, *values.shape[1:]))
        np.add.at(out, self.owner, weighted)
        return out

    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of everything."""
        return (self.center - self.width / 2).min(axis=0), (self.center + self.width / 2).max(axis=0)

    def sample(self, n: int = SAMPLE, seed: int = 0) -> "Support":
        """Atoms drawn at random, each a support of its own; all of them, in order, if there are no more than `n`."""
        atoms = draw(len(self.owner), n, seed)
        kind = "Boxes" if any(self.wide) else "Points"
        return single_atoms(self.center[atoms], self.width[atoms], "mean", kind)

    def rescaled(self, center: np.ndarray, scale: np.ndarray) -> "Support":
        """The same supports in the coordinates (x - center) / scale; weights stay as they are."""
        return dataclasses.replace(self, center=(self.center - center) / scale, width=self.width / scale)

    def with_measure(self, measure: Measure) -> "Support":
        """The same places, as totals (extensive) or as means (intensive)."""
        return dataclasses.replace(self, measure=measure)

    def digest(self) -> list[np.ndarray]:
        """Arrays that tell this batch from another one."""
        return [self.center, self.width, self.owner, self.effective_weight]

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator["Support"]:
        return (self[i] for i in range(self.size))

    def __getitem__(self, rows: Any) -> "Support":
        chosen = np.atleast_1d(np.arange(self.size)[rows])
        counts = self.atom_counts
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        owner = np.repeat(np.arange(len(chosen)), counts[chosen])
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts[chosen]) - counts[chosen], counts[chosen])
        atoms = starts[chosen][owner] + within
        return dataclasses.replace(
            self,
            center=self.center[atoms],
            width=self.width[atoms],
            owner=owner,
            weight=self.weight[atoms],
            size=len(chosen),
            labels=None if self.labels is None else self.labels[chosen],
            geometry=None if self.geometry is None else self.geometry[chosen],
        )

    def __repr__(self) -> str:
        word = {"total": ", totals (extensive)", "mean": ", means (intensive)"}[self.measure]
        if self.kind == "Points":
            word = ""
        count = self.atom_counts.sum()
        atoms = "" if count == self.size else f", {count:,} atoms"
        return f"{self.kind}({self.size:,} in {self.dim}-d{word}{atoms})"


def draw(total: int, n: int, seed: int) -> np.ndarray:
    """At most `n` of the numbers below `total`, in order."""
    if total <= n:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, n, replace=False))


def single_atoms(center: np.ndarray, width: np.ndarray, measure: Measure, kind: str) -> Support:
    """Supports of one atom each, weighted by volume over the dimensions that have width.

    A row without any width is a point: its mass is one, so that a total and a mean over it are both its value.
    """
    volume = np.prod(np.where(width > 0, width, 1.0), axis=1)
    return Support(center, width, np.arange(len(center)), volume, len(center), measure, kind)


def halved(support: Support) -> Support:
    """The same supports with every atom cut in two along each dimension in which it has width."""
    center, width, weight, owner = support.center, support.width, support.weight, support.owner
    for j, is_wide in enumerate(support.wide):
        if is_wide:
            shift = np.zeros_like(center)
            shift[:, j] = width[:, j] / 4
            center = np.stack([center - shift, center + shift], axis=1).reshape(-1, support.dim)
            width, weight, owner = (np.repeat(x, 2, axis=0) for x in (width, weight / 2, owner))
            width[:, j] /= 2
    return dataclasses.replace(support, center=center, width=width, weight=weight, owner=owner)


def concatenate(supports: Sequence[Support]) -> Support:
    """Several batches as one; they may be of different kinds, and then the measure is kept per row.

    >>> import aggregauss as ag
    >>> both = ag.concatenate([ag.Intervals([0.0, 2.0], [2.0, 4.0]), ag.Points([1.0, 3.0])])
    >>> len(both), both.mass.tolist()
    (4, [2.0, 2.0, 1.0, 1.0])
    """
    if not supports:
        raise ValueError("concatenate: give at least one batch of supports.")
    dims = {s.dim for s in supports}
    if len(dims) > 1:
        raise ValueError(f"concatenate: the batches must have the same number of dimensions, but have {sorted(dims)}.")
    kinds, measures = {s.kind for s in supports}, {s.measure for s in supports}
    offsets = np.cumsum([0, *(s.size for s in supports)])
    same = len(measures) == 1
    labels = [s.labels for s in supports]
    geometry = [s.geometry for s in supports]
    return Support(
        center=np.concatenate([s.center for s in supports]),
        width=np.concatenate([s.width for s in supports]),
        owner=np.concatenate([s.owner + offset for s, offset in zip(supports, offsets)]),
        weight=np.concatenate([s.weight if same else s.effective_weight for s in supports]),
        size=int(offsets[-1]),
        measure=supports[0].measure if same else "total",
        kind=kinds.pop() if len(kinds) == 1 else "Support",
        labels=None if any(x is None for x in labels) else np.concatenate(labels),  # pyright: ignore
        geometry=None if any(x is None for x in geometry) else np.concatenate(geometry),  # pyright: ignore
    )
