"""Scores against closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, poisson

from aggregauss import metrics


def test_bootstrap_interval_of_a_mean_agrees_with_the_normal_one():
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    low, high = metrics.bootstrap(values)
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_crps_and_nlpd_agree_with_their_definitions():
    y, mean, variance = 0.7, -0.3, 2.25
    normal = norm(mean, np.sqrt(variance))
    integral = quad(lambda x: normal.cdf(x) ** 2, -20, y)[0] + quad(lambda x: normal.sf(x) ** 2, y, 20)[0]
    assert metrics.gaussian_crps(y, mean, variance) == pytest.approx(integral, rel=1e-8)
    assert metrics.gaussian_nlpd(y, mean, variance) == pytest.approx(-normal.logpdf(y), rel=1e-12)


def test_errors_and_coverage_by_hand():
    assert metrics.rmse([1.0, 2.0], [4.0, 6.0]) == pytest.approx(np.sqrt(12.5))
    assert metrics.mae([1.0, 2.0], [4.0, 6.0]) == 3.5
    assert metrics.coverage([0.0, 1.0, 2.0, 3.0], [0.0] * 4, [2.0] * 4) == 0.75


def test_squared_errors_and_their_logarithms_by_hand():
    assert metrics.mse([1.0, 2.0], [4.0, 6.0]) == 12.5
    assert metrics.log_mse([-1.0, 0.0, np.e], [np.e, 1.0, np.e**3]) == pytest.approx(5 / 3)


def test_poisson_likelihood_agrees_with_scipy_and_with_stirling():
    y, rate = np.array([0, 1, 2, 7, 40]), np.array([0.3, 2.0, 2.0, 9.0, 31.0])
    assert metrics.poisson_nll(y, rate) == pytest.approx(-poisson.logpmf(y, rate).mean(), rel=1e-12)
    stirling = [0.0, 0.0] + [k * np.log(k) - k + 0.5 * np.log(2 * np.pi * k) for k in (2, 7, 40)]
    by_hand = np.mean(rate - y * np.log(rate) + stirling)
    assert metrics.poisson_nll(y, rate, stirling=True) == pytest.approx(by_hand, rel=1e-12)
    assert metrics.poisson_nll(0, 0.0) == 0.0


def test_calibration_of_the_right_model_is_nominal():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=20_000)
    y = mean + rng.normal(size=20_000)

    def interval(level, sd=1.0):
        return mean + sd * norm.ppf((1 - level) / 2), mean + sd * norm.ppf((1 + level) / 2)

    table = metrics.calibration(y, interval)
    assert list(table) == [0.70, 0.75, 0.80, 0.85, 0.90, 0.95]
    assert list(table.values()) == pytest.approx(list(table), abs=0.01)
    assert metrics.coverage_error(y, interval) < 0.01
    assert metrics.coverage_error(y, lambda level: interval(level, sd=0.5)) > 0.2
