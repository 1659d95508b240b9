"""Regions, a population raster and covariate rasters, brought to one grid: the pixels of a map."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportOptionalSubscript=false, reportReturnType=false
# (tables and geometries: the declared types of pandas and exactextract are wider than what they return)

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.io.align import align
from aggregauss.io.covariates import by_name, read_covariates
from aggregauss.io.coverage import coverage
from aggregauss.io.grid import Grid, common_grid, grid_of
from aggregauss.io.hygiene import declared, lone_regions, population_notes
from aggregauss.io.pixel_record import Pixels, kept_pixels, kept_regions, positions
from aggregauss.io.projection import (
    PACIFIC,
    crosses_antimeridian,
    crs_text,
    is_geographic,
    is_pacific,
    move_bounds,
    same_crs,
    short_name,
)
from aggregauss.io.rasters import across_antimeridian, open_raster, raster_name
from aggregauss.io.redistribute import pixel_ratio
from aggregauss.io.words import extent, listed, several

if TYPE_CHECKING:
    import geopandas as gpd
    import xarray as xr

WHO = "read_pixels"
MOST_LOST = 0.2  # share of the population that may be left out for want of covariates


def read_pixels(
    regions: "gpd.GeoDataFrame",
    population: Any,
    covariates: Any,
    *,
    resolution: float | None = None,
    categorical: Collection[str] = (),
    notes: list[str],
) -> Pixels:
    """The pixels that the regions touch, with population and covariates on one grid.

    `regions` come from `read_regions`. `population` (persons per pixel) and `covariates` (a list of paths, or a dict of
    names and sources) are what `open_raster` takes. Without a population every pixel weighs its area in km². Rasters
    named in `categorical` become a column for each class but the most common: the part of the pixel that it takes.

    >>> import aggregauss as ag
    >>> from aggregauss.io.regions import read_regions
    >>> files = ag.datasets.madagascar()
    >>> regions = read_regions(files.districts, "cases", notes=[])
    >>> read_pixels(regions, files.population, files.covariates, notes=[])
    Pixels(28,877 pixels in 109 regions: elevation, evi, lst)
    """
    regions, sources = _in_one_piece(regions, notes), by_name(covariates)
    rasters = {name: _opened(name, source, regions, notes) for name, source in sources.items()}
    people = None if population is None else _opened(raster_name(population), population, regions, notes)
    grid = common_grid([*rasters.values(), *([] if people is None else [people])], regions, resolution)
    notes.extend(_about_grid(grid, regions))
    placed = regions.to_crs(grid.crs).reset_index(drop=True)
    region, cell, share = coverage(grid, placed.geometry)
    _check_touched(placed, region)
    cells = np.unique(cell)
    area = grid.cell_area_km2(cells)
    columns, names = read_covariates(rasters, grid, cells, categorical, notes)
    persons = area if people is None else _persons(people, raster_name(population), grid, cells, notes)
    pixel = positions(cell, cells)
    pixels = Pixels(grid.km(cells), columns, names, persons, cells, grid, region, pixel, share, placed)
    notes.extend(lone_regions(list(placed["label"]), np.bincount(region, share, minlength=len(placed))))
    if people is not None:
        inside = np.bincount(pixel, share, minlength=len(cells))
        notes.extend(population_notes(raster_name(population), persons, area, inside, _events(placed)))
    pixels = _populated(_complete(pixels, notes), notes)
    return dataclasses.replace(pixels, notes=tuple(notes))


def _in_one_piece(regions: "gpd.GeoDataFrame", notes: list[str]) -> "gpd.GeoDataFrame":
    """Regions on both sides of the antimeridian in a system in which they are neighbours."""
    import shapely

    degrees = shapely.get_coordinates(regions.geometry.to_crs("EPSG:4326").array)
    if not crosses_antimeridian(degrees[:, 0]):
        return regions
    notes.append("Regions on both sides of the antimeridian: longitudes run from 0 to 360.")
    return regions.to_crs(PACIFIC)


def _opened(name: str, source: Any, regions: "gpd.GeoDataFrame", notes: list[str]) -> "xr.DataArray":
    raster = open_raster(source)
    if is_pacific(crs_text(regions.crs)):
        raster = across_antimeridian(raster)
    grid, crs = grid_of(raster), crs_text(regions.crs)
    own, other = tuple(regions.total_bounds), grid.bounds
    box = move_bounds(own, crs, grid.crs)  # not the raster's box: that of the world has no image in most planes
    if box[0] >= other[2] or box[2] <= other[0] or box[1] >= other[3] or box[3] <= other[1]:
        raise ValueError(
            f"{WHO}: {name} does not overlap the regions: it covers {extent(other)}, they lie in {extent(box)} "
            f"({short_name(grid.crs)}). {_why_apart(own, grid, crs)}"
        )
    return declared(raster, name, notes)


def _why_apart(box: tuple[float, ...], grid: Grid, crs: str) -> str:
    """What may be wrong with regions that do not overlap a raster."""
    west, south, east, north = box
    other = move_bounds(grid.bounds, grid.crs, crs)
    if is_geographic(crs) and max(map(abs, box)) > 360:
        return "The regions' coordinates are no degrees: their reference system is another than the file says."
    if is_geographic(crs) and south < other[2] and north > other[0] and west < other[3] and east > other[1]:
        return "Longitudes and latitudes of the regions look swapped."
    return "Check the reference systems of both."


def _about_grid(grid: Grid, regions: "gpd.GeoDataFrame") -> list[str]:
    rows, columns = grid.shape
    size = float(grid.cell_area_km2([grid.size // 2])[0])
    said = [
        f"Grid: {rows} x {columns} pixels of {grid.step[0]:.4g} ({short_name(grid.crs)}), some {size:.3g} km² each."
    ]
    if not same_crs(crs_text(regions.crs), grid.crs):
        said.append(f"Regions: moved from {short_name(crs_text(regions.crs))} to {short_name(grid.crs)}.")
    return said


def _check_touched(regions: "gpd.GeoDataFrame", region: np.ndarray) -> None:
    empty = np.bincount(region, minlength=len(regions)) == 0
    if empty.any():
        names = [str(label) for label in regions["label"][empty]]
        raise ValueError(f"{WHO}: {several(len(names), 'region')} without any pixel: {listed(names)}. Leave them out.")


def _persons(raster: "xr.DataArray", name: str, grid: Grid, cells: np.ndarray, notes: list[str]) -> np.ndarray:
    """Population of cells; none where the raster has no value."""
    ratio = pixel_ratio(grid_of(raster), grid)
    persons = align(raster, grid, "extensive", ratio).ravel()[cells]
    if np.abs(ratio - 1).max() > 1e-6 or not same_crs(grid_of(raster).crs, grid.crs):
        notes.append(f"{name}: redistributed to the grid, by area; totals are kept.")
    if (persons < 0).any():
        raise ValueError(
            f"{WHO}: {name} must not be negative, but a pixel has {np.nanmin(persons):g}. Declare its value for nodata."
        )
    unknown = np.isnan(persons)
    if unknown.all():
        raise ValueError(f"{WHO}: {name} has no value inside any region. Check that it is the right file.")
    if unknown.any():
        notes.append(f"{name}: {several(int(unknown.sum()), 'pixel')} without a value taken as empty.")
    return np.nan_to_num(persons)


def _events(regions: "gpd.GeoDataFrame") -> float:
    """Events among the population: what was observed, unless of an examined sample."""
    return 0.0 if "examined" in regions else float(regions["observed"].sum())


def _complete(pixels: Pixels, notes: list[str]) -> Pixels:
    """Without the pixels whose covariates could not be filled in; refuses if that is much of the population."""
    gaps = np.isnan(pixels.covariates)
    if not gaps.any():
        return pixels
    missing = np.asarray(gaps.any(axis=1))
    worst = pixels.names[int(np.argmax(gaps.sum(axis=0)))]
    lost = float(pixels.weight[missing[pixels.pixel]].sum() / max(pixels.weight.sum(), 1e-300))
    touched = np.bincount(pixels.region[~missing[pixels.pixel]], minlength=len(pixels.regions))
    if lost > MOST_LOST or (touched == 0).any():
        without = [str(label) for label in pixels.regions["label"][touched == 0]]
        where = f"; {listed(without)} would have no pixel left" if without else ""
        raise ValueError(
            f"{WHO}: covariates have no value for {lost:.0%} of the population, most often {worst}{where}. Give "
            "rasters that cover the regions, or leave these regions out."
        )
    notes.append(
        f"{several(int(missing.sum()), 'pixel')} with {lost:.2%} of the population left out, because covariates have "
        f"no value near them, most often {worst}."
    )
    return kept_pixels(pixels, ~missing)


def _populated(pixels: Pixels, notes: list[str]) -> Pixels:
    """Without regions where nobody lives and nothing was observed; refuses those where something was."""
    nobody = pixels.totals() <= 0
    observed = pixels.regions["observed"].to_numpy()
    impossible = nobody & (observed > 0)
    if impossible.any():
        names = [str(label) for label in pixels.regions["label"][impossible]]
        raise ValueError(
            f"{WHO}: the population is zero in {listed(names)}, but {observed[impossible][0]:g} were observed in the "
            "first. Check the population raster, or leave the region(s) out."
        )
    if nobody.any():
        names = [str(label) for label in pixels.regions["label"][nobody]]
        notes.append(f"{several(len(names), 'region')} without people and without events left out: {listed(names)}.")
        pixels = kept_regions(pixels, ~nobody)
    empty = int((pixels.population <= 0).sum())
    if empty:
        notes.append(f"{several(empty, 'pixel')} without people: kept on the map, but they do not enter the fit.")
    return pixels
