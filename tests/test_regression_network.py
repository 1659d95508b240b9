"""Tasks that share functions in shares that vary."""

import numpy as np
import pytest

import aggregauss as ag
from aggregauss.inference.conditional import aggregate_moments, latent_joint
from aggregauss.inference.inducing import on_device
from aggregauss.inference.products import product_moments
from aggregauss.latent.coregionalisation import with_channel
from aggregauss.supports.layout import layout
from aggregauss.supports.nodes import at_nodes

RNG = np.random.default_rng(2)
X = np.linspace(0.0, 8.0, 30)
Z = np.linspace(0.0, 8.0, 9)[:, None]
BINS = ag.Intervals(np.arange(0.0, 8.0, 2.0), np.arange(2.0, 10.0, 2.0), measure="mean")
TEST = ag.Bags(np.array([[0.4], [1.0], [5.0]]), ["a", "a", "b"], measure="mean")
DATA = {"a": (BINS, np.array([0.8, -0.3, -0.5, 0.9])), "b": (ag.Points(X), np.sin(X))}


def _model(variance):
    model = ag.RegressionNetwork(
        [ag.RBF(ag.fixed(1.0)), ag.Matern32(ag.fixed(2.0))],
        {"a": ag.Gaussian(ag.fixed(0.05)), "b": ag.Gaussian(ag.fixed(0.02))},
        varying=ag.RBF(ag.fixed(3.0), ag.fixed(variance)),
    )
    return model.replace({**WEIGHTS, "mean.values": ag.fixed([0.1, -0.2])})


WEIGHTS = {"mixing[0].weights": ag.fixed([1.0, 0.5]), "mixing[1].weights": ag.fixed([-0.4, 0.8])}
KEEP = ag.SVI(inducing=Z, optimise=False, tolerance=1e-6)


@pytest.mark.slow
def test_weights_that_do_not_vary_are_a_multi_task_gp():
    plain = ag.MultiTaskGP(
        [ag.RBF(ag.fixed(1.0)), ag.Matern32(ag.fixed(2.0))],
        {"a": ag.Gaussian(ag.fixed(0.05)), "b": ag.Gaussian(ag.fixed(0.02))},
    ).replace({**WEIGHTS, "mean.values": ag.fixed([0.1, -0.2])})
    pair = [model.fit(DATA, inference=KEEP, progress=False) for model in (_model(1e-12), plain)]
    assert pair[0].evidence == pytest.approx(pair[1].evidence, abs=1e-3)
    a, b = (post.predict({"a": TEST})["a"] for post in pair)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-3)
    np.testing.assert_allclose(a.variance, b.variance, rtol=1e-2)


def test_moments_are_those_of_draws():
    """E and Var of the mean over a bag of level + Σ_r W_r u_r, given draws of all W_r and u_r from the same q."""
    post = _model(0.3).fit(DATA, inference=KEEP, progress=False).joint
    view, atoms = post.model.of_task(1), ag.Points(TEST.center)
    channels = [1 + step for step in view.steps]
    where = ag.concatenate([with_channel(atoms, c) for c in channels])
    plain = post.model.replace({"mean.values": ag.fixed([0.0, 0.0])})
    mean, covariance = latent_joint(plain, layout(post.inducing), post.conditional, where)
    f = RNG.multivariate_normal(mean, covariance, 400_000).reshape(-1, 4, 3)
    w = np.asarray(view.weights)
    W = w[:, None] + np.linalg.norm(w) * f[:, :2]
    values = float(view.level) + np.sum(W * f[:, 2:], axis=1)
    draws = np.column_stack([values[:, :2].mean(axis=1), values[:, 2]])
    found = aggregate_moments(view, on_device(post.inducing), post.conditional, with_channel(TEST, 1), product_moments)
    np.testing.assert_allclose(found[0], draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(found[1], draws.var(axis=0), rtol=0.02)


@pytest.mark.slow
def test_a_varying_share_is_found():
    u = np.sin(3 * X)
    data = {"a": (ag.Points(X), u), "b": (ag.Points(X), (X - 4.0) / 4.0 * u)}
    likelihoods = {task: ag.Gaussian(ag.fixed(0.01)) for task in data}
    scheme = ag.SVI(inducing=np.linspace(0.0, 8.0, 16)[:, None], integrate=False)
    network = ag.RegressionNetwork([ag.RBF(ag.fixed(0.6))], likelihoods, varying=ag.RBF(ag.fixed(4.0), 1.0))
    fixed = ag.MultiTaskGP([ag.RBF(ag.fixed(0.6))], likelihoods)
    posts = [model.fit(data, inference=scheme, progress=False) for model in (network, fixed)]
    assert posts[0].evidence > posts[1].evidence + 10
    found = posts[0].predict({"b": ag.Points(X)}, "observation")["b"]
    assert np.mean(np.abs(found.mean - data["b"][1])) < 0.15


@pytest.mark.parametrize("support", [BINS, ag.Boxes([[0.0, 0.0]], [[1.0, 2.0]], measure="total")])
def test_nodes_integrate_polynomials(support):
    points = at_nodes(support)
    assert not any(points.wide)
    np.testing.assert_allclose(points.mass, support.mass)
    cubes = points.integrate(np.prod(points.center**3, axis=1))
    low, high = support.center - support.width / 2, support.center + support.width / 2
    exact = np.prod((high**4 - low**4) / 4, axis=1)
    np.testing.assert_allclose(cubes, exact / (support.mass if support.measure == "mean" else 1.0))


def test_what_a_network_cannot_do_is_said():
    with pytest.raises(TypeError, match="Use inference=SVI"):
        _model(0.1).fit(DATA, inference=ag.Exact())
    with pytest.raises(TypeError, match="Use MultiTaskGP for it"):
        ag.RegressionNetwork([ag.RBF()], {"y": ag.HeteroscedasticGaussian()}, varying=ag.RBF())
    with pytest.raises(TypeError, match='"varying" must be a kernel'):
        ag.RegressionNetwork([ag.RBF()], {"y": ag.Gaussian()}, varying=1.0)
    post = _model(0.3).fit(DATA, inference=ag.SVI(inducing=4, optimise=False, max_epochs=2), progress=False)
    with pytest.raises(TypeError, match="joint distributions of products"):
        post.predict({"a": TEST})["a"].sample()
