"""How a command ends: done, with a sentence about its input, or interrupted."""

import signal
import threading
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from aggregauss.files import check_place

WRONG = (
    ValueError,
    TypeError,
    OSError,
    KeyError,
    FloatingPointError,
    ImportError,
    MemoryError,
)  # raised with a sentence


@contextmanager
def one_sentence(after: str = "") -> Iterator[None]:
    """Bad input ends in its sentence and exit code 1, an interrupt in 130; `after` says how to go on."""
    try:
        with warnings.catch_warnings(), _stoppable():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", message="predict:")  # what was done to the user's polygons
            warnings.showwarning = lambda message, *_: typer.echo(f"aggregauss: {message}", err=True)
            yield
    except WRONG as problem:
        typer.echo(f"aggregauss: {_words(problem)}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"aggregauss: interrupted; nothing was written.{after}", err=True)
        raise typer.Exit(130) from None


def _words(problem: BaseException) -> str:
    if isinstance(problem, KeyError) and problem.args:
        return str(problem.args[0])
    if isinstance(problem, OSError) and problem.strerror and problem.filename is None:
        return problem.strerror  # without its number
    return str(problem) or "there is not enough memory."


def refuse_existing(out: Path, overwrite: bool) -> None:
    """A sentence before any work if something is where the results are to be."""
    if out.exists() and not overwrite:
        raise ValueError(f'{out} exists already. Give another "--out", or --overwrite.')


def check_folder(out: Path, overwrite: bool, files: Collection[str], inputs: Iterable[Any] = ()) -> None:
    """The same for a folder, which may be overwritten if it holds only `files` and none of the inputs."""
    refuse_existing(out, overwrite)
    check_place(out, files, [path for path in inputs if path is not None])


@contextmanager
def _stoppable() -> Iterator[None]:
    """A polite request to end (SIGTERM) is an interrupt like any other, after which nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
