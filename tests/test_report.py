"""The page holds what it was given, to the last digit that it claims, and nothing in the data can act as markup."""

import base64
import gzip
import hashlib
import html.parser
import json
import re
from importlib import resources

import jaxtyping
import numpy as np
import pandas as pd
import pytest

from aggregauss.report import Effect, Layer, write_page
from aggregauss.report.outlines import outlines
from aggregauss.report.page import SCRIPTS, page
from aggregauss.report.raster import LARGEST, encode, thin, thin_cells
from report_data import BOUNDS, HOSTILE, quarter, report, surface


def _decoded(packed, shape):
    planes = np.frombuffer(gzip.decompress(base64.b64decode(packed["codes"])), np.uint8).reshape(2, *shape)
    codes = np.cumsum(planes[0] + 256 * planes[1].astype(np.int64), axis=1) % 65536
    steps = packed["low"] + (codes - 1) * packed["step"]
    return np.where(codes > 0, np.exp(steps) if packed["scale"] == "log" else steps, np.nan)


@pytest.mark.parametrize("scale", ["sequential", "probability", "diverging"])
def test_a_surface_comes_back_within_half_a_step(scale):
    values = surface(40, 30)
    found = _decoded(encode(Layer("a", values, "", scale, "")), values.shape)
    np.testing.assert_allclose(found, values, atol=0.51 * np.ptp(values[np.isfinite(values)]) / 65534, rtol=0)


def test_a_log_surface_comes_back_with_equal_relative_error():
    values = surface(40, 30) * 1e-6
    np.testing.assert_allclose(_decoded(encode(Layer("a", values, "", "log", "")), values.shape), values, rtol=1e-4)


@pytest.mark.parametrize("values", [np.full((3, 4), 2.5), np.full((3, 4), np.nan), np.array([[np.inf, 1.0]])])
def test_constant_and_empty_surfaces_come_back(values):
    found = _decoded(encode(Layer("a", values, "", "log", "")), values.shape)
    np.testing.assert_array_equal(found, np.where(np.isfinite(values), values, np.nan))


def test_a_layer_with_zeros_is_not_on_a_log_scale():
    assert encode(Layer("a", np.array([[0.0, 1.0]]), "", "log", ""))["scale"] == "sequential"


def test_block_means_keep_the_mean_of_the_known_pixels():
    values = np.random.default_rng(0).normal(size=(7, 11))
    values[2, 3:6] = np.nan
    coarse, known = thin(values, 3), thin(np.isfinite(values) * 1.0, 3)
    sizes = np.outer([3, 3, 1], [3, 3, 3, 2]) * known
    assert np.sum(coarse * sizes) == pytest.approx(np.nansum(values), rel=1e-12)


def test_a_grid_too_large_for_a_page_is_thinned_and_stays_in_place():
    values = np.broadcast_to(np.arange(2.0 * LARGEST + 1.0)[:, None], (2 * LARGEST + 1, 7))
    drawn = _payload(page(report(layers=(Layer("a", values, "", "sequential", ""),))))
    grid = drawn["grid"]
    assert (grid["rows"], grid["columns"], grid["block"]) == (801, 3, 3)
    height = (BOUNDS[3] - BOUNDS[1]) / values.shape[0]
    assert grid["north"] - grid["south"] == pytest.approx(801 * 3 * height)
    np.testing.assert_allclose(_decoded(drawn["layers"][0], (801, 3))[5], values[15:18].mean(), atol=0.02)


def test_layers_that_come_thinned_are_drawn_like_whole_ones():
    shape = (2 * LARGEST + 1, 7)
    cell = np.random.default_rng(0).permutation(shape[0] * shape[1])[: 5 * LARGEST]
    values = np.random.default_rng(1).uniform(1.0, 2.0, len(cell))
    values[::9] = np.nan
    whole = np.full(shape, np.nan)
    whole.ravel()[cell] = values
    thinned = thin_cells(cell, values, shape, 3)
    np.testing.assert_allclose(thinned, thin(whole, 3), rtol=1e-12)
    pages = [
        report(layers=(Layer("a", image, "", "log", ""),), full=full)
        for image, full in ((whole, None), (thinned, shape))
    ]
    before, after = (_payload(page(one)) for one in pages)
    assert after["grid"] == before["grid"]
    np.testing.assert_array_equal(*(_decoded(one["layers"][0], thinned.shape) for one in (after, before)))


def test_outlines_come_back_within_half_a_unit():
    drawn = outlines({"type": "FeatureCollection", "features": [quarter(1, 0)]}, BOUNDS)
    steps = np.reshape(drawn["regions"][0]["rings"][0], (-1, 2)).cumsum(axis=0) * drawn["unit"]
    corners = np.array(quarter(1, 0)["geometry"]["coordinates"][0][:-1])
    np.testing.assert_allclose(steps * [1, -1] + [BOUNDS[0], BOUNDS[3]], corners, atol=drawn["unit"] / 2)


def test_seven_layers_of_400_by_300_pixels_take_less_than_two_megabytes():
    rng = np.random.default_rng(0)
    smooth = 3.0 * np.cos(np.linspace(0, 5, 300))[:, None] * np.sin(np.linspace(0, 7, 400))
    rough = [np.exp(smooth + 0.05 * rng.normal(size=smooth.shape)) for _ in range(7)]
    layers = tuple(Layer(str(i), values, "", "log", "") for i, values in enumerate(rough))
    assert len(page(report(layers=layers)).encode()) < 2e6


class _Elements(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


def _payload(text):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)[1])


def test_hostile_text_stays_text():
    elements, plain = _Elements(), _Elements()
    elements.feed(page(report()))
    plain.feed(page(report(title="plain")))
    assert elements.tags == plain.tags
    assert _payload(page(report()))["title"] == HOSTILE


def test_the_policy_allows_this_script_and_this_style_and_no_address():
    text = page(report())
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
    for tag in ("script", "style"):
        held = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(held[0].encode()).digest()).decode()
        assert len(held) == 1
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert set(re.findall(r"https?://[\w./]+", text)) == {"http://www.w3.org/2000/svg"}


def test_every_script_of_the_template_is_used():
    folder = resources.files("aggregauss.report") / "template"
    assert {file.name for file in folder.iterdir()} == {f"{name}.js" for name in SCRIPTS} | {"page.html", "page.css"}


def test_missing_numbers_and_odd_values_become_plain_json():
    record = {
        "path": resources.files("aggregauss"),
        "nan": float("nan"),
        "array": np.arange(2),
        "when": pd.Timestamp(0),
    }
    found = _payload(page(report(record=record)))["record"]
    assert (found["nan"], found["array"], found["when"]) == (None, [0, 1], "1970-01-01 00:00:00")


def test_a_report_without_grid_and_outlines_is_written(tmp_path):
    nothing = {"type": "FeatureCollection", "features": []}
    write_page(report(layers=(), regions=nothing, effects=(), trace=np.zeros(0), validation=None), tmp_path / "a.html")
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


def test_a_failed_report_leaves_the_old_one_and_nothing_else(tmp_path):
    (tmp_path / "a.html").write_text("old")
    with pytest.raises(KeyError):
        write_page(report(regions={"features": [{"properties": {}, "geometry": None}]}), tmp_path / "a.html")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.html", "old")]


TABLE = report().table
X, ONE = np.zeros(3), np.ones((2, 2))
TWO_GRIDS = [Layer("a", ONE, "", "log", ""), Layer("b", ONE[:, :1], "", "log", "")]
BAD = {
    "unknown scale": (lambda: Layer("a", ONE, "", "lin", ""), ['Layer: "scale"', "'lin'"]),
    "flat layer": (lambda: Layer("a", X, "", "log", ""), ['"values" of "a"', "rows by columns", "(3,)"]),
    "two grids": (lambda: report(layers=tuple(TWO_GRIDS)), ["one grid", '"b" has (2, 1)']),
    "short band": (lambda: Effect("evi", X, X, X, X[:2], X), ['"evi" must be equally long', "[2, 3]"]),
    "missing column": (lambda: report(table=TABLE.drop(columns="fitted")), ['"table" needs', 'no "fitted"']),
    "missing level": (lambda: report(calibration=TABLE), ['"calibration" needs', 'no "level"']),
    "same label twice": (lambda: report(table=TABLE.assign(label=["a", "b", "a", "c"])), ['"a" is there twice']),
    "reversed bounds": (lambda: report(bounds=(0.0, 1.0, 1.0, 0.0)), ["west, south, east, north"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_sentence(case):
    build, words = BAD[case]
    jaxtyping.config.update("jaxtyping_disable", True)  # as users run it
    try:
        with pytest.raises(ValueError, match=r"Layer|Effect|ReportData") as error:
            build()
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    assert [word for word in words if word not in str(error.value)] == []
