"""A table with outlines as a GeoPackage."""

import io
import os
from typing import TYPE_CHECKING

from aggregauss.files import whole_file
from aggregauss.io.projection import crs_text, written_crs

if TYPE_CHECKING:
    import geopandas as gpd


def write_geopackage(table: "gpd.GeoDataFrame", path: str | os.PathLike, layer: str) -> None:
    """One layer; the file appears whole or not at all."""
    memory = io.BytesIO()  # GDAL's own errors do not say that a disk is full
    table = table.set_crs(written_crs(crs_text(table.crs)), allow_override=True)
    table.to_file(memory, layer=layer, driver="GPKG")
    with whole_file(path) as made:
        made.write_bytes(memory.getvalue())
