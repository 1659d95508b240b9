"""Islands on both sides of 180 degrees are neighbours, whatever the files say their longitudes are."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import aggregauss as ag
import maps
from aggregauss.io import grid_of, open_raster, read_pixels, read_regions, write_geotiff
from aggregauss.io.geopackage import write_geopackage
from aggregauss.maps.blocks import predict_raster
from aggregauss.maps.overlay import overlay

WEST, STEP = 179.0, 0.1  # a grid of 2 x 1 degrees around 180
SHAPE = (10, 20)
PEOPLE = np.random.default_rng(0).uniform(1, 9, SHAPE)
WORLD = maps.grid((10, 3600), STEP, (-180.0, -16.0), maps.DEGREES)


def _split():
    """Two regions as files have them: cut along 180, and beyond it with negative longitudes."""
    across = [shapely.box(179.5, -17, 180, -16.5), shapely.box(-180, -17, -179.5, -16.5)]
    shapes = [shapely.box(179, -17, 179.5, -16), shapely.MultiPolygon(across)]
    return gpd.GeoDataFrame({"name": ["west", "across"], "cases": [3, 5]}, geometry=shapes, crs=4326)


def _whole():
    shapes = [shapely.box(179, -17, 179.5, -16), shapely.box(179.5, -17, 180.5, -16.5)]
    return gpd.GeoDataFrame({"name": ["west", "across"], "cases": [3, 5]}, geometry=shapes, crs=4326)


def _world():
    """From -180 to 180, nobody elsewhere."""
    values = np.zeros(WORLD.shape)
    values[:, -10:], values[:, :10] = PEOPLE[:, :10], PEOPLE[:, 10:]
    return maps.raster(values, WORLD, "people")


def _local():
    """From 179 to 181, as a file of the Pacific."""
    return maps.raster(PEOPLE, maps.grid(SHAPE, STEP, (WEST, -16.0), maps.DEGREES), "people")


def _pixels(regions, people, notes=None):
    notes = [] if notes is None else notes
    return read_pixels(read_regions(regions, "cases", notes=notes), people, (), notes=notes)


@pytest.mark.parametrize("regions", [_split, _whole])
@pytest.mark.parametrize("people", [_world, _local])
def test_the_pixels_are_those_of_the_islands(regions, people):
    notes = []
    pixels = _pixels(regions(), people(), notes)
    np.testing.assert_allclose(pixels.totals(), [PEOPLE[:, :5].sum(), PEOPLE[5:, 5:15].sum()], rtol=1e-5)
    assert pixels.grid.shape == (10, 15)
    assert np.ptp(pixels.coordinates[:, 0]) == pytest.approx(14 * STEP * 111.32 * np.cos(np.radians(16.5)), rel=0.01)
    assert any("antimeridian" in note for note in notes)


def test_polygons_with_negative_longitudes_lie_on_the_map():
    pixels = _pixels(_split(), _world())
    beyond = gpd.GeoSeries([shapely.box(-180, -17, -179.5, -16.5)], crs=4326)
    assert overlay(pixels, beyond).weight.sum() == pytest.approx(PEOPLE[5:, 10:15].sum(), rel=1e-5)


def test_files_of_the_map_are_read_back_where_they_were(tmp_path):
    pixels = _pixels(_split(), _world())
    write_geotiff(tmp_path / "rate.tif", pixels.grid, pixels.cell, pixels.population, description="rate")
    again = grid_of(open_raster(tmp_path / "rate.tif"))
    np.testing.assert_allclose(again.bounds, pixels.grid.bounds)
    write_geopackage(pixels.regions, tmp_path / "regions.gpkg", "regions")
    found = gpd.read_file(tmp_path / "regions.gpkg")
    assert found.crs == "EPSG:4326"
    assert found.total_bounds.tolist() == pytest.approx([179, -17, 180.5, -16])
    ag.archive.write(tmp_path / "grid.agz", pixels.grid)
    assert ag.load(tmp_path / "grid.agz") == pixels.grid


def test_rasters_of_the_world_and_of_the_pacific_are_predicted_alike(tmp_path):
    pixels = _pixels(_split(), _world())
    found = {}
    for name, people in (("world", _world()), ("local", _local())):
        made = predict_raster(_place, [people], tmp_path / name, names=["people"], metric=pixels.grid.metric)
        found[name] = open_raster(made["x"]).values
    np.testing.assert_allclose(found["world"][:, -10:], found["local"][:, :10], atol=1e-4)
    np.testing.assert_allclose(found["world"][:, :10], found["local"][:, 10:], atol=1e-4)


def _place(columns):
    return {"x": columns[:, 1]}


def test_a_raster_that_ends_before_180_is_refused():
    short = maps.raster(lambda x, y: x, maps.grid((10, 3000), STEP, (-170.0, -16.0), maps.DEGREES), "rain")
    with pytest.raises(ValueError, match=r"both sides of the antimeridian .* but rain ends before it"):
        _pixels(_split(), short)


def test_the_whole_world_stays_as_it_is():
    shapes = [shapely.box(-180, -60, 0, 60), shapely.box(0, -60, 180, 60)]
    regions = gpd.GeoDataFrame({"name": ["a", "b"], "cases": [1, 2]}, geometry=shapes, crs=4326)
    notes = []
    pixels = _pixels(
        regions, maps.raster(lambda x, y: x * 0 + 1, maps.grid((12, 36), 10.0, (-180.0, 60.0), maps.DEGREES)), notes
    )
    assert pixels.grid.bounds == (-180.0, -60.0, 180.0, 60.0)
    assert not any("antimeridian" in note for note in notes)
