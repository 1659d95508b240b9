"""The mixture over hyper-parameters, and q moving with them."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, polygamma

import aggregauss as ag
from aggregauss.inference import ascent
from aggregauss.inference.climb import climb
from aggregauss.inference.data import observe
from aggregauss.inference.groups import choose_shapes
from aggregauss.inference.hyperparameters import MOST, around, log_measure
from aggregauss.inference.inducing import on_device
from aggregauss.inference.passes import Passes
from aggregauss.inference.transport import carried_slope, transported
from aggregauss.parameters import pack, unpack

MODEL = ag.GP(ag.RBF(1.0, 0.5), ag.Poisson(), mean=ag.Constant(0.2), aggregation="response")
RNG = np.random.default_rng(5)
PLACES = np.sort(RNG.uniform(0, 6, 60))
BAGS = ag.Bags(PLACES, np.arange(60) // 4, RNG.uniform(2, 6, 60))
COUNTS = RNG.poisson(BAGS.integrate(np.exp(np.sin(PLACES))))
Z = np.linspace(0, 6, 8)[:, None]


# The mixture about the top of a known profile.


def _kernels(p):
    """A model with p logarithms of lengthscales to learn, beside a level."""
    return ag.GP(ag.RBF(np.ones(p), ag.fixed(1.0)), ag.Gaussian(ag.fixed(1.0)), mean=ag.Constant(0.0))


def _quadratic(H, top):
    return lambda v: (float(-0.5 * (v - top) @ H @ (v - top)), -H @ (v - top), tuple(v))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, MOST - 1), st.integers(0, 1000), st.floats(-3.0, 5.0))
def test_a_quadratic_profile_gives_its_own_mean_and_covariance(p, seed, log_scale):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(p + 1, p + 1))
    H, top = np.exp(log_scale) * (root @ root.T + 0.1 * np.eye(p + 1)), rng.normal(size=p + 1)
    found = around(_quadratic(H, top), _kernels(p), top)
    A = H + np.diag([*np.ones(p), 0.0])  # a factor of e for what is positive
    quadratic = _quadratic(A, top)
    away = found.vectors - top
    np.testing.assert_allclose(
        found.covariance, np.linalg.inv(A), rtol=1e-6, atol=1e-9 * np.abs(np.linalg.inv(A)).max()
    )
    np.testing.assert_allclose([quadratic(v)[0] for v in found.vectors], -0.5 * (p + 1), rtol=1e-6)
    equal = np.full(len(away), 1 / len(away))
    np.testing.assert_allclose(found.weights, equal, rtol=1e-5)
    np.testing.assert_allclose(equal @ away, 0.0, atol=1e-9 * np.abs(away).max())
    np.testing.assert_allclose(
        (away.T * equal) @ away, found.covariance, rtol=1e-5, atol=1e-9 * np.abs(away).max() ** 2
    )
    assert [tuple(v) for v in found.vectors] == found.known


def test_weights_follow_the_profile_where_it_is_skew():
    """The logarithm of a gamma variable: points one sd away see part of its skewness, on the right side."""
    a, b = 6.0, 3.0
    top = np.array([np.log(a / b), 0.0])
    model = _kernels(1)

    def profile(v):
        return a * v[0] - b * np.exp(v[0]) - 0.5 * v[1] ** 2, np.array([a - b * np.exp(v[0]), -v[1]]), None

    found = around(profile, model, top)
    grid = np.linspace(-4, 3, 4001)
    density = np.exp(a * grid - b * np.exp(grid) - 0.5 * (grid - top[0]) ** 2)
    truth = np.sum(grid * density) / np.sum(density)
    assert truth < found.weights @ found.vectors[:, 0] < top[0] - 0.25 * (top[0] - truth)


def _with_prior(prior):
    """A model with one logarithm to learn, which has a prior."""
    return ag.GP(ag.RBF(ag.param(1.0, prior=prior), ag.fixed(1.0)), ag.Gaussian(ag.fixed(1.0)))


@given(st.floats(-3.0, 3.0), st.floats(0.1, 1.0))
def test_what_nothing_is_known_of_but_its_prior_has_its_prior(middle, spread):
    """log φ ~ N(m, s²) is highest in φ at m - s², and has its mean at m all the same."""
    model = _with_prior(ag.LogNormal(np.exp(middle), spread))

    def profile(v):
        away = (v - middle) / spread
        return float(-0.5 * away @ away - v[0]), -away / spread - 1.0, None

    found = around(profile, model, np.array([middle - spread**2]))
    np.testing.assert_allclose(found.weights @ found.vectors, [middle], atol=1e-6)
    np.testing.assert_allclose(found.covariance, [[spread**2]], rtol=1e-6)
    np.testing.assert_allclose(found.weights, 0.5, rtol=1e-4)


@pytest.mark.parametrize("shape", [3.0, 8.0, 30.0])
def test_the_mean_of_a_gamma_variable_is_near_its_mean_and_not_its_mode(shape):
    """Mean and spread of log φ for φ ~ Gamma(a, 1): digamma(a) and √trigamma(a); the mode in φ is log(a - 1)."""
    top = np.log([shape - 1.0])

    def profile(v):
        return float((shape - 1.0) * v[0] - np.exp(v[0])), (shape - 1.0) - np.exp(v), None

    found = around(profile, _with_prior(ag.Gamma(shape, 1.0)), top)
    mean = found.weights @ found.vectors[:, 0]
    sd = np.sqrt(found.weights @ (found.vectors[:, 0] - mean) ** 2)
    assert abs(mean - digamma(shape)) < 0.7 * abs(top[0] - digamma(shape))  # of its skewness they see a part
    assert sd == pytest.approx(np.sqrt(polygamma(1, shape)), rel=0.15)


def test_weights_are_densities_since_all_values_are_equally_far_from_their_middle():
    """With and without a prior: L + `log_measure` at the values, normalised."""
    for prior in (ag.Gamma(6.0, 1.0), None):
        top = np.log([5.0])

        def profile(v):
            return float(5.0 * v[0] - np.exp(v[0])), 5.0 - np.exp(v), None

        lengthscale = 1.0 if prior is None else ag.param(1.0, prior=prior)
        model = ag.GP(ag.RBF(lengthscale, ag.fixed(1.0)), ag.Gaussian(ag.fixed(1.0)))
        found = around(profile, model, top)
        density = np.array([profile(v)[0] for v in found.vectors]) + log_measure(model, found.vectors, top)
        np.testing.assert_allclose(found.weights, np.exp(density) / np.exp(density).sum(), rtol=1e-9)


def test_a_prior_that_says_little_leaves_a_factor_of_e():
    model = _with_prior(ag.LogNormal(1.0, 3.0))
    found = around(lambda v: (float(-v @ v / 18 - v[0]), -v / 9 - 1.0, None), model, np.array([-9.0]))
    np.testing.assert_allclose(found.covariance, [[1.0]], rtol=1e-6)


def test_what_ended_at_a_bound_stays_there_and_what_nothing_is_known_of_has_a_factor_of_e():
    model = ag.GP(ag.RBF(ag.param(1.0, bounds=(1.0, 9.0)), 2.0), ag.Gaussian(ag.fixed(1.0)), mean=ag.Constant(0.0))
    top = np.asarray(pack(model))
    found = around(lambda v: (-0.5 * v[2] ** 2, np.array([0.0, 0.0, -v[2]]), None), model, top)
    np.testing.assert_array_equal(found.vectors[:, 0], top[0])
    np.testing.assert_allclose(np.diag(found.covariance), [0.0, 1.0, 1.0], rtol=1e-6)


def test_only_the_least_known_directions_are_taken_when_there_are_many():
    p = MOST + 4
    H = np.diag(np.arange(1.0, p + 2) ** 2)
    found = around(_quadratic(H, np.zeros(p + 1)), _kernels(p), np.zeros(p + 1))
    assert len(found.vectors) == 2 * MOST
    assert (found.vectors[:, MOST:-1] == 0).all()


def test_there_is_no_mixture_without_a_finite_profile():
    assert around(lambda v: (-np.inf, np.full(2, np.nan), None), _kernels(1), np.zeros(2)) is None


# Posteriors.


@pytest.fixture(scope="module")
def post():
    return MODEL.fit(BAGS, COUNTS, inference=ag.SVI(inducing=Z), progress=False)


def _parts(post):
    """The posterior given each value of the hyper-parameters."""
    return [
        dataclasses.replace(
            post, model=unpack(post.model, jnp.asarray(c.vector)), conditional=c.conditional, mixture=()
        )
        for c in post.mixture
    ]


@pytest.mark.parametrize("where", [ag.Points([0.5, 3.0]), BAGS[:3]], ids=["points", "bags"])
@pytest.mark.parametrize("kind", ["latent", "response"])
def test_predictions_obey_the_law_of_total_variance(post, where, kind):
    weights = np.array([c.weight for c in post.mixture])
    each = [part.predict(where, kind) for part in _parts(post)]
    mean = sum(w * p.mean for w, p in zip(weights, each))
    variance = sum(w * (p.variance + (p.mean - mean) ** 2) for w, p in zip(weights, each))
    whole = post.predict(where, kind)
    np.testing.assert_allclose(whole.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(whole.variance, variance, rtol=1e-6)
    if kind == "latent":
        np.testing.assert_allclose(np.diag(whole.covariance), variance, rtol=1e-6)


def test_not_knowing_hyper_parameters_widens_intervals_and_the_summary_says_how_well_they_are_known(post):
    weights = np.array([c.weight for c in post.mixture])
    assert weights.sum() == pytest.approx(1.0)
    where = ag.Points(np.linspace(0, 6, 30))
    known = dataclasses.replace(post, mixture=())
    assert post.predict(where, "latent").variance.mean() > known.predict(where, "latent").variance.mean()
    table = post.summary()
    assert (table.lower[:3] < table.value[:3]).all()
    assert (table.value[:3] < table.upper[:3]).all()
    assert np.isnan(table.lower["likelihood.region_sd"])
    assert MODEL.fit(BAGS, COUNTS, inference=ag.SVI(inducing=Z, integrate=False), progress=False).mixture == ()


def test_a_bag_is_the_sum_of_its_individuals(post):
    individuals = post.predict(ag.Points(BAGS.center)).mean
    np.testing.assert_allclose(post.predict(BAGS).mean, BAGS.integrate(individuals), rtol=1e-9)


def test_a_saved_mixture_predicts_the_same(post, tmp_path):
    post.save(tmp_path / "fit.agz")
    where = ag.Points([1.0, 2.0])
    np.testing.assert_array_equal(ag.load(tmp_path / "fit.agz").predict(where).variance, post.predict(where).variance)


# q moves with the hyper-parameters.


def _passes(model, support, y):
    shapes = choose_shapes(observe(support, y, None), len(y), len(Z), 32, np.dtype(float))
    return Passes(model, observe(support, y, None), ascent.Settings("matched", "float64", True, False), shapes, 0)


def _climbed(passes, vector=None):
    state = ascent.init(pack(passes.template), on_device(ag.Points(Z)), len(Z), 0.05, 1.0)
    held = passes.hold()
    if vector is not None:
        state = state._replace(free=state.free._replace(vector=vector))
    return climb(lambda s: passes.over(s, held), state, 1e-11), held


def test_the_best_q_of_a_normal_model_is_transported_to_the_best_q():
    """Where the inducing points are the data, what the data say of f does not depend on the prior."""
    model = ag.GP(ag.RBF(1.0, 0.5), ag.Gaussian(ag.fixed(0.3)), mean=ag.Constant(0.2))
    passes = _passes(model, ag.Points(Z), RNG.normal(size=len(Z)))
    (state, _), _ = _climbed(passes)
    vector = pack(model) + jnp.asarray([0.3, -0.5, 0.7])
    moved = transported(model, state, vector, "float64")
    (best, _), _ = _climbed(passes, vector)
    np.testing.assert_allclose(moved.q.mean, best.q.mean, atol=1e-6)
    np.testing.assert_allclose(moved.q.covariance, best.q.covariance, atol=1e-6)


def test_there_and_back_again():
    passes = _passes(MODEL, BAGS, COUNTS)
    (state, _), _ = _climbed(passes)
    vector = pack(MODEL)
    back = transported(MODEL, transported(MODEL, state, vector + 0.3, "float64"), vector, "float64")
    np.testing.assert_allclose(back.q.mean, state.q.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(back.q.covariance, state.q.covariance, rtol=1e-6, atol=1e-8)


def test_the_slope_is_the_profile_s_at_the_best_q_and_near_it_short_of_that():
    passes, h = _passes(MODEL, BAGS, COUNTS), 1e-3
    (state, uphill), held = _climbed(passes)
    values = [
        float(_climbed(passes, pack(MODEL) + s * h * np.eye(3)[j])[0][1].objective) for j in range(3) for s in (1, -1)
    ]
    truth = (np.array(values[::2]) - np.array(values[1::2])) / (2 * h)
    np.testing.assert_allclose(carried_slope(MODEL, state, uphill, "float64"), truth, rtol=1e-4, atol=1e-4)
    start = ascent.init(pack(MODEL), on_device(ag.Points(Z)), len(Z), 0.05, 1.0)
    rough = climb(lambda s: passes.over(s, held), start, 1e-2)
    partial = np.asarray(rough[1].free.vector)
    carried = np.asarray(carried_slope(MODEL, *rough, "float64"))
    assert np.abs(carried - truth).max() < 0.3 * np.abs(partial - truth).max()


def test_a_search_that_lost_the_function_begins_again_from_a_shorter_lengthscale():
    """From the scale of the data this one climbs to a function that is constant, six nats below what is to be found."""
    y = [12, 6, 4, 11, 7, 8, 7, 11, 18, 10, 8, 6, 9, 11, 14, 11, 8, 3, 13, 14]
    y += [11, 4, 26, 12, 20, 7, 7, 8, 8, 23, 4, 6, 4, 16, 14, 13, 5, 7, 7, 12]
    weights = np.random.default_rng(1002).uniform(0.5, 1.5, 400)
    bags = ag.Bags(np.arange(400.0), np.arange(400) // 10, weights=weights)
    scheme = ag.SVI(inducing=np.arange(0.0, 400.0, 2.0)[:, None], integrate=False)

    def evidence(kernel):
        model = ag.GP(kernel, ag.Poisson(), aggregation="response", mean=ag.Constant())
        return model.fit(bags, y, inference=scheme, progress=False).evidence

    assert evidence(ag.Matern32()) > evidence(ag.Matern32(ag.fixed(4.0))) - 0.1
