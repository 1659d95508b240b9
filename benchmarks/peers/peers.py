"""What the comparisons share: rows that survive an interruption, merged pixels, our model, and scores.

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
from aggregauss.maps.classic import field_grid
from aggregauss.marginals import log_normal as log_normal_law
from aggregauss.marginals import observed

ROWS = common.ROWS = Path(__file__).resolve().parent / "rows"
arguments, folder, resumable, table = common.arguments, common.folder, common.resumable, common.table

SCORES = ["log_score", "log_score_best", "rmse", "rmse_log", "coverage", "check", "own", "seconds", "cpu_seconds"]
SCATTER, POOL = 0.2, 32  # how far totals may be off; individuals of a unit while hyper-parameters are searched for
OWN = np.round(np.geomspace(0.02, 2.0, 25), 4)  # standard deviations of what each new unit has of its own


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


class Rates(NamedTuple):
    """Log-normal counts to be expected of units: mean and standard deviation of their logarithms."""

    location: np.ndarray
    spread: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.exp(self.location + self.spread**2 / 2)


def adding_up(prediction: ag.Prediction, parent: np.ndarray, known: np.ndarray) -> Rates:
    """Predicted responses, scaled so that the means of the units of each parent add up to its known count."""
    law = prediction.marginals
    factor = known / np.bincount(parent, prediction.mean, minlength=len(known))
    return Rates(law.location + np.log(factor)[parent], law.spread)


def counted(rates: Rates, own: float, y: np.ndarray) -> Found:
    """New counts: Poisson, each of a rate e^v times the expected one, v ~ N(-own²/2, own²); and how likely y is."""
    law = observed(log_normal_law(rates.location - own**2 / 2, rates.spread**2 + own**2), "poisson")
    return Found(rates.mean, law.log_prob(y), law.quantile(0.025), law.quantile(0.975))


def likeliest_own(rates: Rates, y: np.ndarray) -> tuple[float, float]:
    """The standard deviation under which y is likeliest, and the mean log score with it."""
    score = [counted(rates, own, y).log_density.mean() for own in OWN]
    return float(OWN[np.argmax(score)]), float(np.max(score))


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


def ours(covariates: list[str], X: np.ndarray, below: float, inducing: int) -> tuple[ag.GP, ag.SVI]:
    """log rate = lines in the covariates + a Matérn field of the two last columns of X; and the scheme that fits it.

    The priors are those of the default model of a map: `below` is a distance that the range of the field is unlikely to
    stay below, its variance is log-normal about 1. Inducing points lie on a regular grid over the places.
    """
    c = len(covariates)
    field = ag.Matern32(
        ag.param(1.2 * below, prior=ag.RangePrior(below=below)),
        ag.param(1.0, prior=ag.LogNormal(1.0, 1.0)),
        active_dims=[c, c + 1],
    )
    mean = ag.LinearEffects(list(range(c)), names=covariates) if c else ag.Constant()
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(SCATTER))
    grid = field_grid(X[:, c:], inducing)
    Z = np.column_stack([np.tile(X[:, :c].mean(axis=0), (len(grid), 1)), grid])
    return ag.GP(field, likelihood, mean=mean, aggregation="response"), ag.SVI(inducing=Z, pool=POOL, search="totals")
