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
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)  # how the files were read
    map: dict[str, str] = dataclasses.field(default_factory=dict)  # the file that the map was read from

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """The time that the block takes is that of a step."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = round(time.perf_counter() - began, 3)

    def paths(self) -> list[str]:
        """The files that were read."""
        return [about["path"] for about in self.files.values() if "path" in about]

    def words(self) -> dict[str, Any]:
        """For a JSON file."""
        return dataclasses.asdict(self)


def run_record(
    files: Mapping[str, Any],
    covariates: Sequence[Any] | Mapping[str, Any] = (),
    arguments: Mapping[str, Any] | None = None,
) -> RunRecord:
    """A new record of these sources: paths are hashed, objects are named by their type."""
    sources = {**files, **{f"covariate {name}": given for name, given in by_name(covariates).items()}}
    known = {name: source(given) for name, given in sources.items() if given is not None}
    return RunRecord(time.strftime("%Y-%m-%dT%H:%M:%S%z"), known, _versions(), arguments=dict(arguments or {}))


def source(given: Any) -> dict[str, str]:
    """Path and hash of a file, or the type of an object."""
    if not isinstance(given, str | Path):
        return {"type": type(given).__name__}
    files = _files(Path(str(given).partition("#")[0]))
    if not files:
        return {"path": str(given)}
    return {"path": str(given), "sha256": _hash(files)} | ({"files": str(len(files))} if len(files) > 1 else {})


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
