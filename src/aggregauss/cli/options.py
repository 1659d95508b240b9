"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from aggregauss.io.covariates import short_name

Likelihood = Literal["poisson", "negative_binomial", "binomial", "gaussian"]
Model = Literal["default", "smooth", "classic"]

Regions = Annotated[
    Path,
    typer.Argument(
        help="Polygons: .gpkg, .geojson, .shp or .parquet; with --individuals a table: .csv or .parquet.",
        show_default=False,
    ),
]
Response = Annotated[str, typer.Option(help="Column with what was reported, e.g. cases.", show_default=False)]
Population = Annotated[
    str | None,
    typer.Option(help="Raster of persons per pixel; without it, areas take its place. With --individuals, a column."),
]
Covariate = Annotated[
    list[str],
    typer.Option(
        help="Raster, or name=raster; one layer of several as file.tif#layer. With --individuals, a column. "
        "Repeat for more.",
        show_default=False,
    ),
]
Individuals = Annotated[
    Path | None,
    typer.Option(help="Table of individuals (.csv, .parquet) instead of rasters.", show_default=False),
]
Region = Annotated[
    str | None,
    typer.Option(help="With --individuals: the column of both tables that names regions; default: region."),
]
Coordinate = Annotated[
    list[str], typer.Option(help="With --individuals: column of a coordinate; repeat for more.", show_default=False)
]
Label = Annotated[str | None, typer.Option(help="Column with the names of the regions.")]
Layer = Annotated[str | None, typer.Option(help="Layer of the file of polygons, if it has several.")]
Family = Annotated[Likelihood, typer.Option(help="What is reported: counts, positives out of examined, or averages.")]
Examined = Annotated[str | None, typer.Option(help="Column with the numbers examined (binomial).")]
Total = Annotated[bool, typer.Option("--total", help="Gaussian numbers are sums over the people, not averages.")]
Preset = Annotated[
    Model,
    typer.Option(help="default: linear effects and a field; smooth: bent effects; classic: as R disaggregation."),
]
Categorical = Annotated[
    list[str], typer.Option(help="Name of a covariate that holds classes; repeat for more.", show_default=False)
]
Resolution = Annotated[float | None, typer.Option(help="Pixel size, in units of the rasters' reference system.")]
Inducing = Annotated[int | None, typer.Option(min=2, help="Inducing points: more are finer and slower.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Out = Annotated[Path, typer.Option(help="Folder for the results.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the results if they exist; a folder with other files is kept.")
]
Threshold = Annotated[
    float | None, typer.Option(help="Rate for the map of exceedance; default: that of the whole map.")
]
Title = Annotated[str | None, typer.Option(help="Title of the page.")]
Saved = Annotated[Path, typer.Argument(help="Folder that `aggregauss disaggregate` wrote.", show_default=False)]


def named(covariates: list[str]) -> dict[str, Any]:
    """Rasters by name: name=raster, or a raster that is called after its file or its layer.

    >>> named(["rain=wet.tif", "stack.tif#evi", "lst.tif"])
    {'rain': 'wet.tif', 'evi': 'stack.tif#evi', 'lst': 'lst.tif'}
    """
    pairs = [_pair(given) for given in covariates]
    if len(dict(pairs)) < len(pairs):
        raise ValueError("disaggregate: two covariates have the same name. Name them: --covariate name=raster.")
    return dict(pairs)


def _pair(given: str) -> tuple[str, str]:
    name, equals, path = given.partition("=")
    if equals and not Path(given.partition("#")[0]).exists():
        return name, path
    return short_name(given), given


def sources(
    population: str | None, covariate: list[str], individuals: Path | None, region: str | None, coordinate: list[str]
) -> dict[str, Any]:
    """What `read_map` wants to know of rasters, or of a table of individuals."""
    return {
        "population": population,
        "covariates": named(covariate) if individuals is None else covariate,
        "individuals": individuals,
        "region": region,
        "coordinates": coordinate,
    }


def inputs(regions: Path, population: str | None, covariate: list[str], individuals: Path | None) -> list[Any]:
    """The files that a map is made from."""
    if individuals is not None:
        return [regions, individuals]
    return [regions, population, *named(covariate).values()]
