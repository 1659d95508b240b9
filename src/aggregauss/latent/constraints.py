"""Constraints on the latent function, imposed at virtual points.

Non-negativity: a factor Φ(f(v_j) / ν) at each virtual point v_j (Smith, Alvarez and Lawrence 2019, after Riihimaki and
Vehtari 2010), which tends to the indicator of f(v_j) >= 0 as ν → 0.
"""

import dataclasses
from typing import Any, Literal

import numpy as np

from aggregauss.archive import storable
from aggregauss.checks import as_matrix, one_of, whole_number
from aggregauss.supports import Points, Support

GRID_DIMS = 2  # beyond so many dimensions a grid is too coarse or too large
RELATIVE_SCALE = 0.01  # default ν, in standard deviations of the observed density


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class NonNegative:
    """f >= 0, at `points`: a number of virtual points, or the points themselves, shape (m, d).

    With a number, `placement="grid"` spreads them over the extent of the data, and "adaptive" adds them a few at a time
    where the posterior is most likely to be negative; "auto" takes the grid in one or two dimensions. `scale` is ν, in
    units of the function; by default a hundredth of the standard deviation of the observed densities.

    >>> NonNegative(20).locations(np.array([0.0]), np.array([10.0])).center[:, 0].tolist()[:3]
    [0.0, 0.5263157894736842, 1.0526315789473684]
    """

    points: Any = 50
    scale: float | None = None
    placement: Literal["auto", "grid", "adaptive"] = "auto"

    def __post_init__(self) -> None:
        one_of(self.placement, ("auto", "grid", "adaptive"), "NonNegative", "placement")
        if self.scale is not None and not self.scale > 0:
            raise ValueError(f'NonNegative: "scale" must be positive, but got {self.scale}.')
        if np.ndim(self.points) == 0:
            whole_number(self.points, "NonNegative", "points")
        else:
            object.__setattr__(self, "points", as_matrix(self.points, "NonNegative", "points"))

    def is_adaptive(self, dim: int) -> bool:
        """Whether virtual points are to be placed by looking at the posterior."""
        if np.ndim(self.points) != 0:
            return False
        return self.placement == "adaptive" or (self.placement == "auto" and dim > GRID_DIMS)

    def locations(self, low: np.ndarray, high: np.ndarray) -> Support:
        """Given points, or a grid over the box from `low` to `high`."""
        if np.ndim(self.points) != 0:
            return Points(self.points)
        per_axis = max(2, round(self.points ** (1 / len(low))))
        axes = [np.linspace(a, b, per_axis) for a, b in zip(low, high)]
        return Points(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low)))

    def candidates(self, low: np.ndarray, high: np.ndarray, seed: int) -> Support:
        """Places at which adaptive placement looks: a Sobol sequence over the box."""
        from scipy.stats import qmc  # slow to import

        u = qmc.Sobol(len(low), rng=np.random.default_rng(seed)).random(1024)
        return Points(low + u * (high - low))
