"""The baselines: their formulas against direct evaluation, and the scikit-learn contract."""

import pickle

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import aggregauss as ag
from aggregauss.baselines import BagAsIndividual, ConstantRate, NeuralNetwork, NystromMAP, tuned
from aggregauss.baselines.batches import Bagged, bag_means
from aggregauss.baselines.laplacian import laplacian_form, random_features, random_frequencies
from aggregauss.baselines.network import he_normal
from aggregauss.baselines.nystrom import NystromFunction, inverse_root, rbf
from aggregauss.baselines.objective import Model, Penalties, objective
from aggregauss.baselines.observation import Observation
from aggregauss.baselines.training import Trained, _finite, step

LEARNERS = [BagAsIndividual, NeuralNetwork, NystromMAP]
KINDS = [("poisson", "exp"), ("poisson", "square"), ("normal", "exp")]


@pytest.fixture(scope="module", autouse=True)
def _compile_quickly():
    """The time goes into compiling, not into these small problems."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def _rate(x):
    return np.exp(1.0 + np.sin(3 * x[:, 0]) - 0.5 * x[:, 1])


def _bags(n, seed, size=6):
    """Bags of the same sizes whatever the seed, so that compiled functions are shared."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n), np.resize(np.arange(1, 2 * size), n))
    x = rng.uniform(-1, 1, (len(owner), 2))
    return ag.Bags(x, bag=owner, weights=rng.uniform(0.5, 2.0, len(owner)))


def _counts(bags, seed):
    return np.random.default_rng(seed).poisson(bags.integrate(_rate(bags.center))).astype(float)


def _function(dim=2, landmarks=7, seed=0):
    rng = np.random.default_rng(seed)
    return NystromFunction(
        weights=jnp.asarray(rng.normal(size=landmarks)),
        intercept=jnp.asarray(0.3),
        log_bandwidth=jnp.log(jnp.asarray([[0.7] * dim])),
        log_scale=jnp.asarray(0.4),
        landmarks=jnp.asarray(rng.uniform(-1, 1, (landmarks, dim))),
        level=jnp.asarray(0.2),
        spread=jnp.asarray(0.9),
    )


# --- manifold regularisation ---


def test_laplacian_form_is_half_the_double_sum():
    rng = np.random.default_rng(0)
    features, f = rng.normal(size=(30, 8)), rng.normal(size=30)
    double_sum = np.sum((f[:, None] - f[None, :]) ** 2 * (features @ features.T))
    np.testing.assert_allclose(laplacian_form(jnp.asarray(f), jnp.asarray(features)), double_sum / 2, rtol=1e-10)


def test_random_features_give_the_rbf_laplacian_within_monte_carlo_error():
    rng = np.random.default_rng(1)
    x, bandwidth = rng.normal(size=(60, 3)), 1.3
    f = np.sin(x[:, 0]) + x[:, 1]
    K = np.exp(-0.5 * np.sum((x[:, None] - x[None]) ** 2, axis=-1) / bandwidth**2)
    dense = f @ (np.diag(K.sum(axis=1)) - K) @ f
    W = random_frequencies(3, bandwidth, rng)
    assert random_features(x, W).shape == (60, 500)

    def form(frequencies):
        return float(laplacian_form(jnp.asarray(f), jnp.asarray(random_features(x, frequencies))))

    each = [form(w[:, None]) for w in W.T]
    error = np.std(each) / np.sqrt(len(each))
    np.testing.assert_allclose(form(W), np.mean(each), rtol=1e-10)
    assert abs(form(W) - dense) < 4 * error
    assert error < 0.1 * dense


# --- Nyström features ---


def test_features_reproduce_the_kernel_at_landmarks():
    f = _function()
    Z = np.asarray(f.landmarks)
    K = np.exp(0.4 - 0.5 * np.sum((Z[:, None] - Z[None]) ** 2, axis=-1) / 0.7**2)
    features = jax.jit(NystromFunction.features)(f, f.landmarks)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-6)


def test_features_of_coinciding_landmarks_are_finite_and_so_is_their_gradient():
    f = _function()
    doubled = NystromFunction(**{**vars(f), "landmarks": f.landmarks.at[1].set(f.landmarks[0])})
    gradient = jax.jit(jax.grad(lambda g: jnp.sum(g(f.landmarks) ** 2)))(doubled)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert not np.any(gradient.landmarks)


@pytest.mark.parametrize("bandwidth", [0.05, 0.7])  # eigenvalues all nearly one, and well apart
def test_derivative_of_the_inverse_root_is_the_finite_difference(bandwidth):
    Z = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (6, 2)))
    T = jnp.asarray(np.random.default_rng(3).normal(size=(6, 6)))

    @jax.jit
    def value(K):
        return jnp.sum(T * inverse_root((K + K.T) / 2))

    gradient = jax.jit(jax.grad(value))
    K, h = rbf(Z / bandwidth, Z / bandwidth), 1e-6
    E = jnp.asarray(np.random.default_rng(4).normal(size=(6, 6)))
    slope = jnp.sum(gradient(K) * E)
    np.testing.assert_allclose(slope, (value(K + h * E) - value(K - h * E)) / (2 * h), rtol=1e-4)
    np.testing.assert_allclose(gradient(jnp.eye(6)), -(T + T.T) / 4, atol=1e-12)


# --- objective ---


def _half_double_sum(f, features):
    return 0.5 * np.sum((f[:, None] - f[None, :]) ** 2 * (features @ features.T))


def _direct_nll(f, bags, y, tau, kind):
    response = {("poisson", "exp"): np.exp(f), ("poisson", "square"): f**2}.get(kind, f)
    for a in range(len(bags)):
        w, r = bags.effective_weight[bags.owner == a], response[bags.owner == a]
        if kind[0] == "poisson":
            yield -stats.poisson.logpmf(y[a], w @ r)
        else:
            yield -stats.norm.logpdf(y[a], w @ r, np.sqrt(tau * w @ w))


@pytest.mark.parametrize(("kind", "measure"), list(zip(KINDS, ["total", "total", "mean"])))
def test_objective_is_the_formula_also_for_padded_batches(kind, measure):
    bags, y, rng = _bags(7, seed=5).with_measure(measure), np.arange(7.0), np.random.default_rng(6)
    model = Model(he_normal(2, 5, 0.3, 0.9, rng), jnp.log(jnp.asarray(0.8)))
    features, bag_features = rng.normal(size=(len(bags.owner), 4)), rng.normal(size=(7, 3))
    f = np.asarray(model.latent(jnp.asarray(bags.center)))
    h = np.abs(f) if kind == ("poisson", "square") else f
    F = np.array([h[bags.owner == a].mean() for a in range(7)])
    norm = sum(np.sum(np.asarray(w) ** 2) for w in (model.latent.weights, model.latent.hidden_weights))
    direct = np.mean(list(_direct_nll(f, bags, y, 0.8, kind))) + 0.5 * norm / 7
    direct += 2.0 * _half_double_sum(h, features) / len(h) ** 2 + 3.0 * _half_double_sum(F, bag_features) / 7**2
    batch = Bagged(bags, y, features, bag_features).batch(np.arange(7), len(h) + 5, 9)
    penalties = Penalties(*(jnp.asarray(strength) for strength in (2.0, 3.0, 0.5)))
    np.testing.assert_allclose(objective(model, batch, penalties, Observation(*kind)), direct, rtol=1e-9)


def test_bag_embeddings_give_the_mean_kernel_between_bags():
    bags = _bags(5, seed=7)
    features = random_features(bags.center, random_frequencies(2, 0.9, np.random.default_rng(0)))
    H, K = bag_means(features, bags), features @ features.T
    expected = [[K[np.ix_(bags.owner == a, bags.owner == b)].mean() for b in range(5)] for a in range(5)]
    np.testing.assert_allclose(H @ H.T, expected, rtol=1e-10)


def test_network_is_its_formula_and_starts_with_the_right_variance():
    f = he_normal(50, 4000, 0.5, 2.0, np.random.default_rng(0))
    x = np.random.default_rng(1).normal(size=(5, 50))
    hidden = np.maximum(0, x @ np.asarray(f.hidden_weights))
    np.testing.assert_allclose(f(jnp.asarray(x)), 0.5 + 2 * hidden @ np.asarray(f.weights), rtol=1e-9)
    np.testing.assert_allclose(np.var(f.hidden_weights), 2 / 50, rtol=0.02)
    np.testing.assert_allclose(np.var(f.weights), 2 / 4000, rtol=0.1)


def test_an_epoch_sees_every_bag_once_in_batches_of_one_shape():
    bags = _bags(11, seed=8)
    data = Bagged(bags, np.arange(11.0), bags.center, np.zeros((11, 0)))
    batches = list(data.epoch(4, np.random.default_rng(0)))
    assert len({(b.x.shape, b.y.shape) for b in batches}) == 1
    assert sorted(y for b in batches for y in np.asarray(b.y)[np.asarray(b.bag)]) == list(range(11))
    np.testing.assert_allclose(sum(b.features.sum() for b in batches), bags.center.sum())
    np.testing.assert_allclose(sum(b.weight.sum() for b in batches), bags.weight.sum())


def test_batches_and_penalties_of_other_strengths_run_one_compiled_step():
    before = step._cache_size()
    for manifold in (0.1, 1.0):
        network = NeuralNetwork(likelihood="normal", hidden=3, epochs=3, batch_size=4, manifold=manifold)
        network.fit(_bags(11, seed=9), np.arange(11.0))
        assert np.isfinite(network.objective_).all()
    assert step._cache_size() == before + 1


# --- the constant ---


def test_constant_rate_is_the_bags_rate_inside_and_the_global_rate_outside():
    bags, other = _bags(5, seed=10), _bags(5, seed=11)
    y = np.array([4.0, 0.0, 7.0, 3.0, 9.0])
    fitted = ConstantRate().fit(bags, y)
    np.testing.assert_allclose(fitted.predict(ag.Points(bags.center)), (y / bags.mass)[bags.owner])
    np.testing.assert_allclose(fitted.predict(bags), y)
    np.testing.assert_allclose(fitted.predict(other), other.mass * y.sum() / bags.mass.sum())
    np.testing.assert_allclose(fitted.predict(other.with_measure("mean")), y.sum() / bags.mass.sum())
    expected = np.mean(stats.poisson.logpmf(y, other.mass * y.sum() / bags.mass.sum()))
    np.testing.assert_allclose(fitted.score(other, y), expected)


def test_constant_tau_is_the_most_likely_one():
    bags = _bags(20, seed=12)
    y = np.random.default_rng(0).normal(size=20)
    fitted = ConstantRate(likelihood="normal").fit(bags, y)
    squares = np.bincount(bags.owner, bags.weight**2)

    def likelihood(tau):
        return np.sum(stats.norm.logpdf(y, bags.mass * fitted.rate_, np.sqrt(tau * squares)))

    assert all(likelihood(fitted.tau_) > likelihood(fitted.tau_ * c) for c in (0.95, 1.05))


# --- the estimators ---


@pytest.fixture(scope="module")
def toy():
    train, stop, test = (_bags(60, seed=seed) for seed in (20, 21, 22))
    return train, _counts(train, 1), (stop, _counts(stop, 2)), (test, _counts(test, 3))


def _error(fitted, support):
    return np.mean((fitted.predict(ag.Points(support.center)) - _rate(support.center)) ** 2)


def test_nystrom_learns_individual_rates_from_bags(toy):
    train, y, validation, test = toy
    fitted = NystromMAP(landmarks=15, learning_rate=0.03, epochs=300).fit(train, y, validation)
    constant = ConstantRate().fit(train, y)
    assert _error(fitted, test[0]) < 0.3 * _error(constant, test[0])
    assert fitted.score(*test) > constant.score(*test)


def test_averaging_covariates_loses_what_the_network_finds(toy):
    train, y, validation, test = toy
    network, averaged = (kind(link="square").fit(train, y, validation) for kind in (NeuralNetwork, BagAsIndividual))
    assert _error(network, test[0]) < 0.5 * _error(averaged, test[0])


def test_normal_model_learns_its_variance_and_which_covariate_matters():
    bags, rng, tau = _bags(300, seed=30, size=3), np.random.default_rng(4), 50.0
    noise = rng.normal(size=300) * np.sqrt(tau * np.bincount(bags.owner, bags.weight**2))
    truth = 1000 + 100 * np.sin(4 * bags.center[:, 0])  # far from zero, and of no special scale
    fitted = NystromMAP(likelihood="normal", ard=True, landmarks=15, learning_rate=0.05, epochs=400)
    fitted.fit(bags, bags.integrate(truth) + noise)
    assert fitted.tau_ == pytest.approx(tau, rel=0.3)
    assert np.std(fitted.predict(ag.Points(bags.center)) - truth) < 10
    assert fitted.bandwidth_[1] > 2 * fitted.bandwidth_[0]


def test_the_kept_state_is_the_best_one_and_patience_ends_training(toy):
    train, y, validation, _ = toy
    fitted = NystromMAP(landmarks=15, learning_rate=0.3, epochs=300, patience=3).fit(train, y, validation)
    np.testing.assert_allclose(-fitted.score(*validation), fitted.validation_nll_.min(), rtol=1e-12)
    assert fitted.n_iter_ < 300
    assert fitted.n_iter_ - 1 - np.argmin(fitted.validation_nll_) >= 3


def test_manifold_penalties_reach_the_function(toy):
    train, y, _, _ = toy
    base = NeuralNetwork(link="square", epochs=100, learning_rate=0.03)
    plain = clone(base).fit(train, y)
    manifold = clone(base).set_params(manifold=100.0).fit(train, y)
    bag_manifold = clone(base).set_params(bag_manifold=1000.0)
    bag_manifold.fit(train, y, bag_covariates=np.ones(60))  # bags all alike: their means must agree
    f = [np.sqrt(e.predict(ag.Points(train.center))) for e in (plain, manifold, bag_manifold)]
    means = [np.bincount(train.owner, values) / train.atom_counts for values in f]
    assert np.std(f[1]) < 0.7 * np.std(f[0])
    assert np.std(means[2]) < 0.7 * np.std(means[0])


def _small(kind):
    settings = {} if kind is ConstantRate else {"epochs": 2, "seed": 3}
    return kind(likelihood="normal", **settings, **({"landmarks": 5} if kind is NystromMAP else {}))


@pytest.mark.parametrize("kind", [*LEARNERS, ConstantRate])
def test_predictions_at_bags_are_aggregated_predictions_at_points(kind):
    bags, new = _bags(8, seed=40), _bags(8, seed=41)
    fitted = _small(kind).fit(bags, np.arange(8.0))
    at_points = fitted.predict(ag.Points(new.center))
    assert isinstance(at_points, np.ndarray)
    for measure in ("total", "mean"):
        asked = new.with_measure(measure)
        np.testing.assert_allclose(fitted.predict(asked), asked.integrate(at_points), rtol=1e-12)


@pytest.mark.parametrize("kind", [*LEARNERS, ConstantRate])
def test_estimators_keep_the_scikit_learn_contract(kind):
    bags, y, estimator = _bags(8, seed=50), np.arange(8.0), _small(kind)
    before = {**vars(estimator)}
    assert before == estimator.get_params()
    copy = clone(estimator)
    assert copy.get_params() == before
    with pytest.raises(NotFittedError):
        copy.predict(bags)
    assert estimator.fit(bags, y) is estimator
    assert estimator.get_params() == before
    assert estimator.tau_ > 0
    assert all(name.endswith("_") for name in set(vars(estimator)) - set(before))
    assert not any(name.endswith("_") for name in vars(clone(estimator)))
    np.testing.assert_array_equal(copy.fit(bags, y).predict(bags), estimator.predict(bags))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).predict(bags), estimator.predict(bags))
    assert kind.__name__ in repr(estimator)


def test_averaged_bags_are_the_network_on_their_means():
    bags, y = _bags(8, seed=60), np.arange(8.0)
    means = ag.Bags(bags.with_measure("mean").integrate(bags.center), bag=np.arange(8), weights=bags.mass)
    settings = {"likelihood": "normal", "standardise": False, "epochs": 5}
    a, b = BagAsIndividual(**settings).fit(bags, y), NeuralNetwork(**settings).fit(means, y)
    np.testing.assert_allclose(a.predict(bags), b.predict(bags), rtol=1e-12)
    np.testing.assert_allclose(a.score(bags, y), b.score(means, y), rtol=1e-12)


def test_tuned_returns_the_setting_with_the_best_validation_likelihood(toy):
    train, y, validation, _ = toy
    base = NystromMAP(landmarks=15, epochs=60)
    best = tuned(base, {"learning_rate": [1e-5, 0.03], "l2": [0.5, 50.0]}, train, y, validation)
    every = [
        clone(base).set_params(learning_rate=r, l2=p).fit(train, y, validation).score(*validation)
        for r in (1e-5, 0.03)
        for p in (0.5, 50.0)
    ]
    assert best.score(*validation) == max(every)
    assert best.learning_rate == 0.03
    assert not hasattr(base, "latent_")


# --- bad input ---

BAGS = _bags(3, seed=70)
FIT = {"support": BAGS, "y": [1.0, 2.0, 3.0]}
CASES = {
    "likelihood": (lambda: NeuralNetwork(likelihood="gamma").fit(**FIT), ValueError, ['"poisson" or "normal"']),
    "link": (lambda: NeuralNetwork(link="log").fit(**FIT), ValueError, ['NeuralNetwork: "link"', '"exp" or "square"']),
    "constant": (lambda: ConstantRate(likelihood="x").fit(**FIT), ValueError, ['ConstantRate: "likelihood"']),
    "landmarks": (lambda: NystromMAP(landmarks=0).fit(**FIT), ValueError, ['"landmarks" must be a whole number']),
    "too many": (lambda: NystromMAP(landmarks=999).fit(**FIT), ValueError, ["number of individuals", "999"]),
    "hidden": (lambda: BagAsIndividual(hidden=2.5).fit(**FIT), ValueError, ['BagAsIndividual: "hidden"', "2.5"]),
    "manifold": (lambda: NeuralNetwork(manifold=-1.0).fit(**FIT), ValueError, ['"manifold"', "not negative", "-1.0"]),
    "rate": (lambda: NeuralNetwork(learning_rate=0.0).fit(**FIT), ValueError, ['"learning_rate" must be a positive']),
    "batch": (lambda: NeuralNetwork(batch_size=0).fit(**FIT), ValueError, ['"batch_size" must be a whole number']),
    "seed": (lambda: NeuralNetwork(seed=-1).fit(**FIT), ValueError, ['"seed"', "at least 0"]),
    "raw array": (lambda: NeuralNetwork().fit(np.zeros((3, 1)), [1, 2, 3]), TypeError, ['fit: "support"', "Points(X)"]),
    "y too short": (lambda: NeuralNetwork().fit(BAGS, [1.0]), ValueError, ['fit: "y"', "1 values for 3 rows"]),
    "negative count": (lambda: ConstantRate().fit(BAGS, [1, -2, 3]), ValueError, ["must not be negative", "row 1"]),
    "width": (lambda: NystromMAP().fit(ag.Intervals([0.0], [1.0]), [1.0]), ValueError, ["Intervals have width"]),
    "no pair": (lambda: NeuralNetwork().fit(**FIT, validation=BAGS), ValueError, ['"validation" must be a pair']),
    "validation y": (
        lambda: NeuralNetwork().fit(**FIT, validation=(BAGS, [1.0])),
        ValueError,
        ["fit, validation:", "1 values for 3 rows"],
    ),
    "validation dim": (
        lambda: NeuralNetwork().fit(**FIT, validation=(ag.Points([0.0]), [1.0])),
        ValueError,
        ["fit, validation:", "2 dimension"],
    ),
    "bag covariates": (
        lambda: NeuralNetwork().fit(**FIT, bag_covariates=[[1.0]]),
        ValueError,
        ["one row per bag", "1 rows for 3 bags"],
    ),
    "predict dim": (
        lambda: ConstantRate().fit(**FIT).predict(ag.Points([0.0])),
        ValueError,
        ["predict:", "2 dimension", "have 1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_sentence(name, monkeypatch):
    monkeypatch.setattr("aggregauss.baselines.estimator.train", None)  # nothing is computed first
    jaxtyping.config.update("jaxtyping_disable", True)
    build, kind, words = CASES[name]
    try:
        with pytest.raises(kind) as caught:
            build()
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_divergence_is_reported():
    with pytest.raises(FloatingPointError, match="learning_rate"):
        _small(NeuralNetwork).set_params(learning_rate=1e200).fit(_bags(8, seed=80), np.arange(8.0))


def test_training_that_ends_far_above_where_it_began_is_called_out():
    trained = Trained(None, np.array([2.0, 90.0]), np.array([]))
    with pytest.warns(UserWarning, match="rose from 2 to 90.*Lower the learning_rate"):
        _finite(trained)
    _finite(trained._replace(validation_nll=np.array([3.0, 90.0])))  # the state after the first epoch was kept


def test_validation_bags_that_are_less_likely_than_those_of_training_are_no_divergence():
    _finite(Trained(None, np.array([2.0, 1.5]), np.array([50.0, 45.0])))


def test_starting_values_are_finite_without_counts_or_variation():
    for kind in KINDS:
        assert np.isfinite(Observation(*kind).start(np.zeros(3), np.ones(3))).all()
    assert ConstantRate(likelihood="normal").fit(_bags(8, seed=81), np.zeros(8)).tau_ > 0
