"""The main job: from files, or what was read from files, to a fitted map."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aggregauss.inference.svi import SVI
from aggregauss.io.individuals import read_individuals
from aggregauss.io.pixel_record import Pixels
from aggregauss.io.pixels import read_pixels
from aggregauss.io.regions import read_regions, read_shapes
from aggregauss.io.tables import column, read_table, texts
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.fit import fit_pixels
from aggregauss.maps.record import run_record
from aggregauss.maps.settings import Settings
from aggregauss.models.gp import GP


def disaggregate(
    regions: Any,
    response: str,
    population: Any = None,
    covariates: Sequence[Any] | Mapping[str, Any] = (),
    *,
    likelihood: str = "poisson",
    examined: str | None = None,
    total: bool = False,
    model: str | GP = "default",
    inducing: int | None = None,
    inference: SVI | None = None,
    individuals: Any = None,
    region: str | None = None,
    coordinates: Sequence[str] = (),
    label: str | None = None,
    layer: str | None = None,
    categorical: Sequence[str] = (),
    resolution: float | None = None,
    benchmark: bool = False,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    seed: int = 0,
    progress: bool = True,
) -> Disaggregation:
    """A map of the rate underneath the numbers that were reported by region.

    `regions` are polygons (a GeoPackage, GeoJSON, Shapefile, GeoParquet, or a GeoDataFrame) whose column `response` was
    reported; `population` is a raster of persons per pixel, `covariates` are rasters, as a list or by name (GeoTIFF,
    NetCDF, Zarr, or xarray). Resolution, extent and reference system may differ: all is brought to the grid of the
    finest raster, or to `resolution` in its units.

    `likelihood` is "poisson" (counts), "negative_binomial", "binomial" (positives out of the column `examined`) or
    "gaussian" (averages, or with `total=True` sums). `model` is "default" (linear effects of the covariates and a
    field), "smooth" (effects that may bend beside), "classic" (linear effects, a field, effects of regions: the model
    of the R package disaggregation), or a GP of inputs (covariates..., x, y) with coordinates in km. With
    `benchmark=True` the map is scaled, draw by draw, so that the totals of all regions are those reported. A
    `checkpoint` is a file from which a fit that was interrupted goes on, unless `resume=False`. More `inducing` points
    resolve a finer field and take longer; `inference` replaces the whole scheme.

    Instead of rasters there may be a table of `individuals` (CSV, Parquet, or a DataFrame) whose column `region` names
    where each belongs: `regions` is then a table too, and `population`, `covariates` and `coordinates` are columns.

    >>> import aggregauss as ag
    >>> files = ag.datasets.madagascar()
    >>> found = ag.disaggregate(files.districts, "cases", files.population, files.covariates)  # doctest: +SKIP
    >>> found.save("results")  # doctest: +SKIP
    """
    settings = Settings(likelihood, total, model, benchmark, seed, inducing)
    reading: dict[str, Any] = {
        "region": region,
        "coordinates": coordinates,
        "examined": examined,
        "label": label,
        "layer": layer,
        "categorical": categorical,
        "resolution": resolution,
    }
    asked = {"response": response, **reading}
    if individuals is None:
        record = run_record({"regions": regions, "population": population}, covariates, arguments=asked)
    else:
        asked |= {"population": population, "covariates": covariates}  # names of columns
        record = run_record({"regions": regions, "individuals": individuals}, arguments=asked)
    if inference is not None:
        record.arguments["inference"] = vars(inference)
    with record.timed("read"):
        counts = likelihood != "gaussian"
        pixels, _ = read_map(
            regions, response, population, covariates, individuals=individuals, counts=counts, **reading
        )
    if checkpoint is not None and not resume:
        Path(checkpoint).unlink(missing_ok=True)  # not before the input is known to be right
    return fit_pixels(pixels, settings, record, inference=inference, checkpoint=checkpoint, progress=progress)


def read_map(
    regions: Any,
    response: str,
    population: Any = None,
    covariates: Sequence[Any] | Mapping[str, Any] = (),
    *,
    individuals: Any = None,
    region: str | None = None,
    coordinates: Sequence[str] = (),
    examined: str | None = None,
    label: str | None = None,
    layer: str | None = None,
    categorical: Sequence[str] = (),
    resolution: float | None = None,
    counts: bool = True,
    groups: str | None = None,
) -> tuple[Pixels, np.ndarray | None]:
    """The pixels of a map, with notes on what was done to the files; and the column `groups` of the regions."""
    notes: list[str] = []
    if individuals is None:
        _refuse({"region": region, "coordinates": coordinates}, "without a table of individuals")
    else:
        of_maps = {"label": label, "layer": layer, "categorical": categorical, "resolution": resolution}
        _refuse(of_maps, "with a table of individuals")
        region = region or "region"
        table = read_table(regions, "read_individuals", "regions", [region, *([] if groups is None else [groups])])
        pixels = read_individuals(
            individuals,
            table,
            response,
            region=region,
            covariates=tuple(covariates),
            coordinates=coordinates,
            weights=population,
            examined=examined,
            counts=counts,
            notes=notes,
        )
        return pixels, _groups(table, groups)
    shapes = read_shapes(regions, layer)
    names = _groups(shapes, groups)
    own = read_regions(shapes, response, label=label, examined=examined, counts=counts, notes=notes)
    pixels = read_pixels(own, population, covariates, resolution=resolution, categorical=categorical, notes=notes)
    if names is not None:  # regions that hold nobody may have been left out
        known = dict(zip(own["label"], names))
        names = np.array([known[label] for label in pixels.regions["label"]])
    return pixels, names


def _groups(table: Any, name: str | None) -> np.ndarray | None:
    return None if name is None else texts(column(table, name, "validate", "groups"), "validate").to_numpy(object)


def _refuse(options: Mapping[str, Any], where: str) -> None:
    """A sentence for the first option that would do nothing."""
    for name, value in options.items():
        if value not in (None, (), []):
            raise ValueError(f'disaggregate: "{name}" has no meaning {where}, but it is {value!r}. Leave it out.')
