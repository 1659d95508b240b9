"""Regions from any format are the same regions; what was repaired is said."""

import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely

import aggregauss as ag
import maps
from aggregauss.io import read_regions

REGIONS = maps.halves(maps.grid(), cases=[3, 5], tested=[10, 10], size=[100.0, 50.0])


def _write(regions, path):
    if path.suffix in (".parquet", ".geoparquet"):
        regions.to_parquet(path)
    else:
        regions.to_file(path)
    return path


@pytest.mark.parametrize("suffix", ["gpkg", "geojson", "shp", "shp.zip", "parquet", "geoparquet", "fgb"])
def test_the_same_regions_from_any_format(suffix, tmp_path):
    path = _write(REGIONS, tmp_path / f"regions.{suffix}")
    notes = []
    found = read_regions(str(path), "cases", examined="tested", notes=notes)
    assert found.columns.tolist() == ["label", "observed", "examined", "geometry"]
    order = np.argsort(found["label"])[::-1]
    assert found["label"][order].tolist() == ["west", "east"]
    assert found["observed"][order].tolist() == [3.0, 5.0]
    assert found.crs == maps.UTM
    shapes = found.geometry.iloc[order].normalize().to_numpy()
    assert shapely.equals_exact(shapes, REGIONS.geometry.normalize().to_numpy(), 1e-6).all()
    assert notes == []


def test_names_are_a_unique_text_or_numbers():
    assert read_regions(REGIONS, "cases", notes=[])["label"].tolist() == ["west", "east"]
    assert read_regions(REGIONS.drop(columns="name"), "cases", notes=[])["label"].tolist() == ["0", "1"]
    assert read_regions(REGIONS, "cases", label="size", notes=[])["label"].tolist() == ["100.0", "50.0"]


def test_an_invalid_outline_is_repaired_and_noted():
    bowtie = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    broken = REGIONS.set_geometry([bowtie, shapely.box(5, 5, 6, 6)]).set_crs(maps.UTM, allow_override=True)
    notes = []
    found = read_regions(broken, "cases", notes=notes)
    assert found.is_valid.all()
    assert found.area.tolist() == pytest.approx([2.0, 1.0])
    assert notes == ['1 invalid outline repaired, first that of "west" (self-intersection).']


def test_a_collection_is_the_polygons_in_it():
    mixed = shapely.GeometryCollection([shapely.box(0, 0, 2, 1), shapely.Point(9, 9)])
    notes = []
    found = read_regions(REGIONS.set_geometry([shapely.box(5, 5, 6, 6), mixed], crs=maps.UTM), "cases", notes=notes)
    assert found.geom_type.tolist() == ["Polygon", "Polygon"]
    assert found.area.tolist() == [1.0, 2.0]
    assert notes == ['1 invalid outline repaired, first that of "east" (a collection of geometries).']


def test_the_worst_overlap_is_noted():
    shapes = [shapely.box(0, 0, 2, 1), shapely.box(1.9, 0, 3, 1), shapely.box(2.9, 0, 3.2, 1)]
    regions = maps.halves(maps.grid()).iloc[[0, 1, 1]].assign(name=["a", "b", "c"]).set_geometry(shapes, crs=maps.UTM)
    notes = []
    read_regions(regions, "cases", notes=notes)
    assert len(notes) == 1
    assert notes[0].startswith('2 pairs of regions overlap; the worst are "b" and "c", which share 33.3%')


def test_neighbours_do_not_overlap():
    notes = []
    read_regions(ag.datasets.madagascar().districts, "cases", notes=notes)
    assert notes == []


def test_the_users_table_is_left_alone():
    before = REGIONS.copy()
    read_regions(REGIONS, "cases", notes=[])
    assert before.equals(REGIONS)


def test_a_layer_is_chosen(tmp_path):
    path = tmp_path / "two.gpkg"
    REGIONS.to_file(path, layer="old")
    REGIONS.assign(cases=[8, 9]).to_file(path, layer="new")
    assert read_regions(path, "cases", layer="new", notes=[])["observed"].tolist() == [8.0, 9.0]


def test_the_only_layer_with_outlines_is_read(tmp_path):
    path = tmp_path / "notes_first.gpkg"
    pyogrio.write_dataframe(pd.DataFrame({"note": ["of 1991"]}), path, layer="notes")
    REGIONS.to_file(path, layer="regions")
    assert read_regions(path, "cases", notes=[])["observed"].tolist() == [3.0, 5.0]


def test_negative_responses_are_allowed_where_they_are_no_counts():
    found = read_regions(REGIONS.assign(cases=[-1.5, 2.0]), "cases", counts=False, notes=[])
    assert found["observed"].tolist() == [-1.5, 2.0]
