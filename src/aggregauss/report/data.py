"""What the page shows: plain records in which everything is computed already."""

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Literal

import numpy as np

from aggregauss.checks import one_of

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("sequential", "log", "probability", "diverging")
COLUMNS = ("label", "observed", "fitted", "lower", "upper", "population", "rate")


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """One surface: a value for each pixel, the northernmost row first, NaN where there is none.

    The colours of a "probability" run from 0 to 1, those of a "diverging" layer are centred on 0.

    >>> Layer("mean", np.array([[0.1, 0.2], [np.nan, 0.3]]), "cases per person", "log", "The expected rate.").name
    'mean'
    """

    name: str
    values: np.ndarray
    unit: str
    scale: Literal["sequential", "log", "probability", "diverging"]
    about: str

    def __post_init__(self) -> None:
        one_of(self.scale, SCALES, "Layer", "scale")
        if self.values.ndim != 2:
            raise ValueError(f'Layer: "values" of "{self.name}" must be rows by columns, but has {self.values.shape}.')


@dataclasses.dataclass(frozen=True, eq=False)
class Effect:
    """How the prediction changes with one covariate: a curve with its band, and the values that occur (the rug).

    >>> x = np.linspace(0.0, 1.0, 3)
    >>> Effect("evi", x, mean=x, lower=x - 0.1, upper=x + 0.1, rug=x).unit
    ''
    """

    name: str
    x: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rug: np.ndarray
    unit: str = ""

    def __post_init__(self) -> None:
        sizes = {len(self.x), len(self.mean), len(self.lower), len(self.upper)}
        if len(sizes) > 1:
            raise ValueError(
                f'Effect: "x", "mean", "lower" and "upper" of "{self.name}" must be equally long, '
                f"but have {sorted(sizes)} values."
            )


@dataclasses.dataclass(frozen=True, eq=False)
class ReportData:
    """All that the page shows.

    `bounds` are west, south, east and north of the grid that the layers share: degrees when `geographic`, else metres.
    `regions` is a GeoJSON FeatureCollection in the same coordinates whose properties hold `label`. The rows of `table`
    are the regions: label, observed, fitted, lower, upper, population, and rate in the unit of the first layer; a
    column `fitted_rate` becomes a map too, and further columns are shown in the table. `calibration` holds `level`,
    `inside` (the share of regions inside intervals of that level) and perhaps `kind`. Where the layers are means over
    blocks of a grid too large for a page (`raster.thin`), `full` is the shape of that grid.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    layers: tuple[Layer, ...]
    bounds: tuple[float, float, float, float]
    geographic: bool
    regions: dict
    table: "pd.DataFrame"
    calibration: "pd.DataFrame"
    effects: tuple[Effect, ...]
    trace: np.ndarray
    parameters: "pd.DataFrame"
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    validation: "pd.DataFrame | None"
    record: dict
    full: tuple[int, int] | None = None
    unit: str = ""  # of the rates in the table and of the effects; by default that of the first layer

    def __post_init__(self) -> None:
        _same_grid(self.layers)
        _columns(self.table, COLUMNS, "table")
        _columns(self.calibration, ("level", "inside"), "calibration")
        repeated = [label for label, count in Counter(self.table["label"]).items() if count > 1]
        if repeated:
            raise ValueError(
                f'ReportData: each row of "table" needs a "label" of its own, but "{repeated[0]}" is there twice.'
            )
        west, south, east, north = self.bounds
        if not (west < east and south < north):
            raise ValueError(f'ReportData: "bounds" must be west, south, east, north, but got {self.bounds}.')


def _same_grid(layers: tuple[Layer, ...]) -> None:
    for layer in layers[1:]:
        if layer.values.shape != layers[0].values.shape:
            raise ValueError(
                f'ReportData: all "layers" must lie on one grid, but "{layers[0].name}" has shape '
                f'{layers[0].values.shape} and "{layer.name}" has {layer.values.shape}.'
            )


def _columns(frame: "pd.DataFrame", needed: tuple[str, ...], name: str) -> None:
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        raise ValueError(f'ReportData: "{name}" needs the columns {", ".join(needed)}, but has no "{missing[0]}".')
