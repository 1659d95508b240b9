"""Differential privacy: the mechanism's noise, and what modelling it gains."""

import sys

import numpy as np
import pytest

import aggregauss as ag
from aggregauss.metrics import gaussian_nlpd, rmse


def test_the_mechanism_adds_laplace_noise_of_the_stated_scale():
    from scipy.stats import kstest, laplace

    noise = ag.privacy.release(np.zeros(20_000), epsilon=0.5, sensitivity=2.0)
    assert noise.scale == 4.0
    assert kstest(noise.values, laplace(scale=4.0).cdf).pvalue > 1e-4
    np.testing.assert_allclose(noise.noise_variance[0], 32.0)


def test_the_mechanism_is_as_private_as_it_says():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    scale = ag.privacy.release([1.0], epsilon=0.3).scale
    assert dp.m.make_laplace(*space, scale=scale).map(d_in=1.0) <= 0.3 + 1e-9


def test_a_private_histogram_has_bins_and_counts():
    bins, private = ag.privacy.histogram([1.0, 2.0, 11.0], [0.0, 10.0, 20.0], epsilon=1e6)
    assert len(bins) == 2
    np.testing.assert_allclose(private.values, [2.0, 1.0], atol=1e-3)


def _both(bins, noisy, scale, kernel, mean):
    """Same kernel and same variance of noise: only its shape differs."""
    standin = ag.GP(kernel, ag.Gaussian(ag.fixed(0.5)), mean=mean)
    proper = ag.GP(kernel, ag.LaplaceNoise(scale, ag.fixed(0.5)), mean=mean)
    return (
        standin.fit(bins, noisy, 2 * scale**2, inference=ag.Exact(optimise=False)).predict(bins),
        proper.fit(bins, noisy, inference=ag.EP(optimise=False)).predict(bins),
    )


def _is_a_gain(gain):
    return gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.slow
def test_laplace_noise_beats_its_gaussian_stand_in_on_functions_from_the_prior():
    rng, scale = np.random.default_rng(0), 10.0  # epsilon = 0.1
    edges = np.arange(0.0, 101.0, 2.5)
    bins = ag.Intervals(edges[:-1], edges[1:])
    kernel, mean = ag.RBF(ag.fixed(12.0), ag.fixed(25.0)), ag.Constant(ag.fixed(8.0))
    root = np.linalg.cholesky(np.asarray(ag.cov(kernel, bins)) + 1e-8 * np.eye(len(bins)))
    gain = []
    for _ in range(60):
        truth = 8.0 * bins.mass + root @ rng.standard_normal(len(bins))
        standin, proper = _both(bins, truth + rng.laplace(0, scale, len(bins)), scale, kernel, mean)
        gain.append(rmse(truth, standin.mean) - rmse(truth, proper.mean))
    assert _is_a_gain(np.array(gain))


@pytest.mark.slow
def test_laplace_noise_beats_its_gaussian_stand_in_at_small_epsilon_on_ages():
    data = ag.datasets.ages(width=5)
    kernel = ag.RBF(ag.fixed(5.17), ag.fixed(13.0))
    mean = ag.Constant(ag.fixed(float(data.totals.sum() / data.bins.mass.sum())))
    rng, epsilon, gain = np.random.default_rng(0), 0.05, []
    for _ in range(40):
        noisy = data.totals + rng.laplace(0, 1 / epsilon, len(data.totals))
        scores = [
            gaussian_nlpd(data.totals, p.mean, p.variance) for p in _both(data.bins, noisy, 1 / epsilon, kernel, mean)
        ]
        gain.append(scores[0] - scores[1])
    assert _is_a_gain(np.array(gain))


def test_missing_opendp_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)  # which makes its import fail
    with pytest.raises(ImportError, match=r'pip install "aggregauss\[privacy\]"'):
        ag.privacy.release([1.0], epsilon=1.0)
