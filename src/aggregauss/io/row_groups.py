"""Rows of a Parquet file, read a row group at a time; the latest row groups stay in memory, up to a limit."""

import functools
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aggregauss.checks import first_bad

WHO = "ParquetBags"
CACHE = 1 << 28  # bytes of row groups that stay in memory


class Rows(NamedTuple):
    """Individuals: where they are and how much they weigh."""

    X: np.ndarray  # (rows, d)
    weight: np.ndarray  # (rows,)

    @property
    def nbytes(self) -> int:
        """Memory that they take."""
        return self.X.nbytes + self.weight.nbytes


class Names(NamedTuple):
    """The bags that a row group names, and for each of its rows which of them, and its weight."""

    distinct: list[Any]
    code: np.ndarray
    weight: np.ndarray


class RowGroups:
    """Covariates, bags and weights of a Parquet file; `limit` bytes of covariates and weights are kept."""

    def __init__(self, path: str | Path, bag: str, columns: list[str], weights: str | None, limit: int = CACHE):
        self.path, self.bag, self.columns, self.weights, self.limit = path, bag, columns, weights, limit
        self._file = _open(path)
        self._check()
        metadata = self._file.metadata
        lengths = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.offsets = np.cumsum([0, *lengths])
        self.kept: OrderedDict[int, Rows] = OrderedDict()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def names(self) -> Iterator[Names]:
        """One pass over bags and weights, and nothing else."""
        for i in range(len(self)):
            table = self._read(i, [self.bag])
            column = table.column(self.bag).combine_chunks()
            if hasattr(column, "dictionary"):  # whose names need not all occur
                column = column.dictionary_decode()
            if column.null_count:
                row = self.offsets[i] + first_bad(column.is_null().to_numpy(zero_copy_only=False))[0]
                raise ValueError(f'{WHO}: "{self.bag}" must name the bag of every row, but row {row} has none.')
            encoded = column.dictionary_encode()
            yield Names(encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), self._checked_weight(table, i))

    def take(self, index: np.ndarray) -> Rows:
        """Some rows, in the order asked for."""
        X, weight = np.empty((len(index), len(self.columns))), np.empty(len(index))
        order = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[order], self.offsets)
        for i in np.flatnonzero(np.diff(ends)):
            here = order[ends[i] : ends[i + 1]]
            group = self.group(int(i))
            X[here] = group.X[index[here] - self.offsets[i]]
            weight[here] = group.weight[index[here] - self.offsets[i]]
        return Rows(X, weight)

    def group(self, i: int) -> Rows:
        """One row group."""
        if i not in self.kept:
            self.kept[i] = group = self._load(i)
            while sum(rows.nbytes for rows in self.kept.values()) > self.limit:
                self.kept.popitem(last=False)
            return group
        self.kept.move_to_end(i)
        return self.kept[i]

    @functools.cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of each covariate, by one pass over the file."""
        groups = (self.group(i).X for i in np.flatnonzero(np.diff(self.offsets)).tolist())
        ends = np.array([(X.min(axis=0), X.max(axis=0)) for X in groups], float)
        return ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)

    def _load(self, i: int) -> Rows:
        table = self._read(i, self.columns)
        single = all(str(table.schema.field(name).type) == "float" for name in self.columns)
        X = np.empty((len(table), len(self.columns)), np.float32 if single else np.float64)
        for j, name in enumerate(self.columns):
            X[:, j] = _numbers(table.column(name))
            self._refuse(~np.isfinite(X[:, j]), X[:, j], name, "be finite", i)
        return Rows(X, self._weight(table))

    def _read(self, i: int, columns: list[str]) -> Any:
        return self._file.read_row_group(i, columns=[*{*columns, *([self.weights] if self.weights else [])}])

    def _weight(self, table: Any) -> np.ndarray:
        return np.ones(len(table)) if self.weights is None else _numbers(table.column(self.weights)).astype(float)

    def _checked_weight(self, table: Any, i: int) -> np.ndarray:
        weight = self._weight(table)
        self._refuse(~np.isfinite(weight), weight, self.weights, "be finite", i)
        self._refuse(weight < 0, weight, self.weights, "not be negative", i)
        return weight

    def _refuse(self, bad: np.ndarray, values: np.ndarray, name: str | None, wanted: str, i: int) -> None:
        if bad.any():
            row = first_bad(bad)[0]
            raise ValueError(
                f'{WHO}: "{name}" must {wanted}, but row {self.offsets[i] + row} of {self.path} is {values[row]}. '
                "Remove such rows, or fill them in."
            )

    def _check(self) -> None:
        schema, numeric = self._file.schema_arrow, [*self.columns, *([self.weights] if self.weights else [])]
        for name in (self.bag, *numeric):
            if name not in schema.names:
                raise ValueError(f'{WHO}: {self.path} has no column "{name}". It has {", ".join(schema.names)}.')
        for name in numeric:
            if not _is_numeric(schema.field(name).type):
                raise TypeError(f'{WHO}: "{name}" must hold numbers, but holds {schema.field(name).type}. Convert it.')
        if schema.field(self.bag).type.num_fields:
            raise TypeError(f'{WHO}: "{self.bag}" must hold names or numbers, but holds {schema.field(self.bag).type}.')
        if self._file.metadata.num_rows == 0:
            raise ValueError(f"{WHO}: {self.path} is empty. Give at least one row.")


def _open(path: str | Path) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f'{WHO}: PyArrow is not installed. Run: python -m pip install "aggregauss[scale]"') from None
    if not Path(path).is_file():
        raise FileNotFoundError(f"{WHO}: there is no file {path}.")
    try:
        return parquet.ParquetFile(path, memory_map=True)
    except pa.ArrowInvalid:
        raise ValueError(f"{WHO}: {path} is not a Parquet file.") from None


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _numbers(column: Any) -> np.ndarray:
    """A column as floats, with NaN for what is missing."""
    kind = "float32" if str(column.type) == "float" else "float64"
    return column.cast(kind, safe=False).to_numpy()
