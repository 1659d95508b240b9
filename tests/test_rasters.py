"""One grid for everything: totals are kept, means are means, and what a file is stored as does not matter."""

import importlib
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pyproj
import pytest
import rasterio
import rasterio.shutil
import rasterio.warp

import aggregauss as ag
import maps
from aggregauss.io import Grid, align, class_fractions, common_grid, grid_of, open_raster, write_geotiff
from aggregauss.io.projection import kilometres, move
from aggregauss.io.rasters import pixels_of

RNG = np.random.default_rng(0)


def _around(where, crs, step, shape):
    """A grid in another reference system that holds all of `where`."""
    x, y = move(where.middle[None], where.crs, crs)[0]
    return maps.grid(shape, step, (x - step * shape[1] / 2, y + step * shape[0] / 2), crs)


@hypothesis.given(st.floats(300.0, 4000.0), st.floats(-900.0, 900.0), st.floats(-900.0, 900.0))
def test_population_keeps_its_total_and_its_first_moments_on_any_grid(step, dx, dy):
    source = maps.grid()
    people = RNG.uniform(0, 100, source.size)
    n = int(np.ceil(12_000 / step)) + 2
    target = maps.grid((n, n), step, (source.corner[0] - 1000 + dx, source.corner[1] + 1000 + dy))
    moved = align(maps.raster(people, source), target, "extensive")
    assert np.nansum(moved) == pytest.approx(people.sum(), rel=1e-12)
    finer = maps.grid(
        (24, 32), 250.0, source.corner
    )  # spreading within a pixel is uniform: any finer grid says the same
    again = align(maps.raster(align(maps.raster(people, source), finer, "extensive"), finer), target, "extensive")
    np.testing.assert_allclose(np.nan_to_num(again), np.nan_to_num(moved), atol=1e-6)


@pytest.mark.parametrize(("crs", "step"), [(maps.DEGREES, 0.013), (maps.MERCATOR, 700.0), ("EPSG:8441", 2500.0)])
def test_population_keeps_its_total_across_reference_systems(crs, step):
    source = maps.grid((40, 50))
    people = RNG.uniform(0, 100, source.size)
    target = _around(source, crs, step, (90, 110))
    moved = align(maps.raster(people, source), target, "extensive")
    assert np.nansum(moved) == pytest.approx(people.sum(), rel=1e-12)
    center = (people[:, None] * source.xy(np.arange(source.size))).sum(axis=0) / people.sum()
    at = move(target.xy(np.arange(target.size)), crs, source.crs)
    found = (np.nan_to_num(moved).ravel()[:, None] * at).sum(axis=0) / people.sum()
    np.testing.assert_allclose(found, center, atol=20.0)  # metres


def test_a_uniform_density_stays_uniform_across_reference_systems():
    source = maps.grid((60, 60))
    target = maps.grid((8, 8), 0.04, (45.10, -18.20), maps.DEGREES)
    source = maps.grid((80, 80), 1000.0, tuple(move(np.array([[45.05, -18.10]]), maps.DEGREES, maps.UTM)[0]))
    people = align(maps.raster(np.full(source.size, 7.0), source), target, "extensive")
    np.testing.assert_allclose(people.ravel(), 7.0 * target.cell_area_km2(np.arange(target.size)), rtol=5e-3)


def test_a_linear_surface_is_averaged_and_interpolated_exactly():
    def plane(x, y):
        return 3.0 + 1e-3 * (x - 500_000.0) - 2e-3 * (y - 8_000_000.0)

    for step in (250.0, 3000.0):  # averaged, interpolated
        n = int(30_000 / step)
        source = maps.grid((n, n), step, (490_000.0, 8_010_000.0))
        target = maps.grid((9, 7), 1000.0, (496_500.0, 8_003_500.0))
        x, y = target.xy(np.arange(target.size)).T
        found = align(maps.raster(plane, source), target, "intensive")
        np.testing.assert_allclose(found.ravel(), plane(x, y), atol=1e-8)


def test_averages_across_reference_systems_agree_with_gdal():
    source = maps.grid((120, 120), 250.0, (490_000.0, 8_020_000.0))
    waves = maps.raster(lambda x, y: np.sin(x / 3000.0) + np.cos(y / 4000.0), source)
    target = maps.grid((10, 10), 0.02, (44.95, -17.95), maps.DEGREES)
    found = align(waves, target, "intensive")
    expected = np.full(target.shape, np.nan)
    rasterio.warp.reproject(
        waves.values,
        expected,
        src_transform=rasterio.Affine(*source.transform),
        dst_transform=rasterio.Affine(*target.transform),
        src_crs=source.crs,
        dst_crs=target.crs,
        src_nodata=np.nan,
        dst_nodata=np.nan,
        resampling=rasterio.warp.Resampling.average,
    )
    both = np.isfinite(found) & np.isfinite(expected)
    assert both.sum() > 50
    np.testing.assert_allclose(found[both], expected[both], atol=0.02)


def test_classes_become_fractions_that_add_up_to_one():
    source = maps.grid((8, 8), 500.0)
    codes = RNG.choice([1.0, 3.0, 7.0], source.shape)
    target = maps.grid((4, 4), 1000.0)
    parts = class_fractions(maps.raster(codes, source), target, [1.0, 3.0, 7.0])
    np.testing.assert_allclose(parts.sum(axis=0), 1.0)
    blocks = (codes == 3.0).reshape(4, 2, 4, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(parts[1], blocks)


def test_missing_pixels_do_not_pull_means_and_hold_nobody():
    source = maps.grid((8, 8), 500.0)
    values = np.full(source.shape, 5.0)
    values[0, 0] = values[4:6, 4:6] = np.nan
    target = maps.grid((4, 4), 1000.0)
    mean, total = (align(maps.raster(values, source), target, kind) for kind in ("intensive", "extensive"))
    assert np.isnan(mean[2, 2])
    assert np.isnan(total[2, 2])
    assert np.nanmax(np.abs(mean - 5.0)) < 1e-12
    assert total[0, 0] == pytest.approx(15.0)


def test_windows_of_a_grid_are_treated_as_the_whole():
    source = maps.grid((30, 30), 730.0, (499_000.0, 8_001_000.0))
    values = maps.raster(RNG.normal(size=source.size), source)
    whole = maps.grid((12, 16), 900.0)
    for kind in ("intensive", "extensive"):
        expected = align(values, whole, kind)
        found = align(values, whole.window(3, 5, (6, 7)), kind)
        np.testing.assert_allclose(found, expected[3:9, 5:12], atol=1e-9)


@pytest.mark.parametrize(
    ("step", "made"),
    [
        (3100.0, lambda raster, where: align(raster, where, "intensive")),
        (50.0, lambda raster, where: class_fractions(raster, where, np.arange(40.0).tolist())[3]),
    ],
)
def test_a_raster_moves_to_another_grid_in_bounded_memory_and_to_the_same_numbers(step, made, monkeypatch):
    n = int(60_000 / step)
    source = maps.raster(RNG.integers(0, 40, (n, n)).astype(float), maps.grid((n, n), step))
    where = maps.grid((600, 600), 100.0) if step > 100.0 else maps.grid((6, 6), 10_000.0)
    expected = made(source, where)
    monkeypatch.setattr(importlib.import_module("aggregauss.io.align"), "BAND", 50_000)
    tracemalloc.start()
    found = made(source, where)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert peak < 10e6  # bytes; 41 and 1,150 million for the whole at once


def test_areas_of_cells_are_those_of_the_ellipsoid():
    where = Grid("EPSG:4326", (0.5, 0.0, 42.0, 0.0, -0.5, -10.0), (30, 20))
    geod = pyproj.Geod(ellps="WGS84")
    for cell in (0, 311, 599):
        x, y = where.xy([cell])[0]
        t = np.linspace(-0.25, 0.25, 200)  # sides along parallels, not geodesics
        lon = np.concatenate([x + t, x - t])
        lat = np.concatenate([np.full(200, y - 0.25), np.full(200, y + 0.25)])
        area = abs(geod.polygon_area_perimeter(lon, lat)[0]) / 1e6
        assert where.cell_area_km2([cell])[0] == pytest.approx(area, rel=1e-4)
    assert maps.grid().cell_area_km2([0, 5]) == pytest.approx([1.0, 1.0], rel=2e-3)


def test_kilometres_are_distances_on_the_ellipsoid():
    geod = pyproj.Geod(ellps="WGS84")
    for where in (
        maps.grid((300, 200), 0.04, (44.0, -13.0), maps.DEGREES),
        maps.grid((30, 20), 2e4, (4.9e6, -1.4e6), maps.MERCATOR),
    ):
        cells = RNG.integers(0, where.size, 40)
        km, degrees = where.km(cells), move(where.xy(cells), where.crs, "EPSG:4326")
        true = geod.inv(*degrees[:20].T, *degrees[20:].T)[2] / 1000
        np.testing.assert_allclose(np.linalg.norm(km[:20] - km[20:], axis=1), true, rtol=0.01)
    flat = maps.grid()
    np.testing.assert_allclose(flat.km([0, 1])[1] - flat.km([0, 1])[0], [1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(kilometres(np.array([[5000.0, 1000.0]]), maps.UTM, maps.UTM), [[5.0, 1.0]])


def test_the_grid_is_that_of_the_finest_raster_around_the_regions():
    fine, coarse = maps.grid((60, 80), 100.0), maps.grid((6, 8), 1000.0)
    regions = maps.halves(maps.grid((20, 20), 100.0, (501_050.0, 7_998_950.0)))
    found = common_grid([maps.raster(np.zeros(g.size), g) for g in (coarse, fine)], regions)
    assert found.step.tolist() == [100.0, -100.0]
    np.testing.assert_allclose(found.bounds, (501_000.0, 7_996_900.0, 503_100.0, 7_999_000.0))
    chosen = common_grid([maps.raster(np.zeros(fine.size), fine)], regions, resolution=400.0)
    assert chosen.step.tolist() == [400.0, -400.0]
    lone = common_grid([], regions)
    assert 15_000 < lone.size < 25_000


@pytest.mark.parametrize("suffix", ["tif", "cog.tif", "nc", "zarr"])
def test_the_same_raster_from_any_format(suffix, tmp_path):
    where = maps.grid((6, 8), 0.5, (42.0, -10.0), maps.DEGREES)
    values = RNG.normal(size=where.shape)
    values[2, 3] = np.nan
    array = maps.raster(values, where, "rain")
    path = tmp_path / f"rain.{suffix}"
    if suffix == "tif":
        maps.write(array, path)
    elif suffix == "cog.tif":
        maps.write(array, tmp_path / "plain.tif")
        rasterio.shutil.copy(tmp_path / "plain.tif", path, driver="COG")
    elif suffix == "nc":
        array.to_netcdf(path)
    else:
        pytest.importorskip("zarr")
        array.to_dataset().to_zarr(path, zarr_format=2)
    found = open_raster(path)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(grid_of(found).transform, where.transform, atol=1e-12)
    assert grid_of(found).crs == "EPSG:4326"


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.filterwarnings("ignore:Failed to open Zarr store with consolidated metadata")
@pytest.mark.parametrize("name", ["x", "rain"])  # read when the store is opened, and when its values are
def test_a_stranger_s_zarr_executes_nothing(name, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    maps.raster(np.zeros(48), maps.grid(), "rain").to_dataset().to_zarr("rain.zarr", zarr_format=2, consolidated=False)
    about = Path("rain.zarr", name, ".zarray")
    planted = {"dtype": "|O", "filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 2}], "compressor": None}
    about.write_text(json.dumps(json.loads(about.read_text()) | planted | {"fill_value": None}))
    for chunk in about.parent.glob("[0-9]*"):
        chunk.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="its values are pickled"):
        pixels_of(open_raster("rain.zarr"))
    assert not Path("exploded").exists()


def test_a_netcdf_as_climatologists_write_it(tmp_path):
    """Latitudes upwards, longitudes from 0 to 360, a time axis of one entry, no reference system."""
    where = maps.grid((4, 8), 45.0, (-180.0, 90.0), maps.DEGREES)
    values = RNG.normal(size=where.shape)
    array = maps.raster(values, where, "rain").drop_vars("spatial_ref").rename(x="lon", y="lat").drop_encoding()
    turned = array.assign_coords(lon=array.lon.values % 360).sortby("lon").isel(lat=slice(None, None, -1))
    turned.expand_dims(time=[0]).to_dataset(name="rain").to_netcdf(tmp_path / "rain.nc")
    found = open_raster(tmp_path / "rain.nc#rain")
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_allclose(grid_of(found).bounds, (-180, -90, 180, 90))


def test_scales_and_nodata_of_a_file_are_applied_and_bands_chosen(tmp_path):
    where = maps.grid((2, 2))
    profile = {"driver": "GTiff", "dtype": "int16", "count": 2, "height": 2, "width": 2, "nodata": -1, "crs": where.crs}
    with rasterio.open(tmp_path / "s.tif", "w", transform=rasterio.Affine(*where.transform), **profile) as out:
        out.write(np.array([[[1, 2], [3, -1]], [[5, 6], [7, 8]]], "int16"))
        out.scales, out.offsets = (0.5, 1.0), (10.0, 0.0)
        out.descriptions = ("evi", "lst")
    np.testing.assert_array_equal(open_raster(tmp_path / "s.tif#evi"), [[10.5, 11.0], [11.5, np.nan]])
    np.testing.assert_array_equal(open_raster(tmp_path / "s.tif", band=2), [[5.0, 6.0], [7.0, 8.0]])


def test_a_written_geotiff_is_read_back(tmp_path):
    where = maps.grid()
    cells = np.array([3, 10, 47])
    write_geotiff(tmp_path / "m.tif", where, cells, [0.1, 0.2, 0.3], description="rate")
    found = open_raster(tmp_path / "m.tif")
    np.testing.assert_allclose(found.values.ravel()[cells], [0.1, 0.2, 0.3], rtol=1e-6)
    assert np.isfinite(found.values).sum() == 3
    assert grid_of(found) == where
    with rasterio.open(tmp_path / "m.tif") as file:
        assert file.descriptions == ("rate",)
    assert [p.name for p in tmp_path.iterdir()] == ["m.tif"]


def test_a_band_may_be_called_like_an_axis(tmp_path):
    write_geotiff(tmp_path / "m.tif", maps.grid(), [0], [0.5], description="x")
    assert open_raster(tmp_path / "m.tif").values[0, 0] == 0.5


def test_a_grid_is_saved_and_loaded(tmp_path):
    ag.archive.write(tmp_path / "grid.agz", maps.grid())
    assert ag.load(tmp_path / "grid.agz") == maps.grid()
