"""The commands."""

from pathlib import Path
from typing import Annotated

import typer

from aggregauss import __version__
from aggregauss.cli import demo as demo_command

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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the table; made if it does not exist.")] = Path(
        "aggregauss-demo"
    ),
    width: Annotated[
        int, typer.Option(min=2, max=50, help="Width of the age bins that the model may see, in years.")
    ] = 10,
) -> None:
    """Ages of a census area: coarse bins in, single years out.

    The residents of a Sheffield output area (2011 census) are counted in ten-year bins. A Gaussian process that knows
    only these totals gives back the number of residents at every single age, with 95% intervals, and is compared with
    the true single-year counts. Writes ages.png and ages.csv. Takes a few seconds.

    Try: aggregauss demo --width 5
    """
    demo_command.run(out, width)
