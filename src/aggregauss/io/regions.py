"""Regions with what was observed in them, from GeoPackage, GeoJSON, Shapefile, GeoParquet or a GeoDataFrame."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportOptionalSubscript=false, reportReturnType=false
# (tables and geometries: the declared types of pandas and exactextract are wider than what they return)

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.io.tables import column, not_negative, numbers, read_file, texts
from aggregauss.io.words import listed, several

if TYPE_CHECKING:
    import geopandas as gpd
    import pandas as pd

WHO = "read_regions"
VECTOR = (".gpkg", ".geojson", ".json", ".shp", ".zip", ".fgb")
PARQUET = (".parquet", ".geoparquet")
OVERLAP = 1e-3  # share of the smaller region from which two regions are said to overlap


def read_regions(
    regions: Any,
    response: str,
    *,
    label: str | None = None,
    examined: str | None = None,
    layer: str | None = None,
    counts: bool = True,
    notes: list[str],
) -> "gpd.GeoDataFrame":
    """Regions with the columns `label`, `observed`, [`examined`] and `geometry`, checked and repaired.

    `label` names the column of unique names; by default it is the first column of unique texts, else rows are numbered.
    `counts=False` allows negative responses. What was done to the file is appended to `notes`, in sentences.

    >>> import aggregauss as ag
    >>> read_regions(ag.datasets.madagascar().districts, "cases", notes=[])[["label", "observed"]].head(2)
                label  observed
    0  Ambatondrazaka  1827.156
    1  Amparafaravola  1245.197
    """
    import geopandas as gpd

    table = read_shapes(regions, layer)
    names = _labels(table, label)
    rows = [f'region "{name}"' for name in names]
    made: dict[str, Any] = {"label": names}
    made["observed"] = _numbers(table, response, "response", rows, counts)
    if examined is not None:
        made["examined"] = _numbers(table, examined, "examined", rows, True)
        _check_examined(made["observed"], made["examined"], rows)
    geometry = repaired(table.geometry, names, notes)
    _check_overlaps(geometry, names, notes)
    return gpd.GeoDataFrame(made, geometry=geometry, crs=table.crs)


def read_shapes(regions: Any, layer: str | None = None) -> "gpd.GeoDataFrame":
    """A GeoDataFrame with a reference system and at least one row, from a path or as it is."""
    import geopandas as gpd
    import pandas as pd

    if isinstance(regions, str | Path):
        path = Path(regions)
        chosen = _layer(path, layer) if path.suffix.lower() in VECTOR else None
        readers: dict[str, Any] = dict.fromkeys(VECTOR, functools.partial(gpd.read_file, layer=chosen))
        readers |= dict.fromkeys(PARQUET, gpd.read_parquet)
        name, table = str(regions), read_file(path, readers, WHO)
    else:
        name, table = '"regions"', regions
    if not isinstance(table, gpd.GeoDataFrame) or table._geometry_column_name not in table.columns:
        kind = "a table without geometries" if isinstance(table, pd.DataFrame) else type(table).__name__
        raise TypeError(f"{WHO}: {name} must be a GeoDataFrame or the path of a file with polygons, but it is {kind}.")
    if len(table) == 0:
        raise ValueError(f"{WHO}: {name} has no regions.")
    if table.crs is None:
        raise ValueError(
            f"{WHO}: {name} has no coordinate reference system. Set it with regions.set_crs(4326) where they are "
            "degrees, or supply the .prj file of a Shapefile."
        )
    if table.geometry.name != "geometry":
        table = table.rename_geometry("geometry")
    return table.reset_index(drop=True)


def repaired(
    geometry: "gpd.GeoSeries", names: list[str], notes: list[str], who: str = WHO, kind: str = "region"
) -> "gpd.GeoSeries":
    """Valid polygons; what could not be one is named, what was repaired is noted."""
    import geopandas as gpd
    import shapely

    for i, shape in enumerate(geometry):
        if shape is None or shape.is_empty:
            raise ValueError(f'{who}: {kind} "{names[i]}" has no geometry. Leave it out, or give its outline.')
        if shape.geom_type not in ("Polygon", "MultiPolygon", "GeometryCollection"):
            raise TypeError(
                f'{who}: {kind} "{names[i]}" is a {shape.geom_type}, but regions must be polygons. Individuals '
                "that are points go into a table with a region column."
            )
    mixed = (geometry.geom_type == "GeometryCollection").to_numpy()
    valid = geometry.is_valid.to_numpy()
    bad = mixed | ~valid
    if not bad.any():
        return geometry
    shapes = [_polygons(shapely.make_valid(s)) if b else s for s, b in zip(geometry, bad)]
    first, empty = int(np.argmax(bad)), [s.is_empty for s in shapes]
    if any(empty):
        flat = names[int(np.argmax(empty))]
        raise ValueError(f'{who}: {kind} "{flat}" has no area, even after repair. Give its outline again.')
    why = shapely.is_valid_reason(geometry.iloc[first]).split("[")[0].lower()
    reason = "a collection of geometries" if valid[first] else why
    notes.append(f'{several(int(bad.sum()), "invalid outline")} repaired, first that of "{names[first]}" ({reason}).')
    return gpd.GeoSeries(shapes, crs=geometry.crs)


def _layer(path: Path, wanted: str | None) -> str | None:
    """The layer to read: the one that is wanted, or the only one with outlines."""
    import pyogrio

    layers = [str(name) for name, kind in read_file(path, dict.fromkeys(VECTOR, pyogrio.list_layers), WHO) if kind]
    if wanted is None and len(layers) > 1:
        raise ValueError(f'{WHO}: {path} has {len(layers)} layers ({listed(layers)}). Name one of them with "layer".')
    if wanted is not None and wanted not in layers:
        raise ValueError(f'{WHO}: {path} has no layer "{wanted}"; it has {listed(layers)}.')
    return wanted or next(iter(layers), None)


def _labels(table: "pd.DataFrame", label: str | None) -> list[str]:
    if label is None:
        worded = [c for c in table.columns if c != "geometry" and isinstance(table[c].iloc[0], str)]
        label = next((c for c in worded if table[c].notna().all() and table[c].is_unique), None)
        if label is None:
            return [str(i) for i in range(len(table))]
    names = texts(column(table, label, WHO, "label"), WHO)
    if names.duplicated().any():
        twice = names[names.duplicated()].iloc[0]
        raise ValueError(
            f'{WHO}: the column "{label}" must name each region once, but has "{twice}" twice. '
            "Dissolve its parts, or choose another column."
        )
    return names.tolist()


def _numbers(table: "pd.DataFrame", name: str, argument: str, rows: list[str], counts: bool) -> np.ndarray:
    array = numbers(column(table, name, WHO, argument), WHO, rows)
    return not_negative(array, name, WHO, rows) if counts else array


def _check_examined(observed: np.ndarray, examined: np.ndarray, rows: list[str]) -> None:
    if (observed > examined).any():
        row = int(np.argmax(observed > examined))
        found = f"{observed[row]:g} of {examined[row]:g}"
        raise ValueError(f"{WHO}: positives must not exceed the examined, but {rows[row]} has {found}.")


def _check_overlaps(geometry: "gpd.GeoSeries", names: list[str], notes: list[str]) -> None:
    """Refuses two regions of one shape, and notes the worst overlap."""
    import shapely

    shapes = geometry.to_numpy()
    a, b = geometry.sindex.query(geometry, predicate="intersects")
    a, b = a[a < b], b[a < b]
    common = shapely.area(shapely.intersection(shapes[a], shapes[b]))
    area = shapely.area(shapes)
    share = common / np.minimum(area[a], area[b])
    same = (share > 1 - 1e-6) & (np.abs(area[a] - area[b]) < 1e-6 * area[a])
    if same.any():
        k = int(np.argmax(same))
        raise ValueError(
            f'{WHO}: the regions "{names[a[k]]}" and "{names[b[k]]}" have the same outline. Add them up, or keep one.'
        )
    many = int((share > OVERLAP).sum())
    if many:
        k = int(np.argmax(share))
        notes.append(
            f'{several(many, "pair")} of regions overlap; the worst are "{names[a[k]]}" and "{names[b[k]]}", which '
            f"share {share[k]:.1%} of the smaller one. People there count in both."
        )


def _polygons(shape: Any) -> Any:
    """The parts that have an area."""
    import shapely

    return shapely.union_all([p for p in shapely.get_parts(shape) if p.geom_type in ("Polygon", "MultiPolygon")])
