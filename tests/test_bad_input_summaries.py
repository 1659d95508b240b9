"""Bad summaries give one sentence: the argument, the row, what was expected, what to do. Nothing is computed first."""

import jaxtyping
import numpy as np
import pytest
import shapely

import aggregauss as ag
from aggregauss.inference.data import Observations, contradiction

NAN = float("nan")
POINTS = ag.Points([0.0, 1.0, 2.0])
BOXES = ag.Intervals([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _as_users_run_it():
    """Without the run-time type checks of the suite, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class Exploding:
    """Stands for an inference scheme that must not be reached."""

    def fit(self, *_):
        raise AssertionError("work was started before the input was checked")


def _fit(family="gaussian", y=(0.2, 0.5, 0.4), n=(3, 4, 5), s2=None, support=POINTS, inference=None, **settings):
    model = ag.GP(ag.RBF(1.0), ag.SampleQuasi(family, **settings))
    return model.fit(support, y, counts=n, variances=s2, inference=inference or Exploding())


def _twice(**settings):
    return _fit(support=ag.Points([0.0, 1.0, 0.0]), inference=ag.Exact(optimise=False), **settings)


CASES = {
    "no counts": (lambda: _fit(n=None), ValueError, ['needs "counts"']),
    "count of zero": (lambda: _fit(n=[3, 0, 5]), ValueError, ['"counts" must be positive', "row 1 is 0.0", "Leave out"]),
    "negative count": (lambda: _fit(n=[3, 4, -5]), ValueError, ["row 2 is -5.0"]),
    "part of an individual": (lambda: _fit(n=[3, 0.5, 5]), ValueError, ["at least one individual", "row 1 is 0.5", "not shares"]),
    "too few counts": (lambda: _fit(n=[3, 4]), ValueError, ['"counts"', "2 values for 3 rows"]),
    "negative variance": (lambda: _fit(s2=[0.1, -0.1, 0.2]), ValueError, ['"variances" must not be negative', "row 1"]),
    "variance of one individual": (lambda: _fit(n=[3, 1, 5], s2=[0.1, 0.2, 0.3]), ValueError, ["zero for one individual", "row 1 is 0.2", "divisor n"]),
    "ragged counts": (lambda: _fit(n=[[3], [4, 5]]), TypeError, ['"counts" must hold numbers', "equal length"]),
    "variance in words": (lambda: _fit(s2=["a", "b", "c"]), TypeError, ['"variances" must hold numbers only']),
    "scatter about a mean of zero": (lambda: _fit("poisson", y=[0.0, 1.0, 2.0], s2=[0.1, 1.0, 1.0]), ValueError, ["zero where the mean is at an end", "row 0 is 0.1"]),
    "too few variances": (lambda: _fit(s2=[0.1, 0.1]), ValueError, ['"variances"', "2 values for 3 rows"]),
    "variance not a number": (lambda: _fit(s2=[0.1, NAN, 0.2]), ValueError, ['"variances" must be finite', "row 1"]),
    "more than zeros and ones can vary": (lambda: _fit("binomial", s2=[0.1, 0.3, 0.2]), ValueError, ["not exceed ȳ (1 - ȳ)", "row 1 is 0.3", "(n - 1) / n"]),
    "variances under other likelihoods": (lambda: ag.GP(ag.RBF()).fit(POINTS, [1, 2, 3], variances=[1, 1, 1], inference=Exploding()), ValueError, ["for SampleQuasi", "Gaussian", "noise_variance"]),
    "counts under other likelihoods": (lambda: ag.GP(ag.RBF()).fit(POINTS, [1, 2, 3], counts=[1, 1, 1], inference=Exploding()), ValueError, ['"counts"', "SampleQuasi", "Gaussian"]),
    "negative mean of counts": (lambda: _fit("poisson", y=[0.0, -1.0, 2.0]), ValueError, ["SampleQuasi", "at least 0,", "row 1 is -1.0"]),
    "share above one": (lambda: _fit("binomial", y=[0.0, 1.0, 1.2]), ValueError, ["at most 1", "row 2 is 1.2"]),
    "amount of zero": (lambda: _fit("gamma", y=[0.4, 0.0, 1.2]), ValueError, ["above 0,", "row 1 is 0.0"]),
    "totals": (lambda: _fit(support=ag.Intervals([0, 2, 4], [2, 4, 6])), ValueError, ["means", 'with_measure("mean")']),
    "unknown family": (lambda: ag.SampleQuasi("normal"), ValueError, ['"family" must be', '"gaussian"', "'normal'"]),
    "a class in place of a family": (lambda: ag.SampleQuasi(ag.Poisson), TypeError, ['"family" must be a name', "the class Poisson"]),
    "a likelihood in place of a family": (lambda: ag.SampleQuasi(ag.Poisson()), TypeError, ['"family" must be a name', "got Poisson."]),
    "own variance in numpy": (lambda: _fit(lambda mean: np.exp(np.asarray(mean))), TypeError, ["jax.numpy"]),
    "own variance of another shape": (lambda: _fit(lambda mean: mean[:2]), TypeError, ["one number for each"]),
    "own variance below zero": (lambda: _fit(lambda mean: mean - 0.3), ValueError, ["must be positive", "row 0, where the mean is 0.2"]),
    "own variance not a number": (lambda: _fit(lambda mean: (mean - 0.3) ** 0.5), ValueError, ["must be positive and finite", "row 0"]),
    "effect without an effect": (lambda: ag.SampleQuasi(region_sd=0.3), ValueError, ['"region_sd"', "region_effect=True"]),
    "expectation propagation": (lambda: _fit(inference=ag.EP()), TypeError, ["EP", "SampleQuasi", "Exact()"]),
    "unknown link": (lambda: ag.SampleQuasi("poisson", link="square"), ValueError, ['"link" must be "exp"']),
    "same place twice without noise": (lambda: _twice(dispersion=ag.fixed(0.0)), ValueError, ["rows 0 and 2", "without noise"]),
    "scatter without dispersion": (lambda: _fit(s2=[0.0, 0.1, 0.0], dispersion=ag.fixed(0.0)), ValueError, ['"variances" must be zero', "row 1"]),
    "dispersion of zero that is learned": (lambda: ag.SampleQuasi(dispersion=0.0), ValueError, ['"dispersion" must be positive']),
    "response before the aggregate": (
        lambda: ag.GP(ag.RBF(1.0), ag.SampleQuasi("poisson"), aggregation="response").fit(POINTS, [1, 2, 3], counts=[1, 1, 1], inference=ag.Exact()),
        TypeError,
        ["Exact", 'aggregation="response"', "SVI()"],
    ),
    "variances of an unknown task": (
        lambda: ag.MultiTaskGP([ag.RBF()], {"a": ag.SampleQuasi()}).fit({"a": (POINTS, [1, 2, 3])}, counts={"a": [1, 1, 1]}, variances={"b": [1]}),
        KeyError,
        ["variances", '"b"'],
    ),
    "plan for a number": (lambda: ag.plan_grid(3.0, [[0.0], [1.0]]), TypeError, ['plan_grid: "kernel" must be a kernel', "float"]),
    "target in words": (lambda: ag.plan_grid(ag.RBF(), [[0.0], [1.0]], target="fine"), ValueError, ['"target" must be at least 0', "'fine'"]),
    "grid and regions": (lambda: ag.summarise([[0.0]], [1.0], grid=1.0, regions=["a"]), ValueError, ['either "grid"']),
    "neither": (lambda: ag.summarise([[0.0]], [1.0]), ValueError, ['either "grid"']),
    "origin without grid": (lambda: ag.summarise([[0.0]], [1.0], regions=["a"], origin=0.0), ValueError, ['"origin"']),
    "cells without width": (lambda: ag.summarise([[0.0, 1.0]], [1.0], grid=[1.0, 0.0]), ValueError, ['"grid" must be positive']),
    "sides of too many dimensions": (lambda: ag.summarise([[0.0, 1.0]], [1.0], grid=[1.0, 1.0, 1.0]), ValueError, ['"grid"', "3 values for 2"]),
    "values missing": (lambda: ag.summarise([[0.0], [1.0]], [1.0], grid=1.0), ValueError, ['"y"', "1 values for 2"]),
    "names missing": (lambda: ag.summarise([[0.0], [1.0]], [1.0, 2.0], regions=["a", None]), ValueError, ['"regions" must have a name in every row', "row 1"]),
    "names of two kinds": (lambda: ag.summarise([[0.0], [1.0]], [1.0, 2.0], regions=["a", 1]), TypeError, ["names of one kind", "row 1"]),
    "too few names": (lambda: ag.summarise([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0], regions=["a"]), TypeError, ['"regions" must be areas', "2 individuals"]),
    "one name": (lambda: ag.summarise([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0], regions="a"), TypeError, ['"regions" must be areas']),
    "boxes as areas": (lambda: ag.summarise([[0.0, 0.0]], [1.0], regions=ag.Boxes([[0.0, 0.0]], [[1.0, 1.0]])), TypeError, ['"regions" must be areas']),
    "cells too narrow for their coordinates": (lambda: ag.summarise([[1.0], [2.0]], [1.0, 2.0], grid=1e-30), ValueError, ['"grid" is too narrow']),
    "outside all areas": (lambda: ag.summarise([[0.5, 0.5], [3.0, 0.5]], [1.0, 2.0], regions=[shapely.box(0, 0, 1, 1)]), ValueError, ["row 1", "Leave these out"]),
    "areas in one dimension": (lambda: ag.summarise([[0.5]], [1.0], regions=[shapely.box(0, 0, 1, 1)]), ValueError, ["two dimensions"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_sentence(case):
    act, kind, words = CASES[case]
    with pytest.raises(kind) as caught:
        act()
    for word in words:
        assert word in str(caught.value)


def test_variance_of_one_individual_may_be_missing():
    post = _fit(n=[1, 4, 5], s2=[np.nan, 0.1, 0.2], dispersion=0.1, inference=ag.Exact(optimise=False))
    assert np.isfinite(post.evidence)


@pytest.mark.parametrize("s2", [[[NAN], [0.1], [0.2]], [NAN, 0.1, 0.2]], ids=["a column", "a list"])
def test_a_column_of_variances_is_the_list_of_them(s2):
    post = _fit(n=[1, 4, 5], s2=s2, dispersion=0.1, inference=ag.Exact(optimise=False))
    assert post.observations.variances.tolist() == [0.0, 0.1, 0.2]


def test_one_variance_is_that_of_all_summaries():
    one, other = (_fit(s2=s2, dispersion=0.1, inference=ag.Exact(optimise=False)) for s2 in (0.2, [0.2] * 3))
    assert one.evidence == other.evidence


@pytest.mark.parametrize("effect", [False, True])
def test_individuals_that_cannot_differ_say_nothing_of_a_dispersion_of_zero(effect):
    settings = {"dispersion": ag.fixed(0.0), "region_effect": effect, "inference": ag.Exact(optimise=False)}
    assert _fit(s2=[0.0] * 3, **settings).evidence == _fit(s2=None, **settings).evidence
    with pytest.raises(ValueError, match=r'"variances" must be zero under a dispersion that is fixed at zero.*row 1'):
        _fit(s2=[0.0, 0.1, 0.0], **settings)


def test_a_negative_binomial_without_dispersion_is_poisson():
    """v = η + φ η² at φ = 0: individuals scatter, and two rows of one place have noise."""
    again, ask = ag.Points([0.0, 1.0, 0.0]), ag.Exact(optimise=False)
    one, other = (
        _fit(family, y=[1.0, 2.0, 1.1], s2=[1.0, 2.2, 0.9], support=again, inference=ask, dispersion=ag.fixed(phi))
        for family, phi in (("negative_binomial", 0.0), ("poisson", 1.0))
    )
    assert one.evidence == pytest.approx(other.evidence, rel=1e-12)


def test_non_negative_function_of_summaries_says_what_to_do():
    model = ag.GP(ag.RBF(1.0), ag.SampleQuasi(), constraint=ag.NonNegative([0.0, 1.0]))
    with pytest.raises(TypeError, match=r"EP: not known for SampleQuasi.*Gaussian"):
        model.fit(POINTS, [0.2, 0.5, 0.4], counts=[3, 4, 5])


def test_a_dispersion_that_is_fixed_against_the_variances_is_warned_of():
    n, y = [20, 30, 40], [2.0, 1.0, 3.0]
    with pytest.warns(UserWarning, match=r"4\.1 times those of individuals.*dispersion=2\.0"):
        _fit("poisson", y=y, n=n, s2=[8.0, 4.0, 12.0], inference=ag.Exact(optimise=False))
    _fit("poisson", y=y, n=n, s2=y, inference=ag.Exact(optimise=False))  # as Poisson counts have it: no warning


def test_summaries_of_one_place_that_contradict_each_other_are_warned_of():
    again, ask = ag.Points([0.0, 1.0, 0.0]), ag.Exact(optimise=False)
    with pytest.warns(UserWarning, match=r"rows 0 and 2 .*same place.*standard errors"):
        _fit("poisson", y=[1.0, 2.0, 3.0], n=[400, 10, 300], support=again, inference=ask)
    _fit("poisson", y=[1.0, 2.0, 3.0], n=[4, 10, 3], support=again, inference=ask)  # a few individuals may differ
    _fit(
        "poisson", y=[1.0, 2.0, 3.0], n=[400, 10, 300], support=again, inference=ask, region_effect=True, region_sd=1.0
    )
    with pytest.warns(UserWarning, match="If neither is a mistake, a larger region_sd lets regions differ"):
        _fit(
            "poisson", [1.0, 2.0, 3.0], [4000, 10, 3000], None, again, ask, region_effect=True, region_sd=ag.fixed(0.01)
        )
    tasks = ag.MultiTaskGP([ag.RBF(1.0)], {"other": ag.Gaussian(0.1), "rates": ag.SampleQuasi("poisson")})
    data = {"other": (ag.Points([0.0, 0.0]), [1.0, 9.0]), "rates": (again, [1.0, 2.0, 3.0])}
    with pytest.warns(UserWarning, match='rows 0 and 2 of task "rates" are of the same place') as caught:
        tasks.fit(data, counts={"rates": [400, 10, 300]}, inference=ask, progress=False)
    assert len(caught) == 1


def test_summaries_between_those_of_least_and_greatest_mean_are_compared_too():
    means, n, places = [1.0, 2.0, 3.0, 0.5, 1.0], [4000, 4000, 1, 1, 9], ag.Points([0.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.warns(UserWarning, match=r"rows 0 and 1 .* differ by 35\.8"):
        _fit("poisson", y=means, n=n, support=places, inference=ag.Exact(optimise=False))


def test_of_many_summaries_of_one_place_the_two_that_differ_most_are_named():
    rng = np.random.default_rng(0)
    y, noise = rng.standard_normal(400), np.ones(400)
    y[[70, 300]], noise[[70, 300]] = [0.5, -0.6], 0.01
    seen = Observations(ag.Points(np.zeros(400)), y, noise)
    apart = np.abs(y[:, None] - y) / np.sqrt(noise[:, None] + noise)
    one, other, z = contradiction(seen, noise)
    assert (one, other) == (70, 300)
    assert z == pytest.approx(apart.max())
