"""Expectation propagation against exact results, sampling and numerical integration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal, norm, truncnorm

import aggregauss as ag
from aggregauss.inference.data import observe
from aggregauss.inference.ep import log_evidence
from aggregauss.marginals import LaplaceMarginals, noisy, truncated
from aggregauss.parameters import pack, unpack

KEEP = ag.EP(optimise=False)
BINS = ag.Intervals([0.0, 2.0, 6.0], [2.0, 4.0, 8.0], measure="total")
Y = np.array([8.0, 1.0, 6.0])


def _gibbs(K, m, y, noise, nu, sweeps, seed=0):
    """f | y, f_v + ν e > 0: data augmentation (Albert and Chib 1993), exact in the long run."""
    rng = np.random.default_rng(seed)
    n, size = len(y), len(K)
    precision = np.concatenate([1 / noise, np.full(size - n, nu**-2.0)])
    gain = K @ np.linalg.inv(K + np.diag(1 / precision))
    root = np.linalg.cholesky(K - gain @ K + 1e-10 * np.eye(size))
    f, draws = m.copy(), []
    for _ in range(sweeps):
        inside = ndtr(f[n:] / nu)  # the share of N(f, ν²) above zero
        latent = f[n:] - nu * ndtri(rng.random(size - n) * inside)
        target = np.concatenate([y, latent])
        f = m + gain @ (target - m) + root @ rng.standard_normal(size)
        draws.append(f)
    return np.array(draws[sweeps // 10 :])


def test_non_negative_posterior_agrees_with_a_long_gibbs_run():
    points, nu, noise = np.linspace(0, 8, 9)[:, None], 0.5, 0.3
    model = ag.GP(ag.RBF(1.5, 6.0), ag.Gaussian(ag.fixed(noise)), constraint=ag.NonNegative(points, scale=nu))
    post = model.fit(BINS, Y, inference=KEEP)
    both = ag.concatenate([BINS, ag.Points(points)])
    K = np.asarray(ag.cov(model.kernel, both))
    draws = _gibbs(K, np.zeros(len(K)), Y, np.full(3, noise), nu, 60_000)
    latent = post.predict(both, kind="latent")
    assert np.max(np.abs(latent.mean - draws.mean(0)) / draws.std(0)) < 0.12
    np.testing.assert_allclose(latent.std, draws.std(0), rtol=0.08)


def test_evidence_of_one_virtual_point_agrees_with_integration():
    model = ag.GP(ag.RBF(1.0, 2.0), ag.Gaussian(0.4), constraint=ag.NonNegative([[0.7]], scale=0.3))
    post = model.fit(ag.Points([0.0]), [-1.0], inference=KEEP)
    k = 2.0 * np.exp(-0.5 * 0.7**2)
    mean, variance = k / 2.4 * -1.0, 2.0 - k**2 / 2.4
    exact = norm.logpdf(-1.0, 0, np.sqrt(2.4)) + np.log(
        quad(lambda f: norm.pdf(f, mean, np.sqrt(variance)) * norm.cdf(f / 0.3), -10, 10)[0]
    )
    assert post.evidence == pytest.approx(exact, abs=1e-7)


def test_laplace_noise_on_one_observation_agrees_with_integration():
    likelihood = ag.LaplaceNoise(0.8, ag.fixed(0.05))
    post = ag.GP(ag.RBF(1.0, 1.5), likelihood).fit(ag.Points([0.0]), [2.0], inference=KEEP)
    f, e = np.linspace(-8, 8, 1601), np.linspace(-14, 14, 14001)  # the kink of the noise lies on the grid
    noise = np.exp(-np.abs(e) / 0.8) / 1.6 * norm.pdf(2.0 - f[:, None] - e, 0, np.sqrt(0.05))
    joint = norm.pdf(f, 0, np.sqrt(1.5)) * np.trapezoid(noise, e, axis=1)
    moments = [np.trapezoid(f**k * joint, f) for k in range(3)]
    assert post.evidence == pytest.approx(np.log(moments[0]), abs=1e-5)
    at_0 = post.predict(ag.Points([0.0]))
    assert at_0.mean[0] == pytest.approx(moments[1] / moments[0], abs=1e-5)
    assert at_0.variance[0] == pytest.approx(moments[2] / moments[0] - (moments[1] / moments[0]) ** 2, abs=1e-5)


def test_without_constraint_and_with_gaussian_noise_it_is_exact():
    model = ag.GP(ag.RBF(1.5, 2.0), ag.Gaussian(0.2))
    exact, ep = model.fit(BINS, Y, inference=ag.Exact(optimise=False)), model.fit(BINS, Y, inference=KEEP)
    assert ep.evidence == exact.evidence
    x = ag.Points(np.linspace(0, 8, 5))
    np.testing.assert_array_equal(ep.predict(x).mean, exact.predict(x).mean)


def test_a_constraint_that_is_never_in_doubt_changes_nothing():
    model = ag.GP(ag.RBF(1.5, 0.5), ag.Gaussian(0.2), mean=ag.Constant(50.0))
    plain = model.fit(BINS, 100.0 + Y, inference=ag.Exact(optimise=False))
    constrained = ag.GP(model.kernel, model.likelihood, mean=model.mean, constraint=ag.NonNegative(20))
    post = constrained.fit(BINS, 100.0 + Y, inference=KEEP)
    x = ag.Points(np.linspace(0, 8, 5))
    np.testing.assert_allclose(post.predict(x).mean, plain.predict(x).mean, rtol=1e-8)
    assert post.evidence == pytest.approx(plain.evidence, abs=1e-8)


def test_laplace_noise_with_wide_gaussian_noise_tends_to_gaussian():
    model = ag.GP(ag.RBF(1.5, 2.0), ag.LaplaceNoise(1e-3, ag.fixed(0.5)))
    post = model.fit(BINS, Y, inference=KEEP)
    gaussian = ag.GP(ag.RBF(1.5, 2.0), ag.Gaussian(0.5)).fit(BINS, Y, inference=ag.Exact(optimise=False))
    assert post.evidence == pytest.approx(gaussian.evidence, abs=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        ag.GP(ag.RBF(1.2, 4.0), ag.Gaussian(0.3), mean=ag.Constant(0.5), constraint=ag.NonNegative(9, scale=0.4)),
        ag.GP(ag.Matern32(1.2, 4.0), ag.LaplaceNoise(ag.param(0.7), 0.2)),
        ag.GP(ag.RBF(1.2, 4.0), ag.LaplaceNoise(0.7, 0.2), constraint=ag.NonNegative(9, scale=0.4)),
    ],
    ids=["non-negative", "laplace", "both"],
)
def test_evidence_gradient_agrees_with_finite_differences(model):
    from aggregauss.parameters import copy_with

    scheme = ag.EP(sweep_tolerance=1e-12)
    low, high = BINS.bounding_box()
    virtual = None if model.constraint is None else model.constraint.locations(low, high)
    problem = scheme._problem(model, observe(BINS, Y, None), virtual)
    core = copy_with(model, constraint=None)
    value = jax.jit(lambda v: log_evidence(unpack(core, v), problem))
    vector = np.asarray(pack(core))
    gradient = np.asarray(jax.jit(jax.grad(lambda v: log_evidence(unpack(core, v), problem)))(vector))
    for i in range(len(vector)):
        step = np.eye(len(vector))[i] * 1e-4
        numeric = float(value(vector + step) - value(vector - step)) / 2e-4
        assert gradient[i] == pytest.approx(numeric, rel=1e-4, abs=1e-5)


def test_response_of_a_non_negative_function_is_never_negative():
    model = ag.GP(ag.RBF(1.5, 6.0), ag.Gaussian(ag.fixed(0.3)), constraint=ag.NonNegative(17))
    post = model.fit(BINS, Y, inference=KEEP)
    for support in (ag.Points(np.linspace(0, 8, 33)), ag.Intervals([3.0, 4.0], [6.5, 5.0])):
        prediction = post.predict(support)
        assert prediction.interval(0.99)[0].min() >= 0.0
        assert prediction.sample(0, 50).min() >= 0.0
        assert (prediction.mean >= post.predict(support, kind="latent").mean - 1e-12).all()
        np.testing.assert_allclose(np.diag(prediction.covariance), prediction.variance, rtol=1e-9)
        np.testing.assert_allclose(prediction.sample(0, 20_000).std(0), prediction.std, rtol=0.05)
    noisy_prediction = post.predict(ag.Points([5.0]), kind="observation")
    assert noisy_prediction.variance[0] == pytest.approx(post.predict(ag.Points([5.0])).variance[0] + 0.3)


@pytest.mark.slow
def test_adaptive_points_go_where_the_function_would_be_negative():
    x = np.linspace(0, 1, 5)
    low = np.stack(np.meshgrid(x[:-1], x[:-1], x[:-1], indexing="ij"), -1).reshape(-1, 3)
    boxes = ag.Boxes(low, low + 0.25, measure="mean")
    centre = low + 0.125
    truth = np.maximum(0.0, 4 * centre[:, 0] - 1.5)
    kernel = ag.RBF(ag.fixed(0.25), ag.fixed(2.0))
    free = ag.GP(kernel, ag.Gaussian(ag.fixed(0.01)))
    constrained = ag.GP(kernel, ag.Gaussian(ag.fixed(0.01)), constraint=ag.NonNegative(24))
    post = constrained.fit(boxes, truth, inference=ag.EP(optimise=False))
    assert 8 <= len(post.virtual) <= 24
    assert post.virtual.center[:, 0].mean() < 0.5  # where the data are zero
    grid = ag.Points(np.random.default_rng(0).uniform(0, 1, (400, 3)))
    before = free.fit(boxes, truth, inference=ag.Exact(optimise=False)).predict(grid)
    assert (post.predict(grid, "latent").mean < -0.05).mean() < (before.mean < -0.05).mean()


def test_fit_learns_shorter_lengthscales_under_non_negativity():
    """Figure 2 of Smith, Alvarez and Lawrence: 10.4 without virtual points, about 4.4 with (ℓ of exp(-d²/ℓ²))."""
    low = np.r_[0:8:2, 18:26:2].astype(float)
    bins = ag.Intervals(low, low + 2)
    y = 10.0 * np.array([7, 6, 4, 1, 1, 4, 6, 7])
    noise = ag.Gaussian(ag.fixed(1.0))
    free = ag.GP(ag.RBF(5.0, 250.0), noise).fit(bins, y)
    constraint = ag.NonNegative(np.linspace(0, 26, 53), scale=1.0)
    held = ag.GP(ag.RBF(5.0, 250.0), noise, constraint=constraint).fit(bins, y)
    assert float(free.model.kernel.lengthscale) * np.sqrt(2) == pytest.approx(10.3, abs=0.2)
    assert 3.9 < float(held.model.kernel.lengthscale) * np.sqrt(2) < 4.6


def test_sites_that_still_move_are_called_out():
    model = ag.GP(ag.RBF(1.5, 6.0), ag.Gaussian(ag.fixed(0.3)), constraint=ag.NonNegative(17))
    with pytest.warns(UserWarning, match="the sites still moved") as caught:
        model.fit(BINS, Y, inference=ag.EP(optimise=False, max_sweeps=3))
    assert caught[0].filename == __file__


def test_truncated_marginals_agree_with_scipy():
    location, spread = np.array([-3.0, -0.5, 0.0, 2.0]), np.array([0.5, 1.0, 2.0, 0.7])
    ours, theirs = truncated(location, spread), truncnorm(-location / spread, np.inf, location, spread)
    np.testing.assert_allclose(ours.mean, theirs.mean(), rtol=1e-7)
    np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-6)
    np.testing.assert_allclose(ours.cdf(np.array([0.1, 0.5, 1.0, 2.0])), theirs.cdf([0.1, 0.5, 1.0, 2.0]), rtol=1e-7)
    for p in (0.025, 0.5, 0.975):
        np.testing.assert_allclose(ours.quantile(p), theirs.ppf(p), rtol=1e-7)
    far = truncated(np.array([-1e6, -50.0]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(far.mean, [1e-6, 1 / 50.0], rtol=1e-3)


def test_laplace_and_noisy_marginals_agree_with_sampling():
    rng = np.random.default_rng(0)
    draws = rng.normal(1.0, 0.6, 400_000) + rng.laplace(0, 0.9, 400_000)
    one = np.ones(1)
    marginals = LaplaceMarginals(one, one * (0.36 + 2 * 0.81), one * 0.36, one * 0.9)
    for p in (0.05, 0.3, 0.9):
        assert marginals.quantile(p)[0] == pytest.approx(np.quantile(draws, p), abs=0.02)
    draws = truncnorm.rvs(-0.5, np.inf, 0.5, 1.0, size=400_000, random_state=1) + rng.normal(0, 0.4, 400_000)
    mixed = noisy(truncated(0.5 * one, one), 0.16 * one)
    for p in (0.05, 0.5, 0.95):
        assert mixed.quantile(p)[0] == pytest.approx(np.quantile(draws, p), abs=0.02)
    assert mixed.variance[0] == pytest.approx(draws.var(), abs=0.01)


def test_observations_under_laplace_noise():
    post = ag.GP(ag.RBF(1.5, 2.0), ag.LaplaceNoise(0.7, ag.fixed(0.1))).fit(BINS, Y, inference=KEEP)
    latent, seen = post.predict(BINS), post.predict(BINS, kind="observation")
    np.testing.assert_allclose(seen.variance, latent.variance + 0.1 + 2 * 0.49)
    assert (seen.interval(0.9)[1] > latent.interval(0.9)[1]).all()
    assert multivariate_normal(latent.mean, latent.covariance, allow_singular=True).logpdf(latent.mean) > -50


def test_laplace_noise_of_vanishing_scale_is_no_noise():
    model = ag.GP(ag.RBF(1.5, 2.0), ag.LaplaceNoise(1e-6, ag.fixed(0.5)))
    post, plain = (
        model.fit(BINS, Y, inference=KEEP),
        ag.GP(ag.RBF(1.5, 2.0), ag.Gaussian(0.5)).fit(BINS, Y, inference=ag.Exact(optimise=False)),
    )
    np.testing.assert_allclose(post.predict(BINS).mean, plain.predict(BINS).mean, rtol=1e-6)
    assert post.evidence == pytest.approx(plain.evidence, abs=1e-6)


def test_smoothed_densities_agree_with_gauss_hermite():
    x, w = np.polynomial.hermite_e.hermegauss(120)
    mean, variance, y = 0.4, 0.7, 1.3
    for likelihood in (ag.Gaussian(0.3), ag.LaplaceNoise(0.8, ag.fixed(0.2))):
        density = np.exp(np.asarray(likelihood.log_prob(jnp.asarray(y), jnp.asarray(mean + np.sqrt(variance) * x))))
        exact = np.log(np.sum(w * density) / np.sqrt(2 * np.pi))
        got = float(likelihood.log_smoothed(jnp.asarray(y), jnp.asarray(mean), jnp.asarray(variance)))
        assert got == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(
    "likelihood", [ag.Gaussian(0.3), ag.LaplaceNoise(0.8, ag.fixed(0.2)), ag.LaplaceNoise(0.8, ag.fixed(0.0))]
)
def test_likelihoods_are_normalised_and_have_finite_gradients_far_out(likelihood):
    mass = quad(
        lambda y: float(jnp.exp(likelihood.log_prob(jnp.array(y), jnp.array(0.3)))),
        -40,
        40,
        points=[0.3],
        limit=200,
    )[0]
    assert mass == pytest.approx(1.0, abs=1e-6)
    slope = jax.grad(lambda m: likelihood.log_smoothed(jnp.array(0.0), m, jnp.array(0.5)))
    assert all(np.isfinite(float(slope(jnp.array(m)))) for m in (-1e3, -30.0, 0.0, 30.0, 1e3))
