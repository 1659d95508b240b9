"""A made-up country on disk: nine square districts in three provinces, a population raster and one covariate."""

from pathlib import Path

import geopandas as gpd
import numpy as np
import rasterio
import shapely

CRS, CELLS = "EPSG:32738", 12  # pixels along a side, of 5 km
SLOPE = 0.8


def make(folder: Path) -> dict:
    """Files and what is true."""
    rng = np.random.default_rng(5)
    row, column = np.mgrid[:CELLS, :CELLS]
    people = rng.gamma(3.0, 300.0, (CELLS, CELLS))
    rain = np.sin(column / 2.0) + 0.3 * rng.standard_normal((CELLS, CELLS))
    rate = 0.02 * np.exp(SLOPE * rain + 0.4 * np.cos(row / 3.0))
    west, north, step = 500_000.0, 8_000_000.0, 5_000.0
    transform = rasterio.Affine(step, 0, west, 0, -step, north)
    for name, values in (("people", people), ("rain", rain)):
        write_raster(folder / f"{name}.tif", values, transform)
    side = CELLS // 3
    boxes, counts, names = [], [], []
    for i in range(3):
        for j in range(3):
            x, y = west + j * side * step, north - i * side * step
            boxes.append(shapely.box(x, y - side * step, x + side * step, y))
            here = np.s_[i * side : (i + 1) * side, j * side : (j + 1) * side]
            counts.append(rng.poisson((people * rate)[here].sum()))
            names.append(f"district {i}{j}")
    table = {"name": names, "province": [f"province {i // 3}" for i in range(9)], "cases": counts}
    shapes = gpd.GeoDataFrame(table, geometry=boxes, crs=CRS)
    shapes["tested"] = shapes["cases"] * 4 + 50
    shapes.to_file(folder / "districts.gpkg", driver="GPKG")
    return {"folder": folder, "districts": shapes, "rate": rate, "people": people, "rain": rain, "transform": transform}


def write_raster(path: Path, values: np.ndarray, transform: rasterio.Affine, crs: str | None = CRS) -> None:
    """One band."""
    shape = {"height": values.shape[0], "width": values.shape[1]}
    with rasterio.open(
        path, "w", driver="GTiff", count=1, dtype="float64", crs=crs, transform=transform, **shape
    ) as out:
        out.write(values, 1)
