"""The bundled example from the published stack of Madagascar: one GeoTIFF per raster, districts drawn from the index raster.

    python experiments/madagascar_example.py --data DATA

The outlines are unions of the pixels whose index names the district, so their sides run along pixel edges.
"""

import argparse
import os
from pathlib import Path

import geopandas as gpd
import numpy as np
import rasterio
import rasterio.features
import shapely

TARGET = Path(__file__).parents[1] / "src" / "aggregauss" / "datasets" / "madagascar"
NAMES = {"population": "population", "elevation_z": "elevation", "evi_z": "evi", "lst_mean_z": "lst"}
MEANING = {
    "population": "persons per pixel",
    "elevation": "elevation, standardised",
    "evi": "enhanced vegetation index, standardised",
    "lst": "mean land surface temperature, standardised",
}


def write_rasters(stack):
    profile = {"driver": "GTiff", "dtype": "float32", "nodata": np.nan, "count": 1, "crs": "EPSG:4326"}
    profile |= {"compress": "deflate", "predictor": 3, "zlevel": 9, "tiled": True, "blockxsize": 256, "blockysize": 256}
    profile |= {"width": stack.width, "height": stack.height, "transform": stack.transform}
    for band, name in NAMES.items():
        with rasterio.open(TARGET / f"{name}.tif", "w", **profile) as out:
            out.write(stack.read(stack.descriptions.index(band) + 1), 1)
            out.set_band_description(1, MEANING[name])


def outlines(stack):
    index = stack.read(stack.descriptions.index("polygon_index") + 1)
    inside = np.isfinite(index)
    pieces = rasterio.features.shapes(np.where(inside, index, 0).astype("int32"), inside, transform=stack.transform)
    found = {}
    for shape, number in pieces:
        found.setdefault(int(number), []).append(shapely.geometry.shape(shape))
    return {number: shapely.set_precision(shapely.union_all(parts), 1e-9) for number, parts in found.items()}


def write_districts(stack, table):
    drawn = outlines(stack)
    districts = gpd.GeoDataFrame(
        {"district": table["Name_2"], "region": table["Name_1"], "cases": table["cases"].round(3)},
        geometry=[drawn[number] for number in table["polygon_index"]],
        crs="EPSG:4326",
    )
    districts.to_file(TARGET / "districts.geojson", driver="GeoJSON", COORDINATE_PRECISION=9, ID_GENERATE="NO")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("AGGREGAUSS_DATA"))
    source = Path(parser.parse_args().data) / "malaria_madagascar"
    TARGET.mkdir(exist_ok=True)
    columns = ["polygon_index", "Name_1", "Name_2", "cases"]
    table = gpd.read_file(source / "madagascar_districts.gpkg", columns=columns, ignore_geometry=True)
    with rasterio.open(source / "madagascar_stack.tif") as stack:
        write_rasters(stack)
        write_districts(stack, table)


if __name__ == "__main__":
    main()
