"""A fitted map somewhere else: other polygons, or other rasters of the same covariates."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.checks import warn
from aggregauss.files import whole_folder
from aggregauss.inference.posterior import Posterior
from aggregauss.io.geopackage import RESERVED, write_geopackage
from aggregauss.io.regions import read_shapes
from aggregauss.io.tables import write_csv
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.overlay import overlay
from aggregauss.maps.record import RunRecord, run_record
from aggregauss.maps.saving import LAYERS, RECORD, write_record
from aggregauss.maps.surface import described, predict_points
from aggregauss.supports.points import Points
from aggregauss.supports.support import Measure

if TYPE_CHECKING:
    import pandas as pd

CSV, GPKG = "predicted.csv", "predicted.gpkg"
FILES = LAYERS | {CSV, GPKG, RECORD}


def polygon_table(
    found: Disaggregation,
    target: Any,
    *,
    measure: Measure | None = None,
    level: float = 0.95,
    threshold: float | None = None,
) -> "pd.DataFrame":
    """Polygons with their expected totals (or rates), intervals, joint intervals, and P(rate > threshold).

    `covered` is the part of a polygon's area that lies on the map; numbers and rates are those of this part.
    """
    pieces = overlay(found.pixels, target)
    prediction, rates = found.predict(pieces, measure=measure), found.predict(pieces, measure="mean")
    table = prediction.to_frame(level)
    table["joint_lower"], table["joint_upper"] = prediction.joint_interval(level)
    table["rate"] = rates.mean
    table["exceedance"] = rates.exceedance(found.rate if threshold is None else threshold)
    table["population"] = np.bincount(pieces.owner, pieces.weight, minlength=len(pieces.labels))
    table["covered"] = pieces.covered
    return table


def predict_polygons(
    found: Disaggregation,
    target: str | Path,
    out: str | Path,
    *,
    layer: str | None = None,
    measure: Measure | None = None,
    level: float = 0.95,
    threshold: float | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Writes the table of a file of polygons, with and without their outlines, and a record of the run.

    A column that is called like one of the table, in whatever case, keeps its name, and that of the table becomes
    `predicted_...`.
    """
    limit = found.rate if threshold is None else float(threshold)
    asked = {"layer": layer, "measure": measure or found.settings.measure, "level": level, "threshold": limit}
    record = run_record({"polygons": target}, arguments=asked)
    with whole_folder(out, FILES if overwrite else None, record.paths()) as folder:
        with record.timed("read"):
            shapes = read_shapes(target, layer)
        with record.timed("predict"):
            table = polygon_table(found, shapes, measure=measure, level=level, threshold=limit)
        joined: Any = _apart(shapes, "original").join(_apart(table, "predicted", shapes.columns))
        with record.timed("write"):
            write_csv(joined.drop(columns="geometry"), folder / CSV)
            write_geopackage(joined, folder / GPKG, "predicted")
        write_record(folder, _words(record, found))
    return [Path(out) / name for name in (CSV, GPKG, RECORD)]


@dataclasses.dataclass(frozen=True)
class PointPredictor:
    """Rows of inputs in, layers of the rate out; travels to the workers of a cluster."""

    post: Posterior
    threshold: float

    def __call__(self, columns: np.ndarray) -> dict[str, np.ndarray]:
        """Layers by name."""
        return predict_points(self.post, self.threshold)(Points(columns))


def predict_rasters(
    found: Disaggregation,
    covariates: Mapping[str, Any],
    out: str | Path,
    *,
    threshold: float | None = None,
    overwrite: bool = False,
    **options: Any,
) -> list[Path]:
    """Writes GeoTIFFs of the rate over other rasters of the same covariates, block by block, and a record of the run.

    For `options` see `predict_raster`.
    """
    from aggregauss.maps.blocks import predict_raster  # Dask is slow to import

    grid = found.pixels.grid
    if grid is None:
        raise TypeError(
            "predict: this map was made from a table of individuals, whose coordinates have no known reference system "
            "in which rasters could be found. Make it from regions and rasters."
        )
    missing = [name for name in found.pixels.names if name.partition("=")[0] not in covariates]
    if missing:
        raise ValueError(
            f'predict: the map was fitted with the covariate "{missing[0]}", but no raster has this name. Give '
            f"rasters for {', '.join(found.pixels.names)}."
        )
    if found.settings.benchmark:
        warn(
            "predict: rates over other rasters are those of the model; what was reported scales the rates of this map "
            "only."
        )
    limit = found.rate if threshold is None else float(threshold)
    record = run_record({}, covariates, arguments={"threshold": limit})
    predictor = PointPredictor(found.posterior, limit)
    with whole_folder(out, FILES if overwrite else None, record.paths()) as folder:
        with record.timed("predict"):
            names, about = found.pixels.names, described(limit)
            predict_raster(predictor, covariates, folder, names=names, metric=grid.metric, about=about, **options)
        write_record(folder, _words(record, found))
        written = sorted(path.name for path in folder.iterdir())
    return [Path(out) / name for name in written]


def _words(record: RunRecord, found: Disaggregation) -> dict[str, Any]:
    """What was predicted, and from which map."""
    fit = {**found.record.words(), "settings": found.settings.words()}
    return {**record.words(), "map": fit.pop("map"), "fit": fit}


def _apart(table: Any, prefix: str, taken: Iterable[str] = ()) -> Any:
    """A table whose columns differ from those that are taken, and not by case alone: with a prefix where needed."""
    known = {*RESERVED, *(str(name).lower() for name in taken)}
    names: dict[Any, str] = {}
    for name in table.columns.drop("geometry", errors="ignore"):
        names[name] = str(name)
        while names[name].lower() in known:
            names[name] = f"{prefix}_{names[name]}"
        known.add(names[name].lower())
    return table.rename(columns=names)
