"""What every experiment shares: finding the data, rows that survive an interruption, and the page of results."""

import argparse
import csv
import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT.parent / "docs" / "results"
ROWS = ROOT / "rows"


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options that all experiments understand."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("AGGREGAUSS_DATA"), help="folder with the data sets")
    parser.add_argument("--fresh", action="store_true", help="forget rows of earlier runs instead of resuming")
    return parser


def folder(options: argparse.Namespace, name: str) -> Path:
    """The folder of one data set, or a sentence and exit code 2."""
    path = Path(options.data or "") / name
    if options.data is None or not path.is_dir():
        sys.exit(
            f"This experiment needs the data set '{name}'. Give its parent folder with --data or in the variable "
            f"AGGREGAUSS_DATA (now: {options.data})."
        )
    return path


def resumable(
    name: str,
    keys: Iterable[tuple],
    columns: list[str],
    compute: Callable[..., list[dict] | dict],
    fresh: bool,
) -> list[dict[str, str]]:
    """Rows for all keys, computing those that an earlier run has not written; each is on disk as soon as it is known.

    `columns` starts with the names of the key's parts; `compute(*key)` gives one row or several, without the key.
    Processes that are started side by side share the work: each takes keys that no other one is at. The last to end
    has all rows.
    """
    from tqdm import tqdm

    keys = list(keys)
    ROWS.mkdir(exist_ok=True)
    path = ROWS / f"{name}.csv"
    if fresh or not path.exists():
        path.write_text(",".join(columns) + "\n")
    width = len(keys[0])

    def known() -> set[tuple[str, ...]]:
        return {tuple(row[c] for c in columns[:width]) for row in _read(path)}

    done = known()
    for key in tqdm([k for k in keys if tuple(map(str, k)) not in done], desc=name):
        with _claimed(f"{path}{key}") as mine:
            if not mine or tuple(map(str, key)) in known():
                continue
            made = compute(*key)
            with path.open("a", newline="") as stream:
                writer = csv.DictWriter(stream, columns)
                writer.writerows(
                    {**dict(zip(columns, key)), **row} for row in (made if isinstance(made, list) else [made])
                )
    wanted = {tuple(map(str, k)) for k in keys}
    return [row for row in _read(path) if tuple(row[c] for c in columns[:width]) in wanted]


@contextmanager
def _claimed(what: str) -> Iterator[bool]:
    """Whether this process alone is at it; the claim ends with the block, or with the process."""
    path = Path(tempfile.gettempdir()) / f"aggregauss-{hashlib.sha256(what.encode()).hexdigest()[:20]}"
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
            path.unlink(missing_ok=True)


def page(name: str, title: str, body: str, script: str | None = None) -> None:
    """Write docs/results/<name>.md and show it; `script` makes it, where that is not experiments/<name>.py."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = f"# {title}\n\n{body.strip()}\n\n*Made by `python {script or f'experiments/{name}.py'}`.*\n"
    (RESULTS / f"{name}.md").write_text(text)
    print(text)


def picture(figure: "Figure", name: str) -> None:
    """Save a figure to docs/results/pictures/<name>.png."""
    (RESULTS / "pictures").mkdir(parents=True, exist_ok=True)
    figure.savefig(RESULTS / "pictures" / f"{name}.png", dpi=110)


def table(header: list[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "--:|" * (len(header) - 1)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
