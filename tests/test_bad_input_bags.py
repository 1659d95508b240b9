"""Bad input to models of bags: names, counts that belong to them, and settings of the search. One sentence each."""

import numpy as np
import pandas as pd
import pytest

import aggregauss as ag
from test_bad_input import Exploding, _as_users_run_it  # noqa: F401

X, NAMES = np.arange(4.0)[:, None], ["a", "a", "b", "c"]
BAGS = ag.Bags(X, NAMES)
MODEL = ag.GP(ag.RBF(1.0), ag.Poisson(), aggregation="response")


def _named(bag, **others):
    return lambda: ag.Bags(X, bag, **others)


def _counted(y, **others):
    return lambda: MODEL.fit(BAGS, y, inference=Exploding(), **others)


def _searched(**settings):
    return lambda: MODEL.fit(BAGS, [1, 2, 3], inference=ag.SVI(**settings), progress=False)


def _several(inference):
    model = ag.MultiTaskGP([ag.RBF(1.0)], {"y": ag.Gaussian()})
    return lambda: model.fit({"y": (BAGS, [1.0, 2.0, 3.0])}, inference=inference)


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
    "a class": (lambda: MODEL.fit(BAGS, [1, 2, 3], inference=ag.SVI), TypeError, ["with brackets", "the class SVI"]),
    "a word": (lambda: MODEL.fit(BAGS, [1, 2, 3], inference="svi"), TypeError, ["SVI()", "but got 'svi'"]),
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
