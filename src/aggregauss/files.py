"""Results appear whole or not at all: they are written beside their place and renamed at the end."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_folder(
    path: str | os.PathLike, replaces: Collection[str] | None = None, inputs: Iterable[str | os.PathLike] = ()
) -> Iterator[Path]:
    """A new folder to write into, which is at `path` once the block ends, and gone if the block fails.

    One that exists gives way only to `replaces`, the names of all files that it may hold; and never if any of the
    files in `inputs` is in it.

    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with whole_folder(f"{parent}/results") as folder:
    ...         _ = (folder / "table.csv").write_text("label,mean")
    ...     sorted(p.name for p in Path(parent, "results").iterdir())
    ['table.csv']
    """
    target = Path(path).absolute()
    check_place(target, replaces, inputs)
    with parents_of(target):
        made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            yield made
            os.chmod(made, 0o777 & ~umask())
            _replace(made, target)
        except OSError as problem:
            raise _about_space(problem, target) from None
        finally:
            shutil.rmtree(made, ignore_errors=True)


def check_place(
    path: str | os.PathLike, replaces: Collection[str] | None = None, inputs: Iterable[str | os.PathLike] = ()
) -> None:
    """A sentence if no folder of results may take this place; see `whole_folder`."""
    target = Path(path).absolute()
    if not target.exists():
        return
    if not target.is_dir():
        raise FileExistsError(f"{target} is a file, not a folder. Choose another name.")
    if replaces is None:
        raise FileExistsError(f"{target} already exists. Choose another folder, or allow it to be overwritten.")
    for given in inputs:
        if Path(given).resolve().is_relative_to(target.resolve()):
            raise FileExistsError(f"{target} cannot be overwritten: {given} in it is an input. Choose another folder.")
    for name in sorted(os.listdir(target)):
        if name.removesuffix(".aux.xml") not in replaces:  # statistics that GDAL keeps beside a raster
            raise FileExistsError(
                f"{target} cannot be overwritten: {name} in it is no file of such results. Choose another folder, or "
                f"move {name} away."
            )


@contextlib.contextmanager
def parents_of(path: str | os.PathLike) -> Iterator[None]:
    """The folders above `path` exist in the block; those that were made are gone again if it leaves them empty."""
    parent = Path(path).absolute().parent
    missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # one that holds something stays
            for folder in missing:
                folder.rmdir()


@contextlib.contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[Path]:
    """A name to write a file under, which is renamed to `path` once the block ends; nothing is left if it fails."""
    target = Path(path).absolute()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} into.")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix)
    os.close(handle)
    made = Path(name)
    try:
        yield made
        os.chmod(made, 0o666 & ~umask())
        os.replace(made, target)
    except OSError as problem:
        raise _about_space(problem, target) from None
    finally:
        made.unlink(missing_ok=True)


def umask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _about_space(problem: OSError, target: Path) -> OSError:
    """The error itself, with a remedy if the disk is full."""
    if problem.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return problem
    words = f"There is no room for {target} on the disk. Nothing was left there; free some space."
    return OSError(problem.errno, words)


def _replace(made: Path, target: Path) -> None:
    """Rename; what was there goes only once the new folder is in its place."""
    if not target.exists():
        made.rename(target)
        return
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.")) / "old"
    target.rename(old)
    try:
        made.rename(target)
    except BaseException:
        old.rename(target)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)
