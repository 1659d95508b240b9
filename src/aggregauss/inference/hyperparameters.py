"""What the data leave open about hyper-parameters, as a mixture over a few of their values.

Near its top θ̂ the profile L (the evidence, or a bound of it, plus log priors) is quadratic with Hessian -H, found by
differences of its gradient. The values

    θ̂ + A^{-1/2} z,        A = H + D,        z the columns of a Hadamard matrix and their mirror images, signs of ±1,

have the mean and the covariance A⁻¹ of that normal density, and each is one standard deviation away in every direction:
far enough to matter, near enough for L to be close to quadratic. Their weights are exp(L - its quadratic). A prior is a
density in natural units, dφ = φ dlog φ: where logarithms have one, the values lie about θ̂ + A⁻¹ j instead, with j = 1
for these. D, for logarithms of positive parameters, is one where there is no prior, and otherwise what H lacks of one:
what is hardly pinned down at all is taken to be known to a factor of e.
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
    jacobian: np.ndarray  # 1 for logarithms with a prior


def around(profile: Evaluate, template: Any, top: np.ndarray) -> Around | None:
    """The mixture about the top of a profile; None where there is nothing to learn or no quadratic to be found."""
    scale = _scale(template, top)
    _, slope, _ = profile(top)
    H = _hessian(profile, top, slope, scale) if scale.inside.any() else None
    if H is None:
        return None
    low, high = bounds(template)
    inside = scale.inside
    D = np.zeros(len(top))
    D[inside] = scale.positive[inside] * np.where(scale.jacobian[inside] > 0, np.clip(1.0 - np.diag(H), 0.0, 1.0), 1.0)
    root = np.zeros((len(top), min(MOST, len(H))))
    root[inside] = _root(H + np.diag(D[inside]))
    centre = np.clip(top + root @ (root.T @ scale.jacobian), low, high)
    vectors = np.clip(centre + _signs(root.shape[1]) @ root.T, low, high)
    found = [profile(vector) for vector in vectors]
    tilt = np.array([value for value, _, _ in found]) - profile(centre)[0] + 0.5 * root.shape[1]
    tilt += (vectors - centre) @ scale.jacobian - 0.5 * ((vectors - top) ** 2 - (centre - top) ** 2) @ D
    weights = np.exp(np.clip(tilt, -np.inf, TILT))
    if not (np.isfinite(weights).all() and weights.sum() > 0):
        return None
    keep = np.flatnonzero(weights > LEAST * weights.max())
    chosen = weights[keep] / weights[keep].sum()
    return Around(vectors[keep], chosen, [found[i][2] for i in keep], root @ root.T)


def log_measure(template: Any, vectors: np.ndarray, top: np.ndarray) -> np.ndarray:
    """What turns profiles at packed values into log densities of these: θ for logarithms with a prior, and D of those
    without one."""
    scale = _scale(template, top)
    return vectors @ scale.jacobian - 0.5 * (vectors - top) ** 2 @ (scale.positive - scale.jacobian)


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


def _root(A: np.ndarray) -> np.ndarray:
    """A^{-1/2}, one column for each of the least known directions."""
    values, vectors = np.linalg.eigh(A)
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
