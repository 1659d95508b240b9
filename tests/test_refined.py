"""Draws of the posterior itself: beside quadrature, where q is exact, and where totals are known to a hundredth."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import aggregauss as ag
from aggregauss.inference.data import observe
from aggregauss.inference.draws import latent_draws
from aggregauss.inference.refined import refined
from aggregauss.parameters import unpack

N = 4000
SCATTERED = ag.Poisson(region_effect=True, region_sd=ag.fixed(0.2))
TWO, COUNT, LEVEL = ag.Bags([0.0, 100.0], bag=[0, 0], weights=[3.0, 1.0]), 400.0, 4.0


def _fitted(support, y, kernel, likelihood, inducing, level=LEVEL, **options):
    model = ag.GP(kernel, likelihood, mean=ag.Constant(ag.fixed(level)), aggregation="response")
    return model.fit(support, y, inference=ag.SVI(inducing=inducing, **options), progress=False)


def _values(post, found, points):
    """Draws of the function at points, in their order."""
    out = np.empty((len(found.totals), len(points)))
    for rows, drawn in latent_draws(post, points, len(out), z=found.z):
        out[:, rows] = drawn
    return out


def _posterior(level, variance):
    """Two values and their probabilities given the count of 3 e^f + e^g, on a grid, with the log evidence."""
    f = np.linspace(level - 8, level + 8, 1601)
    prior = norm.logpdf(f, level, np.sqrt(variance))
    eta = 3 * np.exp(f)[:, None] + np.exp(f)[None, :]
    density = prior[:, None] + prior[None, :] + np.asarray(SCATTERED.log_prob(jnp.asarray(COUNT), jnp.asarray(eta)))
    top = logsumexp(density)
    return f, eta, np.exp(density - top), top + 2 * np.log(f[1] - f[0])


def test_two_individuals_of_one_bag_are_as_quadrature_has_them():
    """A sum of two is confined to a bent line; q, which is normal, is elsewhere."""
    post = _fitted(TWO, [COUNT], ag.RBF(1.0, 1.0), SCATTERED, TWO.center, optimise=False)
    found = refined(post, observe(TWO, np.array([COUNT]), None), N)
    f, eta, weight, _ = _posterior(LEVEL, 1.0)
    mean = np.array([weight.sum(1) @ f, weight.sum(0) @ f])
    sd = np.sqrt([weight.sum(1) @ (f - mean[0]) ** 2, weight.sum(0) @ (f - mean[1]) ** 2])
    skew = weight.sum(1) @ ((f - mean[0]) / sd[0]) ** 3
    ours = _values(post, found, ag.Points(TWO.center))
    normal = _values(post, found._replace(z=[np.random.default_rng(0).standard_normal((2, N))]), ag.Points(TWO.center))
    np.testing.assert_allclose(ours.mean(axis=0), mean, atol=0.06 * sd.max())
    np.testing.assert_allclose(ours.std(axis=0), sd, rtol=0.06)
    assert np.mean(((ours[:, 0] - ours[:, 0].mean()) / ours[:, 0].std()) ** 3) == pytest.approx(skew, abs=0.25)
    assert skew < -0.5
    log_total = np.log(eta)
    middle = np.sum(weight * log_total)
    spread = np.sqrt(np.sum(weight * (log_total - middle) ** 2))
    totals = np.log(found.totals[:, 0])
    assert (totals.mean(), totals.std()) == pytest.approx((middle, spread), rel=0.06)
    assert np.log(3 * np.exp(normal[:, 0]) + np.exp(normal[:, 1])).std() > 1.15 * spread


def test_values_of_the_hyper_parameters_have_draws_in_proportion_to_their_evidence():
    prior = ag.LogNormal(1.0, 0.8)
    kernel = ag.RBF(ag.fixed(1.0), ag.param(1.0, prior=prior))
    post = _fitted(TWO, [COUNT], kernel, SCATTERED, TWO.center, level=3.0, search="totals")
    found = refined(post, observe(TWO, np.array([COUNT]), None), N)
    density = []
    for part in post.mixture:
        variance = float(unpack(post.model, jnp.asarray(part.vector)).kernel.variance)
        evidence = _posterior(3.0, variance)[-1]
        density.append(evidence + float(prior.log_prob(jnp.asarray(variance))) + np.log(variance))
    wanted = np.exp(density - logsumexp(density))
    np.testing.assert_allclose([z.shape[1] / N for z in found.z], wanted, atol=0.05)


def test_where_q_is_exact_its_draws_stay_what_they_are():
    """Counts of many cases at single points are almost normal observations of the function."""
    x = np.linspace(0, 5, 8)
    y = np.random.default_rng(0).poisson(np.exp(7 + np.sin(x)))
    kernel = ag.Matern32(1.0, 0.5)
    post = _fitted(ag.Points(x), y, kernel, ag.Poisson(), x, level=7.0, optimise=False)
    found = refined(post, observe(ag.Points(x), y, None), N)
    np.testing.assert_allclose(found.z[0].mean(axis=1), 0.0, atol=0.08)
    np.testing.assert_allclose(np.cov(found.z[0]), np.eye(8), atol=0.1)


@pytest.fixture(scope="module")
def wide():
    """Twelve bags of sixteen places each, three lengthscales wide."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 36, 192))[:, None]
    root = np.linalg.cholesky(np.asarray(ag.cov(ag.Matern32(1.0, 0.8), ag.Points(x))) + 1e-9 * np.eye(192))
    bags = ag.Bags(x, np.repeat(np.arange(12), 16), np.full(192, 5.0))
    return bags, rng.poisson(np.add.reduceat(5 * np.exp(3 + root @ rng.standard_normal(192)), np.arange(0, 192, 16)))


@pytest.mark.parametrize("scatter", [0.2, 0.0])
def test_totals_are_as_uncertain_as_reports_leave_them(wide, scatter):
    """log t | y is close to N(log y, s²) where the prior says little; q, summed over places, knows less. Without a
    scatter s is a fiftieth, and the draws have far to go."""
    bags, y = wide
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(scatter)) if scatter else ag.Poisson()
    post = _fitted(bags, y, ag.Matern32(1.0, 0.8), likelihood, bags.center[::3], level=3.0, optimise=False)
    found = refined(post, observe(bags, y, None), 500)
    totals, sd = np.log(found.totals), np.sqrt(scatter**2 + 1 / y)
    assert np.abs((totals.mean(axis=0) - np.log(y)) / sd).max() < 1.0
    assert (totals.std(axis=0) < 1.25 * sd).all()
    assert (totals.std(axis=0) > 0.6 * sd).all()
    low, high = post.predict(bags).interval(0.95)
    assert np.mean(np.log(high / low) / 3.92 / sd) > 1.1


def test_draws_are_the_same_again_and_bags_without_people_have_none(wide):
    bags, y = wide
    weight = np.where(bags.owner == 4, 0.0, bags.weight)
    empty, y = dataclasses.replace(bags, weight=weight), np.where(np.arange(12) == 4, 0, y)
    post = _fitted(bags, y, ag.Matern32(1.0, 0.8), SCATTERED, bags.center[::6], level=3.0, optimise=False)
    first, again = (refined(post, observe(empty, y, None), 20, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.totals, again.totals)
    assert (first.totals[:, 4] == 0).all()
    assert (np.delete(first.totals, 4, axis=1) > 0).all()
