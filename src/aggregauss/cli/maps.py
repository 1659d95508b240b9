"""The commands that make, use, show and check maps."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

import aggregauss as ag
from aggregauss.cli.tables import as_table

Likelihood = Literal["poisson", "negative_binomial", "binomial", "gaussian"]
Model = Literal["default", "smooth", "classic"]

Regions = Annotated[Path, typer.Argument(help="Polygons: .gpkg, .geojson, .shp or .parquet.", show_default=False)]
Response = Annotated[str, typer.Option(help="Column with what was reported, e.g. cases.", show_default=False)]
Population = Annotated[Path | None, typer.Option(help="Raster of persons per pixel. Without it, areas take its place.")]
Covariate = Annotated[list[str], typer.Option(help="Raster, or name=raster; repeat for more.", show_default=False)]
Label = Annotated[str | None, typer.Option(help="Column with the names of the regions.")]
Layer = Annotated[str | None, typer.Option(help="Layer of the file of regions, if it has several.")]
Family = Annotated[Likelihood, typer.Option(help="What is reported: counts, positives out of examined, or averages.")]
Examined = Annotated[str | None, typer.Option(help="Column with the numbers examined (binomial).")]
Total = Annotated[bool, typer.Option("--total", help="Gaussian numbers are sums over the people, not averages.")]
Preset = Annotated[
    Model, typer.Option(help="linear effects and a field; smooth: bent effects; classic: as R disaggregation")
]
Categorical = Annotated[list[str], typer.Option(help="Name of a covariate that holds classes; repeat for more.")]
Resolution = Annotated[float | None, typer.Option(help="Pixel size, in units of the rasters' reference system.")]
Inducing = Annotated[int | None, typer.Option(min=2, help="Inducing points: more are finer and slower.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Out = Annotated[Path, typer.Option(help="Folder for the results.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it exists.")]
Threshold = Annotated[
    float | None, typer.Option(help="Rate for the map of exceedance; default: that of the whole map.")
]
Saved = Annotated[Path, typer.Argument(help="Folder that `aggregauss disaggregate` wrote.", show_default=False)]

WRONG = (ValueError, TypeError, OSError, KeyError, FloatingPointError)  # what a sentence is raised with


@contextmanager
def one_sentence(after: str = "") -> Iterator[None]:
    """Bad input ends in its sentence and exit code 1, an interrupt in 130; `after` says how to go on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except WRONG as problem:
        words = str(problem.args[0] if isinstance(problem, KeyError) and problem.args else problem)
        typer.echo(f"aggregauss: {words}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"aggregauss: interrupted; nothing was written.{after}", err=True)
        raise typer.Exit(130) from None


def disaggregate(
    regions: Regions,
    response: Response,
    population: Population = None,
    covariate: Covariate = [],  # noqa: B006
    out: Out = Path("results"),
    likelihood: Family = "poisson",
    examined: Examined = None,
    total: Total = False,
    model: Preset = "default",
    label: Label = None,
    layer: Layer = None,
    categorical: Categorical = [],  # noqa: B006
    resolution: Resolution = None,
    inducing: Inducing = None,
    threshold: Threshold = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Make regional totals match those reported.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a fit that was interrupted.")] = False,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Numbers by region in, a map of the rate by pixel out.

    Regions with a column of counts, a population raster and covariate rasters go in. Out come GeoTIFFs of the rate, its
    uncertainty and the probability that it exceeds a threshold, a table by region, the fitted model, a record of the
    run, and report.html, a page that opens in any browser.

    Example:

      aggregauss disaggregate districts.gpkg --response cases --population pop.tif --covariate evi.tif --out results
    """
    with one_sentence(" Give the same command with --resume to go on."):
        refuse_existing(out, overwrite)
        checkpoint = out.parent / f".{out.name}.fit"
        if not resume:
            checkpoint.unlink(missing_ok=True)
        elif not checkpoint.exists():
            raise ValueError(f"disaggregate: there is no interrupted run of {out} to resume. Leave out --resume.")
        found = ag.disaggregate(
            regions,
            response,
            population,
            _named(covariate),
            likelihood=likelihood,
            examined=examined,
            total=total,
            model=model,
            inducing=inducing,
            label=label,
            layer=layer,
            categorical=categorical,
            resolution=resolution,
            benchmark=benchmark,
            checkpoint=checkpoint,
            seed=seed,
            progress=not as_json,
        )
        found.save(out, threshold=threshold, title=title, overwrite=overwrite)
        checkpoint.unlink(missing_ok=True)
    _tell(found, out, as_json)


def predict(
    folder: Saved,
    target: Annotated[Path | None, typer.Argument(help="Polygons to predict, instead of rasters.")] = None,
    covariate: Covariate = [],  # noqa: B006
    out: Out = Path("predicted"),
    level: Annotated[float, typer.Option(min=0.01, max=0.999, help="Probability of the intervals.")] = 0.95,
    threshold: Threshold = None,
    rates: Annotated[bool, typer.Option("--rates", help="Rates of polygons instead of totals.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """A fitted map for other polygons, or for other rasters.

    With polygons: expected numbers (or --rates) with their intervals, those that hold jointly, and the probability to
    exceed the threshold, as predicted.csv. With rasters of the same covariates: GeoTIFFs, block by block, however large
    the rasters are.

    Examples:

      aggregauss predict results health_districts.gpkg --out by_health_district

      aggregauss predict results --covariate evi=evi_2030.tif --covariate lst=lst_2030.tif --out y2030
    """
    with one_sentence():
        refuse_existing(out, overwrite)
        found = ag.maps.load_map(folder)
        if (target is None) == (not covariate):
            raise ValueError("predict: give either a file of polygons or --covariate rasters.")
        if target is None:
            written = ag.maps.predict_rasters(found, _named(covariate), out, threshold=threshold, overwrite=overwrite)
        else:
            measure = "mean" if rates else None
            options = {"level": level, "threshold": threshold, "overwrite": overwrite}
            written = ag.maps.predict_polygons(found, target, out, measure=measure, **options)
        facts = {"out": str(out), "files": [str(path) for path in written]}
    typer.echo(json.dumps(facts) if as_json else f"Wrote {', '.join(facts['files'])}.")


def report(
    folder: Saved,
    out: Annotated[Path | None, typer.Option(help="Where the page goes; default: report.html in the folder.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    threshold: Threshold = None,
) -> None:
    """The page of a fitted map, made again, perhaps with another title or threshold.

    Example: aggregauss report results --threshold 0.1 --out above_a_tenth.html
    """
    with one_sentence():
        path = ag.maps.load_map(folder).report(out or folder / "report.html", threshold=threshold, title=title)
    typer.echo(f"Wrote {path}.")


def validate(
    regions: Regions,
    response: Response,
    population: Population = None,
    covariate: Covariate = [],  # noqa: B006
    folds: Annotated[int, typer.Option(min=2, help="Parts into which the regions are dealt.")] = 5,
    groups: Annotated[str | None, typer.Option(help="Column of coarser regions: train on their sums.")] = None,
    likelihood: Family = "poisson",
    examined: Examined = None,
    total: Total = False,
    model: Preset = "default",
    label: Label = None,
    layer: Layer = None,
    categorical: Categorical = [],  # noqa: B006
    resolution: Resolution = None,
    inducing: Inducing = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="CSV file for the predictions of every region.")] = None,
    as_json: Json = False,
) -> None:
    """How good is the map? Predict regions that the fit does not see.

    By folds: every region is predicted from the others. With --groups, from coarse to fine: the map is fitted to the
    sums over the coarser regions only, and scored on the regions that these hide.

    Example: aggregauss validate districts.gpkg --response cases --population pop.tif --groups region
    """
    with one_sentence():
        settings = ag.maps.Settings(likelihood, total, model, False, seed, inducing)
        pixels, names = ag.maps.read_map(
            regions,
            response,
            population,
            _named(covariate),
            examined=examined,
            label=label,
            layer=layer,
            categorical=categorical,
            resolution=resolution,
            counts=likelihood != "gaussian",
            groups=groups,
        )
        found = ag.maps.validate(pixels, settings, folds=folds, groups=names, progress=not as_json)
        if out is not None:
            found.table.to_csv(out, index=False, float_format="%.8g")
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "how": found.how,
                    "scores": found.scores.astype(object).where(found.scores.notna(), None).to_dict("index"),
                }
            )
        )
    else:
        Console().print(as_table(found.scores.reset_index(names=""), f"Regions not seen, {found.how}"))


def info(folder: Saved, as_json: Json = False) -> None:
    """What a folder of results holds: model, parameters, data, versions, times.

    Example: aggregauss info results
    """
    with one_sentence():
        found = ag.maps.load_map(folder)
    words = found.words()
    if as_json:
        typer.echo(json.dumps(words))
        return
    console = Console()
    console.print(repr(found))
    for name, value in words["settings"].items():
        console.print(f"  {name}: {value}", highlight=False)
    console.print(as_table(found.posterior.summary().reset_index(names="parameter"), "Parameters"))
    for line in (*words["warnings"], *words["notes"]):
        console.print(f"- {line}", highlight=False)


def _named(covariates: list[str]) -> dict[str, Any]:
    """name=raster, or the stem of the file as its name."""
    named = {}
    for given in covariates:
        name, _, path = given.rpartition("=")
        named[name or Path(path).stem] = Path(path)
    if len(named) < len(covariates):
        raise ValueError("disaggregate: two covariates have the same name. Name them: --covariate name=raster.")
    return named


def refuse_existing(out: Path, overwrite: bool) -> None:
    """A sentence before any work if the results have no place."""
    if out.exists() and not overwrite:
        raise ValueError(f'{out} exists already. Give another "--out", or --overwrite.')


def _tell(found: Any, out: Path, as_json: bool) -> None:
    table = found.table()
    if as_json:
        typer.echo(json.dumps({"out": str(out), **found.words()}))
        return
    console = Console()
    console.print(as_table(table.head(10), f"First regions of {len(table)}"))
    for line in found.warnings:
        console.print(f"[yellow]Warning[/]: {line}", highlight=False)
    for line in found.pixels.notes:
        console.print(f"- {line}", highlight=False)
    console.print(f"Open [bold]{out / 'report.html'}[/] in a browser. Rasters and tables are beside it.")
