"""Priors from one statement say what they were told, and are densities."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import aggregauss as ag


def _mass(prior, low, high):
    """Of the parameter between two values, integrated over its logarithm."""
    return quad(lambda t: float(jnp.exp(prior.log_prob(jnp.asarray(np.exp(t))) + t)), np.log(low), np.log(high))[0]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_range_is_below_its_bound_with_the_stated_probability(dim):
    prior = ag.RangePrior(below=30.0, probability=0.07, dim=dim)
    assert _mass(prior, 1e-6, 15.0) == pytest.approx(0.07, rel=1e-5)  # the range is twice the lengthscale
    assert _mass(prior, 15.0, 1e16) == pytest.approx(0.93, rel=1e-5)


def test_a_standard_deviation_exceeds_its_bound_with_the_stated_probability():
    prior = ag.SdPrior(above=1.5, probability=0.02)
    assert _mass(prior, 1.5**2, 1e6) == pytest.approx(0.02, rel=1e-5)  # the parameter is the variance
    assert _mass(prior, 1e-24, 1.5**2) == pytest.approx(0.98, rel=1e-5)


def test_a_statement_about_the_range_moves_a_fit():
    x = np.linspace(0.0, 10.0, 12)
    found = []
    for below in (1.0, 100.0):
        lengthscale = ag.param(2.0, prior=ag.RangePrior(below, 0.5, dim=1))
        model = ag.GP(ag.Matern32(lengthscale, ag.fixed(1.0)), ag.Gaussian(ag.fixed(1.0)))
        post = model.fit(ag.Points(x), np.sin(x), inference=ag.Exact(restarts=0))
        found.append(float(post.model.kernel.lengthscale))
    assert found[0] < found[1]
