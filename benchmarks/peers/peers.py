"""What the comparisons share: rows that survive an interruption, merged points, and scores.

The peers are installed beside, in an environment of their own:

    python -m venv peers && peers/bin/pip install tobler astropy pyinterpolate statsmodels pyarrow -e ".[geo,plots]"
    peers/bin/python benchmarks/peers/madagascar.py --data FOLDER

FOLDER (or the variable AGGREGAUSS_DATA) is the one with the data sets, such as `malaria_madagascar`.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

sys.path.append(str(Path(__file__).resolve().parents[2] / "experiments"))
import common

import aggregauss as ag

ROWS = common.ROWS = Path(__file__).resolve().parent / "rows"
arguments, folder, resumable, table = common.arguments, common.folder, common.resumable, common.table

SCORES = ["log_score", "log_score_best", "rmse", "rmse_log", "coverage", "check", "own", "seconds", "cpu_seconds"]


class Found(NamedTuple):
    """Predicted counts: means, log densities of the logarithms of the true ones, and ends of 95% intervals."""

    mean: np.ndarray
    log_density: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def scores(found: Found, y: np.ndarray, exposure: np.ndarray, unit: float = 1.0) -> dict[str, str]:
    """Mean log density, errors of y / exposure in `unit`s, and how often intervals hold."""
    mean = np.maximum(found.mean, 1e-9 * y.mean())
    seen = y > 0
    return {
        "log_score": f"{found.log_density.mean():.4f}",
        "rmse": f"{ag.metrics.rmse(y / exposure, found.mean / exposure) * unit:.4f}",
        "rmse_log": f"{ag.metrics.rmse(np.log(y[seen]), np.log(mean[seen])):.4f}",
        "coverage": f"{ag.metrics.coverage(y, found.lower, found.upper):.4f}",
    }


def log_normal(mean: np.ndarray, sd: float | np.ndarray, y: np.ndarray) -> Found:
    """log y ~ N(log mean, sd²): what a method that gives numbers only is scored by."""
    center = np.log(mean)
    return Found(
        mean,
        norm.logpdf(np.log(y), center, sd),
        np.exp(center - norm.ppf(0.975) * sd),
        mean * np.exp(norm.ppf(0.975) * sd),
    )


@contextmanager
def stopwatch() -> Iterator[Callable[[], dict[str, str]]]:
    """Seconds that pass, and seconds of the processor, as two columns."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield lambda: {
        "seconds": f"{time.perf_counter() - wall:.1f}",
        "cpu_seconds": f"{time.process_time() - cpu:.1f}",
    }


def merged(columns: np.ndarray, weight: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Individuals of one key as one: weighted means of the columns, the sum of the weights, and the first of each."""
    _, first, code = np.unique(key, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(code.ravel(), weight)
    means = np.stack([np.bincount(code.ravel(), weight * c) / total for c in columns.T], axis=1)
    return means, total, first
