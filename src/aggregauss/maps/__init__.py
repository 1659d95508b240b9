"""From files to a fine-scale map: regions with counts, a population raster and covariates go in, a map comes out."""

from aggregauss.maps.disaggregate import disaggregate, read_map
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.fit import fit_pixels
from aggregauss.maps.saving import load_check, load_map
from aggregauss.maps.settings import Settings
from aggregauss.maps.targets import polygon_table, predict_polygons, predict_rasters
from aggregauss.maps.validate import Validation, validate

__all__ = [
    "Disaggregation",
    "Settings",
    "Validation",
    "disaggregate",
    "fit_pixels",
    "load_check",
    "load_map",
    "polygon_table",
    "predict_polygons",
    "predict_rasters",
    "read_map",
    "validate",
]
