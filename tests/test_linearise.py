"""The covariance of bags taken as single individuals."""

import jax.numpy as jnp
import numpy as np
import pytest

import aggregauss as ag
from aggregauss.inference import ascent
from aggregauss.inference.data import observe
from aggregauss.inference.groups import choose_shape
from aggregauss.inference.linearise import bag_precision
from aggregauss.inference.passes import Passes

RNG = np.random.default_rng(2)
Z = np.linspace(0, 5, 6)[:, None]
PLACES = RNG.uniform(0, 5, (12, 1))
KERNEL = ag.RBF(ag.fixed(1.0), ag.fixed(0.7))


def _passes(likelihood, support, y, counts=None):
    level = 3.0 if likelihood.link == "square" else 0.3  # away from zero, where the square is not log-concave
    model = ag.GP(KERNEL, likelihood, aggregation="response", mean=ag.Constant(ag.fixed(level)))
    shape = choose_shape(support.atom_counts, len(y), len(Z), 32, np.dtype(float))
    settings = ascent.Settings("matched", "float64", True, False)
    return Passes(model, observe(support, y, None, counts=counts), settings, shape, 0)


CASES = {
    "poisson": (ag.Poisson(), np.arange(12.0) % 5, None),
    "square": (ag.Poisson("square"), np.arange(12.0) % 5, None),
    "negative-binomial": (ag.NegativeBinomial(ag.fixed(2.0)), np.arange(12.0) % 5, None),
    "binomial": (ag.Binomial(), np.arange(12.0) % 5, np.full(12, 6.0)),
    "gamma": (ag.GammaResponse(ag.fixed(2.0)), 1.0 + np.arange(12.0) % 5, None),
}


@pytest.mark.parametrize("name", CASES)
def test_bags_of_one_have_the_variational_precision(name):
    passes = _passes(CASES[name][0], ag.Points(PLACES), *CASES[name][1:])
    state = ascent.init(jnp.zeros(0), jnp.asarray(Z), len(Z), 0.05, 1.0)
    held = passes.hold()
    expected = passes.over(state, held).target.precision - jnp.eye(len(Z))
    np.testing.assert_allclose(bag_precision(passes, held, state), expected, rtol=1e-5, atol=1e-7)


def test_it_is_nearer_to_the_posterior_of_a_precise_total_than_the_variational_one():
    """One bag of four individuals that vary by themselves, against importance sampling from the prior."""
    sites = 10.0 * np.arange(4.0)[:, None]
    bag, y = ag.Bags(sites, np.zeros(4, int), np.full(4, 50.0)), 400.0
    model = ag.GP(
        ag.RBF(ag.fixed(1.0), ag.fixed(0.8)), ag.Poisson(), aggregation="response", mean=ag.Constant(ag.fixed(0.0))
    )
    f = np.sqrt(0.8) * np.random.default_rng(0).standard_normal((1_000_000, 4))
    eta = 50.0 * np.exp(f).sum(axis=1)
    log_weight = y * np.log(eta) - eta
    weight = np.exp(log_weight - log_weight.max())
    mean = weight @ f / weight.sum()
    truth = np.sqrt(weight @ (f - mean) ** 2 / weight.sum()).mean()
    posts = {
        c: model.fit(bag, [y], inference=ag.SVI(inducing=sites, covariance=c), progress=False)
        for c in ("linearised", "variational")
    }
    found = {c: post.predict(ag.Points(sites), "latent").std.mean() for c, post in posts.items()}
    assert found["variational"] < found["linearised"] < truth
    assert truth - found["linearised"] < 0.5 * (truth - found["variational"])
    assert posts["linearised"].predict(bag).mean[0] == pytest.approx(y, rel=0.02)


def test_jensen_keeps_its_own_covariance():
    bags, y = ag.Bags(PLACES, np.arange(12) // 3), np.array([4.0, 9.0, 2.0, 5.0])
    model = ag.GP(KERNEL, ag.Poisson(), aggregation="response", mean=ag.Constant(ag.fixed(0.3)))
    by_default, asked = (
        model.fit(bags, y, inference=ag.SVI(inducing=Z, bound="jensen", covariance=c), progress=False)
        for c in (None, "variational")
    )
    np.testing.assert_array_equal(by_default.conditional.root, asked.conditional.root)
