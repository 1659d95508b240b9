"""Data from files and results to files; needs the extras `geo` (rasters, regions) and `scale` (Parquet)."""

from aggregauss.files import whole_file, whole_folder
from aggregauss.io.align import align, class_fractions
from aggregauss.io.coverage import coverage
from aggregauss.io.geotiff import write_geotiff
from aggregauss.io.grid import Grid, common_grid, grid_of
from aggregauss.io.individuals import read_individuals
from aggregauss.io.parquet import ParquetBags
from aggregauss.io.pixel_record import Pixels
from aggregauss.io.pixels import read_pixels
from aggregauss.io.rasters import open_raster
from aggregauss.io.regions import read_regions

__all__ = [
    "Grid",
    "ParquetBags",
    "Pixels",
    "align",
    "class_fractions",
    "common_grid",
    "coverage",
    "grid_of",
    "open_raster",
    "read_individuals",
    "read_pixels",
    "read_regions",
    "whole_file",
    "whole_folder",
    "write_geotiff",
]
