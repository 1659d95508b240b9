"""The record of a run: what went in, with what settings and versions, and how long each part took."""

import dataclasses
import hashlib
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from aggregauss.io.covariates import by_name

PACKAGES = ("aggregauss", "jax", "equinox", "numpy", "scipy", "geopandas", "rasterio", "exactextract")
CHUNK = 1 << 20


@dataclasses.dataclass
class RunRecord:
    """Hashes of the files, versions, and seconds by step; all of it goes into `run.json`."""

    started: str
    files: dict[str, dict[str, str]]
    versions: dict[str, str]
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    shown: dict[str, Any] = dataclasses.field(default_factory=dict)  # title and threshold of the page

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Adds the time that the block takes to a step."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = round(self.seconds.get(step, 0.0) + time.perf_counter() - began, 3)

    def words(self) -> dict[str, Any]:
        """For a JSON file."""
        return dataclasses.asdict(self)


def run_record(files: Mapping[str, Any], covariates: Sequence[Any] | Mapping[str, Any] = ()) -> RunRecord:
    """A new record of these sources: paths are hashed, objects are named by their type."""
    sources = {**files, **{f"covariate {name}": source for name, source in by_name(covariates).items()}}
    known = {name: _describe(source) for name, source in sources.items() if source is not None}
    return RunRecord(time.strftime("%Y-%m-%dT%H:%M:%S%z"), known, _versions())


def _describe(source: Any) -> dict[str, str]:
    if not isinstance(source, str | Path):
        return {"type": type(source).__name__}
    files = _files(Path(str(source).partition("#")[0]))
    if not files:
        return {"path": str(source)}
    return {"path": str(source), "sha256": _hash(files)} | ({"files": str(len(files))} if len(files) > 1 else {})


def _files(path: Path) -> list[Path]:
    """The files that hold a source: all of a folder (Zarr), all parts of a Shapefile."""
    if path.suffix.lower() == ".shp" and path.is_file():
        return sorted(part for part in path.parent.iterdir() if part.name.startswith(f"{path.stem}."))
    return sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path] * path.is_file()


def _hash(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
