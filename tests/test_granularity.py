"""Representative points: the bound η, what it bounds, and the grid that keeps it low."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.stats import chi2

import aggregauss as ag
from aggregauss.inference.granularity import granularity, represented
from aggregauss.inference.representative import difference, interpolation, least_eta
from aggregauss.kernels.white import continuous

KERNELS = {
    "rbf": ag.RBF(0.7, 2.0),
    "exponential": ag.Matern12(1.0, 1.0),
    "sum": ag.RBF(0.3, 0.5) + ag.Periodic(period=2.0),
    "not stationary": ag.Linear(1.0) + ag.Matern32(0.5, 1.0),
}
X = np.random.default_rng(1).uniform(0.5, 5.5, 60)
CELLS = ag.Intervals(np.arange(6.0), np.arange(1.0, 7.0), measure="mean")
CENTERS = np.arange(0.5, 6.0)
OWNER = np.floor(X).astype(int)


def _between(kernel, owner=OWNER, x=X, z=CENTERS):
    return difference(kernel, x[:, None], z[owner][:, None], np.full(len(x), 1 / len(x)))


def _draws(kernel, count=20_000):
    """f at the places and at their points, from the joint prior over both."""
    both = ag.Points(np.concatenate([X, CENTERS]))
    K = np.asarray(ag.cov(kernel, both))
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    f = np.random.default_rng(2).standard_normal((count, len(both))) @ root.T
    return f[:, : len(X)], f[:, len(X) :][:, OWNER], K[: len(X), : len(X)]


@pytest.mark.parametrize("name", KERNELS)
def test_eta_is_above_the_simulated_quantity_and_not_far(name):
    f, u, K = _draws(KERNELS[name])
    away = np.sort(np.sqrt(np.mean((f - u) ** 2, axis=1) / np.mean(np.diag(K))))
    simulated = min(1.0, np.min(away + 1 - np.arange(1, len(away) + 1) / len(away)))
    eta = float(_between(KERNELS[name]).eta)
    assert simulated - 0.005 <= eta <= 1.6 * simulated


@pytest.mark.parametrize("name", KERNELS)
def test_errors_and_beta_by_their_definitions(name):
    f, u, K = _draws(KERNELS[name])
    got = _between(KERNELS[name])
    np.testing.assert_allclose(got.error, np.sqrt(np.mean((f - u) ** 2) / np.mean(np.diag(K))), rtol=0.02)
    Z = ag.Points(CENTERS[OWNER])
    zz, zx = np.asarray(ag.cov(KERNELS[name], Z)), np.asarray(ag.cov(KERNELS[name], Z, ag.Points(X)))
    np.testing.assert_allclose(got.beta, max(np.abs(K - zz).max(), np.abs(K - zx).max()), rtol=1e-10)


def test_the_tail_of_one_squared_normal_is_bounded_as_chernoff_says():
    variance = 0.01
    delta = np.linspace(0.1, 1.0, 20_000)
    chernoff = np.exp(0.5 * (1 - delta**2 / variance)) * delta / np.sqrt(variance)
    expected = np.min(delta + np.minimum(chernoff, 1.0))
    np.testing.assert_allclose(least_eta(np.array([0.0, variance])), expected, rtol=5e-3)
    exact = np.min(delta + chi2.sf(delta**2 / variance, 1))
    assert exact < expected


def test_no_difference_no_loss_and_no_promise_beyond_one():
    assert float(_between(KERNELS["rbf"], np.arange(60), X, X).eta) < 1e-6
    assert float(_between(ag.RBF(0.01, 1.0)).eta) == 1.0


def test_units_of_the_function_and_of_the_places_do_not_matter():
    base, scaled = _between(ag.RBF(0.7, 1.0)), _between(ag.RBF(70.0, 9.0), x=100 * X, z=100 * CENTERS)
    np.testing.assert_allclose([base.eta, base.error], [scaled.eta, scaled.error], rtol=1e-10)
    np.testing.assert_allclose(scaled.beta, 9 * base.beta, rtol=1e-10)


def test_printed_quantities_by_their_definitions():
    kernel, W, n, m = KERNELS["exponential"], np.eye(6)[OWNER], len(X), 6
    uu, fu, ff = (
        np.asarray(ag.cov(kernel, ag.Points(a), ag.Points(b))) for a, b in ((CENTERS, CENTERS), (X, CENTERS), (X, X))
    )
    A = fu @ np.linalg.inv(uu)
    got = interpolation(kernel, X[:, None], CENTERS[:, None], OWNER, np.full(n, 1 / n), float(n))
    expected = (
        np.abs(W - A).max(),
        n / (m * np.linalg.norm(W - A, 2) ** 2),
        np.linalg.norm(uu, 2),
        np.linalg.norm(ff - A @ fu.T, 2),
    )
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)
    xi = np.linspace(1.451974, 20, 50_000)
    delta = np.sqrt(xi * expected[2] / expected[1]) + np.sqrt(xi * expected[3])
    np.testing.assert_allclose(got.eta, np.min(delta + chi2.sf(xi * m, m)), rtol=1e-3)


@pytest.mark.parametrize("kernel", [ag.Matern12, ag.RBF])
def test_eta_falls_with_cells_and_lengthscale_while_the_printed_one_rises(kernel):
    x = np.linspace(0, 2 * np.pi, 200)

    def both(cells, lengthscale):
        z = np.linspace(0, 2 * np.pi, cells)
        return granularity(kernel(lengthscale, 1.0), z, represented(ag.Points(z), x, None).regions)

    finer = [both(cells, 3.0) for cells in (8, 16, 32, 64)]
    smoother = [both(16, lengthscale) for lengthscale in (0.5, 1.0, 3.0, 10.0)]
    for path in (finer, smoother):
        assert (np.diff([g.eta for g in path]) < 0).all()
    assert finer[-1].eta_printed > finer[1].eta_printed > 1 > finer[1].eta


def test_error_of_a_summary_is_that_of_its_mean():
    f, u, K = _draws(KERNELS["rbf"])
    got = granularity(KERNELS["rbf"], CENTERS[np.unique(OWNER)], ag.Bags(X, OWNER, measure="mean"))
    member = np.eye(6)[OWNER][:, np.unique(OWNER)]
    share = member.sum(axis=0) / len(X)
    away = (f - u) @ member / member.sum(axis=0)
    expected = np.sqrt(np.sum(share * np.mean(away**2, axis=0)) / np.mean(np.diag(K)))
    np.testing.assert_allclose(got.summary_error, expected, rtol=0.02)
    assert got.summary_error < got.place_error


def test_cells_are_the_limit_of_many_places_in_them():
    many = (np.arange(600) + 0.5) / 100
    cells = granularity(ag.RBF(1.0, 1.0), CENTERS, CELLS)
    places = granularity(ag.RBF(1.0, 1.0), CENTERS, ag.Bags(many, np.floor(many).astype(int)))
    for name in ("eta", "place_error", "summary_error"):
        np.testing.assert_allclose(getattr(cells, name), getattr(places, name), rtol=0.01)


def test_counts_decide_which_regions_matter():
    cells = ag.Intervals([0.0, 1.0], [1.0, 1.1], measure="mean")
    wide, narrow = (granularity(ag.RBF(1.0, 1.0), [0.5, 1.05], cells, counts) for counts in ([99, 1], [1, 99]))
    assert narrow.place_error < 0.3 * wide.place_error
    assert wide.individuals == 100


def test_a_nugget_is_no_matter_of_granularity():
    smooth, rough = (granularity(k, CENTERS, CELLS) for k in (ag.RBF(1.0, 1.0), ag.RBF(1.0, 1.0) + 0.5 * ag.White()))
    assert smooth == rough
    assert continuous(ag.White() * ag.RBF()) is None
    within = granularity((ag.RBF(1.0, 1.0) + ag.White(0.5)) * ag.ConstantKernel(4.0), CENTERS, CELLS)
    assert within.eta == pytest.approx(smooth.eta, rel=1e-10)


@pytest.fixture(scope="module")
def at_points():
    kernel = ag.RBF(ag.fixed(1.0), ag.fixed(4.0))
    model = ag.GP(kernel, ag.Gaussian(ag.fixed(0.03)))
    return model.fit(ag.Points(CENTERS), np.sin(CENTERS), 0.01, inference=ag.Exact(optimise=False))


def test_a_posterior_is_judged_by_places_widths_or_regions_alike(at_points):
    by_width, by_region = at_points.granularity(widths=1.0), at_points.granularity(CELLS)
    assert by_width == by_region
    fitted = at_points.model.fit(CELLS, np.sin(CENTERS), 0.01, inference=ag.Exact(optimise=False))
    assert fitted.granularity() == by_region
    assert by_width.noise == pytest.approx(0.2 / 2.0)
    dense = at_points.granularity(np.linspace(0.0005, 5.9995, 6000))
    assert dense.eta == pytest.approx(by_width.eta, rel=0.1)
    assert dense.individuals == 6000


def test_summaries_are_judged_by_their_counts_whatever_the_family():
    cells = ag.summarise(X, np.exp(np.sin(X)), grid=1.0, origin=[0.0])
    model = ag.GP(ag.RBF(ag.fixed(1.0), ag.fixed(4.0)), ag.SampleQuasi("poisson"))
    at_once = ag.Exact(optimise=False)
    by = {
        name: model.fit(where, cells.mean, counts=cells.counts, inference=at_once)
        for name, where in (("points", cells.points), ("regions", cells.regions), ("bags", cells.bags))
    }
    judged = by["points"].granularity(cells.regions)
    assert judged == by["regions"].granularity()
    assert judged.individuals == len(X) == by["bags"].granularity().individuals
    expected = np.sqrt(np.sum(cells.counts / len(X) / (cells.counts * cells.mean))) / 2.0
    assert judged.noise == pytest.approx(expected)  # V = 1 / (n ȳ)


def test_one_of_several_tasks_is_judged_as_it_would_be_alone():
    cells = ag.summarise(X, np.sin(X), grid=1.0, origin=[0.0])
    model = ag.MultiTaskGP(
        [ag.RBF(ag.fixed(1.0)), ag.White(ag.fixed(0.2))], {"a": ag.Gaussian(), "b": ag.SampleQuasi()}
    )
    model = model.replace({f"mixing[{q}].weights": ag.fixed([0.3, 2.0]) for q in range(2)})
    dispersion = {"likelihoods[1].dispersion": ag.fixed(0.09)}
    both = model.replace(dispersion).fit(
        {"a": (ag.Points([0.1]), [0.3]), "b": (cells.points, cells.mean)},
        counts={"b": cells.counts},
        inference=ag.Exact(optimise=False),
    )
    alone = ag.GP(ag.RBF(1.0, 4.0), ag.SampleQuasi(dispersion=0.09)).fit(
        cells.points, cells.mean, counts=cells.counts, inference=ag.Exact(optimise=False)
    )
    for given in ({"widths": 1.0}, {"X": cells.regions}, {"X": X}):
        one, other = both.granularity("b", **given), alone.granularity(**given)
        for name in ("eta", "place_error", "summary_error", "noise", "individuals"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-7)
    with pytest.raises(KeyError, match='names the task "c"'):
        both.granularity("c", widths=1.0)


def test_noise_of_summaries_does_not_depend_on_the_scheme(at_points):
    sparse = at_points.model.fit(
        ag.Points(CENTERS), np.sin(CENTERS), 0.01, inference=ag.Collapsed(inducing=6, optimise=False)
    )
    assert sparse.granularity(widths=1.0).noise == pytest.approx(at_points.granularity(widths=1.0).noise)


def test_standardised_places_are_judged_in_their_own_units(at_points):
    model = ag.GP(ag.RBF(ag.fixed(1.0 / CENTERS.std()), ag.fixed(4.0)), ag.Gaussian(ag.fixed(0.03)))
    post = model.fit(ag.Points(CENTERS), np.sin(CENTERS), 0.01, inference=ag.Exact(optimise=False), standardise=True)
    assert post.granularity(widths=1.0).eta == pytest.approx(at_points.granularity(widths=1.0).eta, rel=1e-6)


def test_totals_are_judged_as_means():
    totals = ag.GP(ag.RBF(ag.fixed(1.0), ag.fixed(4.0)), ag.Gaussian(ag.fixed(0.09)))
    wide = ag.Intervals([0.0, 3.0], [3.0, 6.0])
    assert totals.fit(wide, [1.0, 2.0], inference=ag.Exact(optimise=False)).granularity().noise == pytest.approx(0.05)


@pytest.mark.slow
def test_noise_that_is_not_gaussian_is_not_compared_with():
    wide = ag.Intervals([0.0, 3.0], [3.0, 6.0])
    model = ag.GP(ag.RBF(ag.fixed(1.0), ag.fixed(1.0)), ag.Poisson())
    post = model.fit(wide.with_measure("mean"), [1, 2], inference=ag.SVI(inducing=2, optimise=False))
    assert post.granularity().noise is None


def test_the_verdict_names_the_remedy(at_points):
    coarse, fine = at_points.granularity(widths=3.0), at_points.granularity(widths=0.1)
    assert coarse.level == "coarse"
    assert "Fit the places (Bags)" in coarse.verdict
    assert "plan_grid" in coarse.verdict
    assert fine.level == "fine"
    assert fine.verdict.startswith("Fine enough")
    assert "Fit" not in fine.verdict
    assert coarse.verdict in repr(coarse)
    assert "kappa" in repr(coarse)
    noisy = dataclasses.replace(coarse, noise=10.0)
    assert noisy.level == "coarse"
    assert "points will do" in noisy.verdict


def test_the_plan_is_the_coarsest_grid_that_is_fine_enough():
    places = np.random.default_rng(3).uniform(0, [20.0, 10.0], (6000, 2))
    plan = ag.plan_grid(ag.RBF([4.0, 2.0], 1.0), places, least_count=5, target=0.35)
    assert plan.grid is not None
    assert plan.grid.eta <= 0.35
    assert plan.grid.suppressed <= 0.05
    coarser = [g for g in plan.tried if np.prod(g.widths) > np.prod(plan.grid.widths)]
    assert coarser
    assert all(g.eta > 0.35 for g in coarser)
    assert plan.grid.widths[0] / plan.grid.widths[1] == pytest.approx(2.0, rel=0.1)
    cell = np.floor((places - places.min(axis=0)) / plan.grid.widths).astype(int)
    count = np.unique(cell, axis=0, return_counts=True)[1]
    assert len(plan.cells) == plan.grid.cells == (count >= 5).sum()
    assert plan.grid.suppressed == pytest.approx(count[count < 5].sum() / 6000)
    assert len(plan.table()) == len(plan.tried)
    made = ag.summarise(places, places[:, 0], grid=plan.grid.widths, origin=plan.origin)
    kept = made.regions[made.counts >= 5]
    np.testing.assert_allclose(plan.cells.center, kept.center)


def test_a_dimension_that_the_kernel_does_not_see_is_not_cut():
    places = np.random.default_rng(3).uniform(0, 10.0, (300, 2))
    plan = ag.plan_grid(ag.RBF(5.0, 1.0, active_dims=[0]), places, target=0.3)
    assert plan.grid is not None
    assert plan.grid.widths[1] >= np.ptp(places[:, 1]) > 2 * plan.grid.widths[0]


def test_the_plan_and_the_verdict_agree_about_the_same_grid():
    plan = ag.plan_grid(ag.RBF(1.0, 1.0), domain=([0.0], [6.0]), density=100.0, widths=[1.0, 0.5])
    at = CELLS.center[:, 0]
    assert plan.tried[0].eta == pytest.approx(granularity(ag.RBF(1.0, 1.0), at, CELLS).eta, rel=0.04)
    assert plan.tried[0].median_count == pytest.approx(100, rel=0.01)


def test_a_density_that_varies_counts_where_it_is():
    plan = ag.plan_grid(
        ag.RBF(5.0, 1.0), domain=([0.0], [10.0]), density=lambda x: 40.0 * (x[:, 0] < 5), least_count=10, widths=[1.0]
    )
    assert plan.tried[0].cells == 5
    assert plan.tried[0].median_count == pytest.approx(40.0, rel=0.02)


def test_a_plan_that_cannot_be_says_what_stands_in_the_way():
    places = np.random.default_rng(3).uniform(0, 10.0, (60, 2))
    plan = ag.plan_grid(ag.Matern12(1.0, 1.0), places, least_count=10, target=0.2)
    assert plan.grid is None
    assert "No grid does both" in repr(plan)
    assert "as Boxes" in plan.verdict
    with pytest.raises(ValueError, match="no such grid"):
        _ = plan.cells


PLAN = {"domain": ([0.0], [1.0]), "density": 5.0}
CASES = {
    "points alone": (lambda p: p.granularity(), ["what they stand for is not known", "widths"]),
    "both": (lambda p: p.granularity(X, widths=1.0), ['"X" or "widths", not both']),
    "other columns": (lambda p: p.granularity(np.zeros((3, 2))), ['"X" must have 1 column', "has 2"]),
    "other number of regions": (lambda p: p.granularity(CELLS[:2]), ["each of the 6 summaries", "are 2"]),
    "width of nothing": (lambda p: p.granularity(widths=0.0), ['"widths" must be positive', "number 0 is 0.0"]),
    "too many widths": (lambda p: p.granularity(widths=[1.0, 1.0]), ['"widths" must be one number or 1', "has 2"]),
    "not finite": (lambda p: p.granularity([np.nan]), ['"X" must be finite', "row 0"]),
    "neither places nor domain": (lambda p: ag.plan_grid(ag.RBF()), ['either the places "X"']),
    "places and domain": (lambda p: ag.plan_grid(ag.RBF(), X, **PLAN), ['either the places "X"']),
    "domain alone": (lambda p: ag.plan_grid(ag.RBF(), domain=([0.0], [1.0])), ['needs "density"']),
    "domain upside down": (lambda p: ag.plan_grid(ag.RBF(), domain=([1.0], [0.0]), density=1.0), ["low below"]),
    "nobody": (lambda p: ag.plan_grid(ag.RBF(), domain=([0.0], [1.0]), density=0.0), ["not zero everywhere"]),
    "places and density": (lambda p: ag.plan_grid(ag.RBF(), X, density=3.0), ['"density" is for "domain"']),
    "domain of three": (lambda p: ag.plan_grid(ag.RBF(), domain=(0, 1, 2), density=1.0), ['must be (low, high)']),
    "domain of one": (lambda p: ag.plan_grid(ag.RBF(), domain=5.0, density=1.0), ['must be (low, high)', "5.0"]),
    "no count": (lambda p: ag.plan_grid(ag.RBF(), X, least_count=0), ['"least_count" must be a whole number']),
    "target of one": (lambda p: ag.plan_grid(ag.RBF(), X, target=1.0), ['"target" must be at least 0', "1.0"]),
    "negative width": (lambda p: ag.plan_grid(ag.RBF(), X, widths=[-1.0]), ['"widths" must be positive', "-1.0"]),
    "rows of two": (lambda p: ag.plan_grid(ag.RBF(), X, widths=[[1.0, 2.0]]), ["rows of one number or of 1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_clear_sentence(name, at_points):
    ask, words = CASES[name]
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        ask(at_points)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_kernels_without_anything_in_common_between_places():
    with pytest.raises(TypeError, match="White"):
        ag.plan_grid(ag.White(), X)
    with pytest.raises(TypeError, match="White"):
        granularity(ag.White(), CENTERS, CELLS)
    effects = ag.GP(None, mean=ag.LinearEffects([0])).fit(CELLS, CENTERS, inference=ag.Exact(optimise=False))
    with pytest.raises(TypeError, match="no kernel"):
        effects.granularity()
