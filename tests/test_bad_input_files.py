"""Bad files get one sentence: which file, what is wrong, what to do. Nothing half-written stays behind."""

import errno
import os
import resource
import signal
from pathlib import Path

import geopandas as gpd
import jaxtyping
import numpy as np
import pandas as pd
import pytest
import shapely

import maps
from aggregauss.io import open_raster, read_individuals, read_pixels, read_regions, whole_folder, write_geotiff
from aggregauss.maps import read_map
from aggregauss.maps.blocks import predict_raster

NAN = float("nan")
GRID = maps.grid((4, 4))
REGIONS = maps.halves(GRID)
RAIN = maps.raster(np.arange(16.0), GRID, "rain")
PEOPLE = pd.DataFrame({"ward": ["a", "a", "b"], "age": [20.0, 40.0, 60.0], "n": [1.0, 1.0, 1.0]})
CASES_BY_WARD = pd.DataFrame({"ward": ["a", "b"], "cases": [1, 2]})


@pytest.fixture(autouse=True)
def _as_users_run_it():
    """Without the run-time type checks of the suite, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def _regions(regions=REGIONS, response="cases", **others):
    return read_regions(regions, response, notes=[], **others)


def _pixels(population=None, covariates=(), regions=REGIONS, **others):
    return read_pixels(_regions(regions), population, covariates, notes=[], **others)


def _table(table=PEOPLE, responses=CASES_BY_WARD, response="cases", **others):
    settings = {"region": "ward", "covariates": ["age"]} | others
    return read_individuals(table, responses, response, notes=[], **settings)


def _file(name, content=b"not what it seems"):
    Path(name).write_bytes(content)
    return name


def _truncated_tiff():
    where = maps.grid((300, 300))
    write_geotiff(
        "whole.tif", where, np.arange(where.size), np.random.default_rng(0).normal(size=where.size), description=""
    )
    return _file("half.tif", Path("whole.tif").read_bytes()[: Path("whole.tif").stat().st_size // 2])


def _truncated_netcdf():
    RAIN.to_netcdf("whole.nc")
    return _file("half.nc", Path("whole.nc").read_bytes()[:3000])


def _truncated_gpkg():
    REGIONS.to_file("whole.gpkg")
    return _file("half.gpkg", Path("whole.gpkg").read_bytes()[:20_000])


def _two_layers():
    REGIONS.to_file("two.gpkg", layer="old")
    REGIONS.to_file("two.gpkg", layer="new")
    return "two.gpkg"


def _without_geometry():
    REGIONS.drop(columns="geometry").to_parquet("plain.parquet")
    return "plain.parquet"


def _stack():
    return RAIN.expand_dims(time=[1, 2, 3])


def _shape(shape):
    return REGIONS.set_geometry([shape, REGIONS.geometry[1]], crs=REGIONS.crs)


def _uneven():
    return RAIN.assign_coords(x=[0.0, 1.0, 2.0, 9.0])


def _hole(rows, columns):
    values = np.arange(400.0).reshape(20, 20)
    values[rows, columns] = NAN
    return {"rain": maps.raster(values, maps.grid((20, 20)))}


FLAT = shapely.Polygon([(0, 0), (1, 1), (2, 2)])
BOWTIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
WIDE = maps.halves(maps.grid((20, 20)))
FAR = maps.raster(np.zeros(16), maps.grid((4, 4), 1000.0, (800_000.0, 8_000_000.0)), "far")
WEST_EMPTY = np.where(np.arange(16) % 4 < 2, 0.0, 5.0)
OUTSIDE = pd.concat([REGIONS, REGIONS.iloc[[0]].assign(name="atoll", geometry=[shapely.box(0, 0, 1, 1)])])

DEGREES = maps.raster(np.zeros(16), maps.grid((4, 4), 0.5, (44.0, -17.0), maps.DEGREES), "rain")
SWAPPED = gpd.GeoDataFrame({"cases": [1]}, geometry=[shapely.box(-18.5, 44.5, -17.5, 45.5)], crs=4326)

CASES = {
    "no such file": (lambda: _regions("none.gpkg"), FileNotFoundError, ["there is no file none.gpkg"]),
    "unknown extension": (lambda: _regions(_file("regions.docx")), ValueError, ['extension ".docx"', ".gpkg"]),
    "not a gpkg": (lambda: _regions(_file("regions.gpkg")), ValueError, ["regions.gpkg cannot be read", "get it again"]),
    "not geojson": (lambda: _regions(_file("regions.geojson", b'{"type": "Feat')), ValueError, ["regions.geojson cannot be read"]),
    "not parquet": (lambda: _regions(_file("regions.parquet")), ValueError, ["regions.parquet cannot be read"]),
    "truncated gpkg": (lambda: _regions(_truncated_gpkg()), ValueError, ["half.gpkg cannot be read"]),
    "two layers": (lambda: _regions(_two_layers()), ValueError, ['two.gpkg has 2 layers ("old", "new")', 'Name one of them with "layer"']),
    "no such layer": (lambda: _regions(_two_layers(), layer="older"), ValueError, ['two.gpkg has no layer "older"; it has "old", "new"']),
    "no geometries": (lambda: _regions(_without_geometry()), ValueError, ["plain.parquet cannot be read"]),
    "a plain table": (lambda: _regions(pd.DataFrame({"cases": [1]})), TypeError, ["a table without geometries"]),
    "a number": (lambda: _regions(3), TypeError, ["but it is int"]),
    "no rows": (lambda: _regions(REGIONS.iloc[:0]), ValueError, ["has no regions"]),
    "no reference system": (lambda: _regions(REGIONS.set_crs(None, allow_override=True)), ValueError, ["no coordinate reference system", "set_crs"]),
    "missing column": (lambda: _regions(response="case"), ValueError, ['column "case"', 'Did you mean "cases"?']),
    "wrong case": (lambda: _regions(response="CASES"), ValueError, ['Did you mean "cases"?']),
    "text": (lambda: _regions(REGIONS.assign(cases=["12", "n/a"])), TypeError, ['"cases" must hold numbers', 'region "east"', "'n/a'", "to_numeric"]),
    "counts as text": (lambda: _regions(REGIONS.assign(cases=["12", "13"])), TypeError, ['"cases" must hold numbers', "'12'"]),
    "missing count": (lambda: _regions(REGIONS.assign(cases=[1.0, NAN])), ValueError, ["must be finite", 'region "east" has nan']),
    "negative count": (lambda: _regions(REGIONS.assign(cases=[1, -9])), ValueError, ["must not be negative", 'region "east" has -9']),
    "more positive than examined": (lambda: _regions(REGIONS.assign(n=[5, 50]), examined="n"), ValueError, ['region "west" has 10 of 5']),
    "names twice": (lambda: _regions(REGIONS.assign(name="x"), label="name"), ValueError, ['has "x" twice', "Dissolve"]),
    "no name": (lambda: _regions(REGIONS.assign(name=["x", None]), label="name"), ValueError, ["no name for row 1"]),
    "wide table": (lambda: _regions(REGIONS.assign(**{f"c{i}": 0 for i in range(9)}), "nothing"), ValueError, ['only "name", "cases", "c0" and 8 more']),
    "empty outline": (lambda: _regions(_shape(shapely.Polygon())), ValueError, ['region "west" has no geometry']),
    "missing outline": (lambda: _regions(_shape(None)), ValueError, ['region "west" has no geometry']),
    "a point": (lambda: _regions(_shape(shapely.Point(0, 0))), TypeError, ['region "west" is a Point', "must be polygons"]),
    "a flat polygon": (lambda: _regions(_shape(FLAT)), ValueError, ['region "west" has no area']),
    "a flat polygon after a bow-tie": (lambda: _regions(REGIONS.set_geometry([BOWTIE, FLAT], crs=maps.UTM)), ValueError, ['region "east" has no area']),
    "a collection without area": (lambda: _regions(_shape(shapely.GeometryCollection([shapely.Point(0, 0)]))), ValueError, ['region "west" has no area']),
    "the same outline": (lambda: _regions(_shape(REGIONS.geometry[1])), ValueError, ['"west" and "east" have the same outline']),
    "no such raster": (lambda: open_raster("none.tif"), FileNotFoundError, ["there is no file none.tif"]),
    "raster extension": (lambda: open_raster(_file("rain.jpg")), ValueError, ['extension ".jpg"', ".tif"]),
    "not a tif": (lambda: open_raster(_file("rain.tif")), ValueError, ["rain.tif cannot be read as a raster"]),
    "not a netcdf": (lambda: open_raster(_file("rain.nc")), ValueError, ["rain.nc cannot be read as a raster"]),
    "truncated netcdf": (lambda: open_raster(_truncated_netcdf()), ValueError, ["half.nc cannot be read as a raster"]),
    "truncated tif": (lambda: _pixels(None, [_truncated_tiff()]), ValueError, ["half.tif cannot be read to its end", "truncated"]),
    "not a raster": (lambda: open_raster([1, 2]), TypeError, ["a DataArray or a Dataset, but got list"]),
    "raster without system": (lambda: open_raster(RAIN.drop_vars("spatial_ref").drop_encoding()), ValueError, ["rain has no coordinate reference system"]),
    "unknown dimensions": (lambda: open_raster(RAIN.rename(x="u")), ValueError, ["('y', 'u')", "Rename"]),
    "many times": (lambda: open_raster(_stack()), ValueError, ['3 layers along "time"', "isel(time=0)"]),
    "uneven": (lambda: open_raster(_uneven()), ValueError, ['unequal steps along "x"']),
    "many variables": (lambda: open_raster(RAIN.to_dataset().assign(sun=RAIN)), ValueError, ['2 layers ("rain", "sun")', '#sun"']),
    "no such variable": (lambda: open_raster(RAIN.to_dataset(), variable="ran"), ValueError, ['no layer "ran"', 'Did you mean "rain"?']),
    "elsewhere": (lambda: _pixels(None, {"far": FAR}), ValueError, ["far does not overlap the regions", "x 800000 to 804000", "x 500000 to 504000", "EPSG:32738"]),
    "swapped": (lambda: _pixels(None, {"rain": DEGREES}, SWAPPED), ValueError, ["rain does not overlap", "look swapped"]),
    "metres taken for degrees": (lambda: _pixels(None, {"rain": DEGREES}, REGIONS.set_crs(4326, allow_override=True)), ValueError, ["are no degrees", "EPSG:4326"]),
    "a region without pixels": (lambda: _pixels(None, [RAIN], OUTSIDE), ValueError, ["most often rain", '"atoll" would have no pixel left']),
    "two of one name": (lambda: _pixels(None, [RAIN, RAIN]), ValueError, ['two covariates are called "rain"', "dict"]),
    "unknown categorical": (lambda: _pixels(None, [RAIN], categorical=["soil"]), ValueError, ['"categorical" names "soil"', '"rain"']),
    "too many classes": (lambda: _pixels(None, _hole(0, 0), WIDE, categorical=["rain"]), ValueError, ["399 different values"]),
    "covariates missing for many": (lambda: _pixels(None, _hole(slice(0, 12), slice(0, 20)), WIDE), ValueError, ["no value for", "of the population", "rain"]),
    "covariates missing for a region": (lambda: _pixels(PEOPLE_EAST, _hole(slice(0, 20), slice(0, 15)), WIDE), ValueError, ['"west" would have no pixel left']),
    "negative people": (lambda: _pixels(maps.raster(np.arange(16.0) - 3, GRID, "people")), ValueError, ["people must not be negative", "-3"]),
    "no people at all": (lambda: _pixels(maps.raster(np.full(16, NAN), GRID, "people")), ValueError, ["people has no value inside any region"]),
    "nobody but cases": (lambda: _pixels(maps.raster(WEST_EMPTY, GRID, "people")), ValueError, ['population is zero in "west"', "10 were observed"]),
    "negative resolution": (lambda: _pixels(None, [RAIN], resolution=-1.0), ValueError, ['"resolution" must be a positive size']),
    "too fine": (lambda: _pixels(None, [RAIN], resolution=0.01), ValueError, ["more than 300,000,000", "coarser"]),
    "table of another kind": (lambda: _table([1, 2]), TypeError, ['"table" must be a path to CSV or Parquet, or a DataFrame']),
    "table extension": (lambda: _table(_file("people.txt")), ValueError, ['extension ".txt"', ".csv, .parquet"]),
    "missing table": (lambda: _table("people.csv"), FileNotFoundError, ["there is no file people.csv"]),
    "empty table": (lambda: _table(_file("people.csv", b"")), ValueError, ["people.csv cannot be read"]),
    "missing covariate": (lambda: _table(covariates=["ages"]), ValueError, ['"covariates" names the column "ages"', 'Did you mean "age"?']),
    "no columns": (lambda: _table(covariates=[]), ValueError, ['give the columns of "covariates" or of "coordinates"']),
    "region twice": (lambda: _table(responses=CASES_BY_WARD.assign(ward="a")), ValueError, ['has "a" twice']),
    "row of no region": (lambda: _table(PEOPLE.assign(ward=["a", None, "b"])), ValueError, ['"ward" has no name for row 1']),
    "response of no region": (lambda: _table(responses=CASES_BY_WARD.assign(ward=["a", None])), ValueError, ['"ward" has no name for row 1']),
    "group of no name": (lambda: read_map(CASES_BY_WARD.assign(zone=["north", NAN]), "cases", individuals=PEOPLE, region="ward", covariates=["age"], groups="zone"), ValueError, ['validate: the column "zone" has no name for row 1']),
    "group of no name for a region": (lambda: read_map(REGIONS.assign(zone=["north", NAN]), "cases", groups="zone"), ValueError, ['"zone" has no name for row 1']),
    "label of a table": (lambda: read_map(CASES_BY_WARD, "cases", individuals=PEOPLE, covariates=["age"], label="ward"), ValueError, ['"label" has no meaning with a table of individuals', "Leave it out"]),
    "resolution of a table": (lambda: read_map(CASES_BY_WARD, "cases", individuals=PEOPLE, covariates=["age"], resolution=1.0), ValueError, ['"resolution" has no meaning']),
    "coordinates of no table": (lambda: read_map(REGIONS, "cases", coordinates=["east"]), ValueError, ['"coordinates" has no meaning without a table of individuals']),
    "region of nobody": (lambda: _table(PEOPLE.iloc[:2]), ValueError, ['1 region without any individual that counts: "b"']),
    "region of no weight": (lambda: _table(PEOPLE.assign(n=[1.0, 1.0, 0.0]), weights="n"), ValueError, ['individual that counts: "b"']),
    "nan covariate": (lambda: _table(PEOPLE.assign(age=[1.0, NAN, 2.0])), ValueError, ['"age" must be finite', "row 1 has nan"]),
    "negative weight": (lambda: _table(PEOPLE.assign(n=[1.0, -1.0, 0.0]), weights="n"), ValueError, ['"n" must not be negative', "row 1"]),
    "no folder": (lambda: write_geotiff("none/m.tif", GRID, [0], [1.0], description=""), FileNotFoundError, ["There is no folder", "m.tif"]),
}  # fmt: skip
PEOPLE_EAST = maps.raster(np.where(np.arange(400) % 20 < 10, 0.01, 9.0), maps.grid((20, 20)), "people")


@pytest.mark.parametrize("case", CASES)
def test_one_sentence(case):
    call, error, words = CASES[case]
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text
    assert "\n" not in text
    assert text.rstrip()[-1] in ".?'\""


def _left(folder):
    return sorted(p.name for p in Path(folder).iterdir())


@pytest.mark.parametrize(
    "problem", [KeyboardInterrupt(), ValueError("x"), OSError(errno.ENOSPC, "No space left on device")]
)
def test_what_is_interrupted_leaves_nothing(problem, tmp_path):
    def fail(folder):
        (folder / "mean.tif").write_text("half of it")
        raise problem

    with pytest.raises(type(problem)), whole_folder(tmp_path / "results") as folder:
        fail(folder)
    assert _left(tmp_path) == []


def test_an_existing_folder_is_kept_until_the_new_one_is_whole(tmp_path):
    with whole_folder(tmp_path / "results") as folder:
        (folder / "old.txt").write_text("old")
    with pytest.raises(FileExistsError, match="already exists"), whole_folder(tmp_path / "results"):
        pass
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "results", ["old.txt"]):
        raise KeyboardInterrupt
    assert _left(tmp_path / "results") == ["old.txt"]
    with whole_folder(tmp_path / "results", ["old.txt"]) as folder:
        (folder / "new.txt").write_text("new")
    assert _left(tmp_path / "results") == ["new.txt"]
    assert _left(tmp_path) == ["results"]
    assert (tmp_path / "results").stat().st_mode & 0o777 == 0o777 & ~_umask()


def test_only_what_is_named_gives_way(tmp_path):
    out = tmp_path / "results"
    out.mkdir()
    for name in ("mean.tif", "mean.tif.aux.xml", "districts.gpkg"):
        (out / name).write_text(name)
    with pytest.raises(FileExistsError, match=r"districts\.gpkg in it is no file of such results"):
        whole_folder(out, ["mean.tif"]).__enter__()
    with pytest.raises(FileExistsError, match=r"mean\.tif in it is an input"):
        whole_folder(out, ["mean.tif", "districts.gpkg"], [f"{out}/mean.tif"]).__enter__()
    assert _left(out) == ["districts.gpkg", "mean.tif", "mean.tif.aux.xml"]


@pytest.mark.parametrize("problem", [ImportError("Missing optional dependency 'pyarrow'."), MemoryError()])
def test_what_is_no_fault_of_a_file_is_not_said_of_it(problem, monkeypatch):
    def fail(_):
        raise problem

    monkeypatch.setattr(pd, "read_parquet", fail)
    with pytest.raises(type(problem)):
        _table(_file("people.parquet"))


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.fixture
def _small_disk():
    """No file may grow beyond 20 kB: writing fails as on a full disk, whoever writes."""
    limit, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("_small_disk")
def test_a_full_disk_leaves_nothing(tmp_path):
    where = maps.grid((300, 300))
    noise = np.random.default_rng(0).normal(size=where.size)
    with pytest.raises(OSError, match=r"no room for .*mean\.tif"):
        write_geotiff(tmp_path / "mean.tif", where, np.arange(where.size), noise, description="mean")
    assert _left(tmp_path) == []
    with pytest.raises(OSError, match="no room"), whole_folder(tmp_path / "results") as folder:
        write_geotiff(folder / "mean.tif", where, np.arange(where.size), noise, description="mean")
    assert _left(tmp_path) == []


@pytest.mark.usefixtures("_small_disk")
@pytest.mark.parametrize("size", [200, 600])  # GDAL fails when it closes the file, or while it writes
def test_a_full_disk_leaves_no_blocks(size, tmp_path):
    where = maps.grid((size, size))
    noise = maps.raster(np.random.default_rng(0).normal(size=where.size), where, "noise")
    with pytest.raises(OSError, match="Is the disk full"):
        predict_raster(lambda x: {"mean": x[:, 0]}, [noise], tmp_path / "results", names=["noise"], block=256)
    assert _left(tmp_path) == []
