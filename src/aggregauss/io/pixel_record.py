"""Individuals of a map, their covariates and weights, and which region holds how much of each.

The mass of region i is Σ_j population_j · share_ij over the pixels j that it touches.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from aggregauss.io.grid import Grid
from aggregauss.io.words import several
from aggregauss.supports import Bags, Points, Support
from aggregauss.supports.support import Measure

if TYPE_CHECKING:
    import geopandas as gpd
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Pixels:
    """Individuals (pixels of one grid, or rows of a table), and which region holds how much of each."""

    coordinates: np.ndarray  # (N, 2) km in a metric plane, or as given in a table
    covariates: np.ndarray  # (N, c)
    names: tuple[str, ...]  # of the covariates
    population: np.ndarray  # (N,) persons in the whole pixel; km² of the pixel where no population is given
    cell: np.ndarray  # (N,) sorted: number of the cell in `grid`, or row of a table
    grid: Grid | None
    region: np.ndarray  # (M,) sorted: number of the region
    pixel: np.ndarray  # (M,) number of the pixel
    share: np.ndarray  # (M,) how much of the pixel lies in the region, 0 to 1
    regions: "gpd.GeoDataFrame | pd.DataFrame"  # label, observed, [examined], [geometry, in the grid's system]
    notes: tuple[str, ...] = ()  # what was done to the files, in sentences

    def __len__(self) -> int:
        return len(self.population)

    def __repr__(self) -> str:
        covariates = ", ".join(self.names) or "no covariates"
        return f"Pixels({several(len(self), 'pixel')} in {several(len(self.regions), 'region')}: {covariates})"

    @property
    def columns(self) -> np.ndarray:
        """Inputs of the model, (N, c + 2): covariates, then coordinates."""
        return np.column_stack([self.covariates, self.coordinates])

    @property
    def weight(self) -> np.ndarray:
        """Population of each pixel in each region, (M,)."""
        return self.population[self.pixel] * self.share

    def bags(self, measure: Measure = "total") -> Support:
        """The regions as bags of their populated pixels, in the order of `regions`."""
        weight = self.weight
        some = weight > 0
        labels = np.asarray(self.regions["label"], dtype=str)
        return Bags(self.columns[self.pixel[some]], labels[self.region[some]], weight[some], measure, labels)

    def points(self) -> Support:
        """Every pixel, populated or not."""
        return Points(self.columns)

    def totals(self) -> np.ndarray:
        """Population of each region."""
        return np.bincount(self.region, self.weight, minlength=len(self.regions))


def kept_pixels(pixels: Pixels, kept: np.ndarray) -> Pixels:
    """Some of the pixels, by a mask."""
    number = np.cumsum(kept) - 1
    pairs = kept[pixels.pixel]
    return dataclasses.replace(
        pixels,
        coordinates=pixels.coordinates[kept],
        covariates=pixels.covariates[kept],
        population=pixels.population[kept],
        cell=pixels.cell[kept],
        region=pixels.region[pairs],
        pixel=number[pixels.pixel[pairs]],
        share=pixels.share[pairs],
    )


def kept_regions(pixels: Pixels, kept: np.ndarray) -> Pixels:
    """Some of the regions, by a mask; all pixels stay."""
    pairs = kept[pixels.region]
    return dataclasses.replace(
        pixels,
        region=(np.cumsum(kept) - 1)[pixels.region[pairs]],
        pixel=pixels.pixel[pairs],
        share=pixels.share[pairs],
        regions=pixels.regions[kept].reset_index(drop=True),
    )


def positions(wanted: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Where each wanted number is in a sorted array; -1 where it is not."""
    at = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return np.where(among[at] == wanted, at, -1)
