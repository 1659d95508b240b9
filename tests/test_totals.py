"""The evidence of totals: equal to integrals that are known, and to quadrature over every individual elsewhere."""

import itertools

import equinox as eqx
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats

import aggregauss as ag
from aggregauss.inference import by_totals, totals
from aggregauss.inference.data import observe
from aggregauss.parameters import pack

LEVEL = 2.0


def _model(lengthscale=1.0, variance=0.5, **likelihood):
    kernel = ag.Matern32(ag.param(lengthscale), ag.param(variance), active_dims=[0])
    return ag.GP(kernel, ag.Poisson(**likelihood), mean=ag.Constant(ag.fixed(LEVEL)), aggregation="response")


def _evidence(model, support, y, effects=()):
    """Without priors of hyper-parameters there is nothing but the evidence."""
    data = totals.totals(observe(support, np.asarray(y, float), None), 0)
    return by_totals._level(model, pack(model), data, jnp.asarray(effects, float))


def _by_quadrature(K, mean, log_density, nodes):
    """log of the mean of exp(log_density(f)) under N(mean, K); f along the last axis."""
    x, w = hermegauss(nodes)
    z = np.array(list(itertools.product(x, repeat=len(K))))
    log_w = np.log(np.array(list(itertools.product(w, repeat=len(K))))).sum(axis=1) - 0.5 * len(K) * np.log(2 * np.pi)
    return float(np.logaddexp.reduce(log_density(mean + z @ np.linalg.cholesky(K).T) + log_w))


def _poisson(y, totals_of):
    return lambda f: stats.poisson.logpmf(y, totals_of(np.exp(f))).sum(axis=-1)


@pytest.mark.parametrize("y", [[9, 14, 5], [0, 60, 3]])
def test_of_single_individuals_it_is_that_of_log_normal_rates(y):
    """log ∫ Π Poisson(y_i | e^{f_i}) N(f | m, K) df by Gauss-Hermite; only Laplace's approximation of it is off."""
    x = np.array([[0.0], [0.4], [1.5]])
    model = _model()
    K = np.asarray(ag.cov(model.kernel, ag.Points(x)))
    known = _by_quadrature(K, LEVEL, _poisson(y, lambda rates: rates), 60)
    assert float(_evidence(model, ag.Points(x), y).value) == pytest.approx(known, abs=0.03)


def test_of_totals_it_is_the_integral_over_their_individuals():
    """Two bags of two: what the log-normal of a total is off by is small beside what the data tell."""
    x, bag, weight = np.array([[0.0], [0.5], [0.6], [2.0]]), [0, 0, 1, 1], np.array([1.0, 2.0, 0.5, 1.5])
    support, y = ag.Bags(x, bag, weight), [30, 11]

    def both(lengthscale, variance):
        model = _model(lengthscale, variance)
        K = np.asarray(ag.cov(model.kernel, ag.Points(x)))
        sums = _poisson(y, lambda rates: np.add.reduceat(rates * weight, [0, 2], axis=-1))
        return float(_evidence(model, support, y).value), _by_quadrature(K, LEVEL, sums, 24)

    found = np.array([both(*at) for at in itertools.product((0.2, 1.0, 5.0), (0.2, 0.6))])
    assert np.abs(found[:, 0] - found[:, 1]).max() < 0.15
    assert np.ptp(found[:, 1]) > 0.4  # which is not because all are the same


def test_moments_are_those_of_totals_of_draws():
    """E and the relative variance of Σ w e^f, against 400,000 draws, given effects; covariances to first order."""
    rng = np.random.default_rng(0)
    x, bag = rng.uniform(0, 3, (12, 2)), np.repeat([0, 1, 2], [1, 4, 7])
    weight = rng.uniform(0.5, 2.0, 12)
    support = ag.Bags(x, bag, weight)
    mean = ag.LinearEffects([1], sd=0.4, value=ag.fixed(LEVEL))
    model = ag.GP(_model().kernel, ag.Poisson(), mean=mean, aggregation="response")
    effects = jnp.array([0.3, -1.2])
    data = totals.totals(observe(support, np.ones(3), None), 0)
    level, H, C = totals._moments(model, data.layout, effects)

    features = np.asarray(model.mean.features(jnp.asarray(x)))
    root = np.linalg.cholesky(np.asarray(ag.cov(model.kernel, ag.Points(x))))
    f = LEVEL + features @ np.asarray(effects) + rng.standard_normal((400_000, 12)) @ root.T
    drawn = np.exp(f) * weight @ (bag[:, None] == np.arange(3))
    error = drawn.std(axis=0) / drawn.mean(axis=0) / np.sqrt(len(drawn))
    given_effects = np.asarray(level + H @ effects + 0.5 * jnp.diagonal(C))
    assert np.all(np.abs(given_effects - np.log(drawn.mean(axis=0))) < 4 * error)
    relative = np.cov(drawn.T) / np.outer(drawn.mean(axis=0), drawn.mean(axis=0))
    np.testing.assert_allclose(np.diagonal(np.expm1(C)), np.diagonal(relative), atol=0.01)
    np.testing.assert_allclose(C, np.log1p(relative), atol=0.04)
    assert np.linalg.eigvalsh(C).min() > 0


def test_effects_of_single_individuals_are_a_kernel():
    """f(x) = h(x)·β + u is a process with covariance k + H Hᵀ; nothing is expanded, so that about what is no matter."""
    x = np.array([[0.0, 1.0], [0.4, -1.0], [1.5, 0.2]])
    y = [9, 14, 5]
    field = ag.Matern32(1.0, 0.5, active_dims=[0])
    mean = ag.LinearEffects([1], sd=0.4, intercept_sd=0.7, value=ag.fixed(LEVEL))
    model = ag.GP(field, ag.Poisson(), mean=mean, aggregation="response")
    H = np.column_stack([0.7 * np.ones(3), 0.4 * x[:, 1]])
    K = np.asarray(ag.cov(field, ag.Points(x))) + H @ H.T
    known = _by_quadrature(K, LEVEL, _poisson(y, lambda rates: rates), 60)
    found = [_evidence(model, ag.Points(x), y, effects) for effects in ([0.0, 0.0], [1.0, -2.0])]
    assert float(found[0].value) == pytest.approx(known, abs=0.03)
    assert float(found[0].value) == pytest.approx(float(found[1].value), abs=1e-9)
    np.testing.assert_allclose(found[0].effects, found[1].effects, atol=1e-9)


@settings(max_examples=8)  # each compiles
@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(0, 2**31))
def test_an_individual_may_be_halved(sizes, seed):
    """Two individuals at one place with half of the weight each are one; bags of any sizes, cut and padded."""
    rng = np.random.default_rng(seed)
    bag = np.repeat(np.arange(len(sizes)), sizes)
    x, weight, y = rng.uniform(0, 5, (len(bag), 1)), rng.uniform(0.1, 3.0, len(bag)), rng.poisson(20, len(sizes))
    whole = ag.Bags(x, bag, weight)
    halves = ag.Bags(np.repeat(x, 2, axis=0), np.repeat(bag, 2), np.repeat(weight / 2, 2))
    one, other = (float(_evidence(_model(), s, y).value) for s in (whole, halves))
    assert one == pytest.approx(other, abs=1e-8)


LIKELIHOODS = {
    "Poisson": ag.Poisson(),
    "scattered": ag.Poisson(region_effect=True, region_sd=0.3),
    "negative binomial": ag.NegativeBinomial(),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_gradient_is_the_difference_quotient(name):
    """At the mode of t, whose own derivative the gradient has to carry."""
    rng = np.random.default_rng(3)
    x, bag = rng.uniform(0, 5, (24, 2)), np.repeat(np.arange(6), 4)
    mean = ag.LinearEffects([1], sd=0.4)
    field = ag.Matern32(1.0, 0.5, active_dims=[0])
    model = ag.GP(field, LIKELIHOODS[name], mean=mean, aggregation="response")
    model = eqx.tree_at(lambda m: m.mean.value, model, jnp.asarray(1.5))
    data = totals.totals(observe(ag.Bags(x, bag), rng.poisson(20, 6).astype(float), None), 0)
    vector, effects = np.asarray(pack(model)), jnp.array([0.5, -0.5])
    _, slope = by_totals._rising(model, jnp.asarray(vector), data, effects)
    for j, step in enumerate(1e-4 * np.eye(len(vector))):
        ends = [float(by_totals._level(model, jnp.asarray(vector + s), data, effects).value) for s in (step, -step)]
        assert float(slope[j]) == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=2e-3, abs=2e-3)


def test_of_many_bags_some_take_part(monkeypatch):
    monkeypatch.setattr(totals, "BAGS", 5)
    support, y = ag.Bags(np.arange(40.0)[:, None], np.repeat(np.arange(20), 2)), np.arange(20.0)
    first, same, other = (totals.totals(observe(support, y, None), seed) for seed in (0, 0, 1))
    assert first.layout.size == 5
    assert len(np.unique(first.seen.y)) == 5
    np.testing.assert_array_equal(first.seen.y, same.seen.y)
    assert not np.array_equal(first.seen.y, other.seen.y)


# Whole fits.


def _simulated(bags=24, each=16, lengthscale=0.5, length=3.0):
    """Totals over six lengthscales each, all of them precise to 10%; where, and the rate there."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, length * bags, bags * each))[:, None]
    root = np.linalg.cholesky(np.asarray(ag.cov(ag.Matern32(lengthscale, 1.0), ag.Points(x))))
    rate = np.exp(root @ rng.standard_normal(len(x)))
    expected = np.add.reduceat(100.0 * rate, np.arange(0, len(x), each)) * np.exp(0.1 * rng.standard_normal(bags))
    return ag.Bags(x, np.repeat(np.arange(bags), each), np.full(len(x), 100.0)), rng.poisson(expected), x, rate


def _of_priors():
    kernel = ag.Matern32(ag.param(0.5, prior=ag.LogNormal(0.5, 1.0)), ag.param(1.0, prior=ag.LogNormal(1.0, 1.0)))
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(0.1))
    return ag.GP(kernel, likelihood, mean=ag.Constant(), aggregation="response")


def test_precise_totals_do_not_smooth_the_function():
    """The lengthscale of rates that vary within a bag comes back, and intervals cover; the bound's is far longer."""
    support, y, x, rate = _simulated()
    inducing = np.linspace(0, 72, 90)[:, None]
    found = {}
    for search in ("totals", "bound"):
        post = _of_priors().fit(support, y, inference=ag.SVI(inducing=inducing, search=search), progress=False)
        low, high = (np.asarray(end) for end in post.predict(ag.Points(x)).interval(0.95))
        found[search] = float(post.model.kernel.lengthscale), np.mean((low < rate) & (rate < high))
    assert 0.25 < found["totals"][0] < 1.0, found
    assert found["totals"][1] > 0.9, found
    assert found["bound"][0] > 1.0, found
    assert found["bound"][1] < 0.8, found


def test_batches_take_the_same_hyper_parameters():
    support, y, x, _ = _simulated()
    schemes = (
        ag.SVI(inducing=x[::8], search="totals"),
        ag.SVI(inducing=x[::8], search="totals", batch_size=12, max_epochs=60),
    )
    whole, parts = (_of_priors().fit(support, y, inference=scheme, progress=False) for scheme in schemes)
    np.testing.assert_allclose(pack(whole.model), pack(parts.model), rtol=1e-6)


def test_a_search_that_was_saved_is_not_repeated(tmp_path, monkeypatch):
    support, y, x, _ = _simulated(bags=10)
    scheme = ag.SVI(inducing=x[::6], search="totals", checkpoint=tmp_path / "run.fit")
    first = _of_priors().fit(support, y, inference=scheme, progress=False)

    def never(*_):
        raise AssertionError

    monkeypatch.setattr(by_totals, "first_q", never)
    again = _of_priors().fit(support, y, inference=scheme, progress=False)
    for name in ("mean", "std"):
        mine, theirs = (np.asarray(getattr(post.predict(ag.Points(x[:9])), name)) for post in (first, again))
        np.testing.assert_array_equal(mine, theirs)


def test_what_is_fixed_stays():
    """Nothing to learn is nothing to search: the values stay, and the evidence is told."""
    support, y, x, _ = _simulated(bags=10)
    known = {"mean.value": ag.fixed(0.0), "kernel.lengthscale": ag.fixed(1.0), "kernel.variance": ag.fixed(1.0)}
    model = _of_priors().replace(known)
    post = model.fit(support, y, inference=ag.SVI(inducing=x[::6], search="totals"), progress=False)
    told = _evidence(model, support, y).value
    assert post.runs[0].path[-1] == pytest.approx(float(told), abs=1e-6)
