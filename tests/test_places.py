"""Where the inducing points of a map lie."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import aggregauss as ag
from aggregauss.io.individuals import read_individuals
from aggregauss.maps.classic import field_grid
from aggregauss.maps.places import SAMPLE, places, usual_number
from aggregauss.maps.settings import Settings


def _pixels(n=1200, towns=24, seed=0):
    """A long country of 24 regions, most of whose people live in one town each."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 1, (n, 2)) * [600.0, 200.0]
    region = np.floor(xy[:, 0] / 75.0).astype(int) * 3 + np.floor(xy[:, 1] / 66.7).astype(int)
    people = rng.gamma(2.0, 50.0, n)
    for a in range(towns):
        here = np.flatnonzero(region == a)
        near = here[np.argsort(np.hypot(*(xy[here] - xy[here[0]]).T))[:4]]
        people[near] += 5_000.0
    table = pd.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "rain": rng.normal(size=n), "people": people, "region": region})
    counts = pd.DataFrame({"region": np.arange(towns), "cases": rng.poisson(50, towns)})
    where = {"region": "region", "covariates": ("rain",), "coordinates": ("x", "y"), "weights": "people", "notes": []}
    return read_individuals(table, counts, "cases", **where)


def test_points_where_people_are_leave_less_of_a_regions_total_open_than_a_grid():
    """wᵀ (K - K_xz K_zz⁻¹ K_zx) w: what no count can teach."""
    pixels = _pixels()
    bags, kernel = pixels.bags("mean"), ag.Matern32(40.0, active_dims=(1, 2))

    def left(Z):
        Z = ag.Points(Z)
        root = np.linalg.cholesky(np.asarray(ag.cov(kernel, Z)) + 1e-8 * np.eye(len(Z)))
        known = np.linalg.solve(root, np.asarray(ag.cov(kernel, Z, bags)))
        return np.diagonal(np.asarray(ag.cov(kernel, bags))) - (known**2).sum(axis=0)

    grid = field_grid(pixels.coordinates, 100)
    Z = places(pixels, (1, 2), len(grid))
    assert len(Z) == len(grid)
    assert left(Z).mean() < 0.1 * left(np.column_stack([np.zeros(len(grid)), grid])).mean()


def test_distances_are_those_of_the_map():
    """A country that is turned about has its points turned about."""
    pixels = _pixels()
    turn = np.array([[np.cos(0.6), np.sin(0.6)], [-np.sin(0.6), np.cos(0.6)]])
    turned = dataclasses.replace(pixels, coordinates=pixels.coordinates @ turn)
    Z = places(pixels, (1, 2), 60)[:, 1:]
    np.testing.assert_allclose(places(turned, (1, 2), 60)[:, 1:], Z @ turn, atol=1e-2)


def test_columns_that_the_function_does_not_see_have_their_mean():
    pixels = _pixels()
    seen = places(pixels, (0,), 30)
    np.testing.assert_allclose(seen[:, 1:], np.tile(pixels.coordinates.mean(axis=0), (30, 1)))
    assert seen[:, 0].std() > 0.5 * pixels.covariates.std()


@pytest.mark.parametrize(
    ("kernel", "columns"),
    [(ag.RBF(active_dims=(0,)) + ag.Matern32(active_dims=(1, 2)), (0, 1, 2)), (ag.RBF(active_dims=(0,)), (0,))],
)
def test_a_model_of_ones_own_has_points_spread_over_what_it_sees(kernel, columns):
    model = ag.GP(kernel, ag.Poisson(), mean=ag.Constant(), aggregation="response")
    Z = Settings(model=model, inducing=40).build(_pixels())[1].inducing
    assert tuple(np.flatnonzero(np.ptp(Z, axis=0) > 0)) == columns


def test_a_model_without_a_kernel_needs_no_points():
    mean = ag.LinearEffects((0,), 1.0)
    model = ag.GP(None, ag.Poisson(), mean=mean, aggregation="response")
    assert Settings(model=model).build(_pixels())[1].inducing is None


def test_points_are_the_same_again_and_no_more_than_there_are_pixels():
    pixels = _pixels(n=200)
    np.testing.assert_array_equal(places(pixels, (1, 2), 50, seed=3), places(pixels, (1, 2), 50, seed=3))
    assert len(places(pixels, (1, 2), 500)) == 200


def test_many_pixels_are_clustered_by_a_sample_of_them():
    pixels = _pixels(n=SAMPLE + 5_000)
    Z = places(pixels, (1, 2), 40)
    people = np.average(pixels.coordinates, axis=0, weights=pixels.population)
    assert Z.shape == (40, 3)
    assert np.all(np.abs(Z[:, 1:].mean(axis=0) - people) < [60.0, 20.0])


def test_there_are_more_points_for_more_regions():
    assert [usual_number(n) for n in (3, 22, 109, 5000)] == [250, 250, 436, 1000]


def test_all_of_the_country_is_near_a_point_where_nobody_lives_too():
    pixels = _pixels()
    people = np.where(pixels.coordinates[:, 0] < 150.0, 0.0, pixels.population)
    pixels = dataclasses.replace(pixels, population=people)
    Z = jnp.asarray(places(pixels, (1, 2), 80)[:, 1:])
    empty = pixels.coordinates[pixels.population == 0]
    assert float(jnp.linalg.norm(empty[:, None] - Z[None], axis=2).min(axis=1).max()) < 75.0
