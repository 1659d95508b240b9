"""Draws of totals: those of the posterior where bags are single individuals, and tied to what was reported."""

import numpy as np
import pytest

import aggregauss as ag
from aggregauss.inference import total_draws
from aggregauss.inference.data import observe
from aggregauss.inference.draws import latent_draws

N = 20_000


def _fitted(support, y, **likelihood):
    kernel = ag.Matern32(ag.param(1.0, prior=ag.LogNormal(1.0, 0.5)), ag.param(0.5, prior=ag.LogNormal(0.5, 0.5)))
    model = ag.GP(kernel, ag.Poisson(**likelihood), mean=ag.Constant(ag.fixed(3.0)), aggregation="response")
    inference = ag.SVI(inducing=support.center[:: max(1, len(support.center) // 20)], search="totals")
    return model.fit(support, y, inference=inference, progress=False)


def test_of_single_individuals_they_are_draws_of_the_function():
    """Laplace's approximation of t = f beside the variational one, over the same values of the hyper-parameters."""
    x = np.linspace(0, 5, 8)[:, None]
    y = np.random.default_rng(0).poisson(np.exp(3 + np.sin(x[:, 0])))
    post = _fitted(ag.Points(x), y)
    totals = np.log(total_draws.total_draws(post, observe(ag.Points(x), y, None), N))
    ((rows, drawn),) = latent_draws(post, ag.Points(x), N)
    latent = drawn[:, np.argsort(rows)]
    np.testing.assert_allclose(totals.mean(axis=0), latent.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(totals.T), np.cov(latent.T), atol=0.05 * np.var(latent, axis=0).max())


@pytest.fixture(scope="module")
def wide():
    """Twelve bags of sixteen places each, three lengthscales wide, with a scatter of 20%."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 36, 192))[:, None]
    root = np.linalg.cholesky(np.asarray(ag.cov(ag.Matern32(1.0, 0.8), ag.Points(x))) + 1e-9 * np.eye(192))
    bags = ag.Bags(x, np.repeat(np.arange(12), 16), np.full(192, 5.0))
    y = rng.poisson(np.add.reduceat(5 * np.exp(3 + root @ rng.standard_normal(192)), np.arange(0, 192, 16)))
    return bags, y, _fitted(bags, y, region_effect=True, region_sd=ag.fixed(0.2))


def test_they_are_as_uncertain_as_reports_leave_them(wide):
    """log t | y is close to N(log y, s²) where the prior says little; the normal q, summed over places, knows less."""
    bags, y, post = wide
    totals = np.log(total_draws.total_draws(post, observe(bags, y, None), N))
    sd = np.sqrt(0.2**2 + 1 / y)
    assert np.abs((totals.mean(axis=0) - np.log(y)) / sd).max() < 1.0
    assert (totals.std(axis=0) < sd).all()
    assert (totals.std(axis=0) > 0.7 * sd).all()
    low, high = post.predict(bags).interval(0.95)
    assert np.mean(np.log(high / low) / 3.92 / sd) > 1.1


def test_parts_of_many_bags_agree_with_all_of_them(wide, monkeypatch):
    bags, y, post = wide
    seen = observe(bags, y, None)
    whole = np.log(total_draws.total_draws(post, seen, N))
    monkeypatch.setattr(total_draws, "BAGS", 5)
    parts = np.log(total_draws.total_draws(post, seen, N))
    np.testing.assert_allclose(parts.mean(axis=0), whole.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(parts.std(axis=0), whole.std(axis=0), atol=0.02)
