"""Averages over a distribution, in a coordinate in which it is smooth.

A chart writes a random number as an increasing function value(t) of a coordinate t of smooth density d(t). Over it

    step_average(F, chart)    = ∫ F(value(t)) d(t) dt       for F that falls from 1 to 0,
    log_average(log f, chart) = log ∫ f(value(t)) d(t) dt   for f with one peak,

by Gauss-Legendre on a window that closes in on the step or on the peak, so that neither can fall between two nodes.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr, roots_legendre

Number = float | np.ndarray
Function = Callable[[np.ndarray], np.ndarray]

REACH = 8.0  # standard deviations beyond which 1e-15 of a normal distribution lies
FAR = 30.0  # how much further out a peak is looked for
TINY = 1e-200  # the least variance, so that certain numbers divide by something
STEP_NODES, HALVINGS, NEGLIGIBLE = 48, 12, 1e-10
PEAK_NODES, ROUNDS = 128, 5


@dataclasses.dataclass(frozen=True)
class Chart:
    """The number value(t), where t has the given density and distribution function."""

    value: Function
    log_density: Function
    cdf: Function
    bulk: tuple[Number, Number]  # all but 1e-15 of the probability lies between
    limits: tuple[Number, Number]  # and `value` can be computed between these


def log_normal_density(z: Any) -> Any:
    """log φ(z)."""
    return -0.5 * z**2 - 0.5 * np.log(2 * np.pi)


def normal_chart(value: Function, limit: float = REACH + FAR) -> Chart:
    """The number value(z), z ~ N(0, 1)."""
    return Chart(value, log_normal_density, ndtr, (-REACH, REACH), (-limit, limit))


def step_average(step: Function, chart: Chart) -> np.ndarray:
    """E step(value), where `step` falls from 1 to 0 as the value grows."""
    begin, _ = _bracket(lambda t: step(chart.value(t)) >= 1.0 - NEGLIGIBLE, chart)
    _, end = _bracket(lambda t: step(chart.value(t)) > NEGLIGIBLE, chart)
    total = chart.cdf(begin)
    for t, weight in _rule(begin, end, STEP_NODES):
        total = total + weight * np.exp(chart.log_density(t)) * step(chart.value(t))
    return total


def log_average(log_f: Function, chart: Chart) -> np.ndarray:
    """log E f(value), where f has one peak."""
    (low, high), total = chart.limits, np.asarray(-np.inf)
    for _ in range(ROUNDS):
        nodes, weights = zip(*_rule(low, high, PEAK_NODES))
        logs = np.stack([log_f(chart.value(t)) + chart.log_density(t) for t in nodes])
        total, centre, spread = _moments(logs, np.stack(nodes), np.stack(weights))
        gap = (high - low) * np.pi / (2 * PEAK_NODES)  # the widest between two nodes
        if np.all(spread > 1.5 * gap):
            break
        reach = 2 * gap + (REACH + 1) * spread
        low, high = np.maximum(centre - reach, chart.limits[0]), np.minimum(centre + reach, chart.limits[1])
    return total


def _bracket(early: Function, chart: Chart) -> tuple[np.ndarray, np.ndarray]:
    """Between which two coordinates `early` turns from true to false."""
    low, high = map(np.asarray, chart.bulk)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        yes = early(middle)
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return low, high


def _rule(low: Number, high: Number, n: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of Gauss-Legendre on [low, high]."""
    half, middle = np.asarray(high - low) / 2, np.asarray(high + low) / 2
    return [(middle + half * x, half * w) for x, w in zip(*roots_legendre(n))]


def _moments(logs: np.ndarray, t: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The log of the integral, and mean and standard deviation of t under the integrand."""
    t, weights = (np.reshape(a, a.shape[:1] + (1,) * (logs.ndim - a.ndim) + a.shape[1:]) for a in (t, weights))
    peak = np.max(logs, axis=0)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    shares = weights * np.exp(logs - peak)
    total = np.maximum(np.sum(shares, axis=0), np.finfo(float).tiny)
    centre = np.sum(shares * t, axis=0) / total
    spread = np.sqrt(np.sum(shares * (t - centre) ** 2, axis=0) / total)
    return np.where(np.max(logs, axis=0) > -np.inf, peak + np.log(total), -np.inf), centre, spread
