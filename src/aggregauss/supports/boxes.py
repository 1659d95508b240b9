"""Boxes: a total or a mean over an axis-parallel box; in one dimension, an interval."""

from typing import Any

from aggregauss.checks import as_matrix, first_bad
from aggregauss.supports.support import Measure, Support, single_atoms


def Boxes(lo: Any, hi: Any, measure: Measure = "total") -> Support:
    """One box per row, from its lower corners `lo` and upper corners `hi`, both of shape (n, d).

    A dimension may have no width (`lo == hi`) in every row: a plane, or an instant. The mass is the volume over the
    dimensions that have width.

    >>> Boxes([[0.0, 0.0]], [[2.0, 3.0]]).mass.tolist()
    [6.0]
    """
    return _boxes(lo, hi, measure, "Boxes")


def Intervals(lo: Any, hi: Any, measure: Measure = "total") -> Support:
    """One interval per row: age bands, histogram bins, sensor windows.

    `measure="total"` for extensive data (counts per bin), `"mean"` for intensive data (an average over the bin).

    >>> Intervals(lo=[0, 10, 20], hi=[10, 20, 30], measure="total")
    Intervals(3 in 1-d, totals (extensive))
    """
    support = _boxes(lo, hi, measure, "Intervals")
    if support.dim != 1:
        raise ValueError(f'Intervals: "lo" and "hi" must be flat lists, but have {support.dim} columns. Use Boxes.')
    return support


def _boxes(lo: Any, hi: Any, measure: Measure, kind: str) -> Support:
    low, high = as_matrix(lo, kind, "lo"), as_matrix(hi, kind, "hi")
    if low.shape != high.shape:
        raise ValueError(f'{kind}: "lo" and "hi" must have the same shape, but have {low.shape} and {high.shape}.')
    width = high - low
    if (width < 0).any():
        row, column = first_bad(width < 0)
        raise ValueError(
            f'{kind}: "hi" must exceed "lo", but row {row} has hi={high[row, column]} and lo={low[row, column]} '
            f"in dimension {column}. Swap them, or use Points for zero-width observations."
        )
    empty = (width == 0) & (width > 0).any(axis=0)
    all_flat = (width == 0).all(axis=1)
    if empty.any() or all_flat.any():
        row, column = first_bad(empty) if empty.any() else (first_bad(all_flat)[0], 0)
        raise ValueError(
            f"{kind}: every box must have width, but row {row} is empty: hi = lo = {low[row, column]} in dimension "
            f"{column}. Widen it, or use Points for zero-width observations (join them with concatenate)."
        )
    return single_atoms((low + high) / 2, width, measure, kind)
