"""From files to a map: totals that add up, targets of any shape, saving, validation."""

import dataclasses
import json
import warnings

import geopandas as gpd
import jaxtyping
import numpy as np
import pandas as pd
import pytest
from shapely import box

import aggregauss as ag
import country
import maps
from aggregauss.io import open_raster, read_pixels, read_regions
from aggregauss.io.geopackage import write_geopackage
from aggregauss.io.tables import write_csv
from aggregauss.maps import load_map, polygon_table, predict_polygons, predict_rasters, raked, validate
from aggregauss.maps.dependence import dependence
from aggregauss.maps.settings import Settings


@pytest.fixture(scope="module")
def land(tmp_path_factory):
    return country.make(tmp_path_factory.mktemp("country"))


def _job(land, **options):
    files = {name: land["folder"] / f"{name}.tif" for name in ("people", "rain")}
    usual = {"inference": ag.SVI(inducing=25, tolerance=1e-2), "progress": False}
    return ag.disaggregate(
        land["folder"] / "districts.gpkg", "cases", files["people"], {"rain": files["rain"]}, **usual | options
    )


@pytest.fixture(scope="module")
def found(land):
    return _job(land)


@pytest.fixture(scope="module")
def exact(found):
    return dataclasses.replace(found, settings=dataclasses.replace(found.settings, benchmark=True))


def test_a_region_is_the_sum_of_its_pixels(found):
    rate = found.surface().mean
    summed = np.bincount(found.pixels.region, found.pixels.weight * rate[found.pixels.pixel])
    np.testing.assert_allclose(found.predict().mean, summed, rtol=1e-6)
    np.testing.assert_allclose(found.table()["fitted"], summed, rtol=1e-6)


def test_polygons_made_of_regions_expect_the_sum_of_what_the_regions_expect(found, land):
    provinces = land["districts"].dissolve("province")
    districts = found.predict().mean.reshape(3, 3)
    np.testing.assert_allclose(found.predict(provinces).mean, districts.sum(axis=1), rtol=1e-6)


def test_a_polygon_takes_the_covered_share_of_a_pixel(found, land):
    west, north = land["transform"].c, land["transform"].f
    halves = [box(west, north - 5000, west + 2500, north), box(west + 2500, north - 5000, west + 5000, north)]
    whole = gpd.GeoSeries([box(west, north - 5000, west + 5000, north)], crs=country.CRS)
    parts = found.predict(gpd.GeoSeries(halves, crs=country.CRS)).mean
    np.testing.assert_allclose(parts, found.predict(whole).mean[0] / 2, rtol=1e-6)


def test_polygons_in_another_reference_system_are_the_same_places(found, land):
    there = land["districts"].to_crs("EPSG:4326")
    np.testing.assert_allclose(found.predict(there).mean, found.predict(land["districts"]).mean, rtol=2e-3)


def test_the_rates_of_hidden_pixels_are_found(found, land):
    rate = found.surface().mean
    truth = land["rate"].ravel()[found.pixels.cell]
    flat = np.full_like(truth, found.rate)
    assert np.std(np.log(rate / truth)) < 0.6 * np.std(np.log(flat / truth))
    fitted = found.table()
    np.testing.assert_allclose(fitted["fitted"], fitted["observed"], rtol=0.15)


def test_quantiles_are_ordered_and_exceedance_is_that_of_the_threshold(found):
    known = found.surface(threshold=0.02)
    assert (known.lower < known.median).all()
    assert (known.median < known.upper).all()
    likely = known.median > 0.02
    assert ((known.exceedance > 0.5) == likely).all()


def test_a_total_is_known_at_least_as_well_as_it_was_reported(found):
    """Var(log total | y) ≤ s² + 1/y, the variance of the report about it, whatever the map is like inside."""
    totals, observed = found._draws.reached, found.pixels.regions["observed"].to_numpy()
    report = np.sqrt(found.posterior.model.likelihood.region_sd**2 + 1 / observed)
    assert (np.log(totals).std(axis=0) < 1.1 * report).all()
    assert (np.log(totals).std(axis=0) > 0.5 * report).all()
    np.testing.assert_allclose(totals.mean(axis=0), found.table()["fitted"], rtol=1e-9)


def test_a_map_that_is_too_large_to_keep_its_draws_makes_them_again(found, land, monkeypatch):
    monkeypatch.setattr(raked, "KEPT", 0)
    again = dataclasses.replace(found)
    assert again._draws.kept is None
    np.testing.assert_array_equal(again.surface().upper, found.surface().upper)
    np.testing.assert_array_equal(again.predict(land["districts"]).std, found.predict(land["districts"]).std)


def test_benchmarked_totals_are_those_reported_in_every_draw(exact):
    totals = exact.predict()
    observed = exact.pixels.regions["observed"].to_numpy()
    np.testing.assert_allclose(totals.mean, observed, rtol=1e-9)
    np.testing.assert_allclose(totals.quantile(0.9), observed, rtol=1e-9)
    rate = exact.surface().mean
    summed = np.bincount(exact.pixels.region, exact.pixels.weight * rate[exact.pixels.pixel])
    np.testing.assert_allclose(summed, observed, rtol=1e-9)


def _over(found, regions, land, **parts):
    """The same rates over other regions, benchmarked."""
    notes = []
    files = {name: land["folder"] / f"{name}.tif" for name in ("people", "rain")}
    shapes = read_regions(regions, "cases", notes=notes)
    pixels = read_pixels(shapes, files["people"], {"rain": files["rain"]}, notes=notes, **parts)
    return dataclasses.replace(found, pixels=pixels, settings=dataclasses.replace(found.settings, benchmark=True))


@pytest.mark.parametrize("cases", [[10, 200], [0, 200]])
def test_benchmarked_totals_are_those_reported_where_borders_cut_pixels(found, land, cases):
    regions = maps.halves(maps.grid((country.CELLS, country.CELLS), 5000.0), 6.5 / country.CELLS, cases=cases)
    cut = _over(found, regions, land)
    assert (cut.pixels.share == 0.5).sum() == 2 * country.CELLS
    rate = cut.surface().mean
    summed = np.bincount(cut.pixels.region, cut.pixels.weight * rate[cut.pixels.pixel])
    for totals in (cut.predict().mean, cut.predict().quantile(0.9), cut.predict(regions).mean, summed):
        np.testing.assert_allclose(totals, cases, rtol=1e-9)


def test_what_no_scaling_of_pixels_can_meet_is_said(found, land):
    regions = maps.halves(maps.grid((country.CELLS, 1), 5000.0), cases=[10, 200])  # both in every pixel
    with pytest.warns(UserWarning, match='predict: 2 regions cannot have what was reported.* most of all "west" with'):
        totals = _over(found, regions, land).predict().mean
    assert totals[0] == pytest.approx(totals[1])


def test_benchmarking_leaves_the_shape_within_regions_as_it_is(found, exact):
    plain, scaled = found.surface().mean, exact.surface().mean
    ratio = np.log(scaled / plain)
    region = np.empty(len(plain), int)
    region[found.pixels.pixel] = found.pixels.region
    within = ratio - (np.bincount(region, ratio) / np.bincount(region))[region]
    assert within.std() < 0.1


def test_partial_dependence_of_a_linear_effect_is_its_slope(found):
    (curve,) = dependence(found.posterior, found.pixels)
    slope = np.polyfit(curve.x, np.log(curve.mean), 1)[0]
    effects = found.posterior.effects()
    np.testing.assert_allclose(slope, effects.loc["rain", "mean"], rtol=1e-6)
    assert effects.loc["rain", "lower"] < country.SLOPE < effects.loc["rain", "upper"]
    assert (curve.lower < curve.mean).all()


def test_joint_intervals_are_wider_than_single_ones(found, land):
    table = polygon_table(found, land["districts"])
    assert (table["joint_lower"] < table["lower"]).all()
    assert (table["joint_upper"] > table["upper"]).all()
    assert ((table["exceedance"] > 0.5) == (table["rate"] > found.rate)).mean() > 0.7


def test_a_saved_map_predicts_the_same(found, land, tmp_path):
    found.save(tmp_path / "out", title="A <made-up> country")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    layers = {f"{name}.tif" for name in ("mean", "sd", "lower", "median", "upper", "exceedance")}
    assert names == layers | {"regions.csv", "regions.gpkg", "map.agz", "run.json", "report.html"}
    again = load_map(tmp_path / "out")
    np.testing.assert_array_equal(again.surface().mean, found.surface().mean)
    np.testing.assert_array_equal(again.predict(land["districts"]).mean, found.predict(land["districts"]).mean)
    assert again.table().equals(found.table())
    assert "A &lt;made-up&gt; country" in (tmp_path / "out" / "report.html").read_text()
    with pytest.raises(FileExistsError, match="already exists"):
        found.save(tmp_path / "out")


def test_the_raster_of_means_holds_the_means(found, tmp_path):
    import rasterio

    found.save(tmp_path / "out")
    with rasterio.open(tmp_path / "out" / "mean.tif") as raster:
        values = raster.read(1).ravel()[found.pixels.cell]
        assert raster.crs.to_string() == country.CRS
    np.testing.assert_allclose(values, found.surface().mean, rtol=1e-6)


def test_a_save_that_fails_leaves_nothing(found, tmp_path, monkeypatch):
    import aggregauss.maps.saving as saving

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(saving, "write_page", broken)
    with pytest.raises(KeyboardInterrupt):
        found.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_polygons_to_files(found, land, tmp_path):
    land["districts"][["name", "geometry"]].iloc[:4].to_file(tmp_path / "four.geojson")
    predict_polygons(found, tmp_path / "four.geojson", tmp_path / "out")
    written = gpd.read_file(tmp_path / "out" / "predicted.gpkg")
    np.testing.assert_allclose(written["mean"], found.predict().mean[:4], rtol=1e-6)


def test_the_part_of_a_polygon_beyond_the_map_is_said(found, land):
    inside = land["districts"].iloc[[2, 5]].set_index("name").geometry
    wide = inside.copy()
    west, south, east, north = inside.iloc[0].bounds
    wide.iloc[0] = box(west, south, 2 * east - west, north)
    with pytest.warns(
        UserWarning, match="predict: 1 polygon beyond the map, most of all 'district 02', of whose area 50%"
    ):
        table = polygon_table(found, wide)
    np.testing.assert_allclose(table["covered"], [0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(table["mean"], polygon_table(found, inside)["mean"], rtol=1e-6)


def test_rasters_are_predicted_from_maps_of_rasters_only(found, land, tmp_path):
    pixels = dataclasses.replace(found.pixels, grid=None)
    with pytest.raises(TypeError, match="made from a table of individuals"):
        predict_rasters(
            dataclasses.replace(found, pixels=pixels), {"rain": land["folder"] / "rain.tif"}, tmp_path / "out"
        )
    assert list(tmp_path.iterdir()) == []


def test_rates_over_other_rasters_are_not_benchmarked_and_it_is_said(found, exact, land, tmp_path):
    rain = {"rain": land["folder"] / "rain.tif"}
    with pytest.warns(UserWarning, match="predict: rates over other rasters are those of the model"):
        predict_rasters(exact, rain, tmp_path / "out")
    rate = open_raster(tmp_path / "out" / "mean.tif").values.ravel()[found.pixels.cell]
    np.testing.assert_allclose(rate, found.posterior.predict(found.pixels.points()).mean, rtol=1e-6)


def test_columns_that_differ_by_case_alone_are_kept_apart(found, land, tmp_path):
    own = {"MEAN": 1.0, "predicted_mean": 2.0, "Population": 3.0, "fid": [0.5, 0.5, 1.5, 2.5], "geom": "a", "Geom": "b"}
    land["districts"][["name", "geometry"]].iloc[:4].assign(**own).to_parquet(tmp_path / "four.parquet")
    predict_polygons(found, tmp_path / "four.parquet", tmp_path / "out")
    names = {
        "predicted_predicted_mean",
        "predicted_population",
        "original_fid",
        "original_geom",
        "original_original_Geom",
    }
    for written in (
        pd.read_csv(tmp_path / "out" / "predicted.csv"),
        gpd.read_file(tmp_path / "out" / "predicted.gpkg"),
    ):
        assert names | {"MEAN", "predicted_mean", "Population"} <= set(written.columns)
        np.testing.assert_allclose(written["predicted_predicted_mean"], found.predict().mean[:4], rtol=1e-6)
        assert written["original_fid"].tolist() == own["fid"]


def test_columns_that_a_geopackage_cannot_hold_are_a_sentence(land, tmp_path):
    shapes = land["districts"][["name", "geometry"]].iloc[:1].assign(odd=np.uint64(2**63))
    with pytest.raises(ValueError, match=r"write_geopackage: odd\.gpkg cannot be written"):
        write_geopackage(shapes, tmp_path / "odd.gpkg", "odd")


def test_large_counts_are_written_whole(tmp_path):
    write_csv(pd.DataFrame({"population": [123_456_789_012.0, 0.1]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "population\n123456789012\n0.1\n"


def test_what_was_fitted_is_saved_whatever_kind_of_number_was_asked_for(found, tmp_path, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users run it
    settings = dataclasses.replace(found.settings, seed=np.int64(3), inducing=np.int64(25))
    dataclasses.replace(found, settings=settings).save(tmp_path / "out", threshold=np.float32(0.125))
    again = load_map(tmp_path / "out")
    assert again.settings == settings
    assert again.record.shown["threshold"] == 0.125
    assert json.loads((tmp_path / "out" / "run.json").read_text())["settings"]["seed"] == 3


def test_a_map_saved_again_has_the_seconds_of_one_run(found, tmp_path):
    found.save(tmp_path / "one")
    found.record.seconds["write"] = found.record.seconds["predict"] = 1e6
    found.save(tmp_path / "two")
    seconds = json.loads((tmp_path / "two" / "run.json").read_text())["seconds"]
    assert seconds.keys() == {"read", "fit", "predict", "write"}
    assert max(seconds.values()) < 1e6


def test_the_inference_that_replaces_the_usual_one_is_recorded(found):
    assert found.record.arguments["inference"]["inducing"] == 25


def test_rasters_say_what_they_show_and_from_which_map(found, land, tmp_path):
    import rasterio

    predict_rasters(found, {"rain": land["folder"] / "rain.tif"}, tmp_path / "out", threshold=0.04)
    with rasterio.open(tmp_path / "out" / "exceedance.tif") as raster:
        assert raster.descriptions == ("probability that the rate exceeds 0.04",)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["arguments"] == {"threshold": 0.04}
    assert record["files"]["covariate rain"]["path"].endswith("rain.tif")
    assert record["fit"]["arguments"]["response"] == "cases"


def test_invalid_polygons_are_repaired_and_it_is_said(found, land):
    from shapely import Polygon

    west, north = land["transform"].c, land["transform"].f
    bowtie = Polygon([(west, north), (west + 20_000, north - 20_000), (west + 20_000, north), (west, north - 20_000)])
    shapes = gpd.GeoSeries([bowtie], index=["bow"], crs=country.CRS)
    with pytest.warns(UserWarning, match='predict: 1 invalid outline repaired, first that of "bow"'):
        crossed = found.predict(shapes).mean
    np.testing.assert_allclose(crossed, found.predict(shapes.make_valid()).mean, rtol=1e-9)
    with pytest.raises(TypeError, match='polygon "bow" is a Point'):
        found.predict(shapes.centroid)


def test_the_column_of_outlines_may_have_any_name(found, land, tmp_path):
    shapes = land["districts"][["name", "geometry"]].rename_geometry("geom")
    shapes.to_parquet(tmp_path / "shapes.parquet")
    predict_polygons(found, tmp_path / "shapes.parquet", tmp_path / "out")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out" / "predicted.csv")["mean"], found.predict().mean, rtol=1e-6)


@pytest.mark.slow
def test_a_cluster_of_two_workers_predicts_the_same_rates(found, land, tmp_path):
    distributed = pytest.importorskip("distributed")
    rain = {"rain": land["folder"] / "rain.tif"}
    predict_rasters(found, rain, tmp_path / "alone")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        predict_rasters(found, rain, tmp_path / "shared", client=client, block=5)
    for name in ("mean", "sd", "lower", "median", "upper", "exceedance"):
        alone, shared = (open_raster(tmp_path / who / f"{name}.tif").values for who in ("alone", "shared"))
        np.testing.assert_allclose(shared, alone, rtol=1e-6)


QUICK = {"inference": ag.SVI(inducing=9, tolerance=1e-1, integrate=False, max_epochs=20)}


@pytest.mark.parametrize(
    "options",
    [
        {"model": "smooth"},
        {"model": "classic"},
        {"likelihood": "negative_binomial"},
        pytest.param({"model": "classic", "benchmark": True}, marks=pytest.mark.slow),
    ],
)
def test_every_preset_makes_a_map_that_is_saved_and_read_again(land, tmp_path, options):
    found = _job(land, **QUICK, **options)
    found.save(tmp_path / "out")
    again = load_map(tmp_path / "out")
    assert again.settings == found.settings
    np.testing.assert_allclose(again.table()["fitted"], found.table()["fitted"], rtol=1e-9)
    np.testing.assert_allclose(again.predict(land["districts"]).mean, found.table()["fitted"], rtol=1e-6)
    if options.get("benchmark"):
        np.testing.assert_allclose(again.table()["fitted"], found.table()["observed"], rtol=1e-9)


def test_validation_hides_every_region_once_and_knows_its_group(found, land):
    own = ag.SVI(inducing=16, tolerance=1e-1, integrate=False)
    by_folds = validate(found.pixels, found.settings, folds=3, inference=own, progress=False)
    assert by_folds.table["label"].tolist() == land["districts"]["name"].tolist()
    coarse = validate(found.pixels, found.settings, groups=land["districts"]["province"], inference=own, progress=False)
    cases, people = land["districts"]["cases"].to_numpy().reshape(3, 3), found.pixels.totals().reshape(3, 3)
    np.testing.assert_allclose(
        coarse.table["constant_rate"].to_numpy().reshape(3, 3), (cases.sum(1) / people.sum(1))[:, None] * np.ones(3)
    )
    assert "RMSE of log rates" in coarse.scores
    assert set(coarse.calibration.columns) == {"level", "inside", "kind"}


def test_positives_out_of_examined_become_probabilities(land):
    found = _job(land, likelihood="binomial", examined="tested")
    known, table = found.surface(), found.table()
    assert ((known.upper < 1) & (known.lower > 0)).all()
    np.testing.assert_allclose(table["fitted"], table["observed"], rtol=0.25)
    np.testing.assert_allclose(table["rate"], table["observed"] / table["examined"])


def test_gaussian_totals_add_up(land):
    found = _job(land, likelihood="gaussian", total=True)
    summed = np.bincount(found.pixels.region, found.pixels.weight * found.surface().mean[found.pixels.pixel])
    np.testing.assert_allclose(found.predict().mean, summed, rtol=1e-6)


def test_groups_of_no_name_are_refused(found, land):
    names = land["districts"]["province"].tolist()
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match='"groups" has no name for region 4'):
            found.validate(groups=[*names[:4], missing, *names[5:]], progress=False)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"likelihood": "normal"}, '"likelihood" must be "poisson" or'),
        ({"model": "best"}, '"model" must be "default" or'),
        ({"likelihood": "binomial"}, "needs the numbers examined"),
        ({"likelihood": "binomial", "examined": "tested", "benchmark": True}, '"benchmark" is for counts'),
        ({"total": True}, '"total" is for numbers that may be sums'),
    ],
)
def test_wrong_options_are_refused(land, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        _job(land, **options)


def test_polygons_outside_the_map_are_named(found, land):
    away = land["districts"].iloc[[0]].translate(1e6)
    with pytest.raises(ValueError, match="row 0"):
        found.predict(gpd.GeoSeries(away, crs=country.CRS))
    with pytest.raises(ValueError, match="no coordinate reference system"):
        found.predict(gpd.GeoSeries(land["districts"].geometry.to_numpy()))


def test_folders_that_are_no_maps_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no map\.agz"):
        load_map(tmp_path)


def test_counts_that_are_estimates_are_rounded_and_it_is_said(found):
    regions = found.pixels.regions.assign(observed=found.pixels.regions["observed"] + 0.3)
    notes = []
    y, _ = Settings().numbers(dataclasses.replace(found.pixels, regions=regions), notes)
    assert np.array_equal(y, found.pixels.regions["observed"])
    assert "rounded" in notes[0]


def test_a_fit_speaks_through_the_map_and_not_through_warnings(land):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert isinstance(_job(land, inference=ag.SVI(inducing=9, max_epochs=2)).warnings, tuple)
