"""Prediction over a raster: whatever the blocks, whoever works on them, the numbers are those of the whole."""

import subprocess
import sys

import numpy as np
import pytest
import rasterio

import aggregauss as ag
import maps
from aggregauss.io import open_raster, read_pixels, read_regions
from aggregauss.io.rasters import pixels_of
from aggregauss.maps.blocks import predict_raster

RNG = np.random.default_rng(0)
FILES = ag.datasets.madagascar()


def risk(columns):
    """Any function of the columns, row by row."""
    eta = np.sin(columns).sum(axis=1)
    return {"mean": np.exp(eta), "sd": np.abs(eta)}


def _rasters():
    rain = maps.raster(RNG.normal(size=(50, 70)), maps.grid((50, 70)), "rain")
    coarse = maps.raster(RNG.normal(size=(20, 26)), maps.grid((20, 26), 3100.0, (497_000.0, 8_001_000.0)), "heat")
    fine = maps.raster(RNG.normal(size=(300, 300)), maps.grid((300, 300), 0.0025, (44.99, -18.08), maps.DEGREES), "evi")
    cover = maps.raster(RNG.choice([1.0, 4.0, 9.0], (100, 140)), maps.grid((100, 140), 500.0), "cover")
    return {"rain": rain, "heat": heat_with_a_hole(coarse), "evi": fine, "cover": cover}


def heat_with_a_hole(raster):
    values = raster.values.copy()
    values[4:12, 5:14] = np.nan
    return raster.copy(data=values)


RASTERS = _rasters()
NAMES = ["rain", "heat", "evi", "cover=4", "cover=9"]
GRID = maps.grid((50, 70))


def _run(folder, rasters=RASTERS, names=NAMES, grid=GRID, predict=risk, **others):
    made = predict_raster(predict, rasters, folder, names=names, grid=grid, **others)
    return {name: pixels_of(open_raster(path)) for name, path in made.items()}


def test_the_result_does_not_depend_on_the_blocks(tmp_path):
    whole = _run(tmp_path / "whole")
    assert sorted(whole) == ["mean", "sd"]
    assert 500 < np.isfinite(whole["mean"]).sum() < GRID.size
    for block in (7, 16, 33):
        parts = _run(tmp_path / str(block), block=block)
        for name in whole:
            np.testing.assert_allclose(parts[name], whole[name], rtol=3e-7, atol=1e-12)  # stored in single precision


def test_columns_do_not_depend_on_the_blocks_to_rounding(tmp_path):
    def columns(block):
        rows = []
        _run(tmp_path / str(block), predict=lambda x: rows.append(x) or {"a": x[:, 0]}, block=block)
        found = np.concatenate(rows)
        return found[np.unique(found[:, -2:].round(6), axis=0, return_index=True)[1]]  # one row for each place

    np.testing.assert_allclose(columns(9), columns(512), rtol=1e-12, atol=1e-10)


def test_the_pixels_of_the_fit_are_predicted_as_in_the_fit(tmp_path):
    regions = read_regions(FILES.districts, "cases", notes=[])
    pixels = read_pixels(regions, FILES.population, FILES.covariates, notes=[])
    made = predict_raster(risk, FILES.covariates, tmp_path, names=pixels.names, metric=pixels.grid.metric, block=100)
    surface = open_raster(made["mean"])
    x, y = pixels.grid.xy(pixels.cell).T
    column, row = np.floor((x - 42.0) * 24).astype(int), np.floor((-10.0 - y) * 24).astype(int)
    found, expected = surface.values[row, column], risk(pixels.columns)["mean"]
    assert any("lst: 2 pixels without a value filled in" in note for note in pixels.notes)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("block", [5, 512])
def test_a_pixel_that_lacks_a_covariate_gets_it_from_the_nearest_and_one_that_lacks_all_stays_empty(block, tmp_path):
    rain, heat = np.arange(144.0).reshape(12, 12), np.arange(144.0).reshape(12, 12) / 7
    rain[5, 5] = np.nan  # one covariate: of four neighbours the northern one comes first
    rain[9:, 9:] = heat[9:, 9:] = np.nan  # all covariates: not part of the land
    rain[:, 0:7][0:4] = np.nan  # one covariate, too far from any value in the corner
    where = maps.grid((12, 12))
    rasters = {"rain": maps.raster(rain, where), "heat": maps.raster(heat, where)}
    found = _run(tmp_path, rasters, ["rain", "heat"], None, _first_two, block=block)
    assert found["rain"][5, 5] == rain[4, 5]
    assert found["heat"][5, 5] == np.float32(heat[5, 5])
    assert np.isnan(found["rain"][9:, 9:]).all()
    assert np.isnan(found["rain"][0, :4]).all()
    assert found["rain"][3, 0] == rain[4, 0]
    assert found["rain"][0, 6] == rain[0, 7]
    assert found["rain"][1, 1] == rain[4, 1]


def _first_two(columns):
    return {"rain": columns[:, 0], "heat": columns[:, 1]}


def test_undeclared_nodata_is_none_as_in_the_fit(tmp_path):
    rain = np.arange(144.0).reshape(12, 12)
    rain[2:10, 2:10] = -9999.0
    with pytest.warns(UserWarning, match="predict: rain: -9999 taken as nodata, which the file does not declare"):
        found = _run(
            tmp_path, {"rain": maps.raster(rain, maps.grid((12, 12)))}, ["rain"], None, lambda x: {"a": x[:, 0]}
        )
    np.testing.assert_array_equal(found["a"], np.where(rain < 0, np.nan, rain))


def test_batches_have_one_size(tmp_path):
    seen = set()
    _run(tmp_path, predict=lambda x: seen.add(x.shape) or {"a": x[:, 0]}, block=20)
    assert seen == {(400, 7)}


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_rasters_of_other_formats_are_read_in_blocks(suffix, tmp_path):
    path = tmp_path / f"rain.{suffix}"
    if suffix == "nc":
        RASTERS["rain"].to_netcdf(path)
    else:
        pytest.importorskip("zarr")
        RASTERS["rain"].to_dataset().to_zarr(path, zarr_format=2)
    found = _run(tmp_path / "out", [path], ["rain"], None, block=16)
    expected = _run(tmp_path / "held", {"rain": RASTERS["rain"]}, ["rain"], None)
    np.testing.assert_array_equal(found["mean"], expected["mean"])


def test_a_cluster_of_two_workers_says_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    paths = dict(FILES.covariates)
    settings = {"rasters": paths, "names": list(paths), "grid": None}
    alone = _run(tmp_path / "alone", **settings)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(client.scheduler_info()["workers"]) == 2
        shared = _run(tmp_path / "shared", block=96, client=client, predict=_picklable(), **settings)
    for name in alone:
        np.testing.assert_allclose(shared[name], alone[name], rtol=3e-7)


def _picklable():
    """`risk` without the module of this test, which workers need not be able to import."""

    def predict(columns):
        import numpy as np

        eta = np.sin(columns).sum(axis=1)
        return {"mean": np.exp(eta), "sd": np.abs(eta)}

    return predict


def test_dask_arrays_are_taken_as_they_are(tmp_path):
    chunked = {"rain": RASTERS["rain"].chunk({"y": 13, "x": 17})}
    found = _run(tmp_path / "chunked", chunked, ["rain"], None, block=16)
    expected = _run(tmp_path / "held", {"rain": RASTERS["rain"]}, ["rain"], None)
    np.testing.assert_array_equal(found["mean"], expected["mean"])


@pytest.mark.parametrize("after", [0, 3])
def test_a_failure_leaves_nothing(after, tmp_path):
    calls = []

    def fails(columns):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return {"mean": columns[:, 0]}

    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path / "out", predict=fails, block=16)
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match='needs the covariate "snow", but got only "rain"'):
        _run(tmp_path / "a", names=["snow"])
    with pytest.raises(ValueError, match='"block" must be a whole number'):
        _run(tmp_path / "a", block=0)
    with pytest.raises(ValueError, match='give a "grid"'):
        _run(tmp_path / "a", {}, [], None)
    far = maps.grid((5, 5), 1000.0, (900_000.0, 8_000_000.0))
    with pytest.raises(ValueError, match="no pixel of the grid has a value of every covariate"):
        _run(tmp_path / "a", grid=far)
    assert list(tmp_path.iterdir()) == []


MEMORY = """
import resource, sys
import numpy as np
from aggregauss.maps.blocks import predict_raster
from aggregauss.io.grid import Grid

def risk(columns):
    return {"mean": columns[:, 0] + columns[:, 1]}

small = Grid("EPSG:32738", (100.0, 0.0, 500_000.0, 0.0, -100.0, 8_000_000.0), (600, 600))
predict_raster(risk, {"a": "a.tif", "b": "b.tif"}, "warm", names=["a", "b"], grid=small, block=512)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
predict_raster(risk, {"a": "a.tif", "b": "b.tif"}, "out", names=["a", "b"], block=512)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
def test_a_raster_much_larger_than_what_is_held_in_memory(tmp_path):
    """Two rasters of 67 million pixels, 0.5 GB each in double precision, in less than 250 MB beyond one block's."""
    n = 8192
    where = maps.grid((n, n), 100.0)
    profile = {"driver": "GTiff", "dtype": "float32", "count": 1, "height": n, "width": n, "nodata": np.nan}
    profile |= {"tiled": True, "blockxsize": 512, "blockysize": 512, "compress": "deflate"}
    profile |= {"crs": where.crs, "transform": rasterio.Affine(*where.transform)}
    for name in ("a", "b"):
        with rasterio.open(tmp_path / f"{name}.tif", "w", **profile) as out:
            for _, window in out.block_windows():
                tile = np.full((window.height, window.width), window.row_off + window.col_off, "f4")
                out.write(tile, 1, window=window)
    done = subprocess.run([sys.executable, "-c", MEMORY], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 250.0
    with rasterio.open(tmp_path / "out" / "mean.tif") as out:
        np.testing.assert_array_equal(out.read(1)[::512, ::512], 2.0 * np.add.outer(*[np.arange(0, n, 512)] * 2))
