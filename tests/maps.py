"""Small rasters and regions whose truth is known."""

import geopandas as gpd
import numpy as np
import rioxarray  # noqa: F401
import shapely
import xarray as xr

from aggregauss.io import Grid

UTM, DEGREES, MERCATOR = "EPSG:32738", "EPSG:4326", "EPSG:3857"


def grid(shape=(6, 8), step=1000.0, corner=(500_000.0, 8_000_000.0), crs=UTM):
    return Grid(crs, (step, 0.0, corner[0], 0.0, -step, corner[1]), shape)


def raster(values, where, name=None):
    """A DataArray of `values`, a matrix or a function of x and y, on the grid `where`."""
    x, y = where.xy(np.arange(where.size)).T
    values = values(x, y) if callable(values) else values
    coords = {"y": y[:: where.shape[1]], "x": x[: where.shape[1]]}
    return xr.DataArray(np.reshape(values, where.shape), coords, ("y", "x"), name=name).rio.write_crs(where.crs)


def write(array, path):
    array.rio.to_raster(path)
    return path


def halves(where, split=0.5, **columns):
    """Two regions that share the box of a grid, west and east."""
    west, south, east, north = where.bounds
    middle = west + split * (east - west)
    shapes = [shapely.box(west, south, middle, north), shapely.box(middle, south, east, north)]
    table = {"name": ["west", "east"], "cases": [10, 20]} | columns
    return gpd.GeoDataFrame(table, geometry=shapes, crs=where.crs)
