"""Likelihoods of several functions, with heavy tails, of shares and of classes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import aggregauss as ag
from aggregauss.inference import ascent
from aggregauss.inference.bounds import expected
from aggregauss.inference.climb import climb
from aggregauss.inference.groups import choose_shapes, pack
from aggregauss.inference.inducing import on_device
from aggregauss.inference.passes import Passes
from aggregauss.inference.prediction import Prediction
from aggregauss.inference.sparse import prepare
from aggregauss.inference.starts import starts
from aggregauss.inference.variational import Moments2
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.marginals import GaussianMarginals, TransformedMarginals, observed

RNG = np.random.default_rng(1)
X = np.linspace(0.0, 6.0, 40)
Z = np.linspace(0.0, 6.0, 8)[:, None]


def _seen(y):
    one = jnp.ones(len(y))
    return Seen(jnp.asarray(y, float), one, 0.0 * one, one)


def _by_draws(likelihood, y, m, C, draws=400_000):
    f = RNG.multivariate_normal(m, C, draws)
    return float(jnp.mean(likelihood.log_prob(jnp.full(draws, float(y)), jnp.asarray(f))))


@settings(max_examples=20, deadline=None)
@given(st.floats(-2, 2), st.floats(-1, 1), st.floats(0.01, 1), st.floats(0.01, 1), st.floats(-0.9, 0.9))
def test_expected_log_density_with_two_functions_is_that_of_quadrature(y, m2, v1, v2, correlation):
    """-½ [log 2π + m₂ + e^{-m₂ + v₂/2} ((y - m₁ + c)² + v₁)]."""
    m, C = np.array([0.3, m2]), np.array([[v1, 0.0], [0.0, v2]])
    C[0, 1] = C[1, 0] = correlation * np.sqrt(v1 * v2)
    z, w = np.polynomial.hermite_e.hermegauss(40)
    L = np.linalg.cholesky(C)
    f = m + np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2) @ L.T
    weight = np.outer(w, w).ravel() / w.sum() ** 2
    likelihood = ag.HeteroscedasticGaussian()
    expected = weight @ np.asarray(likelihood.log_prob(jnp.full(1600, y), jnp.asarray(f)))
    found = likelihood.expected_jointly(_seen([y]), jnp.asarray(m[None]), jnp.asarray(C[None]))
    assert float(found[0]) == pytest.approx(expected, rel=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1), st.floats(-3, 3), st.floats(0.01, 4))
def test_two_classes_are_bernoulli(y, m, v):
    one = ag.Categorical(2).expected_jointly(_seen([y]), jnp.array([[m]]), jnp.array([[[v]]]))
    other = ag.Bernoulli().expected_log_prob(_seen([y]), jnp.array([m]), jnp.array([v]))
    assert float(one[0]) == pytest.approx(float(other[0]), abs=1e-9)


@pytest.mark.parametrize("classes", [3, 5])
def test_expectation_over_classes_is_that_of_draws(classes):
    A = RNG.standard_normal((classes - 1, classes - 1))
    m, C = RNG.standard_normal(classes - 1), 0.3 * A @ A.T
    likelihood = ag.Categorical(classes)
    for y in range(classes):
        found = likelihood.expected_jointly(_seen([y]), jnp.asarray(m[None]), jnp.asarray(C[None]))
        assert float(found[0]) == pytest.approx(_by_draws(likelihood, y, m, C), abs=0.01)


def test_class_probabilities_add_up_and_have_quantiles():
    m, C = np.array([[0.5, -1.0]]), np.array([[[0.4, 0.1], [0.1, 0.2]]])
    found = ag.Categorical(3).response_jointly(m, C)
    f = RNG.multivariate_normal(m[0], C[0], 200_000)
    p = np.exp(np.column_stack([np.zeros(len(f)), f]))
    p = p / p.sum(axis=1, keepdims=True)
    assert found.mean.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found.mean[0], p.mean(axis=0), atol=3e-3)
    np.testing.assert_allclose(found.variance[0], p.var(axis=0), rtol=0.03)
    np.testing.assert_allclose(found.quantile(0.9)[0], np.quantile(p, 0.9, axis=0), atol=0.03)
    np.testing.assert_allclose(found.log_prob(np.array([1.0])), np.log(found.mean[:, 1]))


def test_exceedance_of_a_class_probability_is_the_share_of_draws_above():
    m, C = np.array([[0.5, -1.0], [0.0, 1.0]]), np.array([[[0.4, 0.1], [0.1, 0.2]]] * 2)
    f = RNG.multivariate_normal(m[0], C[0], 200_000)
    p = np.exp(np.column_stack([np.zeros(len(f)), f]))
    p = p / p.sum(axis=1, keepdims=True)
    found = ag.Categorical(3).response_jointly(m, C)
    for threshold in (0.3, [0.3, 0.5]):
        above = _prediction(found).exceedance(threshold)
        assert above.shape == (2, 3)
        np.testing.assert_allclose(above[0], (p > 0.3).mean(axis=0), atol=0.05)
    many = [np.repeat(x[:1], found.draws.shape[1], axis=0) for x in (m, C)]  # as many rows as draws
    same = _prediction(ag.Categorical(3).response_jointly(*many)).exceedance(0.3)
    np.testing.assert_allclose(same, np.broadcast_to(_prediction(found).exceedance(0.3)[0], same.shape))


def _prediction(marginals):
    places = ag.Points(np.arange(float(len(marginals.mean))))
    return Prediction(marginals, places, lambda: (marginals.mean, marginals.variance), "response")


def test_densities_are_scipys():
    y = np.array([0.2, 0.7])
    np.testing.assert_allclose(
        ag.StudentT(0.25, 3.5).log_prob(jnp.asarray(y), jnp.array([0.0, 1.0])), stats.t.logpdf(y, 3.5, [0, 1], 0.5)
    )
    np.testing.assert_allclose(
        ag.Beta(8.0).log_prob(jnp.asarray(y), jnp.array([0.3, 0.6])), stats.beta.logpdf(y, [2.4, 4.8], [5.6, 3.2])
    )


@pytest.mark.parametrize("kind", ["student_t", "beta", "normal_lognormal"])
def test_new_observations_are_distributed_like_draws(kind):
    """cdf, density, mean and variance of the mixture over an uncertain η."""
    n = 400_000
    latent = GaussianMarginals(np.array([0.3]), np.array([0.5]))
    v = RNG.normal(0.3, np.sqrt(0.5), n)
    if kind == "student_t":
        found = observed(latent, kind, noise=0.3, degrees=5.0)
        y = v + np.sqrt(0.3) * RNG.standard_t(5.0, n)
    elif kind == "beta":
        found = observed(ag.Beta().g.marginals(np.array([0.3]), np.array([0.5])), kind, precision=6.0)
        assert isinstance(found.rate, TransformedMarginals)
        eta = 1 / (1 + np.exp(-v))
        y = RNG.beta(6 * eta, 6 * (1 - eta))
    else:
        found = observed(latent, kind, location=np.array([-1.0]), spread=np.array([0.6]))
        y = v + np.exp(0.5 * (-1.0 + 0.6 * RNG.standard_normal(n))) * RNG.standard_normal(n)
    assert found.mean[0] == pytest.approx(y.mean(), abs=0.01)
    assert found.variance[0] == pytest.approx(y.var(), rel=0.03)
    for x in np.quantile(y, [0.1, 0.5, 0.9]):
        assert found.cdf(np.array([x]))[0] == pytest.approx((y <= x).mean(), abs=4e-3)
        h = 1e-4
        slope = (found.cdf(np.array([x + h])) - found.cdf(np.array([x - h]))) / (2 * h)
        assert np.exp(found.log_prob(np.array([x])))[0] == pytest.approx(slope[0], rel=1e-4)
    assert found.quantile(0.9)[0] == pytest.approx(np.quantile(y, 0.9), abs=0.02)


def test_a_known_log_variance_is_gaussian_noise():
    """Mixing of the log variance zero, level log σ²: the heteroscedastic model is the Gaussian one."""
    y = np.sin(X) + 0.3 * RNG.standard_normal(40)
    data, scheme = {"y": (ag.Points(X), y)}, ag.SVI(inducing=Z, optimise=False)
    kernel = ag.RBF(ag.fixed(1.0), ag.fixed(1.0))
    one = ag.MultiTaskGP([kernel], {"y": ag.Gaussian(ag.fixed(0.09))})
    one = one.replace({"mixing[0].weights": ag.fixed([1.2]), "mean.values": ag.fixed([0.1])})
    two = ag.MultiTaskGP([kernel], {"y": ag.HeteroscedasticGaussian()})
    two = two.replace({"mixing[0].weights": ag.fixed([1.2, 0.0]), "mean.values": ag.fixed([0.1, np.log(0.09)])})
    a, b = (m.fit(data, inference=scheme, progress=False) for m in (one, two))
    assert b.evidence == pytest.approx(a.evidence, abs=1e-5)
    for kind in ("response", "observation"):
        p, q = (post.predict({"y": ag.Points([0.3, 2.0])}, kind)["y"] for post in (a, b))
        np.testing.assert_allclose(q.mean, p.mean, atol=1e-5)
        np.testing.assert_allclose(q.variance, p.variance, rtol=1e-4)
        np.testing.assert_allclose(q.interval(0.9), p.interval(0.9), atol=1e-4)


def test_varying_noise_is_found():
    sd = np.where(X < 3, 0.1, 0.8)
    y = np.sin(X) + sd * RNG.standard_normal(40)
    model = ag.MultiTaskGP([ag.RBF(ag.fixed(1.5)), ag.RBF(ag.fixed(1.5))], {"y": ag.HeteroscedasticGaussian()})
    post = model.fit({"y": (ag.Points(X), y)}, inference=ag.SVI(inducing=Z), progress=False)
    mean, log_variance = post.functions({"y": ag.Points([1.0, 5.0])})["y"]
    assert log_variance.mean[1] - log_variance.mean[0] > 2.0
    whole = post._jointly([ag.Points(np.column_stack([[1.0, 5.0], [c, c]])) for c in (0.0, 1.0)])
    np.testing.assert_allclose(whole[0], np.column_stack([mean.mean, log_variance.mean]), rtol=1e-8)
    np.testing.assert_allclose(whole[1][:, 1, 1], log_variance.variance, rtol=1e-6)
    fine = post.predict({"y": ag.Points([1.0, 5.0])}, "observation")["y"]
    assert fine.std[1] > 2 * fine.std[0]


@pytest.mark.slow
def test_classes_are_found():
    labels = np.digitize(X, [2.0, 4.0]).astype(float)
    post = ag.MultiTaskGP([ag.RBF(ag.fixed(1.5)), ag.RBF(ag.fixed(1.5))], {"c": ag.Categorical(3)}).fit(
        {"c": (ag.Points(X), labels)}, inference=ag.SVI(inducing=Z), progress=False
    )
    found = post.predict({"c": ag.Points([0.5, 3.0, 5.5])})["c"]
    np.testing.assert_array_equal(found.mean.argmax(axis=1), [0, 1, 2])
    np.testing.assert_allclose(found.to_frame().sum(axis=1), 1.0)
    with pytest.raises(TypeError, match="joint draws of classes"):
        found.sample()


@pytest.mark.slow
def test_outliers_do_not_move_heavy_tails():
    y = np.sin(X)
    y[10] += 15.0
    heavy, normal = (
        ag.GP(ag.RBF(1.5), likelihood).fit(ag.Points(X), y, inference=ag.SVI(inducing=Z), progress=False)
        for likelihood in (ag.StudentT(), ag.Gaussian())
    )
    miss = [np.abs(p.predict(ag.Points(X)).mean - np.sin(X)).max() for p in (heavy, normal)]
    assert miss[0] < 0.3 < miss[1]


@pytest.mark.slow
def test_shares_are_fitted():
    share = 1 / (1 + np.exp(-np.sin(X)))
    y = RNG.beta(50 * share, 50 * (1 - share))
    post = ag.GP(ag.RBF(1.0), ag.Beta()).fit(ag.Points(X), y, inference=ag.SVI(inducing=Z), progress=False)
    assert np.abs(post.predict(ag.Points(X)).mean - share).max() < 0.1
    assert 0 < post.predict(ag.Points(X), "observation").interval(0.99)[0].min() < 1


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (ag.Beta(), [0.2, 1.0], "strictly between 0 and 1, but row 1 is 1.0"),
        (ag.Categorical(3), [0.0, 3.0], "labels 0 to 2, but row 1 is 3.0"),
        (ag.Categorical(3), [0.5, 1.0], "labels 0 to 2, but row 0 is 0.5"),
    ],
)
def test_labels_outside_the_range_are_refused(likelihood, y, message):
    with pytest.raises(ValueError, match=message):
        ag.MultiTaskGP([ag.RBF()], {"y": likelihood}).fit({"y": (ag.Points([0.0, 1.0]), y)})


def test_one_function_is_not_enough():
    with pytest.raises(TypeError, match="needs 2 functions"):
        ag.GP(ag.RBF(), ag.HeteroscedasticGaussian())
    with pytest.raises(ValueError, match='Use aggregation="latent"'):
        ag.MultiTaskGP([ag.RBF()], {"y": ag.HeteroscedasticGaussian()}, aggregation="response")
    with pytest.raises(ValueError, match='measure="mean"'):
        ag.MultiTaskGP([ag.RBF()], {"y": ag.HeteroscedasticGaussian()}).fit(
            {"y": (ag.Intervals([0.0], [2.0], measure="total"), [1.0])}
        )
    with pytest.raises(ValueError, match="at least 2"):
        ag.Categorical(1)


@pytest.mark.parametrize("likelihood", [ag.HeteroscedasticGaussian(), ag.Gaussian(0.1)])
def test_both_ways_to_the_variance_of_an_integral_agree(likelihood):
    """wᵀ k w - T Q Tᵀ is what T explains of the open part plus that part."""
    bags = ag.Bags(X, np.arange(40) // 5, measure="mean")
    model = ag.MultiTaskGP([ag.RBF(1.0), ag.Matern32(2.0)], {"y": likelihood})
    observations = model._observe(
        {"y": (bags, np.sin(np.arange(8.0)))}, {"noise_variance": {}, "counts": {}, "variances": {}}
    )
    template, places = starts(model, observations, 0, 0)[0], on_device(model.inducing(Z, observations.support, 0))
    (shape,) = choose_shapes(observations, 8, places.size, 32, np.dtype(float))
    assert shape.every_atom
    A = 0.2 * RNG.standard_normal((places.size, places.size))
    q = Moments2(jnp.asarray(RNG.standard_normal(places.size)), jnp.asarray(A @ A.T + 0.1 * np.eye(len(A))))
    now = prepare(template, places, q, 1e-8)
    values = [
        expected(
            template,
            places,
            now,
            pack(observations, np.arange(8), dataclasses.replace(shape, every_atom=every), RNG),
            "linearised",
            jax.random.key(0),
        )
        for every in (True, False)
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


EXTREME = {
    "nothing open": np.zeros((2, 2)),
    "one function twice": np.full((2, 2), 3.0),
    "not quite definite": np.array([[1.0, 1.0 + 1e-4], [1.0 + 1e-4, 1.0]]),
    "negative by rounding": np.array([[-1e-6, 1e-7], [1e-7, 1.0]]),
    "wide": np.array([[1e6, -9e5], [-9e5, 1e6]]),
}


@pytest.mark.parametrize("kind", EXTREME)
def test_classes_have_finite_slopes_in_single_precision(kind):
    C, m = EXTREME[kind], np.array([[0.0, 0.0], [1e4, -1e4], [-90.0, -90.0], [3e6, 3e6]])
    for y in range(3):
        seen = Seen(*(jnp.full(4, x, "float32") for x in (y, 1.0, 0.0, 1.0)))

        def total(m, C, seen=seen):
            return jnp.sum(ag.Categorical(3).expected_jointly(seen, m, C))

        at = (jnp.asarray(m, "float32"), jnp.asarray(np.broadcast_to(C, (4, 2, 2)), "float32"))
        value, slopes = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(*at)
        assert np.isfinite(value)
        assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("classes", [2, 4])
def test_classes_in_single_precision_tell_the_same(classes):
    A = RNG.standard_normal((5, classes - 1, classes - 1))
    m, C, y = RNG.standard_normal((5, classes - 1)), 0.3 * A @ A.swapaxes(1, 2), np.arange(5) % classes
    single, double = (
        ag.Categorical(classes).expected_jointly(
            Seen(*(jnp.asarray(x * np.ones(5), dtype) for x in (y, 1.0, 0.0, 1.0))),
            jnp.asarray(m, dtype),
            jnp.asarray(C, dtype),
        )
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single, double, rtol=1e-4)


def test_the_root_of_a_definite_covariance_is_its_cholesky_factor():
    from aggregauss.likelihoods.categorical import _root

    A = RNG.standard_normal((3, 4, 4))
    C = A @ A.swapaxes(1, 2)
    np.testing.assert_allclose(_root(jnp.asarray(C)), np.linalg.cholesky(C), rtol=1e-8)


@pytest.mark.slow
def test_classes_are_learned_in_single_precision():
    y = (X > 2).astype(float) + (X > 4)
    model = ag.MultiTaskGP([ag.RBF(1.5)], {"class": ag.Categorical(3)}, rank=2)
    posts = [
        model.fit({"class": (ag.Points(X), y)}, inference=ag.SVI(inducing=Z, optimise=False, dtype=d), progress=False)
        for d in ("float32", "float64")
    ]
    single, double = (post.predict({"class": ag.Points(X)})["class"].mean for post in posts)
    assert np.isfinite(single).all()
    assert np.mean(single.argmax(axis=1) == y) > 0.9  # two of forty lie beside a border
    np.testing.assert_allclose(single, double, atol=0.01)


def test_the_climb_with_a_log_variance_ends_where_little_is_left_to_gain():
    """The best covariance depends on itself through e^{v/2}: a whole step towards it may go too far."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 14))
    y = np.sin(x) + np.where(x < 3, 0.05, 0.5) * np.random.default_rng(5).standard_normal(14)
    model = ag.MultiTaskGP([ag.RBF(ag.fixed(1.5))], {"y": ag.HeteroscedasticGaussian()}, rank=2).replace(
        {"mixing[0].weights": ag.fixed([0.777, -2.26, 1.507]), "mean.values": ag.fixed([-0.504, -3.011])}
    )
    observations = model._observe({"y": (ag.Points(x), y)}, {"noise_variance": {}, "counts": {}, "variances": {}})
    places = on_device(model.inducing(x[::2], observations.support, 0))
    shapes = choose_shapes(observations, 14, 14, 32, np.dtype(float))
    passes = Passes(model, observations, ascent.Settings("linearised", "float64", True, False), shapes, 0)
    held = passes.hold()
    start = ascent.init(jnp.zeros(0), places, 14, 0.05, 0.5)
    top, uphill = climb(lambda state: passes.over(state, held), start, 1e-8)
    _, further = climb(lambda state: passes.over(state, held), top, 1e-8)
    assert 0 <= further.objective - uphill.objective < 0.05
