"""Effects of regions given their counts: ratios of probabilities against integrals over the effect."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import aggregauss as ag
from aggregauss.maps.region_effects import _moments, region_effects


@pytest.mark.parametrize(("y", "eta", "sd"), [(0.0, 2.0, 0.5), (7.0, 3.0, 0.8), (12000.0, 9000.0, 0.6)])
def test_moments_of_a_rate_equal_integrals_over_the_effect(y, eta, sd):
    v = np.linspace(-8 * sd, 8 * sd, 400_001)
    log_density = stats.poisson.logpmf(y, eta * np.exp(v)) + stats.norm.logpdf(v, 0.0, sd)
    density = np.exp(log_density - log_density.max())
    truth = [np.sum(density * (eta * np.exp(v)) ** k) / np.sum(density) for k in (1, 2)]
    found = _moments(ag.Poisson(region_effect=True, region_sd=sd), jnp.asarray(y), jnp.asarray(eta))
    np.testing.assert_allclose(found, truth, rtol=1e-6)


def test_fitted_totals_are_those_observed_up_to_their_own_noise():
    rng = np.random.default_rng(0)
    x, bag = rng.uniform(0, 10, 120), np.arange(120) // 10
    y = rng.poisson(np.bincount(bag, 400.0 * np.exp(np.sin(x))) * np.exp(0.5 * rng.standard_normal(12)))
    bags = ag.Bags(x, bag, weights=np.full(120, 400.0))
    model = ag.GP(ag.RBF(2.0), ag.Poisson(region_effect=True), mean=ag.Constant(), aggregation="response")
    table = region_effects(model.fit(bags, y, inference=ag.SVI(inducing=12, integrate=False), progress=False))
    assert np.abs(table["fitted"] / y - 1).max() < 0.01
    assert np.abs(table["without"] / y - 1).max() > 0.2
    assert ((table["lower"] < y) & (y < table["upper"])).all()


def test_without_effects_there_is_nothing_to_tell():
    bags = ag.Bags(np.arange(4.0), np.arange(4) // 2)
    model = ag.GP(ag.RBF(2.0), ag.Poisson(), mean=ag.Constant(), aggregation="response")
    post = model.fit(bags, [3, 5], inference=ag.SVI(inducing=2, integrate=False), progress=False)
    with pytest.raises(TypeError, match="no effects of regions"):
        region_effects(post)
