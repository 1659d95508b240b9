"""Inducing variables that are integrals over supports of any kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import aggregauss as ag
from aggregauss import linalg
from aggregauss.inference.inducing import (
    entries,
    features,
    inducing_covariance,
    inducing_factor,
    inducing_mean,
    on_device,
)
from aggregauss.parameters import pack, unpack
from aggregauss.supports.layout import layout

RNG = np.random.default_rng(4)
X = np.sort(RNG.uniform(0, 6, 15))
BINS = ag.Intervals([0.0, 1.0, 2.5, 4.0], [1.0, 2.5, 4.0, 6.0], measure="total")
BAGS = ag.Bags(X, np.repeat([0, 1, 2], [2, 9, 4]), RNG.uniform(0.5, 2.0, 15))
BOXES = ag.Boxes([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [3.0, 1.0], [2.0, 3.0]], measure="mean")
SUPPORTS = {
    "intervals": BINS,
    "bags": BAGS,
    "boxes": BOXES,
    "mixed": ag.concatenate([BINS, BAGS, ag.Points([0.3, 5.5])]),
}
MANY = ag.GP(ag.Matern52(1.3, 2.0), ag.Gaussian(0.1), mean=ag.Constant(0.4))
SCHEMES = {
    "collapsed": lambda inducing: ag.Collapsed(inducing, optimise=False),
    "svi": lambda inducing: ag.SVI(inducing, optimise=False, tolerance=1e-8),
}


def _gp(dim=1):
    return ag.GP(ag.Matern52([1.3] * dim, 2.0, form="product"), ag.Gaussian(0.1), mean=ag.Constant(0.4))


@pytest.mark.parametrize("kind", SUPPORTS)
def test_covariances_of_inducing_variables_are_those_of_supports(kind):
    support = SUPPORTS[kind]
    model, Z = _gp(support.dim), on_device(support)
    L = np.asarray(inducing_factor(model, Z, 0.0))
    np.testing.assert_allclose(L @ L.T, ag.cov(model.kernel, support), rtol=1e-9)
    np.testing.assert_allclose(inducing_mean(model, Z), 0.4 * support.effective_mass, rtol=1e-12)
    atoms, _ = layout(ag.Points(RNG.uniform(0, 3, (5, support.dim))), whole=True).all_pieces()
    expected = ag.cov(model.kernel, ag.Points(np.asarray(atoms.center)), support)
    np.testing.assert_allclose(features(model, atoms, Z), expected, rtol=1e-9)


@pytest.mark.parametrize(("kind", "scheme"), [*((kind, "collapsed") for kind in SUPPORTS), ("mixed", "svi")])
def test_the_observed_supports_as_inducing_variables_are_exact(kind, scheme):
    support = SUPPORTS[kind]
    y, model = np.sin(np.arange(len(support))), _gp(support.dim)
    exact = model.fit(support, y, inference=ag.Exact(optimise=False))
    sparse = model.fit(support, y, inference=SCHEMES[scheme](support), progress=False)
    assert sparse.evidence == pytest.approx(exact.evidence, abs=1e-4)
    test = ag.Points(RNG.uniform(0, 3, (6, support.dim)))
    ours, theirs = (post.predict(test) for post in (sparse, exact))
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-4)
    np.testing.assert_allclose(ours.covariance, theirs.covariance, atol=1e-4)


def _tasks(rank=2):
    latents = [ag.RBF(ag.fixed(1.2), ag.fixed(1.0))]
    model = ag.MultiTaskGP(latents, {"a": ag.Gaussian(ag.fixed(0.1)), "b": ag.Gaussian(ag.fixed(0.2))}, rank=rank)
    weights = {"mixing[0].weights": ag.fixed([1.0, 0.4, 0.7][: 2 * rank - 1])}
    return model.replace({**weights, "mean.values": ag.fixed([0.2, -0.4])})


DATA = {"a": (BINS, [1.0, 2.0, 0.5, -1.0]), "b": (BAGS, [1.2, 3.0, -0.4])}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_several_tasks_with_the_observed_supports_as_inducing_variables_are_exact(scheme):
    exact = _tasks().fit(DATA, inference=ag.Exact(optimise=False))
    inducing = ag.concatenate([BINS, BAGS])
    sparse = _tasks().fit(DATA, inference=SCHEMES[scheme](inducing), progress=False)
    assert len(sparse.joint.inducing) == 2 * len(inducing)
    assert sparse.evidence == pytest.approx(exact.evidence, abs=1e-4)
    at = {"a": ag.Points([0.7, 3.0]), "b": BINS}
    ours, theirs = (post.predict(at) for post in (sparse, exact))
    for task in at:
        np.testing.assert_allclose(ours[task].mean, theirs[task].mean, atol=1e-4)
        np.testing.assert_allclose(ours[task].variance, theirs[task].variance, atol=1e-4)


@pytest.mark.slow
def test_counts_of_bags_learn_through_bags():
    """Responses that are not linear need f at the individuals too, which the bags' integrals know in part."""
    model = ag.GP(ag.RBF(1.5, 0.5), ag.Poisson(), aggregation="response", mean=ag.Constant(0.5))
    y = np.array([4.0, 30.0, 6.0])
    bags, points = (
        model.fit(BAGS, y, inference=ag.SVI(inducing, optimise=False), progress=False) for inducing in (BAGS, X)
    )
    np.testing.assert_allclose(bags.predict(BAGS).mean, points.predict(BAGS).mean, rtol=0.1)


def test_a_posterior_with_inducing_supports_comes_back_from_its_file(tmp_path):
    post = _tasks(1).fit(DATA, inference=ag.Collapsed(BAGS, optimise=False), progress=False)
    post.save(tmp_path / "fit")
    again = ag.load(tmp_path / "fit")
    np.testing.assert_array_equal(again.joint.inducing.weight, post.joint.inducing.weight)
    np.testing.assert_array_equal(again.predict({"a": BINS})["a"].mean, post.predict({"a": BINS})["a"].mean)


def test_memory_is_counted_by_atoms():
    assert entries(on_device(BAGS), 2) == 3 * 9 + 2
    assert entries(on_device(ag.Points(X)), 0) == 15
    assert entries(None, 3) == 3


@pytest.mark.parametrize(
    "inducing", [10.0 * X[:, None] + 50.0, ag.Intervals(50 + 20 * np.arange(3.0), 70 + 20 * np.arange(3.0))]
)
def test_standardised_data_have_standardised_inducing_variables(inducing):
    """y = f(x) and y = f((x - c) / s) are the same data."""
    x, y = 10.0 * X[:, None] + 50.0, np.sin(X)
    model = ag.GP(ag.RBF(1.0, 1.0), ag.Gaussian(0.1))
    post = model.fit(ag.Points(x), y, inference=ag.Collapsed(inducing, optimise=False), standardise=True)
    c, s = x.mean(axis=0), x.std(axis=0)
    places = inducing.rescaled(c, s) if isinstance(inducing, ag.Support) else (inducing - c) / s
    by_hand = model.fit(ag.Points((x - c) / s), y, inference=ag.Collapsed(places, optimise=False))
    assert post.evidence == pytest.approx(by_hand.evidence, rel=1e-9)
    np.testing.assert_allclose(post.inducing.center, by_hand.inducing.center, rtol=1e-12)
    np.testing.assert_allclose(post.predict(ag.Points([[80.0]])).mean, by_hand.predict(ag.Points((80.0 - c) / s)).mean)


BAD = {
    "another dimension": (lambda: _gp().fit(BINS, np.ones(4), inference=ag.Collapsed(BOXES)), ValueError, "1 column"),
    "no supports": (lambda: _gp().fit(BINS, np.ones(4), inference=ag.Collapsed(BINS[:0])), ValueError, "no supports"),
    "supports that should move": (
        lambda: _gp().fit(BINS, np.ones(4), inference=ag.SVI(BINS, optimise_inducing=True)),
        TypeError,
        "optimise_inducing moves points",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case):
    attempt, error, words = BAD[case]
    with pytest.raises(error, match=words):
        attempt()


@pytest.mark.parametrize("name", ["root", "inverse_root"])
def test_slopes_through_many_inducing_points_are_differences(name):
    """More points than one tile of a covariance holds."""
    Z = on_device(ag.Points(RNG.uniform(0, 40, (150, 2))))
    slope = jnp.asarray(RNG.standard_normal((150, 150)))

    @jax.jit
    def total(vector):
        K = inducing_covariance(unpack(MANY, vector), Z, 1e-8)
        return jnp.sum(slope * getattr(linalg, name)(K))

    at, step = pack(MANY), 1e-5
    differences = [(total(at + step * unit) - total(at - step * unit)) / (2 * step) for unit in np.eye(len(at))]
    np.testing.assert_allclose(jax.grad(total)(at), differences, rtol=1e-5)
