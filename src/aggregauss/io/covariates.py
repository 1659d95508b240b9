"""Covariate rasters as columns: one for a measurement, one for each class but the most common of classes."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.io.align import align, bands, class_fractions
from aggregauss.io.gaps import REACH, filled
from aggregauss.io.grid import Grid, grid_of
from aggregauss.io.hygiene import looks_categorical, peek
from aggregauss.io.projection import same_crs
from aggregauss.io.rasters import raster_name
from aggregauss.io.redistribute import pixel_ratio
from aggregauss.io.words import listed, several

if TYPE_CHECKING:
    import xarray as xr

WHO = "read_pixels"
MOST_CLASSES = 60


def by_name(sources: Any) -> dict[str, Any]:
    """Covariates as a dict; a list of paths is named after the files, or after what follows "#"."""
    if isinstance(sources, dict):
        return dict(sources)
    given = [sources] if isinstance(sources, str | Path) or hasattr(sources, "dims") else list(sources)
    names = [short_name(source) for source in given]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'{WHO}: two covariates are called "{twice}". Give a dict of names and sources.')
    return dict(zip(names, given))


def read_covariates(
    rasters: "dict[str, xr.DataArray]", grid: Grid, cells: np.ndarray, categorical: Collection[str], notes: list[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Columns of the cells and their names; NaN remains where there is no value within some pixels."""
    unknown = [name for name in categorical if name not in rasters]
    if unknown:
        raise ValueError(f'{WHO}: "categorical" names "{unknown[0]}", but the covariates are {listed(list(rasters))}.')
    columns: dict[str, np.ndarray] = {}
    for name, raster in rasters.items():
        if name in categorical:
            columns |= _classes(name, raster, grid, cells, notes)
        else:
            columns[name] = _measured(name, raster, grid, cells, notes)
    stacked = np.column_stack(list(columns.values())) if columns else np.zeros((len(cells), 0))
    return stacked, tuple(columns)


def with_rim(grid: Grid) -> Grid:
    """The grid and around it the pixels from which gaps along its edge are filled in."""
    rows, columns = grid.shape
    return grid.window(-REACH, -REACH, (rows + 2 * REACH, columns + 2 * REACH))


def short_name(source: Any) -> str:
    """What a covariate is called that nobody named: its layer, its file, or its array."""
    name = raster_name(source)
    return str(source).partition("#")[2] or Path(name).stem if isinstance(source, str | Path) else name


def _measured(name: str, raster: "xr.DataArray", grid: Grid, cells: np.ndarray, notes: list[str]) -> np.ndarray:
    ratio = pixel_ratio(grid_of(raster), grid)
    values = align(raster, with_rim(grid), "intensive", ratio)
    if np.abs(ratio - 1).max() > 1e-6 or not same_crs(grid_of(raster).crs, grid.crs):
        how = "interpolated between the centres of" if ratio.max() > 1 + 1e-6 else "averaged over"
        whose = "its own pixels" if ratio.max() > 1 + 1e-6 else "the pixels of the grid"
        notes.append(f"{name}: {how} {whose}.")
    if looks_categorical(peek(raster)):  # averages of codes are no whole numbers
        notes.append(
            f'{name}: a few whole numbers, taken as measurements. If they are codes, name it in "categorical".'
        )
    return _filled(name, values, cells, notes)


def _classes(
    name: str, raster: "xr.DataArray", grid: Grid, cells: np.ndarray, notes: list[str]
) -> dict[str, np.ndarray]:
    found = [np.unique(values[np.isfinite(values)]) for _, values in bands(raster, grid)]
    levels = np.unique(np.concatenate(found)) if found else np.zeros(0)
    if len(levels) > MOST_CLASSES:
        raise ValueError(
            f'{WHO}: "{name}" has {len(levels)} different values, too many for classes. Leave it out of "categorical".'
        )
    parts = class_fractions(raster, with_rim(grid), levels.tolist(), pixel_ratio(grid_of(raster), grid))
    known = [_filled(name, part, cells, notes if k == 0 else []) for k, part in enumerate(parts)]
    common = int(np.argmax([np.nansum(part) for part in known]))
    notes.append(
        f"{name}: classes {', '.join(f'{level:g}' for level in levels)}, each compared with {levels[common]:g}."
    )
    return {f"{name}={level:g}": part for k, (level, part) in enumerate(zip(levels, known)) if k != common}


def _filled(name: str, values: np.ndarray, cells: np.ndarray, notes: list[str]) -> np.ndarray:
    """Values of cells from those of its grid with a rim, small gaps filled in."""
    rows, columns = values.shape
    wanted = np.zeros((rows - 2 * REACH, columns - 2 * REACH), bool)
    wanted.ravel()[cells] = True
    whole = filled(values, np.pad(wanted, REACH))
    gained = int(np.isnan(values).sum() - np.isnan(whole).sum())
    if gained:
        notes.append(f"{name}: {several(gained, 'pixel')} without a value filled in from the nearest one.")
    return whole[REACH:-REACH, REACH:-REACH].ravel()[cells]
