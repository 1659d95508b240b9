"""The records as one JSON value for the page."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from aggregauss.report.data import Effect, Layer, ReportData
from aggregauss.report.outlines import outlines
from aggregauss.report.plain import frame, plain
from aggregauss.report.raster import block_size, encode, thin

STEPS_OF_TRACE, MARKS_OF_RUG = 1000, 400


def payload(data: ReportData) -> dict[str, Any]:
    """What the scripts of the page read."""
    return {
        "title": data.title,
        "facts": plain(data.facts),
        "unit": data.unit or (data.layers[0].unit if data.layers else ""),
        "geographic": data.geographic,
        "grid": _grid(data),
        "layers": [encode(layer) for layer in _thinned(data)],
        "outlines": outlines(data.regions, data.bounds),
        "table": frame(data.table.assign(label=data.table["label"].astype(str))),
        "calibration": frame(data.calibration),
        "effects": [_effect(effect) for effect in data.effects],
        "trace": _trace(np.asarray(data.trace, np.float64).reshape(-1)),
        "parameters": frame(data.parameters),
        "warnings": plain(data.warnings),
        "notes": plain(data.notes),
        "validation": None if data.validation is None else frame(data.validation),
        "record": plain(data.record),
    }


def _thinned(data: ReportData) -> Iterator[Layer]:
    """The layers as they are drawn, one at a time."""
    for layer in data.layers:
        block = block_size(layer.values.shape)  # of layers that were thinned it is one
        yield dataclasses.replace(layer, values=thin(layer.values, block)) if block > 1 else layer


def _grid(data: ReportData) -> dict[str, Any]:
    """Shape and bounds of the grid as drawn; blocks that stick out at the south and the east move those bounds."""
    west, south, east, north = data.bounds
    rows, columns = data.full or (data.layers[0].values.shape if data.layers else (1, 1))
    block = block_size((rows, columns))
    drawn = -(-rows // block), -(-columns // block)
    return {
        "rows": drawn[0],
        "columns": drawn[1],
        "west": west,
        "north": north,
        "east": west + (east - west) * drawn[1] * block / columns,
        "south": north - (north - south) * drawn[0] * block / rows,
        "block": block,
        "full": [rows, columns],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    rug = np.sort(np.asarray(effect.rug, np.float64)[np.isfinite(effect.rug)])
    kept = rug[np.linspace(0, len(rug) - 1, min(len(rug), MARKS_OF_RUG)).astype(int)] if len(rug) else rug
    return plain({**vars(effect), "rug": kept})


def _trace(values: np.ndarray) -> dict[str, Any]:
    """At most a thousand steps of the trace, the last one among them, with their numbers."""
    steps = np.unique(np.linspace(0, max(len(values) - 1, 0), min(len(values), STEPS_OF_TRACE)).astype(int))
    return {"step": steps.tolist(), "value": plain(values[steps])}
