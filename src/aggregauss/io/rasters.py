"""Rasters from GeoTIFF, NetCDF, Zarr or xarray, opened and not yet read: rows from north to south, NaN for nodata."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.io.projection import PACIFIC, crs_text, is_geographic, is_pacific
from aggregauss.io.words import first_line, listed

if TYPE_CHECKING:
    import xarray as xr

WHO = "open_raster"
TIFF, NETCDF, ZARR = (".tif", ".tiff", ".vrt", ".img", ".asc"), (".nc", ".nc4", ".cdf", ".h5"), (".zarr",)
X_NAMES = ("x", "lon", "longitude", "long", "easting", "X", "Lon", "Longitude")
Y_NAMES = ("y", "lat", "latitude", "northing", "Y", "Lat", "Latitude")
NODATA = "aggregauss_nodata"  # attribute: a number that stands for "no value" and is not yet NaN
DEGREES = ("lon", "longitude", "long", "Lon", "Longitude")


def open_raster(source: Any, *, band: int | str | None = None, variable: str | None = None) -> "xr.DataArray":
    """A raster as a lazy DataArray with dimensions (y, x), a known reference system, and NaN for nodata.

    `source` is a path (.tif, .nc, .zarr, ...), a DataArray or a Dataset. Of several bands or variables name one, with
    `band` (number from 1, or description) or `variable`, or after a "#": "stack.tif#evi", "climate.nc#rain".

    >>> import aggregauss as ag
    >>> raster = open_raster(ag.datasets.madagascar().population)
    >>> raster.dims, raster.shape, str(raster.rio.crs)
    (('y', 'x'), (384, 240), 'EPSG:4326')
    """
    import rioxarray  # noqa: F401  (the accessor `.rio`)

    name, path, chosen = _named(source)
    opened = source if path is None else _open(path)
    wanted = next((w for w in (band, variable, chosen) if w is not None), None)
    return _ordered(_only(_pick(opened, name, wanted), name), name).rename(name)


def raster_name(source: Any) -> str:
    """What to call a raster in a sentence: its file, or the name of the array."""
    return _named(source)[0]


def pixels_of(raster: "xr.DataArray") -> np.ndarray:
    """The values, read from the file, in double precision."""
    try:
        values = raster.compute(scheduler="synchronous").values.astype(np.float64)  # also inside a worker of Dask
    except (OSError, RuntimeError) as problem:
        raise ValueError(
            f"{WHO}: {raster.name} cannot be read to its end ({_why(problem)}). Is it truncated? Get it again."
        ) from None
    values[values == raster.attrs.get(NODATA)] = np.nan
    return values


def _named(source: Any) -> tuple[str, Path | None, str | None]:
    """Name, path and the part after "#"."""
    if isinstance(source, str | Path):
        text, _, chosen = str(source).partition("#")
        return Path(text).name, Path(text), chosen or None
    return str(getattr(source, "name", None) or "the raster"), None, None


def _open(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix not in TIFF + NETCDF + ZARR:
        known = ", ".join(TIFF + NETCDF + ZARR)
        raise ValueError(
            f'{WHO}: {path} has the extension "{suffix}", which is not known. Give one of {known}, or open it '
            "with xarray and give the array."
        )
    if not path.exists():
        raise FileNotFoundError(f"{WHO}: there is no file {path}.")
    try:
        return _open_tiff(path) if suffix in TIFF else _open_dataset(path, "zarr" if suffix in ZARR else None)
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        raise ValueError(
            f"{WHO}: {path} cannot be read as a raster ({_why(problem)}). It may be truncated or of another "
            "format; get it again, or convert it to GeoTIFF."
        ) from None


def _why(problem: BaseException) -> str:
    """What an error says, but not how to let a file execute what it likes, which is the remedy of numcodecs."""
    unsafe = type(problem).__name__ == "UnsafeDecodeError"
    return "its values are pickled, and to read them could execute anything" if unsafe else first_line(problem)


def _open_tiff(path: Path) -> Any:
    import rasterio
    import rioxarray

    with rasterio.open(path) as file:
        one_scale = len(set(file.scales)) == len(set(file.offsets)) == 1
    opened: Any = rioxarray.open_rasterio(path, mask_and_scale=True, band_as_variable=not one_scale)
    return opened if one_scale else _called(opened, [v.attrs.get("long_name") for v in opened.data_vars.values()])


def _open_dataset(path: Path, engine: Any) -> Any:
    import xarray as xr

    return xr.open_dataset(path, engine=engine, decode_coords="all")


def _pick(opened: Any, name: str, wanted: int | str | None) -> Any:
    """One variable of a Dataset, one band of a stack."""
    if "band" in getattr(opened, "dims", ()) and not hasattr(opened, "data_vars"):
        described = opened.attrs.get("long_name")
        opened = opened.to_dataset(dim="band")
        opened = _called(opened, [described] if isinstance(described, str) else described or [])
    if not hasattr(opened, "data_vars"):
        return opened
    names = [str(v) for v in opened.data_vars if len(opened[v].dims) > 1]
    if not names:
        raise ValueError(f"{WHO}: {name} has no layer with rows and columns. Give a raster.")
    if str(wanted).isdigit() and 1 <= int(str(wanted)) <= len(names):
        return opened[names[int(str(wanted)) - 1]]
    return opened[_choose(names, None if wanted is None else str(wanted), name)]


def _called(bands: Any, names: Sequence[Any]) -> Any:
    """A Dataset of bands under their descriptions, or under their numbers."""
    old = list(bands.data_vars)
    told = len(set(names)) == len(old) and all(isinstance(n, str) and n not in bands.coords for n in names)
    return bands.rename(dict(zip(old, names if told else [str(i + 1) for i in range(len(old))])))


def _choose(names: Sequence[str], wanted: str | None, name: str) -> str:
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    shown = listed(names)
    if wanted is None:
        raise ValueError(f'{WHO}: {name} has {len(names)} layers ({shown}). Name one of them: "{name}#{names[-1]}".')
    near = difflib.get_close_matches(wanted, names, 1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    raise ValueError(f'{WHO}: {name} has no layer "{wanted}"; it has {shown}.{hint}')


def _only(array: Any, name: str) -> "xr.DataArray":
    """Without dimensions of one entry, and with the others called y and x."""
    if not hasattr(array, "dims"):
        raise TypeError(f"{WHO}: a raster must be a path, a DataArray or a Dataset, but got {type(array).__name__}.")
    x, y = (next((n for n in names if n in array.dims), None) for names in (X_NAMES, Y_NAMES))
    if x is None or y is None:
        raise ValueError(
            f"{WHO}: {name} has the dimensions {tuple(array.dims)}, of which none are known as x and y. Rename them."
        )
    others = [d for d in array.dims if d not in (x, y)]
    longer = [d for d in others if array.sizes[d] > 1]
    if longer:
        raise ValueError(
            f'{WHO}: {name} has {array.sizes[longer[0]]} layers along "{longer[0]}". Select one, for example with '
            f"array.isel({longer[0]}=0), or take their mean."
        )
    crs = array.rio.crs or ("EPSG:4326" if x in DEGREES else None)
    if crs is None:
        raise ValueError(
            f"{WHO}: {name} has no coordinate reference system. Set it, for example with array.rio.write_crs(4326) or "
            "gdal_edit.py -a_srs."
        )
    flat = array.isel(dict.fromkeys(others, 0), drop=True).rename({x: "x", y: "y"}).transpose("y", "x")
    return flat.rio.write_crs(crs)


def _ordered(array: "xr.DataArray", name: str) -> "xr.DataArray":
    """Rows from north to south, columns from west to east, longitudes from -180 to 180, nodata as NaN."""
    a, b, _, d, _, _ = tuple(array.rio.transform())[:6]
    if b or d:
        raise ValueError(
            f"{WHO}: {name} is rotated. Bring it to a grid along its axes first, for example with gdalwarp."
        )
    for axis in ("y", "x"):
        if axis in array.coords:
            _check_even(array[axis].values, name, axis)
    if array.sizes["y"] > 1 and array["y"].values[0] < array["y"].values[-1]:
        array = array.isel(y=slice(None, None, -1))
    if a < 0:
        array = array.isel(x=slice(None, None, -1))
    if array.rio.crs.is_geographic and array["x"].values[-1] > 180.5:
        turned = array.assign_coords(x=(array["x"].values + 180.0) % 360.0 - 180.0).sortby("x")
        array = turned if _even(turned["x"].values) else array.rio.write_crs(PACIFIC)
    nodata = array.rio.nodata
    return array if nodata is None or np.isnan(nodata) else array.assign_attrs({NODATA: float(nodata)})


def across_antimeridian(array: "xr.DataArray") -> "xr.DataArray":
    """A raster in degrees with its longitudes from 0 to 360; others as they are."""
    crs = crs_text(array.rio.crs)
    if is_pacific(crs) or not is_geographic(crs):
        return array
    turned = array.assign_coords(x=array["x"].values % 360.0).sortby("x")
    if not _even(turned["x"].values):
        raise ValueError(
            f"{WHO}: the regions lie on both sides of the antimeridian (180 degrees), but {array.name} ends before it. "
            "Give a raster that reaches across, or bring all files to a projected reference system such as EPSG:3832."
        )
    return turned.rio.write_crs(PACIFIC)


def _even(values: np.ndarray) -> bool:
    steps = np.diff(np.asarray(values, float))
    return not len(steps) or bool(np.abs(steps - steps.mean()).max() <= 1e-3 * abs(steps.mean()))


def _check_even(values: np.ndarray, name: str, axis: str) -> None:
    if not _even(values):
        raise ValueError(f'{WHO}: {name} has unequal steps along "{axis}". Interpolate it to an even grid first.')
