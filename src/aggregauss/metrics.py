"""How good predictions are: errors, coverage of intervals, and proper scores.

>>> import numpy as np
>>> rmse([1.0, 2.0], [1.0, 4.0])
1.4142135623730951
>>> coverage([0.0, 5.0], lower=[-1.0, -1.0], upper=[1.0, 1.0])
0.5
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtr, xlogy

LEVELS = (0.70, 0.75, 0.80, 0.85, 0.90, 0.95)


def rmse(y: Any, mean: Any) -> float:
    """Root mean squared error."""
    return float(np.sqrt(mse(y, mean)))


def mse(y: Any, mean: Any) -> float:
    """Mean squared error, mean (y - mean)².

    >>> mse([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    return float(np.mean((np.asarray(y) - np.asarray(mean)) ** 2))


def log_mse(y: Any, mean: Any) -> float:
    """Mean squared difference of logarithms, values that are not positive counting as 1.

    >>> log_mse([0.0, 1.0], [1.0, np.e])
    0.5
    """
    y, mean = np.asarray(y, float), np.asarray(mean, float)
    return mse(np.log(np.where(y > 0, y, 1.0)), np.log(np.where(mean > 0, mean, 1.0)))


def mae(y: Any, mean: Any) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(np.asarray(y) - np.asarray(mean))))


def coverage(y: Any, lower: Any, upper: Any) -> float:
    """Share of values inside their intervals."""
    y = np.asarray(y)
    return float(np.mean((y >= np.asarray(lower)) & (y <= np.asarray(upper))))


def calibration(
    y: Any, predict_interval: Callable[[float], tuple[Any, Any]], levels: Sequence[float] = LEVELS
) -> dict[float, float]:
    """Share of values inside the intervals of each level, such as those of `prediction.interval`.

    >>> calibration([0.1, 0.5, 0.9], lambda level: (0.5 - level / 2, 0.5 + level / 2), levels=(0.5, 0.85))
    {0.5: 0.3333333333333333, 0.85: 1.0}
    """
    return {level: coverage(y, *predict_interval(level)) for level in levels}


def coverage_error(
    y: Any, predict_interval: Callable[[float], tuple[Any, Any]], levels: Sequence[float] = LEVELS
) -> float:
    """Mean over the levels of abs(share inside - level); 0 is perfect calibration.

    >>> coverage_error([0.1, 0.5], lambda level: (0.5 - level / 2, 0.5 + level / 2), levels=(0.5, 0.75))
    0.125
    """
    table = calibration(y, predict_interval, levels)
    return float(np.mean([abs(share - level) for level, share in table.items()]))


def poisson_nll(y: Any, rate: Any, stirling: bool = False) -> float:
    """Mean of rate - y log rate + log y!, the negative log likelihood of a Poisson distribution of known rate.

    With `stirling`, log y! is what TensorFlow and the variational-aggregation paper (Law et al. 2018) take for it: 0 up
    to y = 1, and y log y - y + ½ log 2πy beyond.

    >>> poisson_nll([0, 1], [1.0, 1.0])
    1.0
    >>> round(poisson_nll(2, 2.0), 4), round(poisson_nll(2, 2.0, stirling=True), 4)
    (1.3069, 1.2655)
    """
    y, rate = np.asarray(y, float), np.asarray(rate, float)
    return float(np.mean(rate - xlogy(y, rate) + (_stirling(y) if stirling else gammaln(y + 1))))


def _stirling(y: np.ndarray) -> np.ndarray:
    large = np.maximum(y, 1.0)
    return np.where(y <= 1, 0.0, large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large))


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
