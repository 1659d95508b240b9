"""Polygons over the pixels of a map: its own regions, health districts, a grid, last year's boundaries."""

import dataclasses
from typing import Any

import numpy as np

from aggregauss.checks import first_bad, warn
from aggregauss.io.coverage import coverage
from aggregauss.io.pixel_record import Pixels
from aggregauss.io.regions import read_shapes, repaired
from aggregauss.io.words import several
from aggregauss.supports.support import Measure, Support

BEYOND = 0.01  # part of a polygon's area outside of the map from which it is said


@dataclasses.dataclass(frozen=True, eq=False)
class Pieces:
    """Parts of pixels, each with the polygon that it belongs to and the people who live on it."""

    owner: np.ndarray  # sorted
    pixel: np.ndarray
    weight: np.ndarray
    labels: np.ndarray  # of the polygons
    covered: np.ndarray  # part of each polygon's area that lies on the map

    def bags(self, pixels: Pixels, measure: Measure) -> Support:
        """Each polygon as a bag of pixels."""
        some = self.weight > 0
        center, owner = pixels.columns[self.pixel[some]], self.owner[some]
        size, width = len(self.labels), np.zeros_like(center)
        return Support(center, width, owner, self.weight[some], size, measure, "Bags", labels=self.labels)

    def rows(self, chosen: np.ndarray) -> "Pieces":
        """Some of the polygons, in this order."""
        new = np.full(len(self.labels), -1)
        new[chosen] = np.arange(len(chosen))
        kept = np.flatnonzero(new[self.owner] >= 0)
        kept = kept[np.argsort(new[self.owner[kept]], kind="stable")]
        return Pieces(
            new[self.owner[kept]], self.pixel[kept], self.weight[kept], self.labels[chosen], self.covered[chosen]
        )


def own_pieces(pixels: Pixels) -> Pieces:
    """The regions that the map was made from."""
    n = len(pixels.regions)
    return Pieces(pixels.region, pixels.pixel, pixels.weight, pixels.regions["label"].to_numpy(), np.ones(n))


def overlay(pixels: Pixels, target: Any) -> Pieces:
    """Any polygons: a GeoDataFrame, or a file of one."""
    import shapely

    if pixels.grid is None:
        raise TypeError("predict: this map was made from a table of individuals, which has no grid to lay polygons on.")
    shapes = _in_coordinates_of_the_grid(target, pixels.grid.crs)
    notes: list[str] = []
    outlines = repaired(shapes.geometry, [str(name) for name in shapes.index], notes, "predict", "polygon")
    for note in notes:
        warn(f"predict: {note}")
    owner, cell, share = coverage(pixels.grid, outlines)
    number = np.full(int(np.prod(pixels.grid.shape)), -1)
    number[pixels.cell] = np.arange(len(pixels.cell))
    known = (number[cell] >= 0) & (share > 0)
    owner, pixel, share = owner[known], number[cell[known]], share[known]
    weight = pixels.population[pixel] * share
    empty = ~(np.bincount(owner, weight, minlength=len(shapes)) > 0)
    if empty.any():
        row = first_bad(empty)[0]
        raise ValueError(
            f"predict: every polygon must hold people of the map, but row {row} ({shapes.index[row]!r}) has none. "
            f"Remove the {empty.sum()} such polygon(s)."
        )
    cells = shapely.area(np.asarray(outlines)) / np.abs(pixels.grid.step).prod()
    covered = np.minimum(np.bincount(owner, share, minlength=len(shapes)) / cells, 1.0)
    _say_beyond(covered, shapes.index)
    return Pieces(owner, pixel, weight, np.asarray(shapes.index), covered)


def _say_beyond(covered: np.ndarray, labels: Any) -> None:
    beyond = 1.0 - covered > BEYOND
    if beyond.any():
        most = int(np.argmin(covered))
        warn(
            f"predict: {several(int(beyond.sum()), 'polygon')} beyond the map, most of all {labels[most]!r}, of whose "
            f"area {1.0 - covered[most]:.0%} lies outside; numbers are those of the part inside."
        )


def _in_coordinates_of_the_grid(target: Any, crs: str) -> Any:
    import geopandas as gpd

    shapes = target if isinstance(target, gpd.GeoDataFrame | gpd.GeoSeries) else read_shapes(target)
    if shapes.crs is None:
        raise ValueError(
            'predict: the polygons have no coordinate reference system. Set it, e.g. gdf.set_crs("EPSG:4326").'
        )
    return shapes.to_crs(crs)
