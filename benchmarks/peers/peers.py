"""What the comparisons share: rows that survive an interruption, merged pixels, our model, and scores.

The peers are installed beside, in an environment of their own:

    python -m venv peers && peers/bin/pip install tobler pyinterpolate statsmodels pyarrow -e ".[geo,plots]"
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
from aggregauss.maps.classic import field_grid

ROWS = common.ROWS = Path(__file__).resolve().parent / "rows"
arguments, folder, resumable, table = common.arguments, common.folder, common.resumable, common.table

SCORES = ["log_score", "log_score_best", "rmse", "rmse_log", "coverage", "seconds", "cpu_seconds"]
SCATTER, POOL = 0.2, 32  # how far totals may be off; individuals of a unit while hyper-parameters are searched for
VARIANCE = float(np.e)  # median of a log-normal prior whose maximum, which the search looks for, is then at 1


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


def of_counts(prediction: ag.Prediction, y: np.ndarray, factor: float | np.ndarray = 1.0) -> Found:
    """Of predicted counts times `factor`; the density of log y is y times that of y."""
    lower, upper = prediction.interval(0.95)
    return Found(
        prediction.mean * factor,
        prediction.log_density(np.round(y / factor)) + np.log(np.maximum(y / factor, 0.5)),
        lower * factor,
        upper * factor,
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


def ours(
    covariates: list[str], X: np.ndarray, below: float, inducing: int, variance: float = VARIANCE
) -> tuple[ag.GP, ag.SVI]:
    """log rate = lines in the covariates + a Matérn field of the two last columns of X; and the scheme that fits it.

    `below` is a distance that the range of the field is unlikely to stay below, `variance` the median of the prior of
    its variance. Inducing points lie on a regular grid over the places.
    """
    c = len(covariates)
    field = ag.Matern32(
        ag.param(1.2 * below, prior=ag.RangePrior(below=below)),
        ag.param(1.0, prior=ag.LogNormal(variance, 1.0)),
        active_dims=[c, c + 1],
    )
    mean = ag.LinearEffects(list(range(c)), names=covariates) if c else ag.Constant()
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(SCATTER))
    grid = field_grid(X[:, c:], inducing)
    Z = np.column_stack([np.tile(X[:, :c].mean(axis=0), (len(grid), 1)), grid])
    return ag.GP(field, likelihood, mean=mean, aggregation="response"), ag.SVI(inducing=Z, pool=POOL)
