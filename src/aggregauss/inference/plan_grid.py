"""Which grid to publish: cells narrow enough for a kernel, and wide enough to hide individuals.

Of the grids whose η (see `representative`) is at most the target, the coarsest has the fullest cells. It is the plan if
hardly anyone lives in a cell with fewer individuals than may be published.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aggregauss.checks import as_matrix, as_rows, as_vector, share_of_one, whole_number
from aggregauss.inference.granularity import FINE, PLACES
from aggregauss.inference.representative import difference
from aggregauss.kernels.covariance import cov
from aggregauss.kernels.kernel import Kernel
from aggregauss.kernels.white import continuous
from aggregauss.supports.boxes import Boxes
from aggregauss.supports.points import Points
from aggregauss.supports.support import Support, draw

if TYPE_CHECKING:
    import pandas as pd

NODES = 1 << 14  # places that stand for a density
GRIDS = 40  # at most so many are tried, each with cells narrower by the square root of two


@dataclasses.dataclass(frozen=True)
class Grid:
    """One grid: how fine it is, and whom it exposes."""

    widths: tuple[float, ...]
    cells: int  # with enough individuals to be published
    median_count: float  # of those
    suppressed: float  # share of individuals in cells with too few
    eta: float
    place_error: float


class Individuals(NamedTuple):
    """Places, how many individuals each stands for, and where grids begin."""

    places: np.ndarray
    weights: np.ndarray
    origin: np.ndarray

    def by_cell(self, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells with someone in them (whole numbers from the origin), their counts, and the cell of each place."""
        index = np.floor((self.places - self.origin) / widths).astype(int)
        found, cell = np.unique(index, axis=0, return_inverse=True)
        return found, np.bincount(cell.ravel(), self.weights), cell.ravel()


@dataclasses.dataclass(frozen=True, eq=False)
class GridPlan:
    """The grid that was chosen (None if there is none), all that were tried, and why."""

    grid: Grid | None
    tried: tuple[Grid, ...]
    verdict: str
    individuals: Individuals
    least_count: int

    @property
    def cells(self) -> Support:
        """The cells that may be published, as supports with measure "mean"."""
        if self.grid is None:
            raise ValueError(f"plan_grid: there is no such grid. {self.verdict}")
        widths = np.array(self.grid.widths)
        found, count, _ = self.individuals.by_cell(widths)
        low = self.origin + found[count >= self.least_count] * widths
        return Boxes(low, low + widths, measure="mean")

    @property
    def origin(self) -> np.ndarray:
        """The lower corner of every grid."""
        return self.individuals.origin

    def table(self) -> "pd.DataFrame":
        """All grids that were tried, coarsest first."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(grid) for grid in self.tried])

    def __repr__(self) -> str:
        return f"GridPlan({len(self.tried)} grids tried)\n  {self.verdict}"


def plan_grid(
    kernel: Kernel,
    X: Any = None,
    *,
    domain: Any = None,
    density: float | Callable[[np.ndarray], Any] | None = None,
    least_count: int = 10,
    suppressed: float = 0.05,
    target: float = FINE,
    widths: Any = None,
) -> GridPlan:
    """The coarsest grid whose summaries by cell centres are fine enough for `kernel`: eta at most `target`.

    At most the share `suppressed` of the individuals may fall in cells with fewer than `least_count`, which cannot be
    published. Individuals are at the places `X`, or spread over `domain=(low, high)` with `density` individuals for
    each unit of volume (a number, or a function of places). Cells have the proportions of the kernel's ranges; give
    `widths`, rows of one number for each dimension, to choose among grids of your own. Hand the plan to `summarise` as
    `grid=plan.grid.widths, origin=plan.origin`; `plan.cells` are the cells that may be published.

    >>> import aggregauss as ag
    >>> plan = plan_grid(ag.RBF(10.0, 1.0), domain=([0.0], [100.0]), density=20.0, least_count=10)
    >>> plan.grid.eta <= 0.2, plan.grid.suppressed, plan.cells.kind
    (True, 0.0, 'Boxes')
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f'plan_grid: "kernel" must be a kernel such as RBF(2.0), but got {type(kernel).__name__}.')
    kept = continuous(kernel)
    if kept is None:
        raise TypeError("plan_grid: under a White kernel no grid is fine enough. Add another kernel.")
    whole_number(least_count, "plan_grid", "least_count")
    for name, value in (("suppressed", suppressed), ("target", target)):
        share_of_one(value, "plan_grid", name)
    who = _individuals(X, domain, density)
    kept.check_dim(who.places.shape[1])
    tried = []
    for width in _candidates(kept, who.places) if widths is None else _given(widths, who.places.shape[1]):
        tried.append(_assess(kept, who, width, least_count))
        if widths is None and tried[-1].eta <= target / 2:
            break
    chosen, verdict = _choose(tried, least_count, suppressed, target)
    return GridPlan(chosen, tuple(tried), verdict, who, least_count)


def _assess(kernel: Kernel, who: Individuals, widths: np.ndarray, least_count: int) -> Grid:
    found, count, cell = who.by_cell(widths)
    centers = who.origin + (found + 0.5) * widths
    chosen = draw(len(who.places), PLACES, seed=0)
    p = who.weights[chosen] / who.weights[chosen].sum()
    apart = difference(kernel, who.places[chosen], centers[cell[chosen]], p)
    full = count >= least_count
    return Grid(
        widths=tuple(widths.tolist()),
        cells=int(full.sum()),
        median_count=float(np.median(count[full])) if full.any() else 0.0,
        suppressed=float(count[~full].sum() / count.sum()),
        eta=apart.eta,
        place_error=apart.error,
    )


def _choose(tried: list[Grid], least: int, suppressed: float, target: float) -> tuple[Grid | None, str]:
    fine = [grid for grid in tried if grid.eta <= target]
    safe = [grid for grid in tried if grid.suppressed <= suppressed]
    both = [grid for grid in fine if grid.suppressed <= suppressed]
    if both:
        best = max(both, key=lambda grid: np.prod(grid.widths))
        return best, (
            f"Cells of {_sides(best)}: eta {best.eta:.2g} (target {target:.2g}), {best.cells:,} cells with {least} "
            f"or more individuals (median {best.median_count:.0f}), {best.suppressed:.1%} of individuals in others."
        )
    parts = ["No grid does both."]
    if fine:
        best = max(fine, key=lambda grid: np.prod(grid.widths))
        parts.append(
            f"Cells of {_sides(best)} have eta {best.eta:.2g}, but {best.suppressed:.0%} of individuals are in cells "
            f"with fewer than {least}."
        )
    else:
        parts.append(f"None that was tried has eta below {target:.2g}.")
    if safe:
        best = min(safe, key=lambda grid: grid.eta)
        parts.append(f"Cells of {_sides(best)} hide everyone well enough, but have eta {best.eta:.2g}.")
    parts.append("Publish the cells' bounds and fit them as Boxes, lower least_count, or raise target.")
    return None, " ".join(parts)


def _sides(grid: Grid) -> str:
    return " x ".join(f"{width:.3g}" for width in grid.widths)


def _candidates(kernel: Kernel, places: np.ndarray) -> Iterator[np.ndarray]:
    """Grids in the proportions of the kernel's ranges, from one cell on, rounded to two digits."""
    extent = np.ptp(places, axis=0)
    extent = np.where(extent > 0, extent, 1.0)
    dim = len(extent)
    seen = kernel.touches(dim)  # what the kernel does not see needs no cutting
    reach = np.array([_range(kernel, places.mean(axis=0), j, extent[j]) if j in seen else np.inf for j in range(dim)])
    largest = 1.01 * np.max(extent / reach)
    for step in itertools.islice(itertools.count(), GRIDS):
        widths = np.minimum(largest * 2 ** (-step / 2) * reach, 1.01 * extent)
        yield np.array([float(f"{width:.2g}") for width in widths])


def _range(kernel: Kernel, middle: np.ndarray, j: int, extent: float) -> float:
    """The distance along dimension `j` at which the covariance has fallen to half, or the extent."""
    steps = np.geomspace(1e-6, 1.0, 200) * extent
    there = np.tile(middle, (len(steps) + 1, 1))
    there[1:, j] += steps
    here = np.asarray(cov(kernel, Points(there), Points(middle[None])))[:, 0]
    far = np.flatnonzero(here[1:] <= 0.5 * here[0])
    return float(steps[far[0]]) if len(far) else float(extent)


def _given(widths: Any, dim: int) -> Iterator[np.ndarray]:
    table = as_matrix(widths, "plan_grid", "widths")
    if table.shape[1] not in (1, dim):
        raise ValueError(
            f'plan_grid: "widths" must have rows of one number or of {dim}, but they have {table.shape[1]}.'
        )
    if (table <= 0).any():
        raise ValueError(f'plan_grid: "widths" must be positive, but the least is {table.min()}.')
    return (np.broadcast_to(row, dim) for row in table)


def _individuals(X: Any, domain: Any, density: Any) -> Individuals:
    if (X is None) == (domain is None):
        raise ValueError('plan_grid: give either the places "X", or "domain" and "density".')
    if X is not None:
        if density is not None:
            raise ValueError('plan_grid: "density" is for "domain". Leave it out where the places "X" are given.')
        places = as_matrix(X, "plan_grid", "X")
        return Individuals(places, np.ones(len(places)), places.min(axis=0))
    if density is None:
        raise ValueError('plan_grid: "domain" needs "density", the number of individuals for each unit of volume.')
    from scipy.stats import qmc  # slow to import

    if not isinstance(domain, tuple | list | np.ndarray) or len(domain) != 2:
        raise ValueError(f'plan_grid: "domain" must be (low, high), but got {domain!r}.')
    low, high = (as_vector(end, "plan_grid", "domain") for end in domain)
    if len(low) != len(high) or (low >= high).any():
        raise ValueError('plan_grid: "domain" must be (low, high) with every low below its high.')
    places = low + qmc.Sobol(len(low), rng=np.random.default_rng(0)).random(NODES) * (high - low)
    each = as_rows(density(places) if callable(density) else density, "plan_grid", "density", NODES)
    if (each < 0).any() or not each.any():
        raise ValueError('plan_grid: "density" must not be negative, and not zero everywhere.')
    return Individuals(places, each * np.prod(high - low) / NODES, low)
