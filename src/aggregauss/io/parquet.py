"""Bags whose individuals stay in a Parquet file, so that a million of them train a model in bounded memory.

Opening the file reads its bags and weights alone: of each bag, the stretches of consecutive rows that belong to it, how
many rows these are and what they weigh. Individuals are read when a batch of bags asks for them.
"""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from aggregauss.io.row_groups import RowGroups
from aggregauss.supports.bags import Bags
from aggregauss.supports.standardise import Standardiser
from aggregauss.supports.support import SAMPLE, Measure, Support, draw, single_atoms

OF_EVERY_ATOM = ("center", "width", "owner", "weight", "effective_weight", "integrate")


def ParquetBags(
    path: str | Path,
    bag: str,
    columns: Sequence[str],
    weights: str | None = None,
    measure: Measure = "total",
    labels: Any = None,
) -> Support:
    """Bags of the rows of a Parquet file, for `SVI`: as `Bags`, but with names of columns in place of arrays.

    `columns` are the covariates, `bag` names the bag of each row, `weights` its share. A few hundred MB of row groups
    stay in memory; the others are read again when a batch needs them. The rows may come in any order, but a file that
    is sorted by bag, in row groups of no more than some 100,000 rows, is read much faster. `bags[rows]` are some of the
    bags in memory, `bags[:]` all of them.

    >>> import aggregauss as ag, pandas as pd, tempfile
    >>> pixels = pd.DataFrame({"district": ["n", "n", "s"], "rain": [0.0, 1.0, 5.0], "people": [2.0, 1.0, 4.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pixels.to_parquet(f"{folder}/pixels.parquet")
    ...     districts = ag.ParquetBags(f"{folder}/pixels.parquet", bag="district", columns=["rain"], weights="people")
    ...     districts, districts.mass.tolist(), districts[0].center.tolist()
    (ParquetBags(2 in 1-d, totals (extensive), 3 atoms), [3.0, 4.0], [[0.0], [1.0]])
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError('ParquetBags: "columns" must name at least one covariate.')
    file = RowGroups(path, bag, names, weights)
    found, runs, mass, squares = _scan(file)
    try:
        each = Bags(np.arange(len(found)), found, mass, measure, labels)  # one individual for each bag, in their order
    except (TypeError, ValueError) as error:
        raise type(error)(f"Parquet{error}") from None
    number = each.center[:, 0].astype(int)
    bags = BagsOnDisk(file, _by_bag(runs, np.argsort(number)), each.labels, each.mass, squares[number], measure)
    return cast(Support, bags)  # by registration


@dataclasses.dataclass(frozen=True)
class Runs:
    """Stretches of consecutive rows that belong to one bag."""

    bag: np.ndarray
    start: np.ndarray
    length: np.ndarray


@Support.register
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class BagsOnDisk:
    """A `Support` in all but the arrays with one number for each individual."""

    file: RowGroups
    runs: Runs  # sorted by bag
    labels: np.ndarray | None
    mass: np.ndarray
    squares: np.ndarray  # Σ w² of each bag
    measure: Measure
    scalers: tuple[Standardiser, ...] = ()

    kind: ClassVar[str] = "ParquetBags"
    geometry: ClassVar[None] = None
    effective_mass = Support.effective_mass
    __len__, __iter__, __repr__ = Support.__len__, Support.__iter__, Support.__repr__

    @property
    def size(self) -> int:
        """Number of bags."""
        return len(self.mass)

    @property
    def dim(self) -> int:
        """Number of covariates."""
        return len(self.file.columns)

    @property
    def wide(self) -> tuple[bool, ...]:
        """Individuals are points."""
        return (False,) * self.dim

    @functools.cached_property
    def atom_counts(self) -> np.ndarray:
        """Number of individuals of each bag."""
        return np.bincount(self.runs.bag, self.runs.length, minlength=self.size).astype(int)

    @property
    def square_weight(self) -> np.ndarray:
        """Σ w² of each bag: what independent noise of every individual is multiplied by."""
        return self.squares if self.measure == "total" else self.squares / self.mass**2

    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of everything."""
        low, high = self._points(np.stack(self.file.box)).center
        return low, high

    def sample(self, n: int = SAMPLE, seed: int = 0) -> Support:
        """Individuals drawn at random from the whole file, by one pass over it: those that `bags[:]` would draw."""
        length = self.runs.length
        chosen = draw(int(length.sum()), n, seed)
        run = np.searchsorted(np.cumsum(length), chosen, side="right")
        within = chosen - (np.cumsum(length) - length)[run]
        return self._points(self.file.take(self.runs.start[run] + within).X)

    def digest(self) -> list[np.ndarray]:
        """Arrays that tell these bags from others: what was scanned, and some individuals."""
        return [self.atom_counts, self.mass, self.square_weight, self.sample(1000).center]

    def rescaled(self, center: np.ndarray, scale: np.ndarray) -> Support:
        """The same bags in the coordinates (x - center) / scale, as they are read."""
        return cast(Support, dataclasses.replace(self, scalers=(*self.scalers, Standardiser(center, scale))))

    def with_measure(self, measure: Measure) -> Support:
        """The same bags, as totals (extensive) or as means (intensive)."""
        return cast(Support, dataclasses.replace(self, measure=measure))

    def __getitem__(self, rows: Any) -> Support:
        chosen = np.atleast_1d(np.arange(self.size)[rows])
        first, last = (np.searchsorted(self.runs.bag, chosen, side) for side in ("left", "right"))
        runs = _ranges(first, last - first)
        X, weight = self.file.take(_ranges(self.runs.start[runs], self.runs.length[runs]))
        owner = np.repeat(np.arange(len(chosen)), self.atom_counts[chosen])
        labels = None if self.labels is None else self.labels[chosen]
        return self._scaled(
            Support(X, np.zeros_like(X), owner, weight, len(chosen), self.measure, "Bags", labels=labels)
        )

    def __getattr__(self, name: str) -> Any:
        if name in OF_EVERY_ATOM:
            raise TypeError(
                f'{self.kind}: "{name}" of all individuals was asked for, but they stay in {self.file.path}. Fit with '
                "inference=SVI(batch_size=64), or give bags[:], which loads them all."
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _points(self, X: np.ndarray) -> Support:
        return self._scaled(single_atoms(X, np.zeros_like(X), "mean", "Points"))

    def _scaled(self, support: Support) -> Support:
        for scaler in self.scalers:
            support = scaler(support)
        return support


def _scan(file: RowGroups) -> tuple[np.ndarray, Runs, np.ndarray, np.ndarray]:
    """The bags as they first appear, their stretches in the order of the file, their mass and Σ w²."""
    numbers: dict[Any, int] = {}
    mass, squares = np.zeros(0), np.zeros(0)
    bags, starts = [], []
    for names, offset in zip(file.names(), file.offsets):
        known = np.array([numbers.setdefault(name, len(numbers)) for name in names.distinct], int)
        owner = known[names.code]
        mass, squares = (np.pad(x, (0, len(numbers) - len(x))) for x in (mass, squares))
        np.add.at(mass, owner, names.weight)
        np.add.at(squares, owner, names.weight**2)
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        bags.append(owner[first])
        starts.append(first + offset)
    start = np.concatenate(starts)
    runs = Runs(np.concatenate(bags), start, np.diff(start, append=file.offsets[-1]))
    return np.array(list(numbers)), runs, mass, squares


def _by_bag(runs: Runs, row: np.ndarray) -> Runs:
    """The stretches sorted by bag, where `row[b]` is the place of bag b."""
    bag = row[runs.bag]
    order = np.argsort(bag, kind="stable")
    return Runs(bag[order], runs.start[order], runs.length[order])


def _ranges(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """start, start + 1, ... for each start, one after another."""
    return np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())
