"""From files to pixels: people are counted once, by coverage; what the files leave open is said in a note."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import aggregauss as ag
import maps
from aggregauss.io import Grid, coverage, read_individuals, read_pixels, read_regions, write_geotiff

RNG = np.random.default_rng(0)
FILES = ag.datasets.madagascar()


def _pixels(regions, population=None, covariates=(), notes=None, **others):
    notes = [] if notes is None else notes
    table = read_regions(regions, "cases", notes=notes)
    return read_pixels(table, population, covariates, notes=notes, **others)


def test_coverage_is_the_area_of_the_intersection():
    where = maps.grid((7, 9), 1.0, (0.0, 7.0))
    blob = shapely.Point(4.3, 3.1).buffer(2.7).difference(shapely.Point(4.0, 3.0).buffer(1.1))
    hit = shapely.box(-5.0, 5.0, 1.5, 6.25)  # partly outside
    region, cell, share = coverage(where, [blob, hit])
    for i, shape in enumerate((blob, hit)):
        x, y = where.xy(np.arange(where.size)).T
        area = shapely.area(shapely.intersection(shapely.box(x - 0.5, y - 0.5, x + 0.5, y + 0.5), shape))
        found = np.bincount(cell[region == i], share[region == i], minlength=where.size)
        np.testing.assert_allclose(found, area, atol=2e-5)


def test_no_cell_is_lost_where_outlines_run_along_cell_edges():
    """Unions of pixels, among them shapes for which exactextract alone returns a cell too few."""
    regions = FILES.regions
    west, _, _, north = regions.total_bounds
    where = Grid("EPSG:4326", (1 / 24, 0.0, west, 0.0, -1 / 24, north), (328, 174))
    region, _, share = coverage(where, regions.geometry)
    found = np.bincount(region, share)
    np.testing.assert_allclose(found, shapely.area(regions.geometry.array) * 24**2, rtol=1e-9)


def test_madagascar_from_files_is_the_published_table():
    pixels = _pixels(FILES.districts, FILES.population, FILES.covariates)
    assert (len(pixels), len(pixels.regions), pixels.names) == (28_877, 109, ("elevation", "evi", "lst"))
    assert pixels.totals().sum() == pytest.approx(21_349_971, rel=1e-6)
    assert pixels.totals()[0] == pytest.approx(344_845.4, rel=1e-6)  # published for the first district
    bags = pixels.bags()
    np.testing.assert_allclose(bags.mass, pixels.totals())
    assert bags.labels.tolist() == pixels.regions["label"].tolist()
    assert len(pixels.points()) == 28_877


def test_a_pixel_on_a_border_gives_each_region_its_share():
    where = maps.grid((1, 3))
    write_geotiff("people.tif", where, [0, 1, 2], [10.0, 100.0, 30.0], description="persons")
    pixels = _pixels(maps.halves(where, split=0.4), "people.tif")
    np.testing.assert_allclose(pixels.totals(), [10 + 20, 80 + 30], rtol=1e-5)
    assert np.bincount(pixels.pixel, pixels.share).tolist() == pytest.approx([1.0, 1.0, 1.0], rel=1e-5)


@pytest.mark.parametrize("resolution", [None, 700.0, 2500.0])
def test_totals_are_kept_when_resolutions_differ(resolution):
    where = maps.grid((20, 20))
    people = RNG.uniform(0, 9, where.size)
    fine = maps.grid((50, 50), 400.0)
    rain = maps.raster(lambda x, y: x - 500_000.0, fine, "rain")
    pixels = _pixels(maps.halves(where), maps.raster(people, where), {"rain": rain}, resolution=resolution)
    halves = people.reshape(20, 2, 10).sum(axis=(0, 2))
    if resolution is None:  # the finer grid cuts the coarse pixels along the border
        np.testing.assert_allclose(pixels.totals(), halves, rtol=1e-5)
    assert pixels.totals().sum() <= people.sum() * (1 + 1e-9)
    x = (pixels.coordinates[:, 0] - 500.0) * 1000.0
    whole = (x > 2500) & (x < 17_500)
    np.testing.assert_allclose(pixels.covariates[whole, 0], x[whole], atol=60.0)


def test_reference_systems_do_not_matter():
    where = maps.grid((30, 30))
    people = maps.raster(RNG.uniform(0, 9, where.size), where, "people")
    regions = maps.halves(maps.grid((20, 20), 1000.0, (505_000.0, 7_995_000.0)))
    notes = []
    plain, moved = _pixels(regions, people), _pixels(regions.to_crs(4326), people, notes=notes)
    np.testing.assert_allclose(moved.totals(), plain.totals(), rtol=1e-3)
    assert "Regions: moved from EPSG:4326 to EPSG:32738." in notes
    degrees = maps.raster(lambda x, y: x, maps.grid((60, 60), 0.005, (45.0, -18.05), maps.DEGREES), "lon")
    both = _pixels(regions, people, {"lon": degrees})
    np.testing.assert_allclose(both.totals(), plain.totals(), rtol=2e-2)
    assert "redistributed" in " ".join(_noted(regions, people, {"lon": degrees}))


def _noted(*arguments, **others):
    notes = []
    _pixels(*arguments, notes=notes, **others)
    return notes


@pytest.mark.parametrize(
    ("crs", "corner"), [("EPSG:2154", (6e5, 6.8e6)), ("EPSG:3034", (3.9e6, 3.1e6)), ("EPSG:5514", (-7e5, -8.5e5))]
)
def test_a_raster_of_the_world_covers_regions_in_any_system(crs, corner):
    world = maps.raster(lambda x, y: y, maps.grid((180, 360), 1.0, (-180.0, 90.0), maps.DEGREES), "latitude")
    regions = maps.halves(maps.grid((4, 6), 1e5, corner, crs))
    pixels = _pixels(regions, None, {"latitude": world})
    degrees = regions.to_crs(maps.DEGREES).total_bounds
    assert degrees[1] - 1 < pixels.covariates.min() < pixels.covariates.max() < degrees[3] + 1


def test_without_a_population_pixels_weigh_their_area():
    pixels = _pixels(maps.halves(maps.grid()), None, [maps.raster(np.arange(48.0), maps.grid(), "rain")])
    np.testing.assert_allclose(pixels.totals(), 24.0, rtol=2e-3)
    bare = _pixels(maps.halves(maps.grid()))
    np.testing.assert_allclose(bare.totals(), 24.0, rtol=2e-3)
    assert bare.covariates.shape == (len(bare), 0)


def test_classes_become_columns_for_all_but_the_most_common():
    where = maps.grid((4, 4))
    codes = np.array([1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 9, 9, 9, 4, 9.0])
    cover = maps.raster(codes, where)
    pixels = _pixels(maps.halves(where), None, {"cover": cover}, categorical=["cover"])
    assert pixels.names == ("cover=4", "cover=9")
    np.testing.assert_array_equal(pixels.covariates, np.column_stack([codes == 4, codes == 9]))
    assert any('name it in "categorical"' in note for note in _noted(maps.halves(where), None, {"cover": cover}))


@pytest.mark.parametrize("step", [400.0, 1700.0])  # averaged, or interpolated between
def test_codes_on_another_grid_are_noted(step):
    cover = maps.raster(RNG.choice([1.0, 4.0, 9.0], 900), maps.grid((30, 30), step), "cover")
    rain = maps.raster(np.arange(144.0), maps.grid((12, 12)), "rain")
    notes = _noted(maps.halves(maps.grid((12, 12))), None, {"rain": rain, "cover": cover}, resolution=1000.0)
    assert any("cover: a few whole numbers" in note and '"categorical"' in note for note in notes)


def test_gaps_are_filled_from_near_and_left_out_when_far():
    where = maps.grid((20, 20))
    rain = np.tile(np.arange(20.0), (20, 1))
    rain[5, 5] = np.nan
    notes = []
    pixels = _pixels(maps.halves(where), None, {"rain": maps.raster(rain, where)}, notes=notes)
    assert len(pixels) == 400
    assert pixels.covariates[105, 0] in (4.0, 5.0, 6.0)
    assert "rain: 1 pixel without a value filled in from the nearest one." in notes
    rain[:8, :8] = np.nan
    notes = []
    pixels = _pixels(maps.halves(where), None, {"rain": maps.raster(rain, where)}, notes=notes)
    assert 360 < len(pixels) < 400
    assert np.isfinite(pixels.covariates).all()
    assert pixels.cell[pixels.pixel].max() == 399
    assert any("left out" in note and "% of the population" in note for note in notes)


def test_empty_pixels_stay_on_the_map_but_not_in_the_fit():
    where = maps.grid((4, 4))
    people = np.arange(16.0) % 4
    notes = []
    pixels = _pixels(maps.halves(where), maps.raster(people, where), notes=notes)
    assert len(pixels.points()) == 16
    assert len(pixels.bags().owner) == 12
    assert "4 pixels without people: kept on the map, but they do not enter the fit." in notes


def test_regions_where_nobody_lives_and_nothing_happened_are_left_out():
    where = maps.grid((4, 4))
    people = np.where(np.arange(16) % 4 < 2, 0.0, 5.0)
    notes = []
    pixels = _pixels(maps.halves(where, cases=[0, 7]), maps.raster(people, where), notes=notes)
    assert pixels.regions["label"].tolist() == ["east"]
    assert pixels.totals().tolist() == [40.0]
    assert any('left out: "west"' in note for note in notes)


@pytest.mark.parametrize(
    ("values", "name", "reason"),
    [
        (np.full(16, 500_000.0), "people", "more than 100,000 persons per km²"),
        (np.full(16, 3.0), "density", "its name speaks of a density"),
        (np.full(16, 0.5), "people", "more than there are persons"),
    ],
)
def test_a_density_taken_for_counts_is_noted(values, name, reason):
    where = maps.grid((4, 4), 2000.0)
    notes = _noted(maps.halves(where), maps.raster(values, where, name))
    assert any("may hold densities" in note and reason in note for note in notes)


def test_undeclared_nodata_is_noted():
    where = maps.grid((4, 4))
    rain = np.arange(16.0)
    rain[3] = -9999.0
    notes = []
    pixels = _pixels(maps.halves(where), None, {"rain": maps.raster(rain, where)}, notes=notes)
    assert pixels.covariates.min() == 0.0
    assert any("-9999 taken as nodata" in note for note in notes)


def test_regions_smaller_than_a_pixel_are_noted_and_kept():
    where = maps.grid((4, 4))
    small = shapely.box(500_100.0, 7_999_100.0, 500_600.0, 7_999_900.0)
    regions = gpd.GeoDataFrame({"name": ["tiny"], "cases": [1]}, geometry=[small], crs=maps.UTM)
    notes = []
    pixels = _pixels(regions, maps.raster(np.full(16, 10.0), where), notes=notes)
    assert pixels.totals().tolist() == pytest.approx([4.0], rel=1e-5)
    assert any('1 region smaller than one pixel: "tiny".' in note for note in notes)


def test_people_outside_of_the_outlines_are_noted():
    where = maps.grid((4, 4))
    half = maps.halves(maps.grid((4, 4), 900.0, (500_300.0, 7_999_700.0)))
    notes = _noted(half, maps.raster(np.full(16, 10.0), where, "people"))
    inside = 10.0 * 3.6**2
    assert f"{160 - inside:,.0f} lie outside of all regions." in " ".join(notes)


def test_notes_go_with_the_pixels():
    notes = []
    assert _pixels(maps.halves(maps.grid()), None, [maps.raster(np.arange(48.0), maps.grid(), "r")], notes).notes
    assert notes


def test_individuals_of_a_table_are_those_of_the_raster(tmp_path):
    """The pixels of a map, written to a table and read back, make the same bags."""
    pixels = _pixels(FILES.districts, FILES.population, FILES.covariates)
    table = pd.DataFrame(pixels.columns, columns=[*pixels.names, "x", "y"]).iloc[pixels.pixel]
    table["district"] = pixels.regions["label"].to_numpy()[pixels.region]
    table["people"] = pixels.weight
    counts = pd.DataFrame({"district": pixels.regions["label"], "cases": pixels.regions["observed"]})
    table.to_parquet(tmp_path / "pixels.parquet")
    counts.to_csv(tmp_path / "cases.csv", index=False)
    notes = []
    read = read_individuals(
        tmp_path / "pixels.parquet",
        tmp_path / "cases.csv",
        "cases",
        region="district",
        covariates=pixels.names,
        coordinates=("x", "y"),
        weights="people",
        notes=notes,
    )
    ours, theirs = read.bags(), pixels.bags()
    assert ours.labels.tolist() == theirs.labels.tolist()
    np.testing.assert_allclose(ours.mass, theirs.mass)
    np.testing.assert_allclose(ours.integrate(ours.center), theirs.integrate(theirs.center))
    np.testing.assert_allclose(read.regions["observed"], pixels.regions["observed"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_codes_of_regions_are_as_they_are_written(kind, tmp_path):
    people = pd.DataFrame({"country": ["NA", "01001", "1e5"], "age": [20.0, 40.0, 60.0]})
    cases = pd.DataFrame({"country": ["01001", "NA", "1e5"], "cases": [1, 2, 3]})
    for name, table in (("people", people), ("cases", cases)):
        write = table.to_parquet if kind == "parquet" else table.to_csv
        write(tmp_path / f"{name}.{kind}", index=False)
    files = tmp_path / f"people.{kind}", tmp_path / f"cases.{kind}"
    for left, right in (files, (files[0], cases), (people, files[1])):
        found = read_individuals(left, right, "cases", region="country", covariates=["age"], notes=[])
        assert found.regions["label"].tolist() == ["01001", "NA", "1e5"]
        assert found.covariates[found.pixel, 0].tolist() == [40.0, 20.0, 60.0]


def test_individuals_of_unobserved_regions_are_predicted_and_not_fitted():
    people = pd.DataFrame({"ward": [2, 1, 3, 1], "age": [20.0, 40.0, 60.0, 70.0]})
    cases = pd.DataFrame({"ward": [1, 2], "cases": [1, 2]})
    notes = []
    found = read_individuals(people, cases, "cases", region="ward", covariates=["age"], notes=notes)
    assert len(found.points()) == 4
    assert found.totals().tolist() == [2.0, 1.0]
    assert notes == ["1 row of regions without a response: predicted, but not fitted."]
