"""Sparse variational inference: equal to exact inference where that is known, and to dense formulas elsewhere.

Everything lives on eight supports, two points and six bags of three, and has eight inducing points, so that a handful
of compiled programs serves all tests.
"""

import json
import zipfile
from types import SimpleNamespace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import aggregauss as ag
from aggregauss.inference import Posterior, ascent, batches, profile
from aggregauss.inference.conditional import sparse_conditional
from aggregauss.inference.data import observe
from aggregauss.inference.groups import choose_shapes, epoch_batches
from aggregauss.inference.inducing import JITTER, on_device
from aggregauss.inference.passes import Passes
from aggregauss.inference.posterior import pearson
from aggregauss.inference.variational import Moments2, by_moments
from aggregauss.parameters import pack, parameters

RNG = np.random.default_rng(11)
SITES = np.linspace(0.2, 4.8, 8)[:, None]
WEIGHTS = RNG.uniform(4.0, 12.0, 18)
OWNERS = np.repeat(np.arange(6), 3)


def _supports(bag_places, point_places, weights=WEIGHTS):
    return ag.concatenate([ag.Points(point_places), ag.Bags(bag_places, OWNERS, weights)])


SHARED = _supports(SITES[np.concatenate([RNG.choice(8, 3, replace=False) for _ in range(6)])], SITES[:2])
PLACES = RNG.uniform(0.0, 5.0, (20, 1))
APART = _supports(PLACES[2:], PLACES[:2])
ELSEWHERE = ag.concatenate([ag.Points([[0.7], [3.3]]), ag.Bags([[1.0], [2.0], [2.5]], [0, 0, 0], [1.0, 3.0, 0.5])])
TIGHT = 1e-9


# Gaussian noise: the answer is known.

NOISY = ag.GP(ag.RBF(0.9, 0.8), ag.Gaussian(0.05, per="individual"), mean=ag.Constant(0.4))
Y = RNG.normal(size=8) * np.sqrt(SHARED.mass)
KNOWN = RNG.uniform(0.1, 0.5, 8)


@pytest.fixture(scope="module")
def normal():
    """Three schemes with inducing points at all places, then with fewer than there are places."""
    schemes = {
        "exact": ag.Exact(optimise=False),
        "collapsed": ag.Collapsed(inducing=SITES, optimise=False),
        "svi": ag.SVI(inducing=SITES, optimise=False, tolerance=TIGHT),
    }
    return {
        (name, where): NOISY.fit(support, Y, KNOWN, inference=scheme, progress=False)
        for name, scheme in schemes.items()
        for where, support in (("shared", SHARED), ("apart", APART))
    }


def _same(a, b, rtol=1e-5):
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.variance, b.variance, rtol=10 * rtol, atol=rtol)


def test_noise_of_every_individual_adds_up_over_its_support(normal):
    K = np.asarray(ag.cov(NOISY.kernel, SHARED)) + np.diag(KNOWN + 0.05 * SHARED.square_weight)
    assert normal["exact", "shared"].evidence == pytest.approx(
        stats.multivariate_normal(0.4 * SHARED.mass, K).logpdf(Y), rel=1e-8
    )
    svi, bags = normal["svi", "shared"], SHARED[2:]
    noise = svi.predict(bags, "observation").variance - svi.predict(bags).variance
    np.testing.assert_allclose(noise, 0.05 * np.bincount(OWNERS, WEIGHTS**2), rtol=1e-9)


@pytest.mark.parametrize("scheme", ["collapsed", "svi"])
def test_inducing_points_at_all_places_give_the_exact_posterior(scheme, normal):
    exact, sparse = normal["exact", "shared"], normal[scheme, "shared"]
    assert sparse.evidence == pytest.approx(exact.evidence, rel=1e-5)
    for support in (ELSEWHERE, SHARED):
        _same(sparse.predict(support), exact.predict(support))
    np.testing.assert_allclose(
        sparse.predict(ELSEWHERE).covariance, exact.predict(ELSEWHERE).covariance, rtol=1e-4, atol=1e-5
    )


def test_fewer_inducing_points_bound_the_evidence_and_both_schemes_find_the_best_q(normal):
    exact, collapsed, svi = (normal[scheme, "apart"] for scheme in ("exact", "collapsed", "svi"))
    assert collapsed.evidence < exact.evidence
    assert svi.evidence == pytest.approx(collapsed.evidence, rel=1e-8)
    _same(svi.predict(ELSEWHERE), collapsed.predict(ELSEWHERE), rtol=1e-7)


# Counts.

COUNTS = RNG.poisson(APART.integrate(np.exp(0.3 + np.sin(APART.center[:, 0])))).astype(float)
MODEL = ag.GP(ag.RBF(1.2, 0.6), ag.Poisson(), mean=ag.Constant(0.4), aggregation="response")
_FIXED = MODEL.freeze()
SQUARE = ag.GP(ag.RBF(1.2, 0.3), ag.Poisson("square"), mean=ag.Constant(1.2), aggregation="response")


def _fit(model=MODEL, support=APART, y=COUNTS, **settings):
    settings = {"inducing": SITES, **settings}
    return model.fit(support, y, inference=ag.SVI(**settings), progress=False)


@pytest.fixture(scope="module")
def post():
    return _fit(tolerance=1e-6, integrate=False)


@pytest.fixture(scope="module")
def square():
    """Some q or other: what follows from it is the same."""
    q = ascent.moments(_state(), natural=True)
    conditional = sparse_conditional(SQUARE, on_device(ag.Points(SITES)), q, JITTER["float64"])
    return Posterior(SQUARE, observe(APART, COUNTS, None), None, conditional, 0.0, "SVI", inducing=ag.Points(SITES))


def _passes(batch=8, natural=True, move_inducing=False):
    settings = ascent.Settings("matched", "float64", natural, move_inducing)
    observations = observe(APART, COUNTS, None)
    shapes = choose_shapes(observations, batch, 8, 32, np.dtype(float))
    return Passes(MODEL, observations, settings, shapes, 0)


def _state(seed=0):
    """Somewhere off the optimum."""
    rng = np.random.default_rng(seed)
    state = ascent.init(pack(MODEL), on_device(ag.Points(SITES)), 8, 0.05, 0.5)
    root = jnp.asarray(np.tril(0.1 * rng.normal(size=(8, 8))) - 0.7 * np.eye(8))
    q = Moments2(jnp.asarray(0.5 * rng.normal(size=8)), ascent._root(root) @ ascent._root(root).T)
    free = state.free._replace(mean=q.mean, root=root)
    return state._replace(free=free, q=by_moments(q))


def test_slopes_of_the_bound_agree_with_finite_differences():
    passes, state = _passes(natural=False, move_inducing=True), _state()
    held = passes.hold()
    slopes = passes.over(state, held).free
    rng = np.random.default_rng(1)
    for of in (lambda x: x.vector, lambda x: x.Z.center, lambda x: x.mean, lambda x: x.root):
        value, step = of(state.free), 1e-5
        towards = jnp.asarray(rng.normal(size=value.shape))
        towards = jnp.tril(towards) if value is state.free.root else towards
        moved = (eqx.tree_at(of, state.free, value + s * towards) for s in (step, -step))
        ends = [float(passes.over(state._replace(free=free), held).objective) for free in moved]
        assert jnp.sum(of(slopes) * towards) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)


def test_batches_average_to_the_whole():
    passes, state = _passes(batch=4), _state()
    parts = [passes.batch(state, rows, 0, i, 2.0) for i, rows in enumerate(epoch_batches(8, 4, 0, 0))]
    whole = _passes().over(state, _passes().hold())
    assert np.mean([part.objective for part in parts]) == pytest.approx(float(whole.objective), rel=1e-10)
    np.testing.assert_allclose(np.mean([part.free.vector for part in parts], axis=0), whole.free.vector, rtol=1e-8)


@pytest.mark.parametrize(
    "settings", [{"batch_size": 4}, {"gradients": "adam", "learning_rate": 0.1}], ids=["batches", "adam"]
)
def test_small_steps_arrive_near_where_the_profile_search_does(settings, post):
    near = _fit(max_epochs=200, **settings)
    away = np.abs(near.predict(APART).mean - post.predict(APART).mean) / post.predict(APART).std
    assert near.evidence == pytest.approx(post.evidence, abs=1.0)
    assert away.max() < 1.0
    assert away.mean() < 0.4


# Runs that stop.


@pytest.mark.parametrize("settings", [{"batch_size": 4}, {}], ids=["batches", "whole passes"])
def test_a_resumed_run_is_the_uninterrupted_one(settings, tmp_path):
    whole = _fit(max_epochs=12, **settings)
    path = tmp_path / "run"
    _fit(max_epochs=7 if settings else 2, checkpoint=path, checkpoint_every=3, **settings)
    resumed = _fit(max_epochs=12, checkpoint=path, checkpoint_every=3, **settings)
    assert resumed.runs[0].path == whole.runs[0].path
    np.testing.assert_array_equal(resumed.conditional.alpha, whole.conditional.alpha)
    np.testing.assert_array_equal(resumed.conditional.root, whole.conditional.root)
    assert [p.value.tolist() for p in parameters(resumed.model)] == [p.value.tolist() for p in parameters(whole.model)]


def test_a_resumed_search_returns_to_the_best_that_was_seen_before(tmp_path, monkeypatch):
    """The search begins near the top, comes down, and ends there; once it is interrupted on the way."""
    stops = []

    def downhill(profile, template, start, most, tolerance):
        for shift in (0.0, 1.0, 2.0):
            if stops == [shift]:
                raise KeyboardInterrupt
            profile(start + shift)
        return start + 2.0, "converged"

    monkeypatch.setattr(profile, "search", downhill)
    settings = {"integrate": False, "checkpoint": tmp_path / "run", "checkpoint_every": 1}
    whole = _fit(integrate=False)
    stops.append(2.0)
    with pytest.raises(KeyboardInterrupt):
        _fit(**settings)
    stops.clear()
    resumed = _fit(**settings)
    assert resumed.runs[0].path == whole.runs[0].path
    assert whole.evidence == pytest.approx(max(whole.runs[0].path), rel=1e-9)
    np.testing.assert_array_equal(resumed.conditional.root, whole.conditional.root)
    assert [p.value.tolist() for p in parameters(resumed.model)] == [p.value.tolist() for p in parameters(whole.model)]


OTHERS = {
    "model": {"model": MODEL.replace({"kernel.lengthscale": 2.0})},
    "counts": {"y": COUNTS + 1},
    "places": {"support": APART.rescaled(np.array([0.1]), np.array([1.0]))},
    "weights": {"support": _supports(PLACES[2:], PLACES[:2], 2 * WEIGHTS)},
    "settings": {"tolerance": 0.5},
}


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    path = tmp_path / "run"
    _fit(max_epochs=1, checkpoint=path)
    for changes in OTHERS.values():
        with pytest.raises(ValueError, match="belongs to another model, other data or other settings"):
            _fit(max_epochs=1, checkpoint=path, **changes)
    path.write_text("not a checkpoint")
    with pytest.raises(ValueError, match=r'"checkpoint" .*run cannot be read as a saved run. Delete it, or give an'):
        _fit(max_epochs=1, checkpoint=path)


def test_a_run_that_diverges_returns_the_last_good_state(monkeypatch):
    monkeypatch.setattr(batches, "FAILURES", 0)
    with pytest.warns(UserWarning, match="last good state|times as much") as caught:
        post = _fit(batch_size=4, learning_rate=1e6, max_epochs=50)
    assert "The last good state is returned" in str(caught[0].message)
    assert post.runs[0].message.startswith("diverged")
    assert not post.runs[0].converged
    assert np.isfinite(post.predict(APART).mean).all()


@pytest.mark.filterwarnings("ignore:SVI. the counts scatter")
def test_a_run_that_goes_astray_finds_its_way_with_smaller_steps():
    post = _fit(batch_size=4, learning_rate=1e6, max_epochs=50)
    assert not post.runs[0].message.startswith("diverged")
    assert post.evidence > post.runs[0].path[0] + 10.0


def test_counts_that_scatter_too_much_are_called_out():
    stiff = MODEL.replace({"kernel.lengthscale": 30.0})
    with pytest.warns(UserWarning, match=r"times as much as Poisson counts would.*region_effect=True"):
        post = _fit(stiff, y=np.where(np.arange(8) % 2, 0.0, 10 * COUNTS.max()), optimise=False)
    assert post.dispersion() > 10


def test_a_mean_that_vanished_in_rounding_is_called_out_too(post, monkeypatch):
    nothing = np.zeros(len(post.observations.y))
    monkeypatch.setattr(Posterior, "predict", lambda *_, **__: SimpleNamespace(mean=nothing, variance=nothing))
    assert pearson(post)[0] > 1e6


# Predictions.


def _quantiles(prediction):
    return np.stack([prediction.quantile(p) for p in (0.01, 0.3, 0.9)])


def test_the_rate_at_a_point_is_log_normal(post):
    latent, rate = (post.predict(ag.Points(SITES), kind) for kind in ("latent", "response"))
    truth = stats.lognorm(latent.std, scale=np.exp(latent.mean))
    np.testing.assert_allclose(rate.mean, truth.mean(), rtol=1e-9)
    np.testing.assert_allclose(rate.variance, truth.var(), rtol=1e-9)
    np.testing.assert_allclose(_quantiles(rate), truth.ppf([[0.01], [0.3], [0.9]]), rtol=1e-9)


def test_the_rate_at_a_point_is_non_central_chi_squared(square):
    latent, rate = (square.predict(ag.Points(SITES), kind) for kind in ("latent", "response"))
    truth = stats.ncx2(1, latent.mean**2 / latent.variance, scale=latent.variance)
    np.testing.assert_allclose(rate.mean, truth.mean(), rtol=1e-9)
    np.testing.assert_allclose(rate.variance, truth.var(), rtol=1e-9)
    np.testing.assert_allclose(_quantiles(rate), truth.ppf([[0.01], [0.3], [0.9]]), rtol=1e-6)


@pytest.mark.parametrize("name", ["post", "square"])
def test_a_bag_of_one_is_its_individual_times_its_weight(name, request):
    fitted, weight = request.getfixturevalue(name), np.arange(1.0, 9.0)
    alone = fitted.predict(ag.Bags(SITES, np.arange(8), weight))
    point = fitted.predict(ag.Points(SITES))
    np.testing.assert_allclose(alone.mean, weight * point.mean, rtol=1e-6)
    np.testing.assert_allclose(alone.variance, weight**2 * point.variance, rtol=1e-5)
    np.testing.assert_allclose(_quantiles(alone), weight * _quantiles(point), rtol=1e-4)


@pytest.mark.parametrize("name", ["post", "square"])
def test_bags_have_the_moments_of_joint_draws_and_their_counts_the_coverage(name, request):
    fitted, bags = request.getfixturevalue(name), APART[2:]
    each = fitted.predict(ag.Points(bags.center), "latent")
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(each.mean, each.covariance, 30_000, method="eigh")
    g = bags.weight * (np.exp(draws) if name == "post" else draws**2)
    eta = g.reshape(len(g), 6, 3).sum(axis=2)
    rate, counts = fitted.predict(bags), fitted.predict(bags, "observation")
    points = fitted.predict(ag.Points(bags.center))
    np.testing.assert_allclose(rate.mean, bags.integrate(points.mean), rtol=1e-9)
    np.testing.assert_allclose(rate.mean, eta.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(rate.variance, eta.var(axis=0), rtol=0.04)
    new = rng.poisson(eta)
    np.testing.assert_allclose(counts.mean, new.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(counts.variance, new.var(axis=0), rtol=0.03)
    low, high = counts.interval(0.9)
    inside = np.mean((new >= low) & (new <= high), axis=0)
    below = np.mean((new > low) & (new < high), axis=0)  # a central interval of counts has at least its level
    assert (inside > 0.89).all()
    assert (below < 0.91).all()
    sampled = rate.sample(0, 5_000)
    np.testing.assert_allclose(sampled.mean(axis=0), rate.mean, rtol=0.02)
    np.testing.assert_allclose(np.corrcoef(sampled.T), np.corrcoef(eta.T), atol=0.2)  # to first order
    np.testing.assert_allclose(counts.sample(0, 5_000).mean(axis=0), counts.mean, rtol=0.02)


def test_a_saved_posterior_predicts_the_same_without_its_individuals(post, tmp_path):
    post.save(tmp_path / "fit.agz")
    again = ag.load(tmp_path / "fit.agz")
    for kind in ("latent", "response", "observation"):
        np.testing.assert_array_equal(again.predict(APART, kind).mean, post.predict(APART, kind).mean)
    with zipfile.ZipFile(tmp_path / "fit.agz") as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        stored = np.concatenate([np.lib.format.read_array(archive.open(name)).ravel() for name in members])
        assert "Poisson" in json.dumps(json.loads(archive.read("manifest.json")))
    assert not np.isin(PLACES, stored).any()
    assert not np.isin(WEIGHTS, stored).any()


def test_single_precision_predicts_the_same():
    dense = ag.Bags(np.linspace(0, 5, 60), np.arange(60) // 6)
    y = np.round(6 * np.exp(np.sin(np.arange(10.0))))
    single, double = (_fit(_FIXED, dense, y, inducing=25, dtype=d) for d in ("float32", "float64"))
    one, two = (p.predict(ag.Points(np.linspace(0, 5, 20)), "latent") for p in (single, double))
    np.testing.assert_allclose(one.mean, two.mean, atol=0.005 * two.std.min())
    np.testing.assert_allclose(one.std, two.std, rtol=0.005)


# Covariates on their own scale.


def test_standardising_is_what_one_would_do_by_hand(post):
    center, scale = APART.center.mean(axis=0), APART.center.std(axis=0)
    by_hand = _fit(support=_supports((PLACES[2:] - center) / scale, (PLACES[:2] - center) / scale), inducing=8)
    asked = MODEL.fit(APART, COUNTS, inference=ag.SVI(inducing=8), standardise=True, progress=False)
    assert asked.evidence == pytest.approx(by_hand.evidence, rel=1e-9)
    x = np.linspace(0, 5, 8)[:, None]
    _same(asked.predict(ag.Points(x)), by_hand.predict(ag.Points((x - center) / scale)), rtol=1e-7)
    _same(asked.predict(APART), by_hand.predict(by_hand.observations.support), rtol=1e-7)
    assert asked.dispersion() == pytest.approx(by_hand.dispersion(), rel=1e-7)


# Linear effects.

TABLE = np.column_stack([RNG.normal(3.0, 2.0, 20), RNG.normal(-1.0, 0.5, 20)])
FIELDS = _supports(TABLE[2:], TABLE[:2]).with_measure("mean")
EFFECTS = ag.LinearEffects([0, 1], sd=[0.5, 2.0], intercept_sd=1.5, value=ag.fixed(0.3), names=["rain", "height"])
SEEN = FIELDS.integrate(1.0 + 0.4 * TABLE[:, 0] - 0.8 * TABLE[:, 1]) + 0.3 * RNG.normal(size=8)


def _regression(H, prior, covariance, residual):
    """Posterior mean and covariance of coefficients with a normal prior, seen through noise of the given covariance."""
    precision = np.diag(1 / prior**2) + H.T @ np.linalg.solve(covariance, H)
    spread = np.linalg.inv(precision)
    return spread @ H.T @ np.linalg.solve(covariance, residual), spread


def _check_effects(table, mean, spread, value=0.3):
    mean = mean + np.array([value, 0.0, 0.0])
    reach = stats.norm.ppf(0.975) * np.sqrt(np.diag(spread))
    assert list(table.index) == ["intercept", "rain", "height"]
    np.testing.assert_allclose(table["mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(table["std"], np.sqrt(np.diag(spread)), rtol=1e-4)
    np.testing.assert_allclose(table["lower"], mean - reach, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(table["upper"], mean + reach, rtol=1e-3, atol=1e-4)


SCHEMES = {
    "exact": ag.Exact(optimise=False),
    "collapsed": ag.Collapsed(inducing=TABLE, optimise=False),
    "svi": ag.SVI(inducing=TABLE, optimise=False, tolerance=TIGHT),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kernel", [None, ag.RBF([4.0, 1.0], 0.4)], ids=["alone", "with a kernel"])
def test_effects_are_those_of_bayesian_regression(scheme, kernel):
    model = ag.GP(kernel, ag.Gaussian(0.09), mean=EFFECTS)
    post = model.fit(FIELDS, SEEN, inference=SCHEMES[scheme], progress=False)
    H = FIELDS.integrate(np.column_stack([np.ones(20), TABLE]))
    covariance = 0.09 * np.eye(8) + (0.0 if kernel is None else np.asarray(ag.cov(kernel, FIELDS)))
    prior = np.array([1.5, 0.5, 2.0])
    _check_effects(post.effects(), *_regression(H, prior, covariance, SEEN - 0.3))
    marginal = stats.multivariate_normal(np.full(8, 0.3), covariance + H @ np.diag(prior**2) @ H.T)
    assert post.evidence == pytest.approx(marginal.logpdf(SEEN), rel=1e-5)


@pytest.mark.parametrize("sd", [0.1, 1.0])
def test_effects_on_counts_agree_with_integration_however_wide_their_prior(sd):
    rng = np.random.default_rng(0)
    x, p, first = rng.uniform(0.0, 10.0, 60), rng.uniform(1.0, 5.0, 60), np.arange(0, 60, 5)
    y = rng.poisson(np.add.reduceat(p * np.exp(0.1 * x - 0.5), first))
    model = ag.GP(None, ag.Poisson(), aggregation="response", mean=ag.LinearEffects([0], sd, value=ag.fixed(0.0)))
    post = model.fit(ag.Bags(x, np.arange(60) // 5, weights=p), y, inference=ag.SVI(), progress=False)
    a, b = np.meshgrid(np.linspace(-3.0, 2.0, 201), np.linspace(-0.5, 0.6, 201), indexing="ij")
    rate = np.add.reduceat(p * np.exp(a[..., None] + b[..., None] * x), first, axis=-1)
    log = np.sum(y * np.log(rate) - rate, axis=-1) - 0.5 * (a / 3.0) ** 2 - 0.5 * (b / sd) ** 2
    weight = np.exp(log - log.max())
    for name, value in (("intercept", a), ("x0", b)):
        mean = np.average(value, weights=weight)
        std = np.sqrt(np.average((value - mean) ** 2, weights=weight))
        assert post.effects()["mean"][name] == pytest.approx(mean, abs=0.1 * std)
        assert post.effects()["std"][name] == pytest.approx(std, rel=0.1)


def test_effects_come_in_the_user_s_units():
    """The prior is on standardised covariates; its posterior is a linear map away."""
    post = ag.GP(None, ag.Gaussian(0.09), mean=EFFECTS).fit(
        FIELDS, SEEN, inference=ag.Exact(optimise=False), standardise=True
    )
    center, scale = TABLE.mean(axis=0), TABLE.std(axis=0)
    H = FIELDS.integrate(np.column_stack([np.ones(20), (TABLE - center) / scale]))
    mean, spread = _regression(H, np.array([1.5, 0.5, 2.0]), 0.09 * np.eye(8), SEEN - 0.3)
    back = np.diag([1.0, *1 / scale])
    back[0, 1:] = -center / scale
    _check_effects(post.effects(), back @ mean, back @ spread @ back.T)


def test_the_same_effects_in_two_units_are_the_same_model():
    """Covariates about zero, so that the intercept means the same in both."""
    middle = TABLE - TABLE.mean(axis=0)
    fields = _supports(middle[2:], middle[:2]).with_measure("mean")
    sds = np.array([0.5, 2.0])
    per_sd, per_unit = (
        ag.LinearEffects([0, 1], sd=sd, intercept_sd=1.5, value=ag.fixed(0.3)) for sd in (sds * middle.std(axis=0), sds)
    )
    keep = ag.Exact(optimise=False)
    asked = ag.GP(None, ag.Gaussian(0.09), mean=per_sd).fit(fields, SEEN, inference=keep, standardise=True)
    plain = ag.GP(None, ag.Gaussian(0.09), mean=per_unit).fit(fields, SEEN, inference=keep)
    np.testing.assert_allclose(asked.effects(), plain.effects(), rtol=1e-8, atol=1e-10)
    _same(asked.predict(fields), plain.predict(fields), rtol=1e-8)
