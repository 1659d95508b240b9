"""Tables from files, and their columns: one sentence for a file or a column that is not what it should be."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportOptionalSubscript=false, reportReturnType=false
# (tables and geometries: the declared types of pandas and exactextract are wider than what they return)

import difflib
import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.io.words import first_line, listed

if TYPE_CHECKING:
    import pandas as pd


def read_file(path: Path, readers: dict[str, Callable[[Path], Any]], who: str) -> Any:
    """What the reader of the path's extension makes of it."""
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise ValueError(f'{who}: {path} has the extension "{suffix}", which is not known. Give {", ".join(readers)}.')
    if not path.exists():
        raise FileNotFoundError(f"{who}: there is no file {path}.")
    try:
        return readers[suffix](path)
    except (ImportError, MemoryError):
        raise  # not the file's fault
    except Exception as problem:  # whatever a reader may raise
        raise ValueError(
            f"{who}: {path} cannot be read ({first_line(problem)}). It may be truncated or of another format; get it "
            "again."
        ) from None


def read_table(source: Any, who: str, name: str, codes: Collection[str] = ()) -> "pd.DataFrame":
    """A table from CSV or Parquet, or the DataFrame itself; of a CSV the columns `codes` stay as they are written."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if not isinstance(source, str | Path):
        raise TypeError(
            f'{who}: "{name}" must be a path to CSV or Parquet, or a DataFrame, but got {type(source).__name__}.'
        )
    readers = {".csv": functools.partial(_read_csv, codes=codes), ".parquet": pd.read_parquet}
    return read_file(Path(source), readers, who)


def write_csv(table: "pd.DataFrame", path: Path) -> None:
    """A table as text: fifteen digits, so that counts of any size are whole."""
    table.to_csv(path, index=False, float_format="%.15g")


def column(table: "pd.DataFrame", name: str, who: str, argument: str) -> "pd.Series":
    """A column, or a sentence with the nearest name."""
    if name in table.columns:
        return table[name]
    names = [str(c) for c in table.columns if c != "geometry"]
    near = difflib.get_close_matches(str(name), names, 1, 0.5) or [n for n in names if n.lower() == str(name).lower()]
    hint = f' Did you mean "{near[0]}"?' if near else ""
    raise ValueError(f'{who}: "{argument}" names the column "{name}", but there are only {listed(names)}.{hint}')


def texts(values: "pd.Series", who: str) -> "pd.Series":
    """A column of names, none of which is missing."""
    if values.isna().any():
        row = int(np.argmax(values.isna()))
        raise ValueError(f'{who}: the column "{values.name}" has no name for row {row}. Give one, or leave it out.')
    return values.astype(str)


def numbers(values: "pd.Series", who: str, rows: Collection[str]) -> np.ndarray:
    """A column of finite numbers as floats; `rows` says what its rows are called."""
    import pandas as pd

    names = list(rows)
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        parsed = pd.to_numeric(values, errors="coerce")
        row = int(np.argmax(parsed.isna().to_numpy()))
        raise TypeError(
            f'{who}: the column "{values.name}" must hold numbers, but it is {values.dtype}; {names[row]} has '
            f"{values.iloc[row]!r}. Convert it, for example with pandas.to_numeric, and correct what is not a number."
        )
    array = values.to_numpy(dtype=float, na_value=np.nan)
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f'{who}: the column "{values.name}" must be finite, but {names[row]} has {array[row]} '
            f"({bad.sum()} such value(s)). Fill them in, or leave these rows out."
        )
    return array


def not_negative(array: np.ndarray, name: str, who: str, rows: Collection[str]) -> np.ndarray:
    """The array, where no entry is below zero."""
    if (array < 0).any():
        row = int(np.argmax(array < 0))
        raise ValueError(
            f'{who}: the column "{name}" must not be negative, but {list(rows)[row]} has {array[row]:g}. Negative '
            "codes for missing values are not counts: leave such rows out."
        )
    return array


def _read_csv(path: Path, codes: Collection[str]) -> "pd.DataFrame":
    """A table in which a code is as it is written: Namibia's NA is no missing value, and 01001 no number."""
    import pandas as pd

    table = pd.read_csv(path)
    for name in table.columns.intersection([*codes]):
        table[name] = pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False, na_values=[""])[name]
    return table
