"""The commands that make, use, show and check maps."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import aggregauss as ag
from aggregauss.cli import options as o
from aggregauss.cli.sentences import check_folder, one_sentence, refuse_existing
from aggregauss.cli.tables import as_table
from aggregauss.files import parents_of, whole_file
from aggregauss.io.tables import write_csv
from aggregauss.maps.saving import FILES as MAP
from aggregauss.maps.targets import FILES as PREDICTED
from aggregauss.report.plain import json_text

if TYPE_CHECKING:
    import pandas as pd


def disaggregate(
    regions: o.Regions,
    response: o.Response,
    population: o.Population = None,
    covariate: o.Covariate = [],  # noqa: B006
    out: o.Out = Path("results"),
    individuals: o.Individuals = None,
    region: o.Region = None,
    coordinate: o.Coordinate = [],  # noqa: B006
    likelihood: o.Family = "poisson",
    examined: o.Examined = None,
    total: o.Total = False,
    model: o.Preset = "default",
    label: o.Label = None,
    layer: o.Layer = None,
    categorical: o.Categorical = [],  # noqa: B006
    resolution: o.Resolution = None,
    inducing: o.Inducing = None,
    threshold: o.Threshold = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Make regional totals match those reported.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a fit that was interrupted.")] = False,
    title: o.Title = None,
    seed: o.Seed = 0,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
) -> None:
    """Numbers by region in, a map of the rate by pixel out.

    Regions with a column of counts, a population raster and covariate rasters go in. Out come GeoTIFFs of the rate, its
    uncertainty and the probability that it exceeds a threshold, a table by region, the fitted model, a record of the
    run, and report.html, a page that opens in any browser.

    Examples:

      aggregauss disaggregate districts.gpkg --response cases --population pop.tif --covariate evi.tif --out results

      aggregauss disaggregate cases.csv --response cases --individuals people.csv --region ward --covariate age

    Exit codes: 0 done, 1 bad input (one sentence says what to do), 2 unknown option, 130 interrupted. Nothing
    half-written stays behind; an interrupted fit goes on with --resume.
    """
    with one_sentence(" Give the same command with --resume to go on."), parents_of(out):
        check_folder(out, overwrite, MAP, o.inputs(regions, population, covariate, individuals))
        checkpoint = out.parent / f".{out.name}.fit"
        if resume and not checkpoint.exists():
            raise ValueError(f"disaggregate: there is no interrupted run of {out} to resume. Leave out --resume.")
        found = ag.disaggregate(
            regions,
            response,
            **o.sources(population, covariate, individuals, region, coordinate),
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
            resume=resume,
            seed=seed,
            progress=not as_json,
        )
        found.save(out, threshold=threshold, title=title, overwrite=overwrite)
        checkpoint.unlink(missing_ok=True)
        table, words = found.table(), found.words()
    _tell(table, words, out, as_json)


def predict(
    folder: o.Saved,
    target: Annotated[Path | None, typer.Argument(help="Polygons to predict, instead of rasters.")] = None,
    covariate: o.Covariate = [],  # noqa: B006
    out: o.Out = Path("predicted"),
    layer: o.Layer = None,
    level: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.999, help="Probability of the intervals of polygons; default: 0.95."),
    ] = None,
    threshold: o.Threshold = None,
    rates: Annotated[bool, typer.Option("--rates", help="Rates of polygons instead of totals.")] = False,
    overwrite: o.Overwrite = False,
    as_json: o.Json = False,
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
        if (target is None) == (not covariate):
            raise ValueError("predict: give either a file of polygons or --covariate rasters.")
        if target is None and (layer is not None or level is not None or rates):
            raise ValueError("predict: --layer, --level and --rates are for polygons. Leave them out.")
        check_folder(out, overwrite, PREDICTED, [target, *o.named(covariate).values()])
        found = ag.maps.load_map(folder)
        if target is None:
            written = ag.maps.predict_rasters(found, o.named(covariate), out, threshold=threshold, overwrite=overwrite)
        else:
            written = ag.maps.predict_polygons(
                found,
                target,
                out,
                layer=layer,
                measure="mean" if rates else None,
                level=0.95 if level is None else level,
                threshold=threshold,
                overwrite=overwrite,
            )
        facts = {"out": str(out), "files": [str(path) for path in written]}
    typer.echo(json_text(facts) if as_json else f"Wrote {', '.join(facts['files'])}.")


def report(
    folder: o.Saved,
    out: Annotated[Path | None, typer.Option(help="Where the page goes; default: report.html in the folder.")] = None,
    title: o.Title = None,
    threshold: o.Threshold = None,
    as_json: o.Json = False,
) -> None:
    """The page of a fitted map, made again, perhaps with another title or threshold.

    Example: aggregauss report results --threshold 0.1 --out above_a_tenth.html
    """
    with one_sentence():
        found = ag.maps.load_map(folder)
        checked = ag.maps.load_check(folder, found)
        path = found.report(out or folder / "report.html", threshold=threshold, title=title, validation=checked)
    typer.echo(json_text({"out": path}) if as_json else f"Wrote {path}.")


def validate(
    regions: o.Regions,
    response: o.Response,
    population: o.Population = None,
    covariate: o.Covariate = [],  # noqa: B006
    folds: Annotated[int, typer.Option(min=2, help="Parts into which the regions are dealt.")] = 5,
    groups: Annotated[str | None, typer.Option(help="Column of coarser regions: train on their sums.")] = None,
    individuals: o.Individuals = None,
    region: o.Region = None,
    coordinate: o.Coordinate = [],  # noqa: B006
    likelihood: o.Family = "poisson",
    examined: o.Examined = None,
    total: o.Total = False,
    model: o.Preset = "default",
    label: o.Label = None,
    layer: o.Layer = None,
    categorical: o.Categorical = [],  # noqa: B006
    resolution: o.Resolution = None,
    inducing: o.Inducing = None,
    seed: o.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="CSV file for the predictions of every region.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    as_json: o.Json = False,
) -> None:
    """How good is the map? Predict regions that the fit does not see.

    By folds: every region is predicted from the others. With --groups, from coarse to fine: the map is fitted to the
    sums over the coarser regions only, and scored on the regions that these hide.

    Examples:

      aggregauss validate districts.gpkg --response cases --population pop.tif --folds 10

      aggregauss validate districts.gpkg --response cases --population pop.tif --groups province
    """
    with one_sentence():
        if out is not None:
            refuse_existing(out, overwrite)
            if not out.absolute().parent.is_dir():
                raise ValueError(f"validate: there is no folder {out.parent} to write {out.name} into.")
        settings = ag.maps.Settings(likelihood, total, model, False, seed, inducing)
        pixels, names = ag.maps.read_map(
            regions,
            response,
            **o.sources(population, covariate, individuals, region, coordinate),
            examined=examined,
            label=label,
            layer=layer,
            categorical=categorical,
            resolution=resolution,
            counts=likelihood != "gaussian",
            groups=groups,
        )
        found = ag.maps.validate(pixels, settings, folds=folds, groups=names, progress=not as_json)
        if as_json:
            typer.echo(json_text({"how": found.how, "scores": found.scores.to_dict("index")}))
        else:
            Console().print(as_table(found.scores.reset_index(names=""), f"Regions not seen, {found.how}"))
        if out is not None:  # last, so that a disk that is full does not cost the scores
            with whole_file(out) as made:
                write_csv(found.table, made)


def info(folder: o.Saved, as_json: o.Json = False) -> None:
    """What a folder of results holds: model, parameters, data, versions, times.

    Example: aggregauss info results
    """
    with one_sentence():
        found = ag.maps.load_map(folder)
        words, parameters = found.words(), found.posterior.summary().reset_index(names="parameter")
    if as_json:
        typer.echo(json_text(words))
        return
    console = Console()
    for line in (repr(found), *_about(words)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(as_table(parameters, "Parameters"))
    _print_lines(console, (*words["warnings"], *words["notes"]))


def _about(words: dict[str, Any]) -> list[str]:
    """Settings, files with the beginnings of their hashes, versions, seconds."""
    asked = {name: value for name, value in words["arguments"].items() if value not in (None, [], ())}
    chosen = [f"{name}: {value}" for name, value in {**words["settings"], **asked}.items()]
    files = [
        f"{name}: {source.get('path', source.get('type'))} {source.get('sha256', '')[:12]}".rstrip()
        for name, source in words["files"].items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in words["versions"].items())
    seconds = ", ".join(f"{step} {spent:.1f} s" for step, spent in words["seconds"].items())
    return [f"  {line}" for line in (*chosen, *files, versions, seconds)]


def _print_lines(console: Console, lines: Iterable[str], sign: str = "-") -> None:
    for line in lines:
        console.print(f"{sign} {line}", highlight=False, markup=False)


def _tell(table: "pd.DataFrame", words: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({"out": out, **words}))
        return
    console = Console()
    console.print(as_table(table.head(10), f"First regions of {len(table)}"))
    _print_lines(console, words["warnings"], "Warning:")
    _print_lines(console, words["notes"])
    console.print(f"Open [bold]{escape(str(out / 'report.html'))}[/] in a browser. Rasters and tables are beside it.")
