"""The page in a real browser: what a reader sees at a place is what was computed there."""

import csv
import gzip
import io
import math
import re
import time
from importlib import resources

import numpy as np
import pytest

from aggregauss.report import Layer, write_page
from browser import CHROMIUM, DRIVER, Browser
from report_data import BOUNDS, COLUMNS, HOSTILE, LABELS, ROWS, quarter, report, surface

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver (Debian: apt-get install chromium chromium-driver)"
)
ASPECT = math.cos(math.radians(3.0))
WIDTH, HEIGHT = (BOUNDS[2] - BOUNDS[0]) * ASPECT, BOUNDS[3] - BOUNDS[1]
TIP = "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.innerText"
PREDICTED = 1  # the map on the right


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.fixture
def page(browser, tmp_path):
    """Opens a report, afresh, at the map."""

    def show(data=None, width=1400, height=1000):
        write_page(data or report(), tmp_path / "report.html")
        browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        browser.open(tmp_path / "report.html")
        browser.wait("return document.documentElement.dataset.ready === 'yes'")
        browser.wait("return all('.ticks').every(e => !e.checkVisibility() || e.children.length)")
        browser.run(
            "document.documentElement.style.scrollBehavior = 'auto'; one('.maps')?.scrollIntoView();"
            "return new Promise(done => setTimeout(() => requestAnimationFrame(() => done()), 50))"
        )
        browser.pointer({"type": "pointerMove", "x": 2, "y": 2})
        return browser

    return show


def _on_screen(browser, row, column, which=PREDICTED):
    """Where the middle of a pixel is drawn, when the map shows everything."""
    script = "const r = all('canvas.map')[a].getBoundingClientRect(); return [r.x, r.y, r.width, r.height]"
    x, y, width, height = browser.run(script, which)
    density = 0.94 * min(width / WIDTH, height / HEIGHT)
    u, v = (column + 0.5) / COLUMNS * WIDTH, (row + 0.5) / ROWS * HEIGHT
    return round(x + width / 2 + (u - WIDTH / 2) * density), round(y + height / 2 + (v - HEIGHT / 2) * density)


def _hover(browser, x, y):
    browser.pointer({"type": "pointerMove", "x": x, "y": y})
    return browser.wait(TIP)


def _shown(text, name):
    """The number beside a name in the box at the pointer."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return float(lines[lines.index(name) + 1].replace(",", "").rstrip("%"))


def _place(text):
    """Degrees south and east at the pointer."""
    return [float(number) for number in re.findall(r"([\d.]+)°[SE]", text)]


def _scale_bar(browser):
    return browser.run("return all('.scalebar')[1].innerText")


def test_nothing_fails_and_nothing_is_refused(page):
    browser = page()
    assert browser.errors() == []


def test_a_script_that_is_not_ours_is_refused(page, browser, tmp_path):
    page()
    changed = (tmp_path / "report.html").read_text().replace('"use strict"', '"use strict"; window.hacked = 1')
    (tmp_path / "report.html").write_text(changed)
    browser.open(tmp_path / "report.html")
    assert browser.run("return window.hacked") is None
    assert "Content Security Policy" in browser.errors()[0]


def test_hostile_text_is_shown_as_text_and_does_nothing(page):
    browser = page()
    assert browser.run("return window.hacked") is None
    assert browser.run("return all('img').length") == 0
    for place in (
        "title",
        "h1",
        "#warnings li",
        "#notes li",
        "#facts div:nth-child(2) dd",
        "#record .leaf",
        ".key span",
    ):
        assert browser.run("return one(a).textContent", place) == HOSTILE


@pytest.mark.parametrize(("row", "column"), [(2, 3), (4, 12), (9, 1), (11, 15)])
def test_the_value_at_the_pointer_is_that_of_the_pixel_and_its_region(page, row, column):
    browser = page()
    text = _hover(browser, *_on_screen(browser, row, column))
    value, region = surface()[row, column], 2 * (row >= 6) + (column >= 8)
    assert _shown(text, "mean") == pytest.approx(value, rel=6e-3)
    assert _shown(text, "exceedance") == pytest.approx(100.0 * value / (1.0 + value), abs=0.051)
    assert _shown(text, "difference") == pytest.approx(np.log(value), rel=6e-3)
    assert LABELS[region].strip("\u2028") in text
    row = report().table.iloc[region]
    assert f"{row.fitted:g} ({row.lower:g} to {row.upper:g})" in text.replace(",", "")


def test_longitudes_beyond_180_are_western(page):
    west, south, east, north = BOUNDS
    nothing = {"type": "FeatureCollection", "features": []}
    browser = page(report(bounds=(180.0, south, 180.0 + east - west, north), regions=nothing))
    x, y = _on_screen(browser, 5, 5)
    degrees = 180.0 - (east - west) * 5.5 / COLUMNS
    assert float(re.search(r"([\d.]+)°W", _hover(browser, x, y))[1]) == pytest.approx(degrees, abs=0.1)


def test_a_missing_pixel_shows_no_value(page):
    browser = page()
    assert "This pixel" not in _hover(browser, *_on_screen(browser, 0, 0))


def test_the_picture_has_the_colours_of_the_legend_at_its_ends(page):
    browser = page(report(layers=(Layer("mean", surface(), "", "log", ""),)))
    browser.run("one('.options input').click()")  # one map only: its own range of colours
    browser.pointer({"type": "pointerMove", "x": 1, "y": 1})
    for place, index in (((0, 1), 0), ((11, 15), 255)):
        x, y = _on_screen(browser, *place)
        colours = browser.wait(
            "const [map, ramp] = [all('canvas.map')[1], all('.ramp')[1]], r = map.getBoundingClientRect();"
            "const pick = (from, x, y) => [...from.getContext('2d').getImageData(x, y, 1, 1).data];"
            "return [pick(map, a - r.x, b - r.y), pick(ramp, c, 0)]",
            x, y, index,
        )  # fmt: skip
        assert colours[0] == colours[1]


def test_dragging_carries_the_place_along(page):
    browser = page()
    x, y = _on_screen(browser, 5, 5)
    browser.run("all('.zoom button')[3].click()")
    before = _hover(browser, x, y)
    move = {"type": "pointerMove", "x": x + 90, "y": y + 60}
    browser.pointer({"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown"}, move, {"type": "pointerUp"})
    np.testing.assert_allclose(_place(_hover(browser, x + 90, y + 60)), _place(before), atol=0.02)
    assert abs(_place(_hover(browser, x, y))[1] - _place(before)[1]) > 0.1


def test_the_wheel_zooms_about_the_pointer(page):
    browser = page()
    x, y = _on_screen(browser, 8, 4)
    before, bar = _hover(browser, x, y), _scale_bar(browser)
    for _ in range(3):
        browser.wheel(x, y, -300)
    browser.wait("return all('.scalebar')[1].innerText !== a", bar)
    np.testing.assert_allclose(_place(_hover(browser, x, y)), _place(before), atol=0.02)


def test_two_fingers_zoom(page):
    browser = page()
    (x, y), bar = _on_screen(browser, 6, 8), _scale_bar(browser)
    for kind, gap in (("touchStart", 40), ("touchMove", 90), ("touchMove", 160), ("touchEnd", None)):
        fingers = [] if gap is None else [{"x": x - gap, "y": y, "id": 0}, {"x": x + gap, "y": y, "id": 1}]
        browser.cdp("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)
    browser.wait("return all('.scalebar')[1].innerText !== a", bar)
    assert browser.run("return all('.regions tr.picked').length") == 0


def test_both_maps_look_at_the_same_place(page):
    browser = page()
    browser.run("all('.zoom button')[0].click()")
    browser.wait("const [left, right] = all('.scalebar'); return left.innerText === right.innerText")
    places = [_place(_hover(browser, *_on_screen(browser, 6, 6, which))) for which in (0, 1)]
    np.testing.assert_allclose(*places, atol=0.02)


def test_the_keyboard_moves_zooms_and_tells_the_value(page):
    browser = page()
    bar = _scale_bar(browser)
    browser.run("all('canvas.map')[1].focus()")
    browser.keys("\ue012+++")  # arrow to the left, plus
    browser.wait("return all('.scalebar')[1].innerText !== a", bar)
    spoken = browser.run("return all('.mapbox')[1].querySelector('[aria-live]').textContent")
    assert "mean:" in spoken
    assert "interval" in spoken
    browser.keys("0")
    browser.wait("return all('.scalebar')[1].innerText === a", bar)


def test_every_layer_can_be_chosen_and_has_a_legend(page):
    browser = page()
    names = browser.run("return [...all('select')[1].options].map(o => o.textContent)")
    assert names == ["Observed rate of each region", *(layer.name for layer in report().layers)]
    for index in range(len(names)):
        browser.run(
            "const s = all('select')[1]; s.value = a; s.dispatchEvent(new Event('change'))",
            index,
        )
        browser.wait(
            "return all('canvas.map')[1].getAttribute('aria-label').includes(a)",
            names[index],
        )
        assert browser.run("return all('.ticks')[1].children.length") >= 3
    assert browser.errors() == []


def _labels(browser):
    return browser.run("return all('.regions tbody th').map(cell => cell.textContent)")


def test_the_table_sorts_and_filters(page):
    browser = page()
    click = "all('.regions thead button').find(b => b.textContent === a).click()"
    browser.run(click, "Observed rate")
    assert _labels(browser) == [LABELS[2], LABELS[1], LABELS[0], LABELS[3]]  # a missing rate comes last
    browser.run(click, "Observed rate")
    assert _labels(browser) == [LABELS[0], LABELS[1], LABELS[2], LABELS[3]]
    browser.run("const i = one('input[type=search]'); i.value = 'SOUTH'; i.dispatchEvent(new Event('input'))")
    assert _labels(browser) == [LABELS[2], LABELS[3]]
    assert browser.run("return one('.count').textContent") == "2 of 4 regions"


def test_a_region_picked_in_one_place_is_marked_everywhere(page):
    browser = page()
    x, y = _on_screen(browser, 9, 3)
    browser.pointer({"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown"}, {"type": "pointerUp"})
    assert browser.wait("return one('.regions tr.picked th')?.textContent") == LABELS[2]
    assert browser.run("return one('.chip').textContent") == f"{LABELS[2]} ✕"
    assert browser.run("return all('.chart .mark.picked').length") == 1
    browser.run("one('.chart .mark:not(.picked)').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert browser.run("return one('.regions tr.picked th').textContent") == LABELS[0]


def test_the_downloaded_csv_is_the_table(page, tmp_path):
    browser, file = page(), tmp_path / "regions.csv"
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.run("one('a[download]').click()")
    end = time.monotonic() + 20.0
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"), newline="")))
    assert [row["label"] for row in rows] == list(LABELS)
    assert [float(row["upper"]) for row in rows] == list(report().table["upper"])
    assert rows[3]["rate"] == ""


def test_a_narrow_screen_has_one_map_and_nothing_sticks_out(page):
    browser = page(width=420, height=900)
    assert browser.run("return document.documentElement.scrollWidth") <= 420
    shown = "return all('canvas.map').map(c => c.checkVisibility())"
    assert browser.run(shown) == [False, True]


def test_sections_without_content_are_left_out(page):
    nothing = {"type": "FeatureCollection", "features": []}
    empty = report(layers=(), regions=nothing, effects=(), trace=np.zeros(0), validation=None, warnings=(), notes=())
    browser = page(empty)
    hidden = browser.run("return all('main > [hidden]').map(e => e.id)")
    assert hidden == ["warnings", "map", "effects", "validation", "notes"]
    assert browser.run("return all('nav a').map(a => a.textContent)") == [
        "Fit", "Regions", "Model", "Record",
    ]  # fmt: skip


def test_outlines_alone_make_a_map(page):
    browser = page(report(layers=(), regions={"type": "FeatureCollection", "features": [quarter(0, 0), quarter(0, 1)]}))
    assert browser.run("return all('canvas.map').map(c => c.checkVisibility())") == [
        False,
        True,
    ]


def test_an_old_browser_without_decompression_shows_the_same(page, browser):
    script = browser.cdp("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    try:
        page()
        assert browser.run("return 'DecompressionStream' in window") is False
        assert _shown(_hover(browser, *_on_screen(browser, 7, 7)), "mean") == pytest.approx(surface()[7, 7], rel=6e-3)
    finally:
        browser.cdp("Page.removeScriptToEvaluateOnNewDocument", **script)


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("kind", ["short", "noise", "repeats"])
def test_our_gunzip_inverts_gzip(page, level, kind):
    noise = np.random.default_rng(0).integers(0, 256, 70_000, np.uint8).tobytes()
    data = {"short": b"aaab", "noise": noise, "repeats": noise[:300] * 200 + b"z" * 9000}[kind]
    source = (resources.files("aggregauss.report") / "template" / "inflate.js").read_text()
    found = page().run(source + "return Array.from(gunzip(Uint8Array.from(a)))", list(gzip.compress(data, level)))
    assert bytes(found) == data
