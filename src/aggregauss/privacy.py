"""Differentially private histograms, and what their noise means for a fit.

The Laplace mechanism adds independent noise of scale b = sensitivity / ε to every count; through OpenDP, whose sampling
is safe against floating-point attacks and is not seeded. The noise is known: hand `noise_variance` (2 b²) to `fit` as a
Gaussian stand-in, or model it as what it is with `LaplaceNoise(release.scale)`.
"""

import dataclasses
import importlib
from typing import Any

import numpy as np

from aggregauss.checks import as_vector
from aggregauss.supports import Intervals, Support


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """Noisy counts, with the ε they cost and the scale of their noise."""

    values: np.ndarray
    epsilon: float
    scale: float

    @property
    def noise_variance(self) -> np.ndarray:
        """2 b² for each count."""
        return np.full(len(self.values), 2 * self.scale**2)


def release(counts: Any, epsilon: float, sensitivity: float = 1.0) -> Release:
    """Counts with Laplace noise: ε-differentially private if one person changes them by at most `sensitivity` in all.

    Needs the extra `privacy`.

    >>> private = release([12, 30, 7], epsilon=0.5)
    >>> private.scale, len(private.values)
    (2.0, 3)
    """
    exact = as_vector(counts, "release", "counts")
    for name, value in (("epsilon", epsilon), ("sensitivity", sensitivity)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f'release: "{name}" must be positive and finite, but got {value}.')
    try:
        dp: Any = importlib.import_module("opendp.prelude")
    except ImportError:
        raise ImportError(
            'release: OpenDP is not installed. Run: python -m pip install "aggregauss[privacy]"'
        ) from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    scale = sensitivity / epsilon
    mechanism = dp.m.make_laplace(*space, scale=scale)
    return Release(np.asarray(mechanism(exact.tolist())), float(epsilon), float(scale))


def histogram(values: Any, edges: Any, epsilon: float) -> tuple[Support, Release]:
    """A private histogram of records: bins with totals, and their released counts.

    >>> bins, private = histogram([3.0, 14.0, 15.0], edges=[0.0, 10.0, 20.0], epsilon=1.0)
    >>> bins
    Intervals(2 in 1-d, totals (extensive))
    """
    edges = as_vector(edges, "histogram", "edges")
    bins = Intervals(edges[:-1], edges[1:], measure="total")
    return bins, release(np.histogram(as_vector(values, "histogram", "values"), edges)[0], epsilon)
