"""Pooled individuals: what stays the same, and how fast the rest gets better."""

import numpy as np
import pytest

import aggregauss as ag

RNG = np.random.default_rng(5)
SIZES = np.array([1, 3, 40, 200])
OWNER = np.repeat(np.arange(4), SIZES)
X = RNG.normal(size=(len(OWNER), 3)) * [1.0, 10.0, 0.1]
BAGS = ag.Bags(X, OWNER, weights=RNG.exponential(size=len(OWNER)) * (RNG.uniform(size=len(OWNER)) > 0.1) + 1e-9)


@pytest.mark.parametrize("most", [1, 5, 32])
def test_masses_and_weighted_means_stay(most):
    small = ag.pool(BAGS, most)
    assert (small.atom_counts == np.minimum(SIZES, most)).all()
    np.testing.assert_allclose(small.mass, BAGS.mass)
    np.testing.assert_allclose(small.integrate(small.center), BAGS.integrate(BAGS.center))
    assert (np.diff(small.owner) >= 0).all()
    assert small.labels is BAGS.labels


def test_the_error_of_a_curved_function_is_of_second_order():
    def error(most):
        small = ag.pool(BAGS, most)
        return abs(small.integrate(np.exp(0.1 * small.center[:, 1])) / BAGS.integrate(np.exp(0.1 * X[:, 1])) - 1)[3]

    assert error(32) < 0.02 < 0.1 < error(1)


def test_bags_that_are_small_enough_are_left_alone():
    same = ag.pool(BAGS, 200)
    np.testing.assert_array_equal(same.center, BAGS.center)
    np.testing.assert_array_equal(same.weight, BAGS.weight)


def test_places_where_nobody_lives_have_a_middle():
    bags = ag.Bags([[0.0], [1.0], [2.0], [9.0]], [0, 0, 0, 0], weights=[0.0, 0.0, 0.0, 1.0])
    small = ag.pool(bags, 2)
    assert np.isfinite(small.center).all()
    assert small.mass.tolist() == [1.0]


def test_a_search_with_as_many_as_there_are_is_the_search_with_all():
    x, bag = np.linspace(0, 10, 60), np.arange(60) // 6
    bags = ag.Bags(x, bag, weights=np.full(60, 20.0))
    y = np.round(120 * np.exp(np.sin(np.arange(10))))
    model = ag.GP(ag.Matern1(2.0), ag.Poisson(), mean=ag.Constant(), aggregation="response")
    both = [
        model.fit(bags, y, inference=ag.SVI(inducing=12, probes=6, pool=most), progress=False) for most in (None, 6)
    ]
    means = [post.predict(ag.Points(x)).mean for post in both]
    np.testing.assert_allclose(*means, rtol=1e-3)
    assert both[1].runs[0].path[-1] == pytest.approx(both[1].runs[0].path[-2], abs=1e-2)


@pytest.mark.parametrize(
    ("support", "most", "error", "sentence"),
    [
        (BAGS, 0, ValueError, 'pool: "most"'),
        (ag.Intervals([0.0], [1.0]), 4, TypeError, "only points can be pooled"),
    ],
)
def test_what_cannot_be_pooled(support, most, error, sentence):
    with pytest.raises(error, match=sentence):
        ag.pool(support, most)
