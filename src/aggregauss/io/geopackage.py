"""A table with outlines as a GeoPackage."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from aggregauss.files import whole_file
from aggregauss.io.projection import crs_text, written_crs
from aggregauss.io.words import first_line

if TYPE_CHECKING:
    import geopandas as gpd

RESERVED = ("fid", "geom")  # columns of the format; it does not tell upper from lower case


def write_geopackage(table: "gpd.GeoDataFrame", path: str | os.PathLike, layer: str) -> None:
    """One layer; the file appears whole or not at all."""
    memory = io.BytesIO()  # GDAL's own errors do not say that a disk is full
    table = table.set_crs(written_crs(crs_text(table.crs)), allow_override=True)
    try:
        table.to_file(memory, layer=layer, driver="GPKG")
    except (RuntimeError, OverflowError) as problem:  # how pyogrio refuses a column
        raise ValueError(
            f"write_geopackage: {Path(path).name} cannot be written ({first_line(problem)}). Rename or leave out the "
            "columns that a GeoPackage cannot hold."
        ) from None
    with whole_file(path) as made:
        made.write_bytes(memory.getvalue())
