"""How good predictions are: errors, coverage of intervals, and proper scores.

>>> import numpy as np
>>> rmse([1.0, 2.0], [1.0, 4.0])
1.4142135623730951
>>> coverage([0.0, 5.0], lower=[-1.0, -1.0], upper=[1.0, 1.0])
0.5
"""

from typing import Any

import numpy as np
from scipy.special import ndtr


def rmse(y: Any, mean: Any) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(y) - np.asarray(mean)) ** 2)))


def mae(y: Any, mean: Any) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(np.asarray(y) - np.asarray(mean))))


def coverage(y: Any, lower: Any, upper: Any) -> float:
    """Share of values inside their intervals."""
    y = np.asarray(y)
    return float(np.mean((y >= np.asarray(lower)) & (y <= np.asarray(upper))))


def gaussian_nlpd(y: Any, mean: Any, variance: Any) -> float:
    """Mean negative log density of N(mean, variance) at y."""
    variance = np.asarray(variance)
    return float(np.mean(0.5 * np.log(2 * np.pi * variance) + (np.asarray(y) - np.asarray(mean)) ** 2 / (2 * variance)))


def gaussian_crps(y: Any, mean: Any, variance: Any) -> float:
    """Mean continuous ranked probability score of N(mean, variance) (Gneiting and Raftery 2007)."""
    sd = np.sqrt(np.asarray(variance))
    z = (np.asarray(y) - np.asarray(mean)) / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return float(np.mean(sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))))


def bootstrap(
    values: Any, statistic: Any = np.mean, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """A bootstrap interval of a statistic of independent values."""
    values = np.asarray(values)
    index = np.random.default_rng(seed).integers(0, len(values), (draws, len(values)))
    low, high = np.quantile([statistic(values[row]) for row in index], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
