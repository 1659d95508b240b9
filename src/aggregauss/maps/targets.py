"""A fitted map somewhere else: other polygons, or other rasters of the same covariates."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.checks import warn
from aggregauss.files import whole_folder
from aggregauss.inference.posterior import Posterior
from aggregauss.io.geopackage import write_geopackage
from aggregauss.io.regions import read_shapes
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.overlay import overlay
from aggregauss.maps.surface import predict_points
from aggregauss.supports.points import Points
from aggregauss.supports.support import Measure

if TYPE_CHECKING:
    import pandas as pd


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
    measure: Measure | None = None,
    level: float = 0.95,
    threshold: float | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Writes the table of a file of polygons, with and without their outlines."""
    shapes = read_shapes(target)
    table = polygon_table(found, shapes, measure=measure, level=level, threshold=threshold)
    taken = {name: f"predicted_{name}" for name in table.columns if name in shapes.columns}
    joined: Any = shapes.join(table.rename(columns=taken))
    with whole_folder(out, overwrite) as folder:
        joined.drop(columns="geometry").to_csv(folder / "predicted.csv", index=False, float_format="%.8g")
        write_geopackage(joined, folder / "predicted.gpkg", "predicted")
    return [Path(out) / "predicted.csv", Path(out) / "predicted.gpkg"]


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
    """Writes GeoTIFFs of the rate over other rasters of the same covariates, block by block; see `predict_raster`."""
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
    predictor = PointPredictor(found.posterior, found.rate if threshold is None else float(threshold))
    if found.settings.benchmark:
        warn(
            "predict: rates over other rasters are those of the model; what was reported scales the rates of this map "
            "only."
        )
    with whole_folder(out, overwrite) as folder:
        predict_raster(predictor, covariates, folder, names=found.pixels.names, metric=grid.metric, **options)
        written = sorted(path.name for path in folder.iterdir())
    return [Path(out) / name for name in written]
