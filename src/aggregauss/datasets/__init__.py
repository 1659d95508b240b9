"""Small real data sets that come with the package, each with its licence beside it."""

import csv
import dataclasses
from importlib import resources

import numpy as np

from aggregauss.datasets.madagascar_malaria import MapFiles, madagascar
from aggregauss.supports import Intervals, Support

__all__ = ["AgeHistogram", "MapFiles", "ages", "madagascar"]


@dataclasses.dataclass(frozen=True, eq=False)
class AgeHistogram:
    """Ages of the residents of a census area: bins and their totals, and the single-year counts underneath."""

    bins: Support
    totals: np.ndarray
    ages: np.ndarray
    counts: np.ndarray


def ages(width: int = 10) -> AgeHistogram:
    """225 residents of a Sheffield output area in 2011, in bins of `width` years (Open Government Licence v3).

    >>> data = ages()
    >>> data.totals.tolist()
    [15.0, 16.0, 112.0, 50.0, 17.0, 8.0, 5.0, 1.0, 1.0, 0.0, 0.0]
    """
    text = (resources.files("aggregauss.datasets") / "ages_sheffield.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    age = np.array([float(row["age"]) for row in rows])
    counts = np.array([float(row["count_used_in_notebook"]) for row in rows])
    edges = np.arange(0.0, age.max() + width + 1, width)
    edges = edges[: np.searchsorted(edges, age.max(), side="right") + 1]
    totals = np.histogram(age, edges, weights=counts)[0]
    return AgeHistogram(Intervals(edges[:-1], edges[1:]), totals, age, counts)
