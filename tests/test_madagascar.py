"""The bundled map: outlines drawn from pixels hold the pixels of the published table, and name their source."""

import geopandas as gpd
import numpy as np
import pytest
import rasterio
import rasterio.features
import shapely

import aggregauss as ag

FILES = ag.datasets.madagascar()


def _read(path):
    with rasterio.open(path) as source:
        return source.read(1), source.transform, source.crs


def test_districts_cover_the_island_once_and_add_up_to_the_published_cases():
    districts = gpd.read_file(FILES.districts)
    assert len(districts) == districts["district"].nunique() == 109
    assert districts.is_valid.all()
    assert districts["cases"].sum() == pytest.approx(1_237_810.65, abs=0.1)
    assert districts.union_all().area == pytest.approx(shapely.area(districts.geometry.array).sum(), rel=1e-9)


def test_outlines_hold_the_pixels_and_people_of_the_published_index():
    districts = gpd.read_file(FILES.districts)
    population, transform, crs = _read(FILES.population)
    assert districts.crs == crs
    shapes = zip(districts.geometry, range(1, 110))
    index = rasterio.features.rasterize(shapes, population.shape, transform=transform)
    assert (index > 0).sum() == 28_877  # land pixels inside districts
    np.testing.assert_allclose(shapely.area(districts.geometry.array).sum() * 24**2, 28_877, rtol=1e-7)
    assert np.isnan(population[index > 0]).sum() == 3


def test_regions_are_the_districts_they_form():
    districts = gpd.read_file(FILES.districts)
    regions = FILES.regions
    assert len(regions) == 22
    sums = districts.groupby("region")["cases"].sum()
    np.testing.assert_allclose(regions.set_index("region")["cases"][sums.index], sums)
    assert shapely.area(regions.geometry.array).sum() == pytest.approx(
        shapely.area(districts.geometry.array).sum(), rel=1e-9
    )


def test_rasters_share_one_grid_and_are_small():
    grids = {_read(path)[1:] for path in [FILES.population, *FILES.covariates.values()]}
    assert len(grids) == 1
    assert sum(path.stat().st_size for path in FILES.districts.parent.iterdir()) < 1_000_000


def test_attribution_names_source_licence_what_is_not_known_paper_and_changes():
    text = " ".join(FILES.attribution.read_text().split())
    for words in (
        "Malaria Atlas Project",
        "Creative Commons Attribution",
        "3.0 or 4.0",
        "licenses/by/4.0/",
        "has no licence file of its own",
        "Nandi",
        "Changes made",
    ):
        assert words in text
