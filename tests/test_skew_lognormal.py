"""Positive numbers with a skew logarithm: a law in itself, the log-normal one without skewness, and that of draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from aggregauss import marginals as mg
from aggregauss.marginals import conditionals

N = 200_000


def _law(location=0.3, spread=0.8, skewness=-0.5):
    one = np.ones(1)
    return mg.SkewLogNormalMarginals(one, one, location * one, spread * one, skewness * one)


@given(st.floats(-3, 3), st.floats(0.05, 2.0), st.floats(-1.5, 1.5))
def test_density_distribution_function_and_quantile_are_of_one_law(location, spread, skewness):
    law = _law(location, spread, skewness)
    p = np.array([[0.001], [0.1], [0.5], [0.9], [0.999]])
    x = law.quantile(p)
    np.testing.assert_allclose(law.cdf(x), p, rtol=1e-7)
    step = 1e-4 * x
    slope = (law.cdf(x + step) - law.cdf(x - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(law.log_prob(x)), slope, rtol=1e-4)


@given(st.floats(-1.5, 1.5))
def test_the_logarithm_has_the_moments_that_are_named(skewness):
    law = _law(skewness=skewness)
    centre = np.log(law.quantile(0.5)[0])

    def moment(k):
        def integrand(t):
            x = np.exp(np.array([t]))
            return float((t - 0.3) ** k * np.exp(law.log_prob(x)[0]) * x[0])

        return quad(integrand, centre - 30, centre + 30, points=(centre - 2, centre, centre + 2), limit=400)[0]

    assert moment(0) == pytest.approx(1.0, rel=1e-6)
    assert moment(1) == pytest.approx(0.0, abs=1e-6)
    assert moment(2) == pytest.approx(0.64, rel=1e-5)
    assert moment(3) == pytest.approx(skewness * 0.8**3, rel=1e-3, abs=1e-4)


def test_without_skewness_it_is_log_normal():
    law, known = _law(skewness=0.0), mg.log_normal(np.array([0.3]), np.array([0.64]))
    x = np.array([[0.01], [1.0], [40.0]])
    np.testing.assert_allclose(law.log_prob(x), known.log_prob(x), atol=5e-3)  # a skewness of 1e-4, six sd away
    np.testing.assert_allclose(law.cdf(x), known.cdf(x), rtol=1e-3, atol=1e-5)


def test_nothing_lies_beyond_the_end_of_its_support():
    """Negative skewness has an end above, positive skewness one below."""
    for skewness, far in ((-1.0, 1e9), (1.0, 1e-9)):
        law = _law(skewness=skewness)
        assert law.log_prob(np.array([far])) == -np.inf
        assert law.cdf(np.array([far])) == (far > 1)


def test_a_part_of_a_known_sum_is_skew_and_draws_of_it_are_described():
    """Shares e^f / (e^f + e^g): log shares below zero; 99 quantiles of the law beside those of the draws."""
    rng = np.random.default_rng(0)
    f, g = rng.normal(0.0, 0.7, (2, N))
    share = 1 / (1 + np.exp(g - f - 0.5))
    law = mg.skew_log_normal(share[:, None])
    assert law.skewness[0] < -0.5
    assert (law.mean[0], law.variance[0]) == pytest.approx((share.mean(), share.var()))
    p = np.linspace(0.01, 0.99, 99)
    ours, normal = law.quantile(p[:, None])[:, 0], np.exp(law.location + law.spread * np.sqrt(2) * _erfinv(2 * p - 1))
    theirs = np.log(np.quantile(share, p))
    assert np.abs(np.log(ours) - theirs).max() < 0.35 * np.abs(np.log(normal) - theirs).max()


def _erfinv(x):
    from scipy.special import erfinv

    return erfinv(x)


def test_what_is_zero_or_certain_in_all_draws_is_so():
    draws = np.column_stack([np.zeros(50), np.full(50, 7.0), np.exp(np.random.default_rng(0).normal(size=50))])
    law = mg.skew_log_normal(draws)
    for p in (0.01, 0.5, 0.99):
        np.testing.assert_allclose(law.quantile(p)[:2], [0.0, 7.0], rtol=1e-9)
    np.testing.assert_array_equal(law.cdf(np.zeros(3)), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(law.cdf(np.full(3, -1.0)), [0.0, 0.0, 0.0])
    new = mg.mixed(law, conditionals.Poisson())
    assert new.quantile(0.9)[0] == 0
    assert new.log_prob(np.zeros(3))[0] == pytest.approx(0.0)
    assert new.log_prob(np.full(3, 7.0))[1] == pytest.approx(7 * np.log(7) - 7 - np.log(5040), rel=1e-6)


def test_an_effect_of_the_region_adds_to_its_moments():
    """Poisson(η e^v): the law of η e^v beside draws of both, and counts beside draws of counts."""
    rng = np.random.default_rng(2)
    base = 1 / (1 + np.exp(-0.8 * rng.standard_normal((N, 2)))) * [30.0, 5000.0]
    effect = np.exp(0.3 * rng.standard_normal((N, 2)))
    new = mg.mixed(mg.skew_log_normal(base), conditionals.PoissonLogNormal(0.3))
    counts = rng.poisson(base * effect)
    np.testing.assert_allclose(new.mean, counts.mean(axis=0), rtol=5e-3)
    np.testing.assert_allclose(new.variance, counts.var(axis=0), rtol=2e-2)
    for p in (0.025, 0.25, 0.75, 0.975):
        np.testing.assert_allclose(new.quantile(p), np.quantile(counts, p, axis=0), rtol=0.03, atol=1.0)
    rate = new.rate
    logs = np.log(base * effect)
    np.testing.assert_allclose([rate.location, rate.spread], [logs.mean(axis=0), logs.std(axis=0)], rtol=5e-3)
