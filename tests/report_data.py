"""A small report whose every text tries to escape: 12 x 16 pixels, four regions, all kinds of layers."""

import numpy as np
import pandas as pd

from aggregauss.report import Effect, Layer, ReportData

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'&amp;{{script}} Ω漢🦟\u2028"
ROWS, COLUMNS = 12, 16
BOUNDS = (30.0, -6.0, 38.0, 0.0)  # pixels of half a degree
LABELS = (f"north-west {HOSTILE}", 'north-east, "quoted"', "south-west", "=south-east")


def surface(rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """Positive, never twice the same, with one pixel missing."""
    values = np.exp(np.linspace(-3.0, 3.0, rows * columns)).reshape(rows, columns)
    values[0, 0] = np.nan
    return values


def quarter(row: int, column: int) -> dict:
    """One of the four regions, as GeoJSON."""
    west, north = 30.0 + 4.0 * column, -3.0 * row
    ring = [[west, north], [west + 4.0, north], [west + 4.0, north - 3.0], [west, north - 3.0], [west, north]]
    return {
        "type": "Feature",
        "properties": {"label": LABELS[2 * row + column]},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


def report(**changes: object) -> ReportData:
    values, x = surface(), np.linspace(0.0, 1.0, 20)
    observed = np.array([0.0, 1200.0, 35.0, 8.5])
    parts: dict = {
        "title": HOSTILE,
        "facts": (("regions", "4"), (HOSTILE, HOSTILE)),
        "layers": (
            Layer("mean", values, "cases per 1,000", "log", HOSTILE),
            Layer(f"sd {HOSTILE}", np.sqrt(values), HOSTILE, "sequential", ""),
            Layer("exceedance", values / (1.0 + values), "", "probability", "How probable it is."),
            Layer("difference", np.log(values), "", "diverging", ""),
        ),
        "bounds": BOUNDS,
        "geographic": True,
        "regions": {
            "type": "FeatureCollection",
            "features": [quarter(row, column) for row in (0, 1) for column in (0, 1)],
        },
        "table": pd.DataFrame(
            {
                "label": LABELS,
                "observed": observed,
                "fitted": observed + 2.0,
                "lower": observed,
                "upper": observed + 5.0,
                "population": [1e3, 2e4, 5e2, 3e3],
                "rate": [0.0, 60.0, 70.0, np.nan],
            }
        ),
        "calibration": pd.DataFrame({"level": [0.5, 0.9], "inside": [0.4, 0.95], "kind": [HOSTILE, HOSTILE]}),
        "effects": (Effect(HOSTILE, x, x, x - 1.0, x + 1.0, np.append(x, np.nan), HOSTILE),),
        "trace": -np.exp(-np.arange(50.0)),
        "parameters": pd.DataFrame({"name": [HOSTILE], "value": [1.0]}),
        "warnings": (HOSTILE,),
        "notes": (HOSTILE,),
        "validation": pd.DataFrame({HOSTILE: [HOSTILE], "score": [np.nan]}),
        "record": {HOSTILE: HOSTILE, "nested": {"list": [1, None, HOSTILE]}},
    }
    return ReportData(**{**parts, **changes})
