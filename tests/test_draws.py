"""Draws of the function at many points, and intervals that hold jointly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggregauss as ag
from aggregauss.inference import draws
from aggregauss.inference.draws import latent_draws
from aggregauss.inference.prediction import Prediction
from aggregauss.marginals import GaussianMarginals
from aggregauss.supports.nearby import nearby


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.linspace(0.0, 6.0, 60), rng.normal(0, 20, 60)])
    bags = ag.Bags(X, bag=np.arange(60) // 5, weights=rng.uniform(50, 100, 60))
    return X, bags, rng.poisson(bags.mass * 0.1 * np.exp(np.sin(np.arange(12))))


@pytest.fixture(scope="module")
def post(counts):
    X, bags, y = counts
    model = ag.GP(ag.RBF(1.0, 0.5, active_dims=[0]), ag.Poisson(), aggregation="response", mean=ag.LinearEffects([1]))
    return model.fit(bags, y, inference=ag.SVI(inducing=X[::6]), standardise=[1], progress=False)


def _gaussian(mean, covariance):
    marginals = GaussianMarginals(np.asarray(mean), np.diag(covariance))
    return Prediction(marginals, ag.Points(np.zeros(len(mean))), lambda: (np.asarray(mean), covariance), "latent")


def _drawn(post, points, n, seed):
    """Draws in the order of the points."""
    out = np.full((n, len(points)), np.nan)
    for rows, drawn in latent_draws(post, points, n, seed):
        out[:, rows] = drawn
    return out


def _apart(drawn, known):
    """The largest difference of two covariances, in units of variances."""
    sd = known.std
    return np.abs(np.cov(drawn.T) - known.covariance).max() / (sd**2).max()


def test_draws_have_the_moments_of_the_prediction(post, counts):
    points = ag.Points(counts[0])
    drawn, known = _drawn(post, points, 20_000, seed=1), post.predict(points, "latent")
    assert np.abs(drawn.mean(axis=0) - known.mean).max() < 5 * known.std.max() / np.sqrt(20_000)
    np.testing.assert_allclose(drawn.std(axis=0), known.std, rtol=0.05)
    assert _apart(drawn, known) < 0.05


def test_what_few_inducing_points_leave_open_is_drawn_jointly(monkeypatch):
    """A rough function, a tenth of the points it needs: all pairs when each point of a tile stands for itself; where an
    eighth of them do, sums over neighbours have their variance, which independent rests would not give them."""
    x = np.linspace(0.0, 8.0, 128)
    bags = ag.Bags(x, bag=np.arange(128) // 16, weights=np.full(128, 10.0))
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(0.5))
    model = ag.GP(ag.Matern32(0.5, 1.0), likelihood, aggregation="response", mean=ag.Constant(ag.fixed(0.0)))
    known = ag.SVI(inducing=np.linspace(0, 8, 6), optimise=False)
    post = model.fit(bags, np.full(8, 160), inference=known, progress=False)
    points = ag.Points(x)
    prediction = post.predict(points, "latent")
    assert _apart(_drawn(post, points, 20_000, seed=0), prediction) < 0.05
    monkeypatch.setattr(draws, "TILE", 64)
    monkeypatch.setattr(draws, "LOCAL", 8)
    few = _drawn(post, points, 20_000, seed=0)
    np.testing.assert_allclose(few.var(axis=0), prediction.variance, rtol=0.05)
    sums = np.add.reduceat(prediction.covariance, np.arange(0, 128, 8), axis=0)
    sums = np.add.reduceat(sums, np.arange(0, 128, 8), axis=1)
    np.testing.assert_allclose(np.add.reduceat(few, np.arange(0, 128, 8), axis=1).var(axis=0), np.diag(sums), rtol=0.1)


@given(st.integers(1, 300), st.integers(1, 3), st.integers(0, 5))
def test_neighbours_in_order_are_boxes_of_a_tree(n, d, seed):
    """Every aligned 2^k points lie to one side of the other half of their 2^(k+1) in some dimension."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    order = nearby(X)
    assert sorted(order) == list(range(n))
    for k in range(2, 8):
        for start in range(0, n, 2 << k):
            left, right = X[order[start : start + (1 << k)]], X[order[start + (1 << k) : start + (2 << k)]]
            assert len(right) == 0 or (left.max(axis=0) <= right.min(axis=0)).any()


def test_draws_are_the_same_in_every_call(post, counts):
    np.testing.assert_array_equal(*(_drawn(post, ag.Points(counts[0]), 50, seed=3) for _ in range(2)))


def test_draws_need_inducing_variables():
    post = ag.GP(ag.RBF(1.0)).fit(ag.Points([0.0, 1.0]), [0.0, 1.0], inference=ag.Exact(optimise=False))
    with pytest.raises(TypeError, match="by Exact"):
        next(latent_draws(post, ag.Points([0.5]), 2))


def test_standardised_columns_are_the_columns_scaled_by_hand(post, counts):
    X, bags, y = counts
    scaled = np.column_stack([X[:, 0], (X[:, 1] - X[:, 1].mean()) / X[:, 1].std()])
    by_hand = ag.Bags(scaled, bag=np.arange(60) // 5, weights=bags.weight)
    known = ag.SVI(inducing=X[::6], optimise=False)  # the second column of inducing points is not active
    here = post.model.fit(by_hand, y, inference=known, progress=False).predict(ag.Points(scaled), "latent")
    there = post.model.fit(bags, y, inference=known, standardise=[1], progress=False).predict(ag.Points(X), "latent")
    np.testing.assert_allclose(here.mean, there.mean, atol=1e-8)
    np.testing.assert_allclose(here.std, there.std, atol=1e-8)


def test_standardise_names_columns_that_exist(counts):
    _, bags, y = counts
    with pytest.raises(ValueError, match=r'"standardise" must be True, False or columns in 0\.\.1, but got \[2\]'):
        ag.GP(ag.RBF(1.0), ag.Poisson(), aggregation="response").fit(bags, y, standardise=[2])


def test_joint_intervals_of_independent_values_hold_the_nth_root():
    n, level = 10, 0.9
    joint = _gaussian(np.zeros(n), np.eye(n)).joint_interval(level, draws=200_000)
    single = _gaussian(np.zeros(n), np.eye(n)).interval(level ** (1 / n))
    np.testing.assert_allclose(joint[1], single[1], atol=0.02)


def test_joint_intervals_of_values_that_move_together_are_the_single_ones():
    together = _gaussian(np.arange(3.0), np.full((3, 3), 4.0))
    np.testing.assert_allclose(together.joint_interval(0.9, draws=200_000)[0], together.interval(0.9)[0], atol=0.05)
