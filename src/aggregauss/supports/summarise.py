"""Summaries of individuals: where a region is, how many it has, their mean, their median, and how they scatter."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.checks import as_matrix, as_names, as_rows, as_vector, first_bad
from aggregauss.supports.bags import Bags
from aggregauss.supports.boxes import Boxes
from aggregauss.supports.points import Points
from aggregauss.supports.polygons import Polygons
from aggregauss.supports.support import Support

if TYPE_CHECKING:
    import pandas as pd

Found = tuple[Support | None, np.ndarray, np.ndarray | None]  # regions, which one each individual is in, names


@dataclasses.dataclass(frozen=True, eq=False)
class Summaries:
    """One row for each region that has individuals, with three answers to where it is.

    `points` are representative locations: centres of grid cells, centroids of areas, or mean locations. `regions` are
    the cells or areas themselves, and `bags` the locations of the individuals, where these may be known. All are means,
    for a likelihood such as `SampleQuasi`.
    """

    points: Support
    regions: Support
    bags: Support
    counts: np.ndarray
    mean: np.ndarray
    median: np.ndarray
    variances: np.ndarray  # with divisor n: zero for one individual

    def __len__(self) -> int:
        return len(self.counts)

    def to_frame(self) -> "pd.DataFrame":
        """What would be published: representative location, count, mean, median, variance."""
        import pandas as pd

        columns = {f"x{j}": self.points.center[:, j] for j in range(self.points.dim)}
        numbers = {"count": self.counts, "mean": self.mean, "median": self.median, "variance": self.variances}
        return pd.DataFrame({**columns, **numbers}, index=self.regions.labels)

    def __repr__(self) -> str:
        return f"Summaries({len(self)} regions, {int(self.counts.sum()):,} individuals)"


def summarise(points: Any, y: Any, *, grid: Any = None, regions: Any = None, origin: Any = None) -> Summaries:
    """Summaries of the values `y` of individuals at `points`, shape (n, d).

    `grid` is the side of the cells, one number or one for each dimension; they begin at `origin`, by default the lowest
    coordinates. `regions` instead are areas (Shapely geometries, a GeoDataFrame or `Polygons`), or names, one for each
    individual; what only has a name is where its individuals are. Regions without individuals have no row.

    >>> import aggregauss as ag
    >>> cells = ag.summarise([[0.1, 0.2], [0.3, 0.9], [2.5, 0.5]], [1.0, 3.0, 7.0], grid=1.0, origin=[0.0, 0.0])
    >>> cells.mean.tolist(), cells.counts.tolist(), cells.variances.tolist()
    ([2.0, 7.0], [2.0, 1.0], [1.0, 0.0])
    >>> cells.points.center.tolist()
    [[0.5, 0.5], [2.5, 0.5]]
    """
    X = as_matrix(points, "summarise", "points")
    values = as_vector(y, "summarise", "y", len(X))
    if (grid is None) == (regions is None):
        raise ValueError('summarise: give either "grid", the side of the cells, or "regions".')
    if origin is not None and grid is None:
        raise ValueError('summarise: "origin" is where a grid begins. Give "grid" too, or leave it out.')
    where, owner, labels = _cells(X, grid, origin) if grid is not None else _regions(X, regions)
    counts = np.bincount(owner).astype(float)
    mean = np.bincount(owner, values) / counts
    variances = np.bincount(owner, (values - mean[owner]) ** 2) / counts
    order = np.lexsort((values, owner))
    first = np.cumsum(counts).astype(int) - counts.astype(int)
    middle = [first + ((counts - 1) // 2).astype(int), first + (counts // 2).astype(int)]
    median = values[order][middle].mean(axis=0)
    bags = Bags(X, owner, measure="mean")
    around = bags if where is None else where
    centres = Points(around.integrate(around.center))
    places = [dataclasses.replace(support, labels=labels) for support in (centres, around, bags)]
    return Summaries(places[0], places[1], places[2], counts, mean, median, variances)


def _cells(X: np.ndarray, grid: Any, origin: Any) -> Found:
    """Cells with individuals, and which one each is in. A cell has its lower sides but not its upper ones."""
    d = X.shape[1]
    side, low = (
        as_rows(x, "summarise", name, d)
        for x, name in ((grid, "grid"), (X.min(axis=0) if origin is None else origin, "origin"))
    )
    if not (side > 0).all():
        raise ValueError(f'summarise: "grid" must be positive, but is {grid}.')
    cell, owner = np.unique(np.floor((X - low) / side), axis=0, return_inverse=True)
    lower, upper = low + cell * side, low + (cell + 1) * side
    if not (lower < upper).all():
        raise ValueError(f'summarise: "grid" is too narrow for coordinates of this size: {grid}. Give wider cells.')
    return Boxes(lower, upper, measure="mean"), owner.ravel(), None


def _regions(X: np.ndarray, regions: Any) -> Found:
    areas = _as_areas(regions)
    if areas is not None:
        return _in_areas(X, areas)
    if isinstance(regions, Support) or np.shape(regions) != (len(X),):
        raise TypeError(
            'summarise: "regions" must be areas (Shapely geometries, a GeoDataFrame or Polygons) or names, one for '
            f"each of the {len(X)} individuals, but got {type(regions).__name__}. Use grid=... for cells."
        )
    found, owner = np.unique(as_names(regions, "summarise", "regions"), return_inverse=True)
    return None, owner, found


def _as_areas(regions: Any) -> Any:
    """What `Polygons` takes, or None where there is no geometry."""
    if isinstance(regions, Support):
        return None if regions.geometry is None else regions
    if hasattr(regions, "geom_type") and np.ndim(regions) == 0:
        return [regions]
    listed = hasattr(regions, "geometry") or any(hasattr(r, "geom_type") for r in np.asarray(regions, object).flat)
    return regions if listed else None


def _in_areas(X: np.ndarray, regions: Any) -> Found:
    """Areas with individuals; one on a border belongs to the first that has it."""
    import shapely

    if X.shape[1] != 2:
        raise ValueError(
            f'summarise: areas have two dimensions, but "points" has {X.shape[1]}. Give names as "regions".'
        )
    areas = regions.with_measure("mean") if isinstance(regions, Support) else Polygons(regions, measure="mean")
    assert areas.geometry is not None
    individual, area = shapely.STRtree(areas.geometry).query(shapely.points(X), predicate="intersects")
    owner = np.full(len(X), len(areas))
    np.minimum.at(owner, individual, area)
    outside = owner == len(areas)
    if outside.any():
        row = first_bad(outside)[0]
        raise ValueError(
            f"summarise: every individual must lie in one of the regions, but row {row} at {X[row].tolist()} does not "
            f"({outside.sum()} in all). Leave these out, or give regions that hold them."
        )
    present, owner = np.unique(owner, return_inverse=True)
    return areas[present], owner, areas[present].labels
