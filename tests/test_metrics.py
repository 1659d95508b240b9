"""Scores against closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

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
