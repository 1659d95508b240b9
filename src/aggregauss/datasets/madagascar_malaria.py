"""Malaria in Madagascar: cases by district, a population raster and three covariate rasters, as files."""

import dataclasses
import functools
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import geopandas as gpd

COVARIATES = ("elevation", "evi", "lst")


@dataclasses.dataclass(frozen=True)
class MapFiles:
    """Where the files of a map lie: districts with counts, population by pixel, covariates by name."""

    districts: Path
    population: Path
    covariates: dict[str, Path]
    attribution: Path

    @functools.cached_property
    def regions(self) -> "gpd.GeoDataFrame":
        """The regions that the districts form, with the sums of their cases."""
        import geopandas as gpd

        districts = gpd.read_file(self.districts)
        return districts[["region", "cases", "geometry"]].dissolve("region", aggfunc="sum", as_index=False)


def madagascar() -> MapFiles:
    """Expected malaria cases in a year in the 109 districts of Madagascar, and rasters of 1/24 degree.

    The counts are not whole numbers; `population` is in persons per pixel; the covariates are standardised. By the
    Malaria Atlas Project (CC BY) and Nandi et al. (2023); what is known of the licence is in the file `attribution`.

    >>> files = madagascar()
    >>> sorted(files.covariates), files.districts.name
    (['elevation', 'evi', 'lst'], 'districts.geojson')
    >>> len(files.regions), round(files.regions["cases"].sum())
    (22, 1237811)
    """
    folder = Path(str(resources.files("aggregauss.datasets") / "madagascar"))
    covariates = {name: folder / f"{name}.tif" for name in COVARIATES}
    return MapFiles(folder / "districts.geojson", folder / "population.tif", covariates, folder / "ATTRIBUTION.txt")
