"""What any increasing link makes of a normal number."""

import dataclasses

import numpy as np
from scipy.special import ndtr, ndtri

from aggregauss.marginals.chart import REACH, TINY, Chart, Function, Number, log_normal_density, normal_chart
from aggregauss.marginals.marginals import Marginals

WIDTH = 1 / 8  # between nodes of the trapezium rule, which a normal weight makes exponentially accurate
SMALL = 1e-4  # step of the central difference that stands for g'


@dataclasses.dataclass(frozen=True)
class TransformedMarginals(Marginals):
    """g(N(location, spread²)) for an increasing function g, `forward`, and g⁻¹, `inverse`."""

    location: np.ndarray
    spread: np.ndarray
    forward: Function
    inverse: Function

    @classmethod
    def of(
        cls, location: np.ndarray, variance: np.ndarray, forward: Function, inverse: Function
    ) -> "TransformedMarginals":
        """g(N(location, variance)), with its mean and variance by quadrature.

        >>> import numpy as np
        >>> from scipy.special import expit, logit
        >>> TransformedMarginals.of(np.zeros(1), np.ones(1), expit, logit).cdf(np.array([0.5]))
        array([0.5])
        """
        spread, centre = np.sqrt(np.maximum(variance, TINY)), forward(location)
        first, second = np.zeros_like(centre), np.zeros_like(centre)
        for z in np.arange(-REACH, REACH + WIDTH / 2, WIDTH):
            weight, difference = WIDTH * np.exp(log_normal_density(z)), forward(location + spread * z) - centre
            first, second = first + weight * difference, second + weight * difference**2
        return cls(centre + first, second - first**2, location, spread, forward, inverse)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        """Φ((g⁻¹(x) - location) / spread)."""
        return ndtr((self.inverse(np.clip(x, *self._range)) - self.location) / self.spread)

    def quantile(self, p: Number) -> np.ndarray:
        """g(location + spread Φ⁻¹(p))."""
        return self._value(ndtri(p))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log φ((v - location) / spread) - log spread - log g'(v), v = g⁻¹(y)."""
        low, high = self._range
        inside = (y > low) & (y < high)
        v = np.where(inside, self.inverse(np.where(inside, y, self.forward(self.location))), 0.0)
        slope = (self.forward(v + SMALL) - self.forward(v - SMALL)) / (2 * SMALL)
        density = log_normal_density((v - self.location) / self.spread) - np.log(self.spread * slope)
        return np.where(inside, density, -np.inf)

    def chart(self) -> Chart:
        """g(location + spread z)."""
        return normal_chart(self._value)

    @property
    def _range(self) -> tuple[Number, Number]:
        return self.forward(np.asarray(-np.inf)), self.forward(np.asarray(np.inf))

    def _value(self, z: Number) -> np.ndarray:
        return self.forward(self.location + self.spread * z)
