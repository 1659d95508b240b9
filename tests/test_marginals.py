"""Predictive distributions against scipy.stats, quadrature and sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, logit, ndtr, ndtri

from aggregauss import marginals as mg
from aggregauss.marginals import conditionals as given_rate

LOCATION, VARIANCE = np.array([-1.2, 0.0, 0.8, 2.5]), np.array([0.3, 1.0, 0.04, 2.0])
SD = np.sqrt(VARIANCE)
ONE = np.ones(1)

CONTINUOUS = {
    "normal": mg.GaussianMarginals(LOCATION, VARIANCE),
    "log-normal": mg.log_normal(LOCATION, VARIANCE, scale=2.0),
    "squared": mg.squared(LOCATION, VARIANCE, scale=3.0),
    "logistic": mg.TransformedMarginals.of(LOCATION, VARIANCE, expit, logit),
    "probit": mg.TransformedMarginals.of(LOCATION / 3, VARIANCE / 8, ndtr, ndtri),
    "truncated": mg.truncated(LOCATION, SD),
    "Laplace": mg.LaplaceMarginals(LOCATION, VARIANCE + 2 * 0.7**2, VARIANCE, np.full(4, 0.7)),
}
FROZEN = {
    "normal": stats.norm(LOCATION, SD),
    "log-normal": stats.lognorm(SD, scale=2 * np.exp(LOCATION)),
    "squared": stats.ncx2(1, LOCATION**2 / VARIANCE, scale=3 * VARIANCE),
    "truncated": stats.truncnorm(-LOCATION / SD, np.inf, LOCATION, SD),
}
CONDITIONALS = {
    "poisson": (given_rate.Poisson(), lambda eta: stats.poisson(eta)),
    "negative_binomial": (given_rate.NegativeBinomial(2.5), lambda eta: stats.nbinom(2.5, 2.5 / (2.5 + eta))),
    "binomial": (given_rate.Binomial(7.0), lambda eta: stats.binom(7, eta)),
    "bernoulli": (given_rate.Binomial(), lambda eta: stats.bernoulli(eta)),
    "gamma": (given_rate.Gamma(3.5), lambda eta: stats.gamma(3.5, scale=eta / 3.5)),
    "exponential": (given_rate.Gamma(), lambda eta: stats.expon(scale=eta)),
    "normal": (given_rate.Normal(0.4), lambda eta: stats.norm(eta, np.sqrt(0.4))),
}
PROBABILITIES = {"binomial", "bernoulli"}


def _rate(name):
    if name in PROBABILITIES:
        return mg.TransformedMarginals.of(LOCATION, VARIANCE, expit, logit)
    return mg.squared(LOCATION, VARIANCE)


@pytest.mark.parametrize("name", FROZEN)
def test_closed_forms_agree_with_scipy(name):
    ours, theirs = CONTINUOUS[name], FROZEN[name]
    np.testing.assert_allclose(ours.mean, theirs.mean(), rtol=1e-7)
    np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-7)
    for p in (0.02, 0.3, 0.5, 0.9, 0.999):
        x = theirs.ppf(p)
        np.testing.assert_allclose(ours.quantile(p), x, rtol=1e-6)
        np.testing.assert_allclose(ours.cdf(x), p, rtol=1e-6)
        np.testing.assert_allclose(ours.log_prob(x), theirs.logpdf(x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", CONTINUOUS)
@given(p=st.floats(1e-6, 1 - 1e-6))
def test_cdf_of_a_quantile_is_the_probability(name, p):
    np.testing.assert_allclose(CONTINUOUS[name].cdf(CONTINUOUS[name].quantile(p)), p, rtol=1e-7)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density_is_the_slope_of_the_cdf(name):
    ours = CONTINUOUS[name]
    for p in (0.05, 0.4, 0.95):
        x, h = ours.quantile(p), 1e-5 * (ours.quantile(0.6) - ours.quantile(0.4))
        slope = (ours.cdf(x + h) - ours.cdf(x - h)) / (2 * h)
        np.testing.assert_allclose(np.exp(ours.log_prob(x)), slope, rtol=1e-4)


@pytest.mark.parametrize("name", ["log-normal", "squared", "logistic", "probit", "truncated"])
def test_nothing_lies_outside_the_range(name):
    ours, low, high = CONTINUOUS[name], np.full(4, -0.5), np.full(4, 1.5)
    np.testing.assert_array_equal(ours.cdf(low), 0.0)
    np.testing.assert_array_equal(ours.log_prob(low), -np.inf)
    if name in ("logistic", "probit"):
        np.testing.assert_array_equal(ours.cdf(high), 1.0)
        np.testing.assert_array_equal(ours.log_prob(high), -np.inf)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_charts_average_to_the_moments(name):
    ours = CONTINUOUS[name]
    chart = ours.chart()
    low, high = (np.broadcast_to(b, 4) for b in chart.bulk)
    t = np.linspace(low, high, 4001)
    density = np.exp(chart.log_density(t))
    np.testing.assert_allclose(np.trapezoid(density, t, axis=0), 1.0, atol=1e-5)
    if name != "Laplace":
        np.testing.assert_allclose(
            ours.quantile(np.clip(chart.cdf(t[1400]), 1e-12, 1)), chart.value(t[1400]), rtol=1e-5
        )
    np.testing.assert_allclose(np.trapezoid(density * chart.value(t), t, axis=0), ours.mean, rtol=1e-5, atol=1e-8)


def test_small_quantiles_of_a_square_keep_their_digits():
    for location in (0.0, 0.3, 4.0, 12.0):
        ours = mg.squared(np.array([location]), ONE)
        for p in (1e-30, 1e-12, 1e-4):
            x = ours.quantile(p)
            np.testing.assert_allclose(ours.cdf(x), p, rtol=1e-11)
    tiny = mg.squared(np.array([0.5]), ONE)  # P(v² < x) ~ 2 φ(½) √x
    assert tiny.cdf(np.array([1e-20]))[0] == pytest.approx(2 * stats.norm.pdf(0.5) * 1e-10, rel=1e-12)


@given(st.floats(-5, 5), st.floats(0.01, 10))
def test_moments_of_a_probit_are_known(location, sd):
    ours = mg.TransformedMarginals.of(np.array([location]), np.array([sd**2]), ndtr, ndtri)
    assert ours.mean[0] == pytest.approx(ndtr(location / np.sqrt(1 + sd**2)), abs=1e-6)
    small = mg.TransformedMarginals.of(np.array([location]), np.array([1e-12]), ndtr, ndtri)
    assert small.variance[0] == pytest.approx(1e-12 * stats.norm.pdf(location) ** 2, rel=1e-6)


def test_laplace_density_holds_far_out_and_for_little_noise():
    ours = mg.LaplaceMarginals(np.zeros(1), ONE + 2e-12, ONE, np.full(1, 1e-6))
    assert ours.log_prob(np.array([1.5]))[0] == pytest.approx(stats.norm.logpdf(1.5), abs=1e-9)
    far = mg.LaplaceMarginals(np.zeros(1), 3 * ONE, ONE, ONE)  # ½ e^{½ - d}
    assert far.log_prob(np.array([200.0]))[0] == pytest.approx(-199.5 - np.log(2), abs=1e-9)


@pytest.mark.parametrize("name", CONDITIONALS)
def test_conditionals_agree_with_scipy(name):
    ours, frozen = CONDITIONALS[name]
    eta = np.array([0.15, 0.4, 0.8]) if name in PROBABILITIES else np.array([0.2, 3.0, 40.0])
    theirs = frozen(eta)
    x = np.array([[-1.0], [0.0], [1.0], [2.6], [5.0], [60.0]]) + 0 * eta
    np.testing.assert_allclose(ours.cdf(x, eta), theirs.cdf(x), rtol=1e-9, atol=1e-14)
    y = np.minimum(
        np.array([[1.0], [3.0], [30.0]]), 7.0 if name == "binomial" else 1.0 if name == "bernoulli" else 30.0
    )
    log_prob = theirs.logpmf if ours.counts else theirs.logpdf
    np.testing.assert_allclose(ours.log_prob(y + 0 * eta, eta), log_prob(y + 0 * eta), rtol=1e-9)
    np.testing.assert_allclose(ours.mean(eta), theirs.mean(), rtol=1e-12)
    np.testing.assert_allclose(ours.variance(eta), theirs.var(), rtol=1e-12)
    draws = ours.sample(np.tile(eta, (20_000, 1)), np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), theirs.mean(), atol=6 * np.max(theirs.std()) / np.sqrt(20_000))


@pytest.mark.parametrize("name", CONDITIONALS)
def test_mixtures_agree_with_quadrature(name):
    conditional, frozen = CONDITIONALS[name]
    ours = mg.mixed(_rate(name), conditional)
    y = np.ones(4)
    for row in range(4):

        def rates(z, row=row):
            v = LOCATION[row] + SD[row] * z
            return expit(v) if name in PROBABILITIES else v**2

        z = np.linspace(-9, 9, 8_001) + 1e-7
        weight = stats.norm.pdf(z) * (z[1] - z[0])
        theirs = frozen(rates(z))
        density = theirs.pmf(1.0) if conditional.counts else theirs.pdf(1.0)
        rtol = 1e-4 if name in ("gamma", "exponential") else 1e-8  # as rates near zero are sharp in z
        assert ours.log_prob(y)[row] == pytest.approx(np.log(weight @ density), abs=rtol)
        assert ours.cdf(y)[row] == pytest.approx(weight @ theirs.cdf(1.0), abs=rtol)
        assert ours.mean[row] == pytest.approx(weight @ theirs.mean(), rel=1e-6)
        second = weight @ (theirs.var() + theirs.mean() ** 2)
        assert ours.variance[row] == pytest.approx(second - ours.mean[row] ** 2, rel=1e-6)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "binomial", "bernoulli"])
@settings(max_examples=8)
@given(p=st.floats(0.001, 0.999))
def test_quantile_of_counts_is_the_smallest_that_is_enough(name, p):
    ours = mg.mixed(_rate(name), CONDITIONALS[name][0])
    k = ours.quantile(p)
    assert np.all(k == np.floor(k))
    assert np.all(ours.cdf(k) >= p)
    assert np.all(ours.cdf(k - 1) < p)


@pytest.mark.parametrize("name", ["gamma", "exponential", "normal"])
def test_quantile_of_amounts_inverts_the_cdf(name):
    ours = mg.mixed(_rate(name), CONDITIONALS[name][0])
    p = np.array([[0.01], [0.3], [0.99]])
    np.testing.assert_allclose(ours.cdf(ours.quantile(p)), p + np.zeros(4), rtol=1e-9)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "binomial"])
def test_probabilities_of_counts_add_up_to_the_cdf(name):
    ours = mg.mixed(_rate(name), CONDITIONALS[name][0])
    k = np.arange(8.0)[:, None] + np.zeros(4)
    np.testing.assert_allclose(np.cumsum(np.exp(ours.log_prob(k)), axis=0), ours.cdf(k), rtol=1e-6)


@pytest.mark.parametrize("count", [10.0, 1e4, 1e9])
def test_mixtures_hold_when_the_observation_is_much_sharper_than_the_rate(count):
    rate = mg.log_normal(np.log([count]), np.array([0.09]))
    ours, y = mg.mixed(rate, given_rate.Poisson()), np.array([np.floor(1.2 * count)])
    if count < 1e9:
        width = 1 / np.sqrt(count) / 0.3
        z0 = np.log(1.2) / 0.3

        def integrand(z):
            return stats.poisson.pmf(y[0], count * np.exp(0.3 * z)) * stats.norm.pdf(z)

        exact = quad(integrand, z0 - 9 * width, z0 + 9 * width, limit=400, epsabs=0, epsrel=1e-11)[0]
        assert ours.log_prob(y)[0] == pytest.approx(np.log(exact), abs=1e-7)
    else:
        assert ours.log_prob(y)[0] == pytest.approx(rate.log_prob(y)[0], abs=1e-6)
        assert ours.cdf(y)[0] == pytest.approx(rate.cdf(y)[0], abs=1e-5)


def test_mixtures_hold_for_outliers():
    ours = mg.mixed(mg.log_normal(np.zeros(1), np.array([0.01])), given_rate.Poisson())
    y = np.array([30.0])  # 34 standard deviations of the log rate, but not of the count

    def integrand(z):
        return stats.poisson.pmf(30, np.exp(0.1 * z)) * stats.norm.pdf(z)

    assert ours.log_prob(y)[0] == pytest.approx(np.log(quad(integrand, -10, 20, epsabs=0)[0]), abs=1e-7)


def test_mixtures_with_certain_rates_are_the_conditional():
    ours = mg.mixed(mg.log_normal(np.log([4.0]), np.zeros(1)), given_rate.Poisson())
    k = np.arange(12.0)[:, None]
    np.testing.assert_allclose(ours.cdf(k), stats.poisson.cdf(k, 4.0), rtol=1e-9)
    np.testing.assert_allclose(ours.log_prob(k), stats.poisson.logpmf(k, 4.0), rtol=1e-9)


def test_a_normal_mixture_of_normals_is_normal():
    ours = mg.mixed(mg.GaussianMarginals(LOCATION, VARIANCE), given_rate.Normal(np.full(4, 0.5)))
    exact = mg.GaussianMarginals(LOCATION, VARIANCE + 0.5)
    x = LOCATION + np.array([[-2.0], [0.1], [3.0], [11.0]])
    np.testing.assert_allclose(ours.log_prob(x), exact.log_prob(x), rtol=1e-9)
    np.testing.assert_allclose(ours.cdf(x), exact.cdf(x), atol=1e-9)
    np.testing.assert_allclose(ours.variance, exact.variance, rtol=1e-12)
    np.testing.assert_allclose(ours.clean_variance, VARIANCE, rtol=1e-12)
    noisy = mg.noisy(mg.GaussianMarginals(LOCATION, VARIANCE), np.full(4, 0.5))
    np.testing.assert_allclose(noisy.log_prob(x), exact.log_prob(x), rtol=1e-9)


def test_a_gamma_mixture_of_poissons_is_negative_binomial():
    """Gamma-distributed rates through their own quantile function: the default chart."""

    class GammaMarginals(mg.Marginals):
        def cdf(self, x):
            return stats.gamma.cdf(x, 3.0, scale=2.0)

        def quantile(self, p):
            return stats.gamma.ppf(p, 3.0, scale=2.0) * ONE

        def log_prob(self, y):
            return stats.gamma.logpdf(y, 3.0, scale=2.0)

    ours = mg.mixed(GammaMarginals(6 * ONE, 12 * ONE), given_rate.Poisson())
    theirs, k = stats.nbinom(3.0, 1 / 3), np.arange(20.0)[:, None]
    np.testing.assert_allclose(ours.log_prob(k), theirs.logpmf(k), rtol=1e-6)
    np.testing.assert_allclose(ours.cdf(k), theirs.cdf(k), rtol=1e-8)
    assert (ours.mean[0], ours.variance[0]) == pytest.approx((theirs.mean(), theirs.var()))


@pytest.mark.parametrize("sd", [0.05, 1.5])
def test_an_effect_of_the_region_adds_to_a_log_normal_rate(sd):
    conditional, rate = given_rate.PoissonLogNormal(sd), mg.log_normal(np.log([0.4, 30.0]), np.array([0.2, 0.1]))
    absorbed = mg.mixed(rate, conditional)
    mean, variance = absorbed.mean, absorbed.variance
    nested = mg.MixedMarginals(mean, variance, rate, conditional)
    y = np.array([1.0, 25.0])
    assert isinstance(absorbed.conditional, given_rate.Poisson)
    np.testing.assert_allclose(nested.log_prob(y), absorbed.log_prob(y), rtol=1e-8)
    np.testing.assert_allclose(nested.cdf(y), absorbed.cdf(y), rtol=1e-8)
    np.testing.assert_allclose(conditional.mean(rate.mean), mean, rtol=1e-12)
    explained = np.exp(sd**2) * rate.variance
    noise = (
        conditional.variance(rate.mean + np.sqrt(rate.variance))
        + conditional.variance(rate.mean - np.sqrt(rate.variance))
    ) / 2
    np.testing.assert_allclose(explained + noise, variance, rtol=1e-12)


def test_draws_follow_the_distribution_and_the_scores():
    ours = mg.mixed(mg.squared(np.full(2, 6.0), np.full(2, 0.5)), given_rate.NegativeBinomial(20.0))
    rng = np.random.default_rng(1)
    z = np.repeat(rng.standard_normal((20_000, 1)), 2, axis=1)  # both rates are one
    draws = ours.sample(z, rng)
    np.testing.assert_allclose(draws.mean(axis=0), ours.mean, rtol=0.01)
    np.testing.assert_allclose(draws.var(axis=0), ours.variance, rtol=0.05)
    assert np.cov(draws.T)[0, 1] == pytest.approx(ours.clean_variance[0], rel=0.05)
    for p in (0.05, 0.5, 0.95):
        assert abs(np.quantile(draws[:, 0], p) - ours.quantile(p)[0]) <= 1.5


@pytest.mark.parametrize(
    "certain",
    [
        mg.log_normal(np.log([4.0]), np.zeros(1)),
        mg.squared(np.array([2.0]), np.zeros(1)),
        mg.TransformedMarginals.of(np.array([4.0]), np.zeros(1), np.positive, np.positive),
    ],
)
def test_certain_numbers_are_steps(certain):
    np.testing.assert_allclose(certain.cdf(np.array([[3.9], [4.1]])), [[0.0], [1.0]])
    np.testing.assert_allclose(certain.quantile(np.array([[0.1], [0.9]])), 4.0, rtol=1e-6)
    assert certain.mean[0] == pytest.approx(4.0)
    counts = mg.mixed(certain, given_rate.Poisson())
    assert counts.log_prob(np.array([3.0]))[0] == pytest.approx(stats.poisson.logpmf(3, 4.0), rel=1e-7)
    assert counts.cdf(np.array([3.0]))[0] == pytest.approx(stats.poisson.cdf(3, 4.0), rel=1e-7)


def test_impossible_observations_have_probability_zero():
    ours = mg.mixed(mg.log_normal(np.zeros(1), ONE), given_rate.Gamma(2.0))
    assert ours.log_prob(np.array([-1.0]))[0] == -np.inf
    assert ours.cdf(np.array([-1.0]))[0] == pytest.approx(0.0, abs=1e-14)


def test_observed_names_the_conditional():
    rate = mg.TransformedMarginals.of(LOCATION, VARIANCE, expit, logit)
    by_name = mg.observed(rate, "binomial", trials=np.array([1.0, 5.0, 9.0, 40.0]))
    np.testing.assert_allclose(by_name.mean, np.array([1.0, 5.0, 9.0, 40.0]) * rate.mean)
    assert np.all(by_name.quantile(0.999) <= np.array([1.0, 5.0, 9.0, 40.0]))
    with pytest.raises(ValueError, match='"kind" must be one of bernoulli, beta, binomial'):
        mg.observed(rate, "weibull")
