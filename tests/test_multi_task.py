"""Several tasks from shared functions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import aggregauss as ag
from aggregauss.latent.coregionalisation import Coregionalised, Mixing, with_channel
from aggregauss.models.several_tasks import _likelihoods
from aggregauss.parameters import parameters, unpack

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 6, 14))
BINS = ag.Intervals([0.0, 2.0, 3.0], [2.0, 3.0, 6.0], measure="mean")
Y, TOTALS = np.sin(X) + 0.1 * RNG.standard_normal(14), np.array([0.6, 0.3, -0.7])
TEST = ag.concatenate([ag.Points([0.5, 4.4]), ag.Intervals([1.0], [5.0], measure="mean")])
KEEP = ag.Exact(optimise=False)


def _fixed(weights, rank=1, latents=None, variance=0.1):
    """A model of tasks "a" and "b" with everything known."""
    latents = latents or [ag.RBF(ag.fixed(1.2), ag.fixed(1.0))]
    likelihoods = {"a": ag.Gaussian(ag.fixed(variance)), "b": ag.Gaussian(ag.fixed(2 * variance))}
    model = ag.MultiTaskGP(latents, likelihoods, rank=rank)
    changes = {f"mixing[{q}].weights": ag.fixed(w) for q, w in enumerate(weights)}
    return model.replace({**changes, "mean.values": ag.fixed([0.2, -0.4])})


DATA = {"a": (BINS, TOTALS), "b": (ag.Points(X), Y)}


def test_covariance_is_that_of_the_definition():
    kernels = [ag.RBF(1.2, 1.0), ag.Matern32(0.7, 2.0)]
    W = [np.array([[1.0, 0.0], [-0.5, 2.0]]), np.array([[0.4], [1.5]])]
    joint = Coregionalised(tuple(kernels), (Mixing(2, 2, [1.0, -0.5, 2.0]), Mixing(2, 1, W[1].ravel())))
    both = ag.concatenate([with_channel(BINS, 0), with_channel(ag.Points(X), 1)])
    plain, task = ag.concatenate([BINS, ag.Points(X)]), np.repeat([0, 1], [3, 14])
    expected = sum((w @ w.T)[np.ix_(task, task)] * np.asarray(ag.cov(k, plain)) for w, k in zip(W, kernels))
    np.testing.assert_allclose(ag.cov(joint, both), expected, rtol=1e-12)


def test_a_latent_function_is_a_channel_of_its_own():
    joint = Coregionalised((ag.RBF(1.0, 1.0),), (Mixing(2, 2, [1.0, -0.5, 2.0]),))
    u, z = with_channel(ag.Points([1.0]), 3), ag.Points([2.0])  # the second function of the only kernel
    crossed = [float(ag.cov(joint, with_channel(z, c), u)[0, 0]) for c in range(4)]
    k = float(ag.cov(ag.RBF(1.0, 1.0), z, ag.Points([1.0]))[0, 0])
    np.testing.assert_allclose(crossed, [0.0, 2.0 * k, 0.0, k], rtol=1e-12)


def test_posterior_and_evidence_agree_with_dense_formulas():
    post = _fixed([[1.0, -0.7]]).fit(DATA, {"b": 0.05}, inference=KEEP, progress=False)
    kernel, W = ag.RBF(1.2, 1.0), np.array([1.0, -0.7])
    plain, task = ag.concatenate([BINS, ag.Points(X)]), np.repeat([0, 1], [3, 14])
    K = np.outer(W[task], W[task]) * np.asarray(ag.cov(kernel, plain))
    noisy = K + np.diag(np.repeat([0.1, 0.25], [3, 14]))
    residual = np.concatenate([TOTALS - 0.2, Y + 0.4])
    assert post.evidence == pytest.approx(multivariate_normal(cov=noisy).logpdf(residual), rel=1e-9)
    cross = W[0] * W[task] * np.asarray(ag.cov(kernel, TEST, plain))
    np.testing.assert_allclose(
        post.predict({"a": TEST})["a"].mean, 0.2 + cross @ np.linalg.solve(noisy, residual), rtol=1e-8
    )


def test_one_task_is_a_gp():
    alone = ag.GP(ag.RBF(ag.fixed(1.0)), mean=ag.Constant()).fit(ag.Points(X), Y, progress=False)
    model = ag.MultiTaskGP([ag.RBF(ag.fixed(1.0))], {"only": ag.Gaussian()})
    post = model.fit({"only": (ag.Points(X), Y)}, inference=ag.Exact(), progress=False)
    assert post.evidence == pytest.approx(alone.evidence, abs=1e-6)
    ours, theirs = post.predict({"only": TEST})["only"], alone.predict(TEST)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-4)
    np.testing.assert_allclose(ours.variance, theirs.variance, rtol=1e-3)


def test_tasks_that_share_nothing_are_separate_fits():
    kernels = [ag.RBF(ag.fixed(1.2), ag.fixed(1.0)), ag.Matern32(ag.fixed(0.8), ag.fixed(1.0))]
    post = _fixed([[1.5, 0.0], [0.0, 0.6]], latents=kernels).fit(DATA, inference=KEEP, progress=False)
    separate = [
        ag.GP(ag.RBF(1.2, 1.5**2), ag.Gaussian(0.1), mean=ag.Constant(0.2)).fit(BINS, TOTALS, inference=KEEP),
        ag.GP(ag.Matern32(0.8, 0.6**2), ag.Gaussian(0.2), mean=ag.Constant(-0.4)).fit(ag.Points(X), Y, inference=KEEP),
    ]
    assert post.evidence == pytest.approx(sum(p.evidence for p in separate), rel=1e-10)
    for task, alone in zip("ab", separate):
        ours, theirs = post.predict({task: TEST})[task], alone.predict(TEST)
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-8)
        np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-7, atol=1e-10)


def test_collapsed_with_inducing_points_at_the_data_is_exact():
    model, data = _fixed([[1.0, 0.4, 0.2]], rank=2), {"a": (ag.Points(X[::3]), Y[::3]), "b": (ag.Points(X), Y)}
    exact = model.fit(data, inference=KEEP, progress=False)
    sparse = model.fit(data, inference=ag.Collapsed(inducing=X, optimise=False), progress=False)
    assert sparse.evidence == pytest.approx(exact.evidence, abs=1e-3)
    first, second = (post.predict({"a": TEST})["a"] for post in (exact, sparse))
    np.testing.assert_allclose(second.mean, first.mean, atol=1e-4)
    np.testing.assert_allclose(second.variance, first.variance, rtol=1e-3)


def test_the_optimum_of_svi_is_exact_for_gaussian_tasks():
    model, data = _fixed([[1.0, 0.4, 0.2]], rank=2), {"a": (BINS, TOTALS), "b": (ag.Points(X), Y)}
    collapsed = model.fit(data, inference=ag.Collapsed(inducing=X, optimise=False), progress=False)
    svi = model.fit(data, inference=ag.SVI(inducing=X, optimise=False, tolerance=1e-8), progress=False)
    assert svi.evidence == pytest.approx(collapsed.evidence, abs=1e-4)
    first, second = (post.predict({"a": TEST, "b": TEST}) for post in (collapsed, svi))
    for task in "ab":
        np.testing.assert_allclose(second[task].mean, first[task].mean, atol=1e-4)
        np.testing.assert_allclose(second[task].variance, first[task].variance, rtol=1e-3)


@pytest.mark.slow
def test_counts_beside_measurements_share_nothing_if_the_mixing_says_so():
    """Two latent functions, one for each task: the fits are those of two models."""
    kernels = [ag.RBF(ag.fixed(1.2), ag.fixed(1.0)), ag.RBF(ag.fixed(0.8), ag.fixed(1.0))]
    bags = ag.Bags(X, np.arange(14) // 5, np.full(14, 3.0), measure="total")
    y = np.array([12.0, 30.0, 9.0])
    model = ag.MultiTaskGP(
        kernels,
        {"cases": ag.Poisson(), "b": ag.Gaussian(ag.fixed(0.2))},
        aggregation={"cases": "response"},
    ).replace(
        {
            "mixing[0].weights": ag.fixed([0.9, 0.0]),
            "mixing[1].weights": ag.fixed([0.0, 0.6]),
            "mean.values": ag.fixed([0.3, -0.4]),
        }
    )
    scheme = ag.SVI(inducing=X[::2], optimise=False, tolerance=1e-7)
    post = model.fit({"cases": (bags, y), "b": (ag.Points(X), Y)}, inference=scheme, progress=False)
    kernel, mean = ag.RBF(ag.fixed(1.2), ag.fixed(0.81)), ag.Constant(ag.fixed(0.3))
    alone = ag.GP(kernel, ag.Poisson(), aggregation="response", mean=mean).fit(
        bags, y, inference=scheme, progress=False
    )
    np.testing.assert_allclose(post.predict({"cases": bags})["cases"].mean, alone.predict(bags).mean, rtol=1e-3)
    at = ag.Points([0.5, 4.4])
    np.testing.assert_allclose(post.predict({"cases": at})["cases"].mean, alone.predict(at).mean, rtol=1e-3)


def test_batches_hold_every_task_in_proportion():
    from aggregauss.inference.groups import epoch_batches

    task = np.repeat([0, 1], [90, 10])
    batches = list(epoch_batches(100, 10, seed=0, epoch=3, task=task))
    assert sorted(np.concatenate(batches)) == list(range(100))
    assert {tuple(np.bincount(task[rows])) for rows in batches} == {(9, 1)}


def test_aggregating_by_hand_is_what_the_support_does():
    """Σ w y of points observed without noise says what the bag's total says."""
    bags = ag.Bags(X, np.arange(14) // 5, RNG.uniform(0.5, 2.0, 14), measure="total")
    joint = _fixed([[1.0, -0.7]]).kernel
    A = np.zeros((3, 14))
    A[bags.owner, np.arange(14)] = bags.effective_weight
    other = with_channel(BINS, 1)
    points = with_channel(ag.Points(X), 0)
    np.testing.assert_allclose(
        ag.cov(joint, with_channel(bags, 0), other), A @ ag.cov(joint, points, other), rtol=1e-10
    )


@pytest.mark.slow
def test_a_fine_task_sharpens_a_coarse_one():
    t = np.linspace(0, 6, 40)
    data = {"a": (BINS, [float(np.mean(np.sin(t[(t >= lo) & (t < hi)]))) for lo, hi in ((0, 2), (2, 3), (3, 6))])}
    alone = ag.MultiTaskGP([ag.RBF(1.0)], {"a": ag.Gaussian(ag.fixed(1e-3))}).fit(data, progress=False)
    both = ag.MultiTaskGP([ag.RBF(1.0)], {"a": ag.Gaussian(ag.fixed(1e-3)), "b": ag.Gaussian()})
    joint = both.fit({**data, "b": (ag.Points(t), 3 * np.sin(t))}, progress=False)
    errors = [np.mean((p.predict({"a": ag.Points(t)})["a"].mean - np.sin(t)) ** 2) for p in (alone, joint)]
    assert errors[1] < 0.1 * errors[0]
    assert joint.correlations().loc[("a", "b"), "correlation"] == pytest.approx(1.0)


def test_a_posterior_comes_back_from_its_file(tmp_path):
    post = _fixed([[1.0, -0.7]]).fit(DATA, inference=KEEP, progress=False)
    post.save(tmp_path / "fit")
    again = ag.load(tmp_path / "fit")
    np.testing.assert_array_equal(again.predict({"b": TEST})["b"].mean, post.predict({"b": TEST})["b"].mean)


BAD = {
    "no latent": (lambda: ag.MultiTaskGP([], {"a": ag.Gaussian()}), ValueError, '"latents" is empty'),
    "a latent that is no kernel": (lambda: ag.MultiTaskGP([3.0], {"a": ag.Gaussian()}), TypeError, "must be kernels"),
    "no task": (lambda: ag.MultiTaskGP([ag.RBF()], {}), TypeError, "a likelihood for each task"),
    "a task without a name": (
        lambda: _likelihoods({1: ag.Gaussian()}, "MultiTaskGP"),
        TypeError,
        "must be strings, but one",
    ),
    "a kernel without brackets": (
        lambda: ag.MultiTaskGP([ag.RBF], {"a": ag.Gaussian()}),
        TypeError,
        "the class RBF, without brackets",
    ),
    "a scheme without brackets": (
        lambda: ag.RegressionNetwork([ag.RBF()], {"a": ag.Gaussian()}, varying=ag.RBF()).fit(DATA, inference=ag.SVI),
        TypeError,
        "the class SVI",
    ),
    "rank zero": (
        lambda: ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian()}, rank=0),
        ValueError,
        '"rank" must be a whole',
    ),
    "too many ranks": (
        lambda: ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian()}, rank=[1, 2]),
        ValueError,
        "one for each",
    ),
    "a task without data": (lambda: _fixed([[1.0, 1.0]]).fit({"a": DATA["a"]}), ValueError, 'lacks "b"'),
    "an unknown task": (lambda: _fixed([[1.0, 1.0]]).fit({**DATA, "c": DATA["a"]}), KeyError, 'the task "c"'),
    "no pair": (lambda: _fixed([[1.0, 1.0]]).fit({**DATA, "a": BINS}), TypeError, "must be a pair"),
    "unequal dimensions": (
        lambda: _fixed([[1.0, 1.0]]).fit({**DATA, "a": (ag.Points([[0.0, 1.0]]), [1.0])}),
        ValueError,
        "same number of dimensions",
    ),
    "an unknown task at prediction": (
        lambda: _fixed([[1.0, 1.0]]).fit(DATA, inference=KEEP).predict({"c": TEST}),
        KeyError,
        'predict: "supports" names the task "c", but the tasks are "a", "b"',
    ),
    "counts of an unknown task": (
        lambda: _fixed([[1.0, 1.0]]).fit(DATA, inference=KEEP).predict({"a": TEST}, counts={"c": 3}),
        KeyError,
        'predict: "counts" names the task "c"',
    ),
    "other dimensions at prediction": (
        lambda: _fixed([[1.0, 1.0]]).fit(DATA, inference=KEEP).predict({"a": ag.Points([[0.0, 1.0]])}),
        ValueError,
        r'task "a" must have 1 dimension\(s\) like the training data, but have 2',
    ),
    "a task with no observations": (
        lambda: _fixed([[1.0, 1.0]]).fit({**DATA, "a": (BINS[:0], [])}),
        ValueError,
        'task "a": fit: "support" has no rows',
    ),
    "a negative count": (
        lambda: _of("counts", ag.Poisson(), [1.0, -2.0, 3.0]),
        ValueError,
        'task "counts": fit: Poisson needs "y" to be counts .* but row 1 is -2.0',
    ),
    "a label beyond the classes": (
        lambda: _of("class", ag.Categorical(3), [0, 1, 3]),
        ValueError,
        'task "class": fit: Categorical needs "y" to be labels 0 to 2, but row 2 is 3.0. Number the classes from 0',
    ),
    "neither yes nor no": (
        lambda: _of("yes", ag.Bernoulli(), [0, 1, 2]),
        ValueError,
        'task "yes": fit: Bernoulli needs .* row 2',
    ),
    "a share beyond one": (
        lambda: _of("share", ag.Beta(), [0.2, 1.3, 0.5]),
        ValueError,
        'task "share": fit: Beta needs .* row 1 is 1.3',
    ),
    "a size that is not positive": (
        lambda: _of("size", ag.GammaResponse(), [0.2, 0.0, 0.5]),
        ValueError,
        'task "size": fit: GammaResponse needs .* row 1 is 0.0',
    ),
}


def _of(task, likelihood, y):
    """A fit beside a task that is as it should be."""
    model = ag.MultiTaskGP([ag.RBF()], {"b": ag.Gaussian(), task: likelihood})
    return model.fit({"b": DATA["b"], task: (ag.Points([0.0, 1.0, 2.0]), y)})


def test_covariates_of_wildly_different_scales_are_called_out():
    x = np.arange(4.0)
    uneven = ag.Points(np.column_stack([x, 1e6 * x]))
    model = ag.MultiTaskGP([ag.RBF(1.0)], {"a": ag.Gaussian(), "b": ag.Gaussian()})
    with pytest.warns(UserWarning, match="range from 1.07 to 1.07e.06. Bring the columns to one scale"):
        model.fit({"a": (uneven, x), "b": (uneven[:2], [1.0, 2.0])}, inference=KEEP)


def test_what_is_wrong_for_several_kernels_alike_is_said_once():
    x = np.arange(4.0)
    model = ag.MultiTaskGP([ag.RBF(1.0), ag.RBF(2.0)], {"a": ag.Gaussian()})
    with pytest.warns(UserWarning, match="or give a list of lengthscales") as caught:
        model.fit({"a": (ag.Points(np.column_stack([x, 1e6 * x])), x)}, inference=KEEP)
    assert len(caught) == 1


def test_a_key_is_a_seed():
    model, scheme = _fixed([[1.0, -0.7]]).replace({"mean.values": None}), ag.Exact(restarts=1)
    one, other = (model.fit(DATA, inference=scheme, seed=jax.random.key(3), progress=False) for _ in range(2))
    assert one.evidence == other.evidence


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case):
    attempt, error, words = BAD[case]
    with pytest.raises(error, match=words):
        attempt()


@pytest.mark.slow
def test_correlations_have_intervals_that_shrink_with_data():
    rng, widths = np.random.default_rng(3), []
    for n in (20, 120):
        x = np.sort(rng.uniform(0, 6 * n / 20, n))
        K = np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-8 * np.eye(n)
        u = np.linalg.cholesky(K) @ rng.standard_normal((n, 2))
        y = {"a": u[:, 0], "b": 0.8 * u[:, 0] + 0.6 * u[:, 1]}
        model = ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian(), "b": ag.Gaussian()}, rank=2)
        data = {t: (ag.Points(x), v + 0.1 * rng.standard_normal(n)) for t, v in y.items()}
        post = model.fit(data, inference=ag.Exact(restarts=0, integrate=True), progress=False)
        row = post.correlations().loc[("a", "b")]
        assert row["lower"] < row["correlation"] < row["upper"]
        assert row["lower"] < 0.8 < row["upper"]
        widths.append(row["upper"] - row["lower"])
    assert widths[1] < widths[0]


def _separately(post, data, scheme):
    """Weights of the hyper-parameters that a fit is a mixture over, and a fit with each of them known."""
    parts = post.joint.mixture
    models = (unpack(post.model, jnp.asarray(part.vector)) for part in parts)
    return np.array([part.weight for part in parts]), [m.fit(data, inference=scheme, progress=False) for m in models]


def test_integrating_over_parameters_is_the_law_of_total_variance_over_separate_fits():
    """E f = Σ w m,  Cov f = Σ w (C + m mᵀ) - E f (E f)ᵀ."""
    model = ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian(), "b": ag.Gaussian()})
    post = model.fit(DATA, inference=ag.Exact(restarts=0, integrate=True), progress=False)
    weights, fits = _separately(post, DATA, KEEP)
    assert len(fits) > 4
    assert weights.sum() == pytest.approx(1.0)
    each = [fit.predict({"a": TEST})["a"] for fit in fits]
    mean = sum(w * p.mean for w, p in zip(weights, each))
    second = sum(w * (p.covariance + np.outer(p.mean, p.mean)) for w, p in zip(weights, each))
    mixed = post.predict({"a": TEST})["a"]
    np.testing.assert_allclose(mixed.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(mixed.covariance, second - np.outer(mean, mean), rtol=1e-6)
    np.testing.assert_allclose(mixed.variance, np.diag(second) - mean**2, rtol=1e-6)


@pytest.mark.slow
def test_several_functions_of_a_task_are_mixed_by_the_law_of_total_variance():
    model = ag.MultiTaskGP([ag.RBF(ag.fixed(1.5))], {"y": ag.Categorical(3)}, rank=2)
    data, scheme = {"y": (ag.Points(X), np.arange(14) % 5 // 2)}, ag.SVI(inducing=X[::2], tolerance=1e-7)
    post = model.fit(data, inference=scheme, progress=False)
    weights, fits = _separately(post, data, dataclasses.replace(scheme, optimise=False))
    assert len(fits) > 1
    each = [fit._jointly([with_channel(TEST, c) for c in (0, 1)]) for fit in fits]
    mean = sum(w * m for w, (m, _) in zip(weights, each))
    second = sum(w * (C + m[:, :, None] * m[:, None, :]) for w, (m, C) in zip(weights, each))
    found = post._jointly([with_channel(TEST, c) for c in (0, 1)])
    np.testing.assert_allclose(found[0], mean, atol=5e-3)
    np.testing.assert_allclose(found[1], second - mean[:, :, None] * mean[:, None, :], atol=5e-3)


def test_the_task_whose_counts_scatter_too_much_is_named():
    likelihoods = {"calm": ag.Poisson(), "wild": ag.Poisson(), "b": ag.Gaussian(0.1)}
    model = ag.MultiTaskGP([ag.RBF(ag.fixed(3.0))], likelihoods).replace({"mean.values": ag.fixed([1.5, 3.0, 0.0])})
    wild = np.where(np.arange(14) % 2, 0.0, 60.0)
    data = {"calm": (ag.Points(X), np.full(14, 4.0)), "wild": (ag.Points(X), wild), "b": (ag.Points(X), Y)}
    with pytest.warns(UserWarning, match='the counts of task "wild" scatter') as caught:
        model.fit(data, inference=ag.SVI(inducing=4, optimise=False), progress=False)
    assert len(caught) == 1


def test_a_rank_above_the_number_of_tasks_is_refused():
    with pytest.raises(ValueError, match="at most 2, the number of functions that are mixed, but is 3"):
        ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian(), "b": ag.Gaussian()}, rank=3)


def test_one_variance_of_a_sum_is_that_of_the_mixing():
    (kernel,) = ag.MultiTaskGP([ag.RBF() + ag.Matern32()], {"a": ag.Gaussian()}).latents
    fixed = {p.path: p.mark.fixed for p in parameters(kernel) if p.role == "variance"}
    assert list(fixed.values()) == [True, False]


def test_units_of_a_task_do_not_matter():
    """log p(1000 y) = log p(y) - n log 1000, and the search goes the same way."""
    model = ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian(), "b": ag.Gaussian()})
    scheme, large = ag.Exact(restarts=0), {"a": DATA["a"], "b": (ag.Points(X), 1000 * Y)}
    posts = [model.fit(data, inference=scheme, progress=False) for data in (DATA, large)]
    assert posts[1].evidence == pytest.approx(posts[0].evidence - 14 * np.log(1000), abs=1e-3)
    first, second = (post.predict({"a": TEST})["a"] for post in posts)
    np.testing.assert_allclose(second.mean, first.mean, atol=1e-2)


def test_inducing_points_move_within_their_function():
    model = ag.MultiTaskGP([ag.RBF(1.0), ag.RBF(0.5)], {"a": ag.Gaussian(0.1), "b": ag.Gaussian(0.1)})
    scheme = ag.SVI(inducing=4, optimise_inducing=True, max_epochs=10)
    post = model.fit(DATA, inference=scheme, progress=False).joint
    start = model.inducing(4, post.observations.support, 0).center
    np.testing.assert_array_equal(post.inducing.center[:, 1], start[:, 1])
    assert np.abs(post.inducing.center[:, 0] - start[:, 0]).max() > 1e-3
