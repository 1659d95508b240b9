"""The commands."""

from pathlib import Path
from typing import Annotated

import typer

from aggregauss import __version__
from aggregauss.cli import demo as demo_command
from aggregauss.cli import maps
from aggregauss.cli.sentences import check_folder, one_sentence
from aggregauss.maps.saving import FILES

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Gaussian processes for aggregated data: the fine-scale function underneath, with its uncertainty.",
)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"aggregauss {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that go before a command."""


for command in (maps.disaggregate, maps.predict, maps.report, maps.validate, maps.info):
    app.command()(command)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results; made if it does not exist.")] = Path(
        "aggregauss-demo"
    ),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the folder if it exists.")] = False,
) -> None:
    """The whole job on real data: malaria in Madagascar.

    Cases by district, a population raster and three covariate rasters come with the package. First the honest check: a
    map fitted to the 22 regions only is scored on the 109 districts that they hide. Then the map of all districts, with
    rasters, tables and report.html. Takes a minute or two.

    Try: aggregauss demo --out madagascar
    """
    with one_sentence():
        check_folder(out, overwrite, FILES)
        demo_command.run(out, overwrite)
