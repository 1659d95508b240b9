"""Bags that are linearised about the mean of q, and the mean that is best with their covariance."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import poisson

import aggregauss as ag
from aggregauss.inference import ascent
from aggregauss.inference.climb import EASY, MOST, climb
from aggregauss.inference.data import observe
from aggregauss.inference.groups import choose_shapes
from aggregauss.inference.inducing import on_device
from aggregauss.inference.passes import Passes
from aggregauss.inference.profile import search

RNG = np.random.default_rng(2)
Z = np.linspace(0, 5, 6)[:, None]
PLACES = RNG.uniform(0, 5, (12, 1))
KERNEL = ag.RBF(ag.fixed(1.0), ag.fixed(0.7))


def _slopes(likelihood, support, y, counts, bound):
    """The objective and the target of q, at a q that is neither the prior nor the top."""
    level = 3.0 if likelihood.link == "square" else 0.3  # away from zero, where the square is not log-concave
    model = ag.GP(KERNEL, likelihood, aggregation="response", mean=ag.Constant(ag.fixed(level)))
    shapes = choose_shapes(observe(support, y, None), len(y), len(Z), 32, np.dtype(float))
    settings = ascent.Settings(bound, "float64", True, False)
    passes = Passes(model, observe(support, y, None, counts=counts), settings, shapes, 0)
    state = ascent.begin_at(
        ascent.init(jnp.zeros(0), on_device(ag.Points(Z)), len(Z), 0.05, 1.0), 0.1 * jnp.arange(float(len(Z)))
    )
    return passes.over(state, passes.hold())


CASES = {
    "poisson": (ag.Poisson(), np.arange(12.0) % 5, None),
    "square": (ag.Poisson("square"), np.arange(12.0) % 5, None),
    "negative-binomial": (ag.NegativeBinomial(ag.fixed(2.0)), np.arange(12.0) % 5, None),
    "binomial": (ag.Binomial(), np.arange(12.0) % 5, np.full(12, 6.0)),
    "gamma": (ag.GammaResponse(ag.fixed(2.0)), 1.0 + np.arange(12.0) % 5, None),
}


@pytest.mark.parametrize("name", CASES)
def test_bags_of_one_need_no_linearisation(name):
    ours, exact = (_slopes(CASES[name][0], ag.Points(PLACES), *CASES[name][1:], b) for b in ("linearised", "matched"))
    assert ours.objective == pytest.approx(float(exact.objective), rel=1e-7)
    np.testing.assert_allclose(ours.target.precision, exact.target.precision, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.target.shift, exact.target.shift, rtol=1e-5, atol=1e-6)


def test_individuals_at_one_place_are_one_individual():
    places, weights = PLACES[:4], np.array([0.5, 1.5, 2.0])
    together = ag.Bags(np.repeat(places, 3, axis=0), np.repeat(np.arange(4), 3), np.tile(weights, 4), measure="total")
    alone = ag.Bags(places, np.arange(4), np.full(4, weights.sum()), measure="total")
    y = np.array([3.0, 0.0, 7.0, 2.0])
    first, second = (_slopes(ag.Poisson(), support, y, None, "linearised") for support in (together, alone))
    assert first.objective == pytest.approx(float(second.objective), rel=1e-9)
    np.testing.assert_allclose(first.target.precision, second.target.precision, rtol=1e-7, atol=1e-9)


@pytest.fixture(scope="module")
def precise():
    """One bag of four individuals that vary by themselves, and importance sampling from the prior."""
    sites = 10.0 * np.arange(4.0)[:, None]
    bag, y = ag.Bags(sites, np.zeros(4, int), np.full(4, 50.0)), 400.0
    model = ag.GP(
        ag.RBF(ag.fixed(1.0), ag.fixed(0.8)), ag.Poisson(), aggregation="response", mean=ag.Constant(ag.fixed(0.0))
    )
    f = np.sqrt(0.8) * np.random.default_rng(0).standard_normal((1_000_000, 4))
    weight = poisson.pmf(y, 50.0 * np.exp(f).sum(axis=1))
    mean = weight @ f / weight.sum()
    sd = np.sqrt(weight @ (f - mean) ** 2 / weight.sum()).mean()
    posts = {
        b: model.fit(bag, [y], inference=ag.SVI(inducing=sites, bound=b), progress=False)
        for b in ("linearised", "matched")
    }
    found = {b: post.predict(ag.Points(sites), "latent").std.mean() for b, post in posts.items()}
    return {"sd": sd, "evidence": np.log(weight.mean()), "found": found, "posts": posts, "bag": bag, "y": y}


def test_a_precise_total_leaves_its_parts_open(precise):
    sd, found = precise["sd"], precise["found"]
    assert found["matched"] < found["linearised"] < sd
    assert sd - found["linearised"] < 0.5 * (sd - found["matched"])
    assert precise["posts"]["linearised"].predict(precise["bag"]).mean[0] == pytest.approx(precise["y"], rel=0.02)


def test_its_evidence_is_nearer_to_the_truth_than_that_of_a_narrow_q(precise):
    errors = {b: abs(post.evidence - precise["evidence"]) for b, post in precise["posts"].items()}
    assert errors["linearised"] < 0.5 * errors["matched"]


def test_a_square_of_a_function_without_a_level_leaves_zero():
    """f = 0 fits nothing but has no slope, because f and -f fit equally well."""
    bags, y = ag.Bags(PLACES, np.arange(12) // 3, np.full(12, 4.0)), np.array([40.0, 90.0, 20.0, 50.0])
    model = ag.GP(ag.RBF(ag.fixed(1.0), ag.fixed(4.0)), ag.Poisson("square"), aggregation="response")
    post = model.fit(bags, y, inference=ag.SVI(inducing=Z), progress=False)
    np.testing.assert_allclose(post.predict(bags).mean, y, rtol=0.4)


class _Cliff:
    """A profile with its top at x = 2 and a slope at the start that points far beyond where it is finite."""

    def __call__(self, vector):
        x = float(vector[0])
        if abs(x) > 6.0:
            return -np.inf, np.zeros(1)
        return -100.0 * (np.cosh(x - 2.0) - 1.0), np.array([-100.0 * np.sinh(x - 2.0)])


@pytest.mark.parametrize("start", [-4.5, 0.0, 5.5])
def test_a_search_does_not_end_where_the_profile_is_not_finite(start):
    template = ag.GP(ag.RBF(ag.param(1.0), ag.fixed(1.0)), ag.Gaussian(ag.fixed(1.0)))
    vector, message = search(_Cliff(), template, np.array([start]), 50, 1e-6)  # pyright: ignore
    assert message == "converged"
    assert vector[0] == pytest.approx(2.0, abs=1e-3)


def test_precise_totals_leave_more_open_than_the_matched_bound_says():
    """The total variance of the whitened inducing variables, with totals of 100 and more."""
    bags, y = ag.Bags(PLACES, np.arange(12) // 3, np.full(12, 40.0)), np.array([180.0, 250.0, 120.0, 160.0])
    model = ag.GP(KERNEL, ag.Poisson(), aggregation="response", mean=ag.Constant(ag.fixed(0.3)))
    roots = [
        model.fit(bags, y, inference=ag.SVI(inducing=Z, bound=b, tolerance=1e-7), progress=False).conditional.root
        for b in ("linearised", "matched")
    ]
    wide, narrow = (float(np.sum(root**2)) for root in roots)
    assert wide > narrow + 0.1


def test_the_climb_ends_where_nothing_rises():
    """Totals so precise that natural-gradient steps alone are short: Λ = I - 2 G_Σ and G_μ = μ at the top."""
    places = RNG.uniform(0, 5, (60, 1))
    bags = ag.Bags(places, np.arange(60) // 10, np.full(60, 300.0))
    y = RNG.poisson(3000.0 * np.exp(RNG.normal(0, 1, 6)))
    model = ag.GP(ag.RBF(ag.fixed(0.7), ag.fixed(2.0)), ag.Poisson(), aggregation="response")
    observations = observe(bags, y.astype(float), None)
    shapes = choose_shapes(observations, 6, 10, 32, np.dtype(float))
    passes = Passes(model, observations, ascent.Settings("linearised", "float64", True, False), shapes, 0)
    held, sites = passes.hold(), np.linspace(0, 5, 10)[:, None]
    seen = []

    def look(state):
        seen.append(state)
        return passes.over(state, held)

    top, uphill = climb(look, ascent.init(jnp.zeros(0), on_device(ag.Points(sites)), 10, 0.05, 1.0), 1e-9)
    assert EASY < len(seen) < MOST  # it went along a valley, and to its end
    np.testing.assert_allclose(uphill.target.gradient(top.q.mean).mean, top.q.mean, atol=1e-3)
    np.testing.assert_allclose(top.q.precision, uphill.target.precision, rtol=1e-2, atol=1e-2)
