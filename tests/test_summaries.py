"""Learning from summaries: the evidence of all individuals from mean, variance, count; statistics of the families."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shapely
from scipy.stats import laplace, multivariate_normal, norm

import aggregauss as ag
from aggregauss.inference import exact
from aggregauss.inference.data import observe
from aggregauss.likelihoods.families import FAMILIES
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.models.gp import taken_by
from aggregauss.parameters import pack, unpack

RNG = np.random.default_rng(3)
X = RNG.uniform(0.0, 4.0, (60, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.4 * RNG.normal(size=60)
CELLS = ag.summarise(X, Y, grid=1.0, origin=[0.0, 0.0])
OWNER = np.unique(np.floor(X), axis=0, return_inverse=True)[1].ravel()
SUPPORTS = {"points": CELLS.points, "boxes": CELLS.regions, "bags": CELLS.bags}
KERNEL, KEEP = ag.RBF(1.3, 0.8), ag.Exact(optimise=False)


def _fit(model, support, summaries=CELLS, inference=KEEP, **others):
    known = {"counts": summaries.counts, "variances": summaries.variances}
    return model.fit(support, summaries.mean, **known, inference=inference, progress=False, **others)


@pytest.mark.parametrize("kind", SUPPORTS)
def test_evidence_from_summaries_is_that_of_all_individuals(kind):
    model = ag.GP(KERNEL, ag.SampleQuasi("gaussian", dispersion=0.2), mean=ag.Constant(0.5))
    W = np.eye(len(CELLS))[OWNER]
    K = np.asarray(ag.cov(KERNEL, SUPPORTS[kind], SUPPORTS[kind]))
    whole = multivariate_normal(np.full(60, 0.5), W @ K @ W.T + 0.2 * np.eye(60)).logpdf(Y)
    assert _fit(model, SUPPORTS[kind]).evidence == pytest.approx(whole, rel=1e-8)


def test_posterior_from_summaries_is_that_of_all_individuals_at_the_representative_points():
    everyone = ag.GP(KERNEL, ag.Gaussian(0.2)).fit(ag.Points(CELLS.points.center[OWNER]), Y, inference=KEEP)
    few = _fit(ag.GP(KERNEL, ag.SampleQuasi(dispersion=0.2)), CELLS.points)
    new = ag.Points(RNG.uniform(0.0, 4.0, (7, 2)))
    for one, other in zip(
        (few.predict(new), few.predict(new, "observation")),
        (everyone.predict(new), everyone.predict(new, "observation")),
    ):
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-7)
        np.testing.assert_allclose(one.variance, other.variance, rtol=1e-7)


def test_noise_learned_from_summaries_is_that_learned_from_all_individuals():
    everyone = ag.GP(KERNEL.freeze(), ag.Gaussian()).fit(
        ag.Points(CELLS.points.center[OWNER]), Y, inference=ag.Exact(restarts=0), progress=False
    )
    few = _fit(ag.GP(KERNEL.freeze(), ag.SampleQuasi()), CELLS.points, inference=ag.Exact(restarts=0))
    assert float(few.model.likelihood.dispersion) == pytest.approx(float(everyone.model.likelihood.variance), rel=1e-4)
    new = ag.Points([[1.0, 2.0]])
    beside = few.predict(new, "observation").variance - few.predict(new).variance
    np.testing.assert_allclose(beside, few.model.likelihood.dispersion)


def test_collapsed_with_inducing_points_at_the_summaries_is_exact():
    model = ag.GP(KERNEL, ag.SampleQuasi("gamma", dispersion=0.3), mean=ag.Constant(1.0))
    summaries = ag.summarise(X, np.exp(Y), grid=1.0, origin=[0.0, 0.0])
    collapsed = ag.Collapsed(inducing=summaries.points.center, optimise=False)
    one, other = (_fit(model, summaries.points, summaries, inference) for inference in (collapsed, KEEP))
    assert one.evidence == pytest.approx(other.evidence, abs=1e-4)
    np.testing.assert_allclose(one.predict(summaries.bags).mean, other.predict(summaries.bags).mean, rtol=1e-5)


def test_svi_with_inducing_points_at_the_summaries_is_exact():
    model = ag.GP(KERNEL, ag.SampleQuasi("poisson", dispersion=0.7), mean=ag.Constant(1.0))
    summaries = ag.summarise(X, np.round(np.exp(Y)), grid=1.0, origin=[0.0, 0.0])
    svi = ag.SVI(inducing=summaries.points.center, optimise=False)
    one, other = (_fit(model, summaries.points, summaries, inference) for inference in (svi, KEEP))
    assert one.evidence == pytest.approx(other.evidence, abs=1e-3)
    np.testing.assert_allclose(one.predict(summaries.points).mean, other.predict(summaries.points).mean, rtol=1e-4)


def test_response_over_bags_of_close_individuals_is_that_of_their_place():
    close = ag.Bags(
        np.repeat([[0.0], [1.0], [2.5]], 4, axis=0) + 1e-5 * RNG.normal(size=(12, 1)),
        np.repeat([0, 1, 2], 4),
        measure="mean",
    )
    places, y, n = ag.Points([0.0, 1.0, 2.5]), [1.0, 3.0, 0.5], [10, 20, 30]
    model = ag.GP(ag.RBF(1.0, 1.0), ag.SampleQuasi("poisson"), aggregation="response")
    svi = ag.SVI(inducing=[[0.0], [1.0], [2.5]], optimise=False)
    bags = model.fit(close, y, counts=n, inference=svi, progress=False).predict(places)
    exact = ag.GP(ag.RBF(1.0, 1.0), ag.SampleQuasi("poisson")).fit(places, y, counts=n, inference=KEEP).predict(places)
    np.testing.assert_allclose(bags.mean, exact.mean, rtol=1e-3)


def _log_likelihood(family, u, y, phi):
    """Of individuals y, given the latent u: from the densities themselves."""
    from scipy import stats

    eta = {"gaussian": u, "laplace": u, "binomial": 1 / (1 + np.exp(-u))}.get(family, np.exp(u))
    return {
        "gaussian": lambda: stats.norm(eta, np.sqrt(phi)).logpdf(y),
        "poisson": lambda: stats.poisson(eta).logpmf(y),
        "binomial": lambda: stats.bernoulli(eta).logpmf(y),
        "gamma": lambda: stats.gamma(1 / phi, scale=eta * phi).logpdf(y),
        "exponential": lambda: stats.expon(scale=eta).logpdf(y),
        "negative_binomial": lambda: stats.nbinom(1 / phi, 1 / (1 + phi * eta)).logpmf(y),
    }[family]().sum()


INDIVIDUALS = {
    "gaussian": [0.3, -1.0, 2.2, 0.9],
    "poisson": [0.0, 3.0, 1.0, 2.0, 4.0],
    "binomial": [0.0, 1.0, 1.0, 1.0, 0.0],
    "gamma": [0.4, 2.0, 1.1],
    "exponential": [0.4, 2.0, 1.1],
    "negative_binomial": [0.0, 7.0, 1.0, 2.0],
}


@pytest.mark.parametrize("family", INDIVIDUALS)
def test_statistic_and_variance_are_mode_and_curvature_of_the_likelihood(family):
    y = np.array(INDIVIDUALS[family])
    phi = 1.0 if not FAMILIES[family].open else 0.6
    likelihood = ag.SampleQuasi(family, dispersion=phi)
    n = np.array([float(len(y))])
    T = likelihood.statistic(np.array([y.mean()]), n)
    variance = float(likelihood.noise(Seen(jnp.asarray(T), jnp.asarray(n), jnp.zeros(1), jnp.ones(1)))[0])
    h = 1e-4
    low, top, high = (_log_likelihood(family, T[0] + step, y, phi) for step in (-h, 0.0, h))
    assert (high - low) / (2 * h) == pytest.approx(0.0, abs=1e-5)
    assert -(h**2) / (high - 2 * top + low) == pytest.approx(variance, rel=1e-4)


def test_variance_of_a_median_of_laplace_individuals():
    n = 100_001
    middle = np.random.default_rng(0).beta((n + 1) / 2, (n + 1) / 2, 20_000)  # the median of n uniform numbers
    medians = laplace.ppf(middle)  # of individuals with variance 2
    likelihood = ag.SampleQuasi("laplace", dispersion=2.0)
    seen = Seen(jnp.zeros(1), jnp.full(1, float(n)), jnp.zeros(1), jnp.ones(1))
    assert float(likelihood.noise(seen)[0]) == pytest.approx(medians.var(), rel=0.05)


def test_a_function_of_the_user_is_the_family_with_that_variance():
    y, n, points = [1.0, 2.0, 0.7], [5, 8, 3], ag.Points([0.0, 1.0, 3.0])
    own = ag.GP(ag.RBF(1.0, 1.0), ag.SampleQuasi(lambda mean: mean**2, link="exp", dispersion=0.4))
    named = ag.GP(ag.RBF(1.0, 1.0), ag.SampleQuasi("gamma", dispersion=0.4))
    one, other = (model.fit(points, y, counts=n, inference=KEEP) for model in (own, named))
    assert one.evidence == pytest.approx(other.evidence, rel=1e-12)
    np.testing.assert_allclose(one.predict(points, "observation").mean, other.predict(points, "observation").mean)


def test_half_an_event_at_the_ends_of_the_range():
    zero = ag.SampleQuasi("poisson").statistic(np.array([0.0, 2.0]), np.array([8.0, 8.0]))
    np.testing.assert_allclose(zero, np.log([1 / 16, 2.0]))
    ends = ag.SampleQuasi("binomial").statistic(np.array([0.0, 1.0, 0.25]), np.array([3.0, 3.0, 4.0]))
    np.testing.assert_allclose(ends, [np.log(0.5 / 3.5), np.log(3.5 / 0.5), np.log(1 / 3)])


def test_known_noise_reaches_the_statistic_through_the_link():
    likelihood = ag.SampleQuasi("poisson")
    seen = Seen(jnp.log(jnp.array([4.0])), jnp.array([10.0]), jnp.array([0.3]), jnp.ones(1))
    assert float(likelihood.noise(seen)[0]) == pytest.approx((4.0 / 10 + 0.3) / 16, rel=1e-12)


def test_region_effect_is_white_noise_at_the_points():
    effect = ag.SampleQuasi("gaussian", dispersion=0.2, region_effect=True, region_sd=0.5)
    white = ag.GP(KERNEL + ag.White(0.25), ag.SampleQuasi("gaussian", dispersion=0.2))
    assert _fit(ag.GP(KERNEL, effect), CELLS.points).evidence == pytest.approx(
        _fit(white, CELLS.points).evidence, rel=1e-10
    )


def test_overdispersed_counts_are_seen_in_their_variances():
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 10.0, 4000)
    y = rng.negative_binomial(4.0, 4.0 / (4.0 + np.exp(1.0 + np.sin(x)))).astype(float)
    cells = ag.summarise(x, y, grid=0.5, origin=0.0)
    kernel = ag.RBF(ag.fixed(1.5), ag.fixed(0.5))
    model = ag.GP(kernel, ag.SampleQuasi("negative_binomial"), mean=ag.Constant(ag.fixed(1.0)))
    post = _fit(model, cells.points, cells, inference=ag.Exact(restarts=0))
    assert float(post.model.likelihood.dispersion) == pytest.approx(0.25, rel=0.2)


def test_new_individuals_have_the_moments_of_the_family():
    y, n, points = [0.4, 0.6, 0.7], [50, 80, 30], ag.Points([0.0, 1.0, 3.0])
    for family in FAMILIES:
        likelihood = ag.SampleQuasi(family, dispersion=0.5 if FAMILIES[family].open else None)
        post = ag.GP(ag.RBF(1.0, 0.3), likelihood).fit(points, y, counts=n, inference=KEEP)
        response, new = post.predict(points), post.predict(points, "observation")
        eta, spread = response.mean, response.variance
        np.testing.assert_allclose(new.mean, eta, rtol=1e-6, err_msg=family)
        extra = FAMILIES[family].variance(jnp.asarray(eta), likelihood.dispersion)
        bend = {"negative_binomial": 0.5, "gamma": 0.5, "exponential": 1.0, "binomial": -1.0}.get(family, 0.0)
        np.testing.assert_allclose(new.variance, spread + extra + bend * spread, rtol=1e-6, err_msg=family)


def test_several_tasks_as_separate_models_when_nothing_is_shared():
    """Records of individuals beside summaries: with weights that share nothing the evidence is a sum."""
    kernel = ag.RBF(1.0, 1.0)
    model = ag.MultiTaskGP(
        [ag.RBF(ag.fixed(1.0)), ag.RBF(ag.fixed(1.0))],
        {"records": ag.Gaussian(0.1), "summaries": ag.SampleQuasi("poisson", dispersion=1.3)},
    )
    model = model.replace(
        {
            "mixing[0].weights": ag.fixed([1.0, 0.0]),
            "mixing[1].weights": ag.fixed([0.0, 1.0]),
            "mean.values": ag.fixed([0.2, 0.4]),
        }
    )
    places, y = ag.Points([0.3, 1.7]), [0.5, -0.4]
    boxes, ybar, n, s2 = ag.Intervals([0.0, 1.0], [1.0, 2.0], measure="mean"), [2.0, 700.0], [10.0, 20.0], [2.2, 680.0]
    together = model.fit(
        {"records": (places, y), "summaries": (boxes, ybar)},
        counts={"summaries": n},
        variances={"summaries": s2},
        inference=KEEP,
    )
    alone = ag.GP(kernel, ag.Gaussian(0.1), mean=ag.Constant(0.2)).fit(places, y, inference=KEEP)
    summaries = ag.GP(kernel, ag.SampleQuasi("poisson", dispersion=1.3), mean=ag.Constant(0.4))
    rest = summaries.fit(boxes, ybar, counts=n, variances=s2, inference=KEEP)
    assert together.evidence == pytest.approx(alone.evidence + rest.evidence, rel=1e-9)


def test_a_record_is_a_summary_of_one():
    both = ag.concatenate([CELLS.regions, ag.Points(X[:3])])
    model = ag.GP(KERNEL, ag.SampleQuasi(dispersion=0.2))
    one = model.fit(
        both,
        [*CELLS.mean, *Y[:3]],
        counts=[*CELLS.counts, 1, 1, 1],
        variances=[*CELLS.variances, *[np.nan] * 3],
        inference=KEEP,
    )
    K = np.asarray(ag.cov(KERNEL, both, both)) + 0.2 * np.diag(1 / np.array([*CELLS.counts, 1, 1, 1]))
    n, s2 = CELLS.counts, CELLS.variances
    within = -0.5 * np.sum((n - 1) * np.log(2 * np.pi * 0.2) + np.log(n) + n * s2 / 0.2)
    assert one.evidence == pytest.approx(
        multivariate_normal(np.zeros(len(K)), K).logpdf([*CELLS.mean, *Y[:3]]) + within, rel=1e-9
    )


def test_gradient_of_the_evidence_is_its_slope():
    model = ag.GP(
        KERNEL, ag.SampleQuasi("negative_binomial", dispersion=0.4, region_effect=True), mean=ag.Constant(1.0)
    )
    seen = observe(CELLS.regions, np.exp(CELLS.mean), None, CELLS.counts, 3 * CELLS.variances)
    data = taken_by(model.likelihood, seen, "latent").on_device()
    vector = pack(model)

    def value(v):
        return exact.log_evidence(unpack(model, v), data)

    slope, h = jax.grad(value)(vector), 1e-5
    for j in range(len(vector)):
        step = h * jnp.eye(len(vector))[j]
        assert float(slope[j]) == pytest.approx(
            float(value(vector + step) - value(vector - step)) / (2 * h), rel=1e-5, abs=1e-6
        )


def test_saved_and_loaded_posteriors_agree(tmp_path):
    post = _fit(ag.GP(KERNEL, ag.SampleQuasi(dispersion=0.2)), CELLS.regions)
    post.save(tmp_path / "fit.agz")
    new = ag.Points([[1.0, 1.0]])
    assert ag.load(tmp_path / "fit.agz").predict(new).mean == post.predict(new).mean


def test_summaries_are_those_of_numpy_in_every_cell():
    assert CELLS.counts.sum() == len(X)
    for j in range(len(CELLS)):
        own = Y[j == OWNER]
        assert CELLS.mean[j] == pytest.approx(own.mean())
        assert CELLS.median[j] == pytest.approx(np.median(own))
        assert CELLS.variances[j] == pytest.approx(own.var())
        np.testing.assert_array_equal(np.sort(CELLS.bags[j].center, axis=0), np.sort(X[j == OWNER], axis=0))
        assert (np.abs(CELLS.points.center[j] - X[j == OWNER]) <= 0.5).all()
    low, high = CELLS.regions.center - CELLS.regions.width / 2, CELLS.regions.center + CELLS.regions.width / 2
    np.testing.assert_allclose(high - low, 1.0)
    np.testing.assert_array_equal(CELLS.to_frame()["count"], CELLS.counts)


def test_areas_that_are_grid_cells_give_the_summaries_of_the_grid():
    areas = [shapely.box(i, j, i + 1, j + 1) for i in range(5) for j in range(4)]  # the last four are empty
    by_area = ag.summarise(X, Y, regions=areas)
    np.testing.assert_allclose(by_area.mean, CELLS.mean)
    np.testing.assert_allclose(by_area.points.center, CELLS.points.center)
    K = [np.asarray(ag.cov(KERNEL, s.regions, s.regions)) for s in (by_area, CELLS)]
    np.testing.assert_allclose(*K, rtol=1e-9)


def test_names_of_regions_are_kept():
    named = ag.summarise(X, Y, regions=np.array(["b", "a", "c"])[np.arange(60) % 3])
    assert named.bags.labels.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(named.mean, [Y[1::3].mean(), Y[::3].mean(), Y[2::3].mean()])
    np.testing.assert_allclose(named.points.center[0], X[1::3].mean(axis=0))


def test_density_of_a_statistic_is_normal():
    likelihood = ag.SampleQuasi("exponential")
    got = likelihood.log_prob(jnp.array([0.3]), jnp.array([2.0]), jnp.array([5.0]))
    assert float(got[0]) == pytest.approx(norm(np.log(2.0), np.sqrt(1 / 5)).logpdf(0.3), rel=1e-12)


def test_regions_without_events_say_nothing_of_the_dispersion():
    """Poisson counts have φ = 1 however rare: many regions are all zeros and scatter by nothing, which is not φ = 0."""
    rng = np.random.default_rng(8)
    x = rng.uniform(0.0, 10.0, 4000)
    cells = ag.summarise(x, rng.poisson(0.04, 4000).astype(float), grid=0.05, origin=0.0)
    assert (cells.mean == 0).mean() > 0.3
    model = ag.GP(ag.RBF(ag.fixed(3.0), ag.fixed(0.1)), ag.SampleQuasi("poisson", dispersion=2.0), mean=ag.Constant())
    post = _fit(model, cells.points, cells, inference=ag.Exact(restarts=0))
    assert float(post.model.likelihood.dispersion) == pytest.approx(1.0, abs=0.15)


def test_variances_of_zeros_and_ones_say_nothing_of_the_dispersion():
    y, n, points = np.array([0.2, 0.5, 0.9]), [10, 20, 30], ag.Points([0.0, 1.0, 3.0])
    model = ag.GP(ag.RBF(1.0, 1.0), ag.SampleQuasi("binomial", dispersion=3.0))
    one, other = (model.fit(points, y, counts=n, variances=s2, inference=KEEP) for s2 in (y * (1 - y), None))
    assert one.evidence == other.evidence


def test_effective_counts_may_have_fractions():
    """A weighted sample of n with unequal weights is worth fewer: V is that of a mean of so many."""
    post = ag.GP(KERNEL, ag.SampleQuasi(dispersion=0.2)).fit(
        ag.Points([[0.0, 0.0]]), [0.7], counts=[3.7], inference=KEEP
    )
    assert post.evidence == pytest.approx(norm(0.0, np.sqrt(0.8 + 0.2 / 3.7)).logpdf(0.7), rel=1e-9)


def test_areas_as_a_support_are_areas():
    areas = [shapely.box(i, j, i + 1, j + 1) for i in range(4) for j in range(4)]
    one, other = (ag.summarise(X, Y, regions=r) for r in (areas, ag.Polygons(areas)))
    np.testing.assert_array_equal(one.mean, other.mean)
    assert len(ag.summarise(X, Y, regions=shapely.box(0, 0, 4, 4))) == 1


def test_areas_as_a_support_keep_their_names_and_their_atoms():
    import geopandas as gpd

    named = gpd.GeoSeries([shapely.box(0, 0, 2, 4), shapely.box(2, 0, 4, 4)], index=["a", "b"])
    areas = ag.Polygons(named, method="centroids", atoms=50, seed=3)
    found = ag.summarise(X, Y, regions=areas)
    assert found.regions.labels.tolist() == ["a", "b"]
    assert found.regions.measure == "mean"
    np.testing.assert_array_equal(found.regions.center, areas.center)
