"""Exact inference against dense linear algebra, other libraries, and identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import aggregauss as ag
from aggregauss.inference.data import observe
from aggregauss.inference.exact import log_evidence
from aggregauss.parameters import log_prior, pack, parameters, unpack
from instances import SUPPORTS

KEEP = ag.Exact(optimise=False)
BINS = ag.Intervals([0.0, 1.0, 2.5, 4.0, 0.5], [1.0, 2.5, 4.0, 6.0, 5.0], measure="total")
Y = np.array([1.2, 0.7, -0.4, 1.9, 3.1])


def _dense(model, support, y, noise, test):
    """mean and covariance of the latent test values, by textbook formulas."""
    K = np.asarray(ag.cov(model.kernel, support)) + np.diag(noise + float(model.likelihood.variance))
    cross, prior = np.asarray(ag.cov(model.kernel, test, support)), np.asarray(ag.cov(model.kernel, test))
    gain = np.linalg.solve(K, cross.T).T
    mean = getattr(model.mean, "value", 0.0)
    ones = [s.integrate(np.ones(len(s.owner))) for s in (support, test)]
    return mean * ones[1] + gain @ (y - mean * ones[0]), prior - gain @ cross.T, K, y - mean * ones[0]


_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("bag-means", "many-atoms")]


@pytest.mark.parametrize("name", ["mixed", "polygons", "product", *_SLOW])
def test_posterior_and_evidence_agree_with_dense_formulas_on_every_support(name):
    support = SUPPORTS[name]
    rng = np.random.default_rng(0)
    y, noise = rng.normal(size=len(support)), rng.uniform(0.1, 0.5, len(support))
    model = ag.GP(ag.RBF(0.7, 1.3) + ag.White(0.1), ag.Gaussian(0.2), mean=ag.Constant(0.4))
    post = model.fit(support, y, noise, inference=KEEP)
    test = ag.concatenate([SUPPORTS["points"], SUPPORTS["boxes"], SUPPORTS["bags"]])
    mean, covariance, K, residual = _dense(model, support, y, noise, test)
    prediction = post.predict(test)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(prediction.variance, np.diag(covariance), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(prediction.covariance, covariance, rtol=1e-6, atol=1e-8)
    assert post.evidence == pytest.approx(multivariate_normal(cov=K).logpdf(residual), rel=1e-8)


def test_points_agree_with_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rng = np.random.default_rng(1)
    X = rng.uniform(0, 5, (30, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    theirs = GaussianProcessRegressor(ConstantKernel(1.0) * RBF([1.0, 1.0]) + WhiteKernel(0.1), random_state=0).fit(
        X, y
    )
    ours = ag.GP(ag.RBF([1.0, 1.0], 1.0), ag.Gaussian(0.1)).fit(ag.Points(X), y)
    assert ours.evidence >= theirs.log_marginal_likelihood_value_ - 1e-4
    again = ours.model.replace({"kernel.lengthscale": theirs.kernel_.k1.k2.length_scale})
    again = again.replace({"kernel.variance": theirs.kernel_.k1.k1.constant_value})
    again = again.replace({"likelihood.variance": theirs.kernel_.k2.noise_level})
    same = again.fit(ag.Points(X), y, inference=KEEP)
    assert same.evidence == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-7)
    mean, sd = theirs.predict(X[:5] + 0.1, return_std=True)
    got = same.predict(ag.Points(X[:5] + 0.1), kind="observation")
    np.testing.assert_allclose(got.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(got.std, sd, rtol=1e-6)


def test_points_agree_with_tinygp():
    import tinygp

    X, y = np.linspace(0, 4, 12), np.cos(np.linspace(0, 4, 12))
    theirs = tinygp.GaussianProcess(1.5 * tinygp.kernels.Matern52(0.8), X, diag=0.3)
    ours = ag.GP(ag.Matern52(0.8, 1.5), ag.Gaussian(0.3)).fit(ag.Points(X), y, inference=KEEP)
    assert ours.evidence == pytest.approx(float(theirs.log_probability(jnp.asarray(y))), rel=1e-9)


@pytest.mark.parametrize(
    ("mean", "variance", "lengthscale", "noise", "evidence", "speed"),
    [
        (5.1809375, 12.80, 7.094, 0.635, -9.949, (4.864, 1.704)),
        (None, 60.73, 13.466, 0.578, -10.729, (5.052, 1.597)),
    ],
)
def test_robot_of_smith_alvarez_and_lawrence(mean, variance, lengthscale, noise, evidence, speed):
    windows = ag.Intervals([0, 2.5, 4, 7], [8, 3.5, 6, 8], measure="total")
    model = ag.GP(ag.RBF(), mean=None if mean is None else ag.Constant(ag.fixed(mean)))
    post = model.fit(windows, [33.47, 3.49, 9.56, 8.27])
    assert float(post.model.kernel.variance) == pytest.approx(variance, rel=1e-3)
    assert float(post.model.kernel.lengthscale) * np.sqrt(2) == pytest.approx(lengthscale, rel=1e-3)
    assert float(post.model.likelihood.variance) == pytest.approx(noise, rel=2e-3)
    assert post.evidence == pytest.approx(evidence, abs=1e-3)
    at_5s = post.predict(ag.Points([5.0]), kind="observation")
    assert (at_5s.mean[0], 1.96 * at_5s.std[0]) == pytest.approx(speed, abs=1e-3)


def test_leave_one_out_agrees_with_leaving_each_out():
    model = ag.GP(ag.Matern32(1.5, 2.0), ag.Gaussian(0.1), mean=ag.Constant(0.3))
    noise = np.linspace(0.0, 0.3, 5)
    loo = model.fit(BINS, Y, noise, inference=KEEP).leave_one_out()
    for i in range(5):
        rest = np.arange(5) != i
        one = model.fit(BINS[rest], Y[rest], noise[rest], inference=KEEP).predict(BINS[[i]], kind="observation")
        assert loo.mean[i] == pytest.approx(one.mean[0], rel=1e-8)
        assert loo.variance[i] == pytest.approx(one.variance[0] + noise[i], rel=1e-8)


def test_one_big_bin_is_many_small_ones_summed():
    model = ag.GP(ag.RBF(1.0, 2.0), ag.Gaussian(ag.fixed(0.01)))
    post = model.fit(BINS, Y, inference=KEEP)
    edges = np.linspace(0, 6, 41)
    parts = post.predict(ag.Intervals(edges[:-1], edges[1:]))
    whole = post.predict(ag.Intervals([0.0], [6.0]))
    assert whole.mean[0] == pytest.approx(parts.mean.sum(), rel=1e-9)
    assert whole.variance[0] == pytest.approx(parts.covariance.sum(), rel=1e-6)


def test_noise_free_totals_are_reproduced():
    post = ag.GP(ag.RBF(1.0), ag.Gaussian(ag.fixed(0.0))).fit(BINS[:4], Y[:4], inference=KEEP)
    prediction = post.predict(BINS[:4])
    np.testing.assert_allclose(prediction.mean, Y[:4], rtol=1e-7)
    assert prediction.std.max() < 1e-4


def test_means_and_totals_tell_the_same_story():
    model = ag.GP(ag.RBF(1.0, 2.0), ag.Gaussian(ag.fixed(0.0)))
    noise = np.full(5, 0.2)
    totals = model.fit(BINS, Y, noise, inference=KEEP)
    means = model.fit(BINS.with_measure("mean"), Y / BINS.mass, noise / BINS.mass**2, inference=KEEP)
    x = ag.Points(np.linspace(0, 6, 9))
    np.testing.assert_allclose(totals.predict(x).mean, means.predict(x).mean, rtol=1e-8)
    np.testing.assert_allclose(totals.predict(x).variance, means.predict(x).variance, rtol=1e-7)


def test_linear_mean_is_integrated_over_the_supports():
    x = np.linspace(0, 9, 10)
    bins = ag.Intervals(x, x + 1)
    kernel, noise = ag.RBF(ag.fixed(1.0), ag.fixed(1e-6)), ag.Gaussian(ag.fixed(1e-4))  # the line explains everything
    post = ag.GP(kernel, noise, mean=ag.LinearMean([0.0])).fit(bins, 3.0 + 2.0 * (x + 0.5))
    assert float(post.model.mean.value) == pytest.approx(3.0, abs=1e-3)
    assert float(post.model.mean.slope[0]) == pytest.approx(2.0, abs=1e-3)
    assert post.predict(ag.Intervals([20.0], [22.0])).mean[0] == pytest.approx(2 * (3 + 2 * 21), abs=1e-2)


@given(st.integers(0, 10_000))
def test_evidence_gradient_agrees_with_finite_differences(seed):
    rng = np.random.default_rng(seed)
    model = ag.GP(
        ag.RBF(rng.uniform(0.3, 3), 1.0) + ag.Matern32(rng.uniform(0.3, 3), 0.5),
        ag.Gaussian(0.1),
        mean=ag.Constant(0.2),
    )
    data = observe(BINS, Y, rng.uniform(0, 0.2, 5)).on_device()
    value = _evidence_of_vector
    vector = np.asarray(pack(model))
    gradient = np.asarray(_gradient_of_vector(vector, model, data))
    for i in range(len(vector)):
        step = np.eye(len(vector))[i] * 1e-5
        numeric = (value(vector + step, model, data) - value(vector - step, model, data)) / 2e-5
        assert gradient[i] == pytest.approx(float(numeric), rel=1e-5, abs=1e-6)


@jax.jit
def _evidence_of_vector(vector, model, data):
    return log_evidence(unpack(model, vector), data)


_gradient_of_vector = jax.jit(jax.grad(_evidence_of_vector))


def test_fit_leaves_the_model_unchanged_and_repeats_itself():
    model = ag.GP(ag.RBF(), mean=ag.Constant())
    before = [np.asarray(p.value) for p in parameters(model)]
    first, second = model.fit(BINS, Y, seed=3), model.fit(BINS, Y, seed=3)
    assert all((a == b.value).all() for a, b in zip(before, parameters(model)))
    assert first.evidence == second.evidence
    assert [run.objective for run in first.runs] == [run.objective for run in second.runs]


def test_fixed_parameters_stay_and_bounds_hold():
    model = ag.GP(
        ag.RBF(ag.fixed(0.9), ag.param(1.0, bounds=(0.5, 1.5))), ag.Gaussian(ag.param(0.3, bounds=(0.2, 0.4)))
    )
    fitted = model.fit(BINS, Y).model
    assert float(fitted.kernel.lengthscale) == 0.9
    assert 0.5 <= float(fitted.kernel.variance) <= 1.5
    assert 0.2 <= float(fitted.likelihood.variance) <= 0.4


def test_a_prior_pulls_the_optimum_and_enters_the_objective():
    free = ag.GP(ag.RBF(1.0, ag.fixed(1.0)), ag.Gaussian(ag.fixed(0.1)))
    tight = free.replace({"kernel.lengthscale": ag.param(1.0, prior=ag.LogNormal(median=3.0, spread=0.01))})
    assert float(tight.fit(BINS, Y).model.kernel.lengthscale) == pytest.approx(3.0, rel=0.05)
    assert float(free.fit(BINS, Y).model.kernel.lengthscale) != pytest.approx(3.0, rel=0.2)
    assert float(log_prior(tight)) == pytest.approx(float(ag.LogNormal(3.0, 0.01).log_prob(jnp.array(1.0))))


@pytest.mark.parametrize(
    "prior",
    [
        ag.LogNormal(2.0, 0.5),
        ag.Gamma(2.0, 1.5),
        ag.InverseGamma(3.0, 2.0),
        ag.Normal(0.5, 1.0),
        ag.HalfNormal(1.5),
    ],
    ids=lambda p: type(p).__name__,
)
def test_prior_densities_integrate_to_one(prior):
    from scipy.integrate import quad

    low = -np.inf if isinstance(prior, ag.Normal) else 0.0
    mass = quad(lambda x: float(jnp.exp(prior.log_prob(jnp.array(x)))), low, np.inf)[0]
    assert mass == pytest.approx(1.0, abs=1e-6)


def test_a_search_may_go_on_until_nothing_changes():
    y = np.sin(np.arange(6.0))
    posts = [
        ag.GP(ag.RBF(1.0), ag.Gaussian(0.1)).fit(ag.Points(np.arange(6.0)), y, inference=scheme, progress=False)
        for scheme in (ag.Exact(restarts=0, tolerance=0.0), ag.Exact(restarts=0, tolerance=1e-10))
    ]
    assert posts[0].evidence == pytest.approx(posts[1].evidence, abs=1e-6)


def test_restarts_find_the_better_of_two_optima():
    x = np.linspace(0, 20, 40)
    y = np.sin(2 * x)
    model = ag.GP(ag.RBF(50.0, 1.0), ag.Gaussian(1.0))
    stuck = model.fit(ag.Points(x), y, inference=ag.Exact(restarts=0))
    free = model.fit(ag.Points(x), y, inference=ag.Exact(restarts=5))
    assert free.evidence > stuck.evidence + 10


def test_samples_have_the_predicted_moments():
    post = ag.GP(ag.RBF(1.0), ag.Gaussian(0.1)).fit(BINS, Y, inference=KEEP)
    prediction = post.predict(ag.Points(np.linspace(0, 6, 4)), kind="observation")
    draws = prediction.sample(0, 40_000)
    np.testing.assert_allclose(draws.mean(0), prediction.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), prediction.covariance, atol=0.03)
    np.testing.assert_array_equal(draws[:2], prediction.sample(jax.random.key(0), 40_000)[:2])


def test_intervals_quantiles_and_exceedance_are_consistent():
    prediction = ag.GP(ag.RBF(1.0)).fit(BINS, Y, inference=KEEP).predict(ag.Points([0.5, 3.0]))
    low, high = prediction.interval(0.9)
    np.testing.assert_allclose(prediction.quantile(0.05), low)
    np.testing.assert_allclose(prediction.quantile([0.05, 0.95]), [low, high])
    np.testing.assert_array_equal(prediction.sample(np.int64(3), 2), prediction.sample(jax.random.key(3), 2))
    np.testing.assert_allclose(prediction.exceedance(high), 0.05, atol=1e-9)
    frame = prediction.to_frame(0.9)
    np.testing.assert_allclose(frame["lower"], low)
    assert "Points(2 in 1-d)" in repr(prediction)


@pytest.mark.parametrize(
    "likelihood", [ag.Gaussian(0.1), ag.LaplaceNoise(0.5, ag.fixed(0.1))], ids=["normal", "Laplace"]
)
def test_nothing_exceeds_infinity(likelihood):
    post = ag.GP(ag.RBF(1.0), likelihood).fit(
        ag.Points([0.0, 1.0]), [0.3, -0.2], inference=ag.EP(optimise=False), progress=False
    )
    found = post.predict(ag.Points([0.0, 1.0, 2.0]), "observation")
    assert found.exceedance(np.inf).tolist() == [0.0, 0.0, 0.0]
    one = found.exceedance([-np.inf, 0.1, np.inf])
    assert one.tolist() == [1.0, found.exceedance(0.1)[1], 0.0]


def test_predictions_do_not_depend_on_the_blocks(monkeypatch):
    from aggregauss.inference import conditional

    post = ag.GP(ag.RBF(1.0)).fit(BINS, Y, inference=KEEP)
    x = ag.Points(np.linspace(0, 6, 100))
    whole = post.predict(x)
    monkeypatch.setattr(conditional, "BLOCK", 100)
    np.testing.assert_allclose(post.predict(x).mean, whole.mean, rtol=1e-12)


def test_a_series_is_aligned_by_name():
    import pandas as pd

    bags = ag.Bags(np.arange(6.0), ["a", "a", "b", "b", "c", "c"], measure="mean")
    y = pd.Series({"c": 3.0, "a": 1.0, "b": 2.0})
    post = ag.GP(ag.RBF(1.0), ag.Gaussian(0.1)).fit(bags, y, inference=KEEP)
    np.testing.assert_array_equal(post.observations.y, [1.0, 2.0, 3.0])
    assert post.predict(bags).to_frame().index.tolist() == ["a", "b", "c"]


def test_the_objective_is_traced_once_for_all_starts(monkeypatch):
    from aggregauss.inference import exact

    traces = []

    def counted(model, data):
        traces.append(None)
        return log_evidence(model, data)

    monkeypatch.setattr(exact, "log_evidence", counted)
    ag.GP(ag.RBF(), mean=ag.Constant()).fit(BINS, Y)
    assert len(traces) == 1


def test_degenerate_data_still_fit():
    constant = ag.GP(ag.RBF(), mean=ag.Constant()).fit(ag.Points([0.0, 1.0, 2.0]), [4.0, 4.0, 4.0])
    assert constant.predict(ag.Points([0.5])).mean[0] == pytest.approx(4.0, abs=1e-3)
    single = ag.GP(ag.RBF()).fit(ag.Intervals([0.0], [2.0]), [3.0])
    assert np.isfinite(single.predict(ag.Points([1.0])).mean[0])
    zero = ag.GP(ag.RBF()).fit(ag.Points([0.0, 1.0]), [0.0, 0.0])
    assert np.isfinite(zero.predict(ag.Points([0.5])).variance[0])


def test_summary_and_repr_name_the_parameters():
    post = ag.GP(ag.RBF(ag.fixed(2.0)), mean=ag.Constant()).fit(BINS, Y)
    table = post.summary()
    assert table.loc["kernel.lengthscale", "learned"] == np.False_
    assert "log evidence" in repr(post)
