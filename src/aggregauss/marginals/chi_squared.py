"""What the square link makes of a normal number: a non-central χ² with one degree of freedom.

With a = |location| / spread, the root r = √(x / scale) / spread follows the folded normal distribution of |Z + a|:

    P(r) = Φ(r - a) - Φ(-r - a),   1 - P(r) = Φ(a - r) + Φ(-a - r),   density d(r) = φ(r - a) + φ(r + a).

log P and log(1 - P) are both concave, so that Newton's method on either, begun on its outer side, never overshoots.
"""

import dataclasses

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp, roots_legendre

from aggregauss.marginals.chart import FAR, REACH, TINY, Chart, Number, log_normal_density
from aggregauss.marginals.marginals import Marginals

NODES, WEIGHTS = (a / 2 for a in roots_legendre(10))


@dataclasses.dataclass(frozen=True)
class SquaredMarginals(Marginals):
    """scale · (N(location, spread²))²."""

    location: np.ndarray
    spread: np.ndarray
    scale: Number = 1.0

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """P(√(x / scale) / spread); small probabilities keep their digits."""
        inside = np.exp(_log_inside(self._root(np.where(x > 0, x, 1.0)), self._a))
        return np.where(x > 0, inside, 0.0)

    def quantile(self, p: Number) -> np.ndarray:
        """scale spread² r², P(r) = p."""
        return self._value(_folded_quantile(np.log(p), np.log1p(-np.asarray(p)), self._a))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log d(r) - log(2 r scale spread²)."""
        r = self._root(np.where(y > 0, y, 1.0))
        inside = _log_density(r, self._a) - np.log(2 * r * self.scale * self.spread**2)
        return np.where(y > 0, inside, np.where(y < 0, -np.inf, np.inf))

    def chart(self) -> Chart:
        """scale spread² r², r folded normal."""
        a = self._a
        return Chart(
            self._value,
            lambda r: _log_density(r, a),
            lambda r: ndtr(r - a) - ndtr(-r - a),
            (np.maximum(a - REACH, 0.0), a + REACH),
            (np.maximum(a - REACH - FAR, 0.0), a + REACH + FAR),
        )

    @property
    def _a(self) -> np.ndarray:
        return np.abs(self.location) / self.spread

    def _root(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x / self.scale) / self.spread

    def _value(self, r: np.ndarray) -> np.ndarray:
        return self.scale * (self.spread * r) ** 2


def squared(location: np.ndarray, variance: np.ndarray, scale: Number = 1.0) -> SquaredMarginals:
    """scale · v², v ~ N(location, variance): mean scale (m² + S), variance scale² (4 m² S + 2 S²).

    >>> import numpy as np
    >>> squared(np.zeros(1), np.ones(1)).quantile(0.95).round(4)
    array([3.8415])
    """
    variance = np.maximum(variance, 1e-16 * location**2 + TINY)  # so that a stays below 1e8
    mean = scale * (location**2 + variance)
    return SquaredMarginals(
        mean, scale**2 * (4 * location**2 * variance + 2 * variance**2), location, np.sqrt(variance), scale
    )


def _log_density(r: np.ndarray, a: np.ndarray) -> np.ndarray:
    """log d(r)."""
    return np.logaddexp(log_normal_density(r - a), log_normal_density(r + a))


def _log_inside(r: np.ndarray, a: np.ndarray) -> np.ndarray:
    """log P(r); where the difference of the two Φ cancels, from 2 φ(a) ∫_0^r e^{-t²/2} cosh(at) dt."""
    near = r * (1 + a) < 1
    t = np.where(near, r, 0.0)
    integral = sum(w * np.exp(-0.5 * (t * u) ** 2) * np.cosh(a * t * u) for u, w in zip(NODES + 0.5, WEIGHTS))
    close = log_normal_density(a) + np.log(2 * r * integral)
    upper, lower = log_ndtr(r - a), log_ndtr(-r - a)
    return np.where(near, close, upper + np.log1p(-np.exp(np.where(near, -1.0, lower - upper))))


def _log_outside(r: np.ndarray, a: np.ndarray) -> np.ndarray:
    """log(1 - P(r))."""
    return np.logaddexp(log_ndtr(a - r), log_ndtr(-a - r))


def _folded_quantile(log_p: Number, log_q: Number, a: np.ndarray) -> np.ndarray:
    """r with P(r) = p = 1 - q, from whichever of the two is smaller."""
    below = log_p < log_q
    target, sign = np.where(below, log_p, log_q), np.where(below, 1.0, -1.0)
    left = np.maximum(np.exp(log_p) * np.sqrt(np.pi / 2), a + ndtri_exp(log_p))  # P(r) <= r √(2/π), Φ(r - a)
    right = a - ndtri_exp(log_q - np.log(2))  # 1 - P(r) <= 2 Φ(a - r)
    r = np.where(below, left, right)
    for _ in range(60):
        tail = np.where(below, _log_inside(r, a), _log_outside(r, a))
        step = sign * (target - tail) * np.exp(tail - _log_density(r, a))
        r = r + step
        if np.all(np.abs(step) <= 1e-9 * np.minimum(r, 1.0)):
            break
    return r
