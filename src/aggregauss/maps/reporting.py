"""What the page of a map shows, gathered from the map."""

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from aggregauss.io.grid import Grid
from aggregauss.maps.dependence import dependence
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.surface import Surface
from aggregauss.maps.validate import LEVELS, Validation
from aggregauss.metrics import coverage
from aggregauss.report.data import Effect, Layer, ReportData
from aggregauss.report.raster import block_size, thin_cells

if TYPE_CHECKING:
    import pandas as pd

RATES = ("mean", "median", "lower", "upper", "sd")
TITLES = {
    "mean": "rate",
    "median": "median rate",
    "lower": "rate, 2.5%",
    "upper": "rate, 97.5%",
    "sd": "uncertainty (sd)",
}
ABOUT = {
    "mean": "The expected rate of each pixel.",
    "median": "Half the probability lies below.",
    "lower": "The rate is below this with a probability of 2.5%.",
    "upper": "The rate is above this with a probability of 2.5%.",
    "sd": "The standard deviation of what is known of the rate.",
}


def report_data(
    found: Disaggregation,
    known: Surface,
    table: "pd.DataFrame",
    validation: Validation | None = None,
    title: str | None = None,
) -> ReportData:
    """Everything that the page shows."""
    per, unit = _unit(found)
    scaled = table.assign(rate=table["rate"] * per, fitted_rate=table["fitted_rate"] * per)
    effects = [
        Effect(d.name, d.x, d.mean * per, d.lower * per, d.upper * per, d.rug)
        for d in dependence(found.posterior, found.pixels, seed=found.settings.seed)
    ]
    bounds, geographic, outlines = _outlines(found)
    return ReportData(
        title=title or found.record.shown.get("title") or "A map from aggregated numbers",
        facts=_facts(found),
        layers=_layers(found, known, per, unit),
        bounds=bounds,
        geographic=geographic,
        regions=outlines,
        table=scaled,
        calibration=_calibration(found, validation),
        effects=tuple(effects),
        trace=_trace(found),
        parameters=_parameters(found),
        warnings=found.warnings,
        notes=found.pixels.notes,
        validation=None if validation is None else _scores(validation, per, unit),
        record={**found.record.words(), "settings": found.settings.words(), "warnings": list(found.warnings)},
        full=None if found.pixels.grid is None else found.pixels.grid.shape,
        unit=unit,
    )


def _unit(found: Disaggregation) -> tuple[float, str]:
    """A power of ten that makes the typical rate a number people read, and its unit in words."""
    if found.settings.likelihood == "binomial":
        return 100.0, "%"
    if found.settings.likelihood == "gaussian" or not found.rate > 0:
        return 1.0, ""
    power = max(0, math.ceil(-math.log10(found.rate)))
    per = 10.0**power
    people = "persons" if _peopled(found) else "km²"
    return per, f"per {per:,.0f} {people}" if power else f"per {people.removesuffix('s')}"


def _peopled(found: Disaggregation) -> bool:
    """Whether pixels weigh their people, and not their area."""
    return "population" in found.record.files or found.pixels.grid is None


def _facts(found: Disaggregation) -> tuple[tuple[str, str], ...]:
    p, seconds = found.pixels, found.record.seconds
    observed = p.regions["observed"].sum()
    model = found.settings.model if isinstance(found.settings.model, str) else "own"
    return (
        ("regions", f"{len(p.regions):,}"),
        ("pixels", f"{len(p.population):,}"),
        ("reported", f"{observed:,.0f}"),
        ("covariates", ", ".join(p.names) or "none"),
        ("model", f"{model}, {found.settings.likelihood}" + (", benchmarked" if found.settings.benchmark else "")),
        ("log evidence", f"{found.posterior.evidence:,.1f}"),
        ("time", f"{sum(seconds.values()):.0f} s"),
    )


def _layers(found: Disaggregation, known: Surface, per: float, unit: str) -> tuple[Layer, ...]:
    grid = found.pixels.grid
    if grid is None:
        return ()
    positive = found.posterior.model.likelihood.g.low == 0
    scale = "log" if positive and found.settings.likelihood != "binomial" else "sequential"
    values = known.layers()
    layers = [
        Layer(TITLES[name], _image(grid, found.pixels.cell, values[name] * per), unit, scale, ABOUT[name])
        for name in RATES
    ]
    limit = f"{known.threshold * per:.3g} {unit}"
    about = f"The probability that the rate exceeds {limit}."
    image = _image(grid, found.pixels.cell, known.exceedance)
    weight = found.pixels.population
    people = _image(grid, found.pixels.cell, np.where(weight > 0, weight, np.nan))
    what = "persons in the pixel" if _peopled(found) else "km² of the pixel"
    return (
        *layers,
        Layer(f"above {limit}", image, "", "probability", about),
        Layer("population", people, what, "log", "The weight of each pixel in its region; empty where nobody lives."),
    )


def _image(grid: Grid, cell: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What a page can draw of the grid."""
    return thin_cells(cell, values, grid.shape, block_size(grid.shape))


def _trace(found: Disaggregation) -> np.ndarray:
    """The best objective so far; the last one of a run, with all individuals, is not to be compared with the others."""
    path = found.posterior.runs[-1].path if found.posterior.runs else ()
    return np.maximum.accumulate(np.array(path[:-1], float)) if len(path) > 1 else np.array(path, float)


def _parameters(found: Disaggregation) -> "pd.DataFrame":
    """Values and intervals; a lengthscale of a map is in kilometres."""
    known = found.posterior.summary()
    known["prior"] = known["prior"].where(known["learned"].astype(bool), "fixed")
    length = {} if found.pixels.grid is None else {"kernel.lengthscale": "kernel.lengthscale, km"}
    return known.drop(columns="learned").rename(index=length).reset_index(names="parameter")


def _scores(validation: Validation, per: float, unit: str) -> "pd.DataFrame":
    """Scores of the check in the unit of the page, and how it was done."""
    scores = validation.scores.rename(columns={"RMSE of rates": f"RMSE of rates {unit}".rstrip()})
    return scores.mul([per, *[1.0] * (scores.shape[1] - 1)], axis=1).reset_index(names=validation.how)


def _outlines(found: Disaggregation) -> tuple[tuple[float, float, float, float], bool, dict]:
    grid = found.pixels.grid
    if grid is None:
        return (0.0, 0.0, 1.0, 1.0), False, {"type": "FeatureCollection", "features": []}
    a, _, west, _, e, north = grid.transform
    bounds = (west, north + e * grid.shape[0], west + a * grid.shape[1], north)
    shapes = found.pixels.regions[["label", "geometry"]]
    simple = shapes.assign(geometry=shapes.geometry.simplify(abs(a) / 4))
    return bounds, bool(shapes.crs.is_geographic), json.loads(str(simple.to_json()))


def _calibration(found: Disaggregation, validation: Validation | None) -> "pd.DataFrame":
    import pandas as pd

    y, examined = found.settings.numbers(found.pixels, [])
    new = found.predict(kind="observation", counts=examined)
    inside = [coverage(y, *new.interval(level)) for level in LEVELS]
    fitted = pd.DataFrame({"level": LEVELS, "inside": inside, "kind": "fitted"})
    return fitted if validation is None else pd.concat([fitted, validation.calibration], ignore_index=True)
