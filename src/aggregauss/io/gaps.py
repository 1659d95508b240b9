"""Small gaps in a raster: a pixel without a value gets that of the nearest pixel, at most a few pixels away.

Of several equally near ones it is always the same, by their place relative to the gap, so that a part of a raster is
filled as the whole is.
"""

import numpy as np

REACH = 3  # pixels over which a missing value is filled in


def filled(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """`values`, (rows, columns), with the gaps among the pixels `wanted` filled in where something is within reach.

    >>> filled(np.array([[1.0, np.nan, np.nan, np.nan, np.nan, 2.0]]), np.array([[True] * 3 + [False] * 3])).tolist()
    [[1.0, 1.0, 1.0, nan, nan, 2.0]]
    """
    row, column = np.nonzero(np.isnan(values) & wanted)
    if not len(row):
        return values
    wide = np.pad(values, REACH, constant_values=np.nan)
    found = np.full(len(row), np.nan)
    for down, right in _steps():
        open_ = np.isnan(found)
        found[open_] = wide[row[open_] + REACH + down, column[open_] + REACH + right]
    out = values.copy()
    out[row, column] = found
    return out


def _steps() -> list[tuple[int, int]]:
    """To the pixels within reach, the nearest first."""
    around = range(-REACH, REACH + 1)
    steps = [(down, right) for down in around for right in around if 0 < down**2 + right**2 <= REACH**2]
    return sorted(steps, key=lambda step: (step[0] ** 2 + step[1] ** 2, step))
