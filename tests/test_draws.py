"""Draws of the function at many points, and intervals that hold jointly."""

import numpy as np
import pytest

import aggregauss as ag
from aggregauss.inference.draws import latent_draws
from aggregauss.inference.prediction import Prediction
from aggregauss.marginals import GaussianMarginals


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


def test_draws_have_the_moments_of_the_prediction(post, counts):
    points = ag.Points(counts[0])
    blocks = [drawn for _, drawn in latent_draws(post, points, 20_000, seed=1)]
    drawn, known = np.concatenate(blocks, axis=1), post.predict(points, "latent")
    assert np.abs(drawn.mean(axis=0) - known.mean).max() < 5 * known.std.max() / np.sqrt(20_000)
    np.testing.assert_allclose(drawn.std(axis=0), known.std, rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(drawn[:, 10], drawn[:, 12])[0, 1], _correlation(known, 10, 12), atol=0.05)


def _correlation(prediction, i, j):
    c = prediction.covariance
    return c[i, j] / np.sqrt(c[i, i] * c[j, j])


def test_draws_are_the_same_in_every_call(post, counts):
    first, again = ([d for _, d in latent_draws(post, ag.Points(counts[0]), 50, seed=3)] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again))


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
