"""What the data leave open about hyper-parameters, as a mixture over a few of their values.

Near its top θ̂ the profile L (the evidence, or a bound of it, plus log priors) is quadratic with Hessian -H, found by
differences of its gradient. The values

    θ̂ + A^{-1/2} z,        A = H + D,        z the columns of a Hadamard matrix and their mirror images, signs of ±1,

have the mean and the covariance A⁻¹ of that normal density, and each is one standard deviation away in every direction:
far enough to matter, near enough for L to be close to quadratic. Their weights are exp(L - its quadratic). D is one for
logarithms of positive parameters: what the data do not pin down at all is taken to be known to a factor of e.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from aggregauss.parameters import bounds, learned

STEP, WIDEST = 0.1, 0.5  # first and widest difference in a logarithm
DROP = 0.5  # what a difference should cost the profile
TRIES = 4  # to find such a difference
MOST = 8  # directions, those that are known least
TILT, LEAST = 2.0, 1e-4  # largest logarithm of a weight relative to the quadratic's; smallest relative weight

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray, Any]]  # value, gradient, and what is known there


@dataclasses.dataclass(frozen=True, eq=False)
class Around:
    """Values of the packed hyper-parameters, their weights, what is known at each, and the covariance."""

    vectors: np.ndarray
    weights: np.ndarray
    known: list[Any]
    covariance: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class _Scale:
    """What is known of each packed parameter before its curvature."""

    inside: np.ndarray  # away from its bounds: what ended at a bound stays there
    widest: np.ndarray  # difference
    positive: np.ndarray  # 1 for logarithms
    jacobian: np.ndarray  # 1 where a prior density in natural units needs dθ = θ dlog θ


def around(profile: Evaluate, template: Any, top: np.ndarray) -> Around | None:
    """The mixture about the top of a profile; None where there is nothing to learn or no quadratic to be found."""
    scale = _scale(template, top)
    best, slope, _ = profile(top)
    H = _hessian(profile, top, slope, scale) if scale.inside.any() else None
    if H is None:
        return None
    low, high = bounds(template)
    root = np.zeros((len(top), min(MOST, len(H))))
    root[scale.inside] = _root(H, scale.positive[scale.inside])
    vectors = np.clip(top + _signs(root.shape[1]) @ root.T, low, high)
    found = [profile(vector) for vector in vectors]
    away = vectors - top
    tilt = np.array([value for value, _, _ in found]) - best + 0.5 * root.shape[1]
    tilt += away @ scale.jacobian - 0.5 * np.sum(away**2 * scale.positive, axis=1)
    weights = np.exp(np.clip(tilt, -np.inf, TILT))
    if not weights.sum() > 0:
        return None
    keep = np.flatnonzero(weights > LEAST * weights.max())
    chosen = weights[keep] / weights[keep].sum()
    return Around(vectors[keep], chosen, [found[i][2] for i in keep], root @ root.T)


def _scale(template: Any, top: np.ndarray) -> _Scale:
    low, high = bounds(template)
    entries = [p for p in learned(template) for _ in range(p.value.size)]
    positive = np.array([p.constraint == "positive" for p in entries])
    prior = np.array([p.mark.prior is not None for p in entries])
    room = np.minimum(top - low, high - top)
    widest = np.minimum(room, np.where(positive, WIDEST, np.inf))
    return _Scale(room > 1e-6, widest, positive.astype(float), (positive & prior).astype(float))


def _hessian(profile: Evaluate, top: np.ndarray, slope: np.ndarray, scale: _Scale) -> np.ndarray | None:
    """-∂²L by central differences of the gradient, each wide enough to cost the profile something."""
    rows = []
    for j in np.flatnonzero(scale.inside):
        unit = np.eye(len(top))[j]
        h, ahead = _difference(profile, top, slope, unit, scale.widest[j])
        value, behind, _ = profile(top - h * unit)
        if not (np.isfinite(value) and np.isfinite(ahead).all()):
            return None
        rows.append((behind - ahead)[scale.inside] / (2 * h))
    H = np.array(rows)
    return 0.5 * (H + H.T)


def _difference(
    profile: Evaluate, top: np.ndarray, slope: np.ndarray, unit: np.ndarray, widest: float
) -> tuple[float, np.ndarray]:
    """A step along `unit` that costs the profile about DROP, and the gradient there."""
    h, ahead = min(STEP * max(1.0, abs(float(unit @ top))), widest), slope
    for _ in range(TRIES):
        value, ahead, _ = profile(top + h * unit)
        curvature = unit @ (slope - ahead) / h if np.isfinite(value) else np.inf
        wanted = np.sqrt(2 * DROP / curvature) if curvature > 0 else np.inf
        wanted = float(np.clip(wanted, 0.1 * h, min(10 * h, widest)))
        if h / 3 <= wanted <= 3 * h:
            return h, ahead
        h = wanted
    return h, profile(top + h * unit)[1]


def _root(H: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """A^{-1/2}, one column for each of the least known directions."""
    values, vectors = np.linalg.eigh(H + np.diag(positive))
    floor = max(1e-8 * float(np.abs(values).max()), np.finfo(float).tiny)
    values = np.where(values > floor, values, 1.0)
    order = np.argsort(values)[:MOST]
    return vectors[:, order] / np.sqrt(values[order])


def _signs(directions: int) -> np.ndarray:
    """Rows of ±1 with mean zero and covariance one, (rows, directions)."""
    from scipy.linalg import hadamard

    order = 1 << max(0, (directions - 1).bit_length())
    half = hadamard(order)[:, :directions].astype(float)
    return np.concatenate([half, -half])
