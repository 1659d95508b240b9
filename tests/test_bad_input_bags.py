"""Bad input to models of bags: names, counts that belong to them, and settings of the search. One sentence each."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import aggregauss as ag
from test_bad_input import Exploding, _as_users_run_it  # noqa: F401

X, NAMES = np.arange(4.0)[:, None], ["a", "a", "b", "c"]
BAGS, MEANS = ag.Bags(X, NAMES), ag.Bags(X, NAMES, measure="mean")
MODEL = ag.GP(ag.RBF(1.0), ag.Poisson(), aggregation="response")
GAUSSIAN = ag.GP(ag.RBF(1.0))


def _named(bag, **others):
    return lambda: ag.Bags(X, bag, **others)


def _counted(y, **others):
    return lambda: MODEL.fit(BAGS, y, inference=Exploding(), **others)


def _searched(**settings):
    return lambda: MODEL.fit(BAGS, [1, 2, 3], inference=ag.SVI(**settings), progress=False)


def _by_totals(model, data=(BAGS, [1, 2, 3])):
    return lambda: model.fit(*data, inference=ag.SVI(search="totals"), progress=False)


def _sites(**settings):
    return lambda: GAUSSIAN.fit(BAGS, [1, 2, 3], inference=ag.EP(**settings), progress=False)


def _closed(**settings):
    return lambda: GAUSSIAN.fit(BAGS, [1, 2, 3], inference=ag.Collapsed(**settings), progress=False)


def _exact(**settings):
    return lambda: GAUSSIAN.fit(BAGS, [1, 2, 3], inference=ag.Exact(**settings), progress=False)


def _several(inference, **others):
    model = ag.MultiTaskGP([ag.RBF(1.0)], {"y": ag.Gaussian()})
    return lambda: model.fit({"y": (BAGS, [1.0, 2.0, 3.0])}, inference=inference, **others)


TWICE = pd.Series([1, 2, 3, 4], index=["a", "a", "b", "c"])
DATES = pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-03"])

CASES = {
    "names of two kinds": (_named([1, "1", "b", "c"]), TypeError, ["one kind", "row 0 is 1", "row 1 is '1'"]),
    "a number that is none": (_named([1.0, np.nan, 2.0, 3.0]), ValueError, ['"bag" must have a name', "row 1"]),
    "nan among text": (_named(["a", np.nan, "b", "c"]), ValueError, ['"bag" must have a name', "row 1 has none"]),
    "None": (_named(["a", None, None, "c"]), ValueError, ["row 1 has none", "Drop the 2 such row(s)"]),
    "a missing value of pandas": (_named(pd.array(["a", pd.NA, "b", "c"])), ValueError, ["row 1 has none"]),
    "a missing date": (_named(DATES), ValueError, ["row 1 has none"]),
    "labels of two kinds": (_named(NAMES, labels=["a", 2, "c"]), TypeError, ['"labels" must hold names of one kind']),
    "complex places": (lambda: ag.Bags(X + 1j, NAMES), TypeError, ['"X" must hold numbers only']),
    "two counts of one bag": (_counted(TWICE), ValueError, ['"y" must have one value', '"a" has several']),
    "trials of another bag": (
        _counted([1, 2, 3], counts=pd.Series({"a": 1, "b": 2, "z": 3})),
        ValueError,
        ['"counts" and the supports must name the same rows', '"c" is only in the supports'],
    ),
    "a missing count": (_counted(pd.array([1, pd.NA, 3])), ValueError, ['"y" must be finite', "row 1 is nan"]),
    "steps backwards": (_searched(learning_rate=-0.1), ValueError, ['"learning_rate" must be a positive', "-0.1"]),
    "no tolerance": (_searched(tolerance=0.0), ValueError, ['"tolerance" must be a positive number', "0.0"]),
    "steps too far": (_searched(natural_rate=1.5), ValueError, ['"natural_rate"', "at most 1, but got 1.5"]),
    "no folder": (_searched(checkpoint="nowhere/run"), FileNotFoundError, ["a folder that exists", "nowhere"]),
    "a folder": (_searched(checkpoint="."), IsADirectoryError, ['"checkpoint" must be a file', "is a folder"]),
    "nothing seen": (_counted(None), TypeError, ['"y" must hold numbers, but is None']),
    "numbers for text": (
        lambda: MODEL.fit(ag.Bags(X, [1, 1, 2, 3]), pd.Series([1, 2, 3], index=["1", "2", "3"]), inference=Exploding()),
        ValueError,
        ["name the same rows", '"1" is only in the supports', "str in the one and int64 in the other"],
    ),
    "noise of another bag": (
        lambda: GAUSSIAN.fit(BAGS, [1, 2, 3], pd.Series([1.0, 1.0, 2.0], ["a", "b", "z"]), inference=Exploding()),
        ValueError,
        ['"noise_variance" and the supports', '"c" is only in the supports'],
    ),
    "a negative seed": (_counted([1, 2, 3], seed=-1), ValueError, ['"seed" must be a whole number', "-1"]),
    "three keys": (
        _counted([1, 2, 3], seed=jax.random.split(jax.random.key(0), 3)),
        ValueError,
        ['"seed" must be a whole number', "an array of shape (3,)"],
    ),
    "three numbers for a seed": (_counted([1, 2, 3], seed=jnp.arange(3)), ValueError, ['"seed"', "of shape (3,)"]),
    "half a seed": (_counted([1, 2, 3], seed=0.5), ValueError, ['"seed" must be a whole number', "0.5"]),
    "columns by name": (_counted([1, 2, 3], standardise="all"), ValueError, ['"standardise" must be', "got 'all'"]),
    "landmarks beyond the data": (_closed(inducing=5), ValueError, ["fit:", "5 were asked for and there are 4"]),
    "no iterations": (_closed(max_iterations=0), ValueError, ['Collapsed: "max_iterations"', "but got 0"]),
    "fewer starts than one": (_exact(restarts=-1), ValueError, ['Exact: "restarts"', "at least 0", "-1"]),
    "a negative tolerance": (_exact(tolerance=-1.0), ValueError, ['Exact: "tolerance" must be at least 0']),
    "sites that jump too far": (_sites(damping=1.5), ValueError, ['EP: "damping" must be', "at most 1", "1.5"]),
    "no sweep": (_sites(max_sweeps=0), ValueError, ['EP: "max_sweeps" must be a whole number', "0"]),
    "sites that never stand still": (_sites(sweep_tolerance=0.0), ValueError, ['EP: "sweep_tolerance" must be', "0.0"]),
    "sites of counts": (
        lambda: MODEL.fit(BAGS, [1, 2, 3], inference=ag.EP()),
        TypeError,
        ["EP: sites are known for Gaussian noise and LaplaceNoise", "is Poisson", "SVI()"],
    ),
    "sites of several tasks": (_several(ag.EP()), TypeError, ["EP: known for GP", "Exact()"]),
    "scales of other observations": (
        lambda: ag.GP(ag.RBF(), ag.LaplaceNoise([1.0, 2.0])).fit(BAGS, [1, 2, 3], inference=Exploding()),
        ValueError,
        ['"scale" must be one number or 3', "(2,)"],
    ),
    "totals of another link": (
        _by_totals(ag.GP(ag.RBF(1.0), ag.Poisson(link="square"), aggregation="response")),
        TypeError,
        ['search="totals" is for responses of one function under the link exp', 'link is "square"', 'search="bound"'],
    ),
    "totals before the link": (
        _by_totals(ag.GP(ag.RBF(1.0), ag.Poisson(), aggregation="latent"), (MEANS, [1, 2, 3])),
        TypeError,
        ["aggregated before the link"],
    ),
    "totals of several tasks": (
        _by_totals(ag.MultiTaskGP([ag.RBF(1.0)], {"y": ag.Poisson()}), ({"y": (MEANS, [1, 2, 3])},)),
        TypeError,
        ["there are several tasks"],
    ),
    "a search that does not exist": (_searched(search="total"), ValueError, ['"search"', "'total'"]),
    "a scale for each under SVI": (
        lambda: ag.GP(ag.RBF(1.0), ag.LaplaceNoise([1.0, 2.0, 3.0])).fit(BAGS, [1, 2, 3], inference=ag.SVI()),
        TypeError,
        ["known to EP only, which fits a GP", "one scale"],
    ),
    "a constraint of another kind": (
        lambda: ag.GP(ag.RBF(), constraint=5),
        TypeError,
        ['"constraint"', "NonNegative()"],
    ),
    "a deviation of nothing": (lambda: ag.Poisson(region_sd=0.3), ValueError, ['"region_sd"', "region_effect=True"]),
    "effects of no column": (lambda: ag.LinearEffects([]), ValueError, ['"columns" must be a list', "[]"]),
    "effects of all columns": (lambda: ag.LinearEffects(None), ValueError, ['"columns" must be a list', "None"]),
    "an effect without spread": (lambda: ag.LinearEffects([0, 3], sd=[1, 0]), ValueError, ["column 3 is 0.0"]),
    "spreads too many": (lambda: ag.LinearEffects([0], sd=[1, 2]), ValueError, ["one number or 1", "has 2"]),
    "an open intercept": (lambda: ag.LinearEffects([0], intercept_sd=np.inf), ValueError, ['"intercept_sd"', "inf"]),
    "a range below zero": (lambda: ag.RangePrior(-30.0), ValueError, ['RangePrior: "below" must be a positive', "-30"]),
    "a probability in percent": (lambda: ag.SdPrior(1.0, 5), ValueError, ['"probability" must lie strictly', "got 5"]),
    "a prior without spread": (lambda: ag.LogNormal(1.0, 0.0), ValueError, ['LogNormal: "spread" must be a positive']),
    "a number as a prior": (lambda: ag.param(1.0, prior=5), TypeError, ['"prior" must be a prior', "got 5"]),
    "a word as a lengthscale": (lambda: ag.RBF("long"), TypeError, ['"lengthscale" must be a number', "'long'"]),
    "a class": (lambda: MODEL.fit(BAGS, [1, 2, 3], inference=ag.SVI), TypeError, ["with brackets", "the class SVI"]),
    "a word": (lambda: MODEL.fit(BAGS, [1, 2, 3], inference="svi"), TypeError, ["SVI()", "but got 'svi'"]),
    "a likelihood without brackets": (
        lambda: ag.MultiTaskGP([ag.RBF()], {"a": ag.Gaussian}),
        TypeError,
        ['likelihood of task "a"', "the class Gaussian, without brackets"],
    ),
    "half a seed for several tasks": (_several(Exploding(), seed=0.5), ValueError, ['"seed" must be a whole', "0.5"]),
    "correlations in percent": (
        lambda: _several(ag.Exact(optimise=False))().correlations(level=95),
        ValueError,
        ['correlations: "level" must lie strictly between 0 and 1', "95"],
    ),
    "a class for several tasks": (_several(ag.Exact), TypeError, ["with brackets", "the class Exact"]),
}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_sentence(name):
    attempt, kind, words = CASES[name]
    with pytest.raises(kind) as caught:
        attempt()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


@pytest.mark.parametrize(
    "bag",
    [NAMES, np.array(NAMES), pd.Series(NAMES), pd.Categorical(NAMES), np.array(NAMES, object)],
    ids=["list", "array", "series", "categories", "objects"],
)
def test_names_come_in_many_ways(bag):
    bags = ag.Bags(X.astype(np.float32), bag, weights=np.array([1, 2, 3, 4], np.int8))
    assert bags.labels.tolist() == ["a", "b", "c"]
    assert bags.mass.tolist() == [3.0, 3.0, 4.0]
    assert ag.Bags(X, [1, 1.0, 2, 3]).labels.tolist() == [1, 2, 3]


class Recording:
    """Stands for an inference scheme, and keeps what it was given."""

    def fit(self, model, observations, seed, progress):
        self.observations, self.seed = observations, seed


def test_what_is_known_of_every_bag_comes_as_one_number_or_by_name():
    scheme = Recording()
    model = ag.GP(ag.RBF(1.0), ag.Binomial())
    model.fit(BAGS.with_measure("mean"), [1, 2, 3], counts=5, inference=scheme)
    assert scheme.observations.counts.tolist() == [5.0, 5.0, 5.0]
    GAUSSIAN.fit(BAGS, [1, 2, 3], pd.Series([0.3, 0.1, 0.2], index=["c", "a", "b"]), inference=scheme)
    assert scheme.observations.noise_variance.tolist() == [0.1, 0.2, 0.3]


def test_seeds_are_numbers_or_keys():
    scheme = Recording()
    for seed in (7, np.int64(7), np.array(7), jnp.asarray(7)):
        GAUSSIAN.fit(BAGS, [1, 2, 3], seed=seed, inference=scheme)
        assert scheme.seed == 7
    found = []
    for key in (jax.random.key(7), jax.random.PRNGKey(7), jax.random.key(8)):
        GAUSSIAN.fit(BAGS, [1, 2, 3], seed=key, inference=scheme)
        found.append(scheme.seed)
    assert found[0] == found[1] != found[2]
    assert all(0 <= seed < 2**32 for seed in found)
