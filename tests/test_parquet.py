"""Bags in a Parquet file are the bags in memory, however the file is laid out; only what is asked for is read."""

import sys

import jax
import jaxtyping
import numpy as np
import pandas as pd
import pytest

import aggregauss as ag
from aggregauss.inference.data import observe
from aggregauss.inference.landmarks import landmarks
from aggregauss.inference.starts import starts
from aggregauss.io.row_groups import RowGroups
from aggregauss.supports.support import SAMPLE, draw

COLUMNS = ["rain", "height"]
NAN = float("nan")


def _pixels(sizes=(5, 9, 1, 7, 12, 3), seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    bag = np.repeat(np.arange(len(sizes)), sizes)
    return pd.DataFrame(
        {
            "district": np.array([f"d{b:02d}" for b in bag]),
            "rain": rng.normal(size=len(bag)).astype(dtype),
            "height": (10 + 3 * rng.normal(size=len(bag)) + bag).astype(dtype),
            "people": rng.uniform(1, 5, len(bag)).astype(dtype),
        }
    )


def _shuffled(pixels):
    return pixels.sample(frac=1.0, random_state=1)


def _held(pixels, measure="total", weights="people", labels=None):
    weight = None if weights is None else pixels[weights]
    return ag.Bags(pixels[COLUMNS], pixels["district"].to_numpy(str), weight, measure, labels)


@pytest.fixture
def file(tmp_path):
    def write(pixels, rows=8, measure="total", weights="people", labels=None, **options):
        path = tmp_path / "pixels.parquet"
        pixels.to_parquet(path, row_group_size=rows, **options)
        return ag.ParquetBags(path, "district", COLUMNS, weights, measure, labels)

    return write


def _assert_same(a, b):
    for name in ("center", "width", "owner", "weight", "labels", "mass", "square_weight"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.size, a.measure, a.kind) == (b.size, b.measure, b.kind)


@pytest.mark.parametrize("measure", ["total", "mean"])
@pytest.mark.parametrize("weights", ["people", None])
@pytest.mark.parametrize("layout", [lambda p: p, _shuffled], ids=["sorted", "scattered"])
def test_rows_of_the_file_are_the_bags_in_memory(file, layout, weights, measure):
    pixels = layout(_pixels())
    streamed, held = file(pixels, 8, measure, weights), _held(pixels, measure, weights)
    _assert_same(streamed[:], held)
    for rows in ([3, 0, 3], slice(1, 3), -1, np.array([False, True] * 3), slice(0)):
        _assert_same(streamed[rows], held[rows])
    for name in ("labels", "mass", "effective_mass", "square_weight", "atom_counts"):
        np.testing.assert_array_equal(getattr(streamed, name), getattr(held, name))
    np.testing.assert_array_equal(streamed.bounding_box(), held.bounding_box())
    assert (len(streamed), streamed.dim, streamed.wide) == (6, 2, (False, False))
    assert isinstance(streamed, ag.Support)
    assert repr(streamed) == "Parquet" + repr(held)
    assert [s.labels[0] for s in streamed] == list(held.labels)


def test_samples_are_those_of_the_bags_in_memory(file):
    pixels = _shuffled(_pixels())
    streamed, held = file(pixels), _held(pixels)
    for n in (10, 1000):
        np.testing.assert_array_equal(streamed.sample(n, 3).center, held.sample(n, 3).center)
    np.testing.assert_array_equal(held.sample().center, held.center)
    drawn = draw(50 * SAMPLE, SAMPLE, 0)
    assert len(np.unique(drawn)) == SAMPLE
    assert (np.diff(drawn) > 0).all()


def test_standardised_and_other_measures_are_read_as_such(file):
    pixels = _pixels()
    streamed, held = file(pixels), _held(pixels)
    shift, scale = np.array([0.3, 10.0]), np.array([2.0, 0.7])
    twice, same = (s.rescaled(shift, scale).rescaled(scale, scale).with_measure("mean") for s in (streamed, held))
    _assert_same(twice[:], same)
    np.testing.assert_array_equal(twice.bounding_box(), same.bounding_box())
    np.testing.assert_array_equal(twice.sample(7).center, same.sample(7).center)


def test_labels_choose_the_order_and_unused_categories_are_no_bags(file):
    pixels = _pixels()
    labels = sorted(pixels["district"].unique(), reverse=True)
    _assert_same(file(pixels, labels=labels)[[1, 2]], _held(pixels, labels=labels)[[1, 2]])
    pixels["district"] = pd.Categorical(pixels["district"], ["nowhere", *labels])
    _assert_same(file(pixels)[:], _held(pixels))


@pytest.mark.parametrize("search", ["bound", "totals"])
def test_a_streamed_fit_is_the_fit_in_memory_bit_for_bit(file, tmp_path, search):
    pixels = _shuffled(_pixels(np.random.default_rng(2).integers(1, 40, 20)))
    bags, held = file(pixels, 64), _held(pixels)
    y = pd.Series(np.random.default_rng(3).poisson(2.0 * held.mass), index=held.labels).sample(frac=1.0)
    model = ag.GP(ag.RBF([1.0, 1.0]), ag.Poisson(), aggregation="response", mean=ag.Constant())
    scheme = ag.SVI(inducing=12, batch_size=6, max_epochs=2, bound="jensen", search=search)
    one, other = (model.fit(s, y, inference=scheme, standardise=True, seed=5, progress=False) for s in (bags, held))
    assert one.runs[0].path == other.runs[0].path
    test = held[[3, 7]]
    np.testing.assert_array_equal(one.predict(test).mean, other.predict(test).mean)
    np.testing.assert_array_equal(one.predict(bags[[3, 7]]).std, other.predict(test).std)
    one.save(tmp_path / "fit.agz")
    np.testing.assert_array_equal(ag.load(tmp_path / "fit.agz").predict(test).mean, other.predict(test).mean)


def test_prediction_reads_the_file(file):
    pixels = _pixels()
    post = ag.GP(ag.RBF(1.0)).fit(ag.Points([[0.0, 10.0], [1.0, 12.0]]), [1.0, 2.0], inference=ag.Exact(optimise=False))
    streamed, held = post.predict(file(pixels)), post.predict(_held(pixels))
    np.testing.assert_array_equal(streamed.to_frame(), held.to_frame())
    assert list(streamed.to_frame().index) == list(held.support.labels)
    with pytest.raises(TypeError, match=r"bags\[:\]"):
        _ = streamed.covariance


@pytest.mark.parametrize("inducing", ["bags", 9])
def test_landmarks_and_starts_are_those_of_the_bags_in_memory(file, inducing):
    pixels = _shuffled(_pixels(np.random.default_rng(2).integers(1, 9, 150)))
    model = ag.GP(ag.RBF(), ag.Gaussian(per="individual"), mean=ag.Constant())
    y = np.random.default_rng(3).normal(size=150)
    seen = [observe(s, y, None) for s in (file(pixels, 64, "mean"), _held(pixels, "mean"))]
    Z, same = (landmarks(inducing, o.support, 4) for o in seen)
    np.testing.assert_array_equal(Z.center, same.center)
    one, other = (starts(model, o, 1, 4) for o in seen)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_few_row_groups_stay_in_memory(tmp_path):
    path = tmp_path / "pixels.parquet"
    pixels = _pixels([100] * 20)
    pixels.to_parquet(path, row_group_size=100)
    one = 100 * (2 * 4 + 8)
    for limit, kept in ((0, 0), (3 * one, 3), (1 << 20, 20)):
        file = RowGroups(path, "district", COLUMNS, "people", limit)
        for rows in (np.arange(2000), np.array([0, 1950, 150])):
            np.testing.assert_array_equal(file.take(rows).X, pixels[COLUMNS].to_numpy()[rows])
            assert len(file.kept) == kept
        assert {0, 1, 19} >= set(list(file.kept)[-3:])


def test_only_the_row_groups_of_a_bag_are_read(file, monkeypatch):
    bags, read = file(_pixels([10] * 6), rows=10), []
    load = RowGroups._load
    monkeypatch.setattr(RowGroups, "_load", lambda self, i: (read.append(i), load(self, i))[1])
    bags[[1, 4]]
    bags[4]
    assert read == [1, 4]


SCHEMES = [ag.Exact(), ag.EP(), ag.Collapsed(inducing=2), None]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_other_schemes_ask_for_svi_or_all_the_bags(file, scheme):
    with pytest.raises(TypeError, match=r"inference=SVI\(batch_size=64\), or give bags\[:\]"):
        ag.GP(ag.RBF(1.0)).fit(file(_pixels()), np.arange(6.0), inference=scheme, progress=False)


def _with(name, row, value):
    pixels = _pixels(dtype=float)
    pixels[name] = [value if i == row else x for i, x in enumerate(pixels[name])]
    return pixels


CASES = {
    "negative weight": (_with("people", 11, -2.0), {}, ValueError, ['"people" must not be negative', "row 11", "-2.0"]),
    "nan weight": (_with("people", 20, NAN), {}, ValueError, ['"people" must be finite', "row 20", "nan"]),
    "nan covariate": (_with("height", 30, NAN), {}, ValueError, ['"height" must be finite', "row 30", "fill them in"]),
    "infinite covariate": (_with("rain", 9, np.inf), {}, ValueError, ['"rain" must be finite', "row 9"]),
    "text": (_pixels().assign(rain="wet"), {}, TypeError, ['"rain" must hold numbers', "string"]),
    "nameless": (_with("district", 13, None), {}, ValueError, ['"district" must name the bag', "row 13"]),
    "lists of names": (_pixels().assign(district=[["a"]] * 37), {}, TypeError, ['"district" must hold names']),
    "weightless bag": (_with("people", 14, 0.0), {}, ValueError, ["ParquetBags: every bag", 'bag "d02" has none']),
    "empty": (_pixels()[:0], {}, ValueError, ["is empty"]),
    "missing column": (
        _pixels()[["district", "rain", "people"]],
        {},
        ValueError,
        ['no column "height"', "rain, people"],
    ),
    "missing weights": (_pixels(), {"weights": "sheep"}, ValueError, ['no column "sheep"']),
    "unknown measure": (_pixels(), {"measure": "sum"}, ValueError, ['"total" or "mean"']),
    "label without bag": (_pixels(), {"labels": ["x"]}, ValueError, ['"x" has no points']),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_sentence(file, name, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    pixels, options, error, words = CASES[name]
    with pytest.raises(error) as caught:
        file(pixels, **options)[:]
    assert all(word in str(caught.value) for word in words), caught.value


def test_bad_paths_get_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "pixels.parquet"
    with pytest.raises(FileNotFoundError, match=r"there is no file .*pixels.parquet"):
        ag.ParquetBags(path, "district", COLUMNS)
    path.write_text("district,rain,height\n")
    with pytest.raises(ValueError, match="is not a Parquet file"):
        ag.ParquetBags(path, "district", COLUMNS)
    with pytest.raises(ValueError, match='"columns" must name at least one'):
        ag.ParquetBags(path, "district", [])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "aggregauss\[scale\]"'):
        ag.ParquetBags(path, "district", COLUMNS)
