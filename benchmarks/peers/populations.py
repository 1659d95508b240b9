"""Coarse counts to fine ones: people of counties to hexagons, of MSOAs to output areas, trees of large cells to small.

Opponents are areal weighting and pycnophylactic interpolation (tobler). They give numbers without a distribution, and
are scored as negative binomial counts around their numbers, whose dispersion is the likeliest when they are trained on
pairs of neighbouring units and scored on the units themselves. `log_score_best` instead takes the dispersion that is the
best for the fine counts: nobody knows it, but no other would serve them better.

Ours is `ag.disaggregate` with `benchmark=True`, since these totals are known exactly, and as it comes, with and without
covariates: the distribution of a new count of each fine unit is its own.
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import rioxarray  # noqa: F401
import xarray as xr
from peers import Found, arguments, folder, resumable, stopwatch
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom
from shapely.geometry import Polygon, box

import aggregauss as ag

COLUMNS = ["log_score", "log_score_best", "rmse", "mae", "coverage", "seconds", "cpu_seconds"]
LEAST = 0.5  # a number that is predicted to be below cannot be scored by a count


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Fine units with their counts, the coarse unit of each, rasters of covariates."""

    fine: gpd.GeoDataFrame  # count, geometry
    parent: np.ndarray  # coarse unit of each fine one
    cell: float  # of the raster of the pycnophylactic surface
    covariates: dict[str, xr.DataArray] = dataclasses.field(default_factory=dict)

    @property
    def wanted(self) -> np.ndarray:
        return self.fine["count"].to_numpy(float)

    @functools.cached_property
    def coarse(self) -> gpd.GeoDataFrame:
        return self.fine.assign(parent=self.parent).dissolve("parent", aggfunc={"count": "sum"})

    @functools.cached_property
    def pairs(self) -> "Case":
        """Pairs of neighbouring coarse units as coarse, the coarse as fine: what can be learned without the fine."""
        place = np.column_stack([self.coarse.centroid.x, self.coarse.centroid.y])
        away = np.hypot(*(place[:, None] - place[None]).T)
        left, pair = list(np.random.default_rng(0).permutation(len(place))), np.zeros(len(place), int)
        for number in range((len(place) + 1) // 2):
            one = left.pop()
            other = left.pop(int(np.argmin(away[one, left]))) if left else one
            pair[[one, other]] = number
        return dataclasses.replace(self, fine=self.coarse.reset_index(drop=True), parent=pair)

    def areal(self) -> np.ndarray:
        from tobler.area_weighted import area_interpolate

        return area_interpolate(self.coarse, self.fine, ["count"])["count"].to_numpy()

    def pycnophylactic(self) -> np.ndarray:
        from tobler.pycno import pycno_interpolate

        return np.nan_to_num(pycno_interpolate(self.coarse, self.fine, ["count"], self.cell)["count"].to_numpy(float))

    def numbers(self, method: Callable[["Case"], np.ndarray]) -> tuple[Found, float]:
        """What a method without a distribution finds, and its log score under the best of dispersions."""
        check, mean = self.pairs, np.maximum(method(self), LEAST)
        size = likeliest(check.wanted, np.maximum(method(check), LEAST))
        oracle = likelihood(likeliest(self.wanted, mean), self.wanted, mean)
        law = negative_binomial(size, mean)
        return Found(mean, law.logpmf(self.wanted), law.ppf(0.025), law.ppf(0.975)), oracle.mean()

    def ours(self, covariates: bool, benchmark: bool) -> Found:
        """New counts of the fine units from a map of the coarse ones."""
        rasters = self.covariates if covariates else {}
        coarse = self.coarse.reset_index()[["count", "geometry"]]
        found = ag.disaggregate(coarse, "count", covariates=rasters, benchmark=benchmark, progress=False)
        mean, new = found.predict(self.fine.geometry).mean, found.predict(self.fine.geometry, kind="observation")
        return Found(mean, new.log_density(self.wanted), *new.interval(0.95))


def negative_binomial(size: float, mean: np.ndarray):
    return nbinom(size, size / (size + mean))


def likelihood(size: float, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return negative_binomial(size, mean).logpmf(y)


def likeliest(y: np.ndarray, mean: np.ndarray) -> float:
    found = minimize_scalar(lambda s: -likelihood(np.exp(s), y, mean).sum(), bounds=(-5.0, 12.0), method="bounded")
    return float(np.exp(found.x))


def counties(path) -> Case:
    """5,001 hexagons of 87 km² in 217 counties; places in m."""
    file = path / "breast_cancer_ne_usa.gpkg"
    points = gpd.read_file(file, layer="population_points").dropna(subset="FIPS").reset_index(drop=True)
    side = 10_000 / np.sqrt(3)
    corner = side * np.column_stack([np.cos(np.arange(6) * np.pi / 3), np.sin(np.arange(6) * np.pi / 3)])
    shapes = [Polygon(corner + [x, y]) for x, y in zip(points.x, points.y)]
    fine = gpd.GeoDataFrame({"count": points.POP10}, geometry=shapes, crs=points.crs)
    return Case(fine, pd.factorize(points.FIPS, sort=True)[0], cell=2000.0)


def sheffield(path) -> Case:
    """280 output areas in 18 MSOAs; the covariate is the density of house sales within some 75 m, log of 1 + per ha."""
    areas = gpd.read_file(path / "sheffield_oa.gpkg", layer="oa")
    fine = gpd.GeoDataFrame({"count": areas.population}, geometry=areas.geometry, crs=areas.crs)
    west, south, east, north = fine.total_bounds
    x, y = np.arange(west + 25.0, east + 50.0, 50.0), np.arange(north - 25.0, south - 50.0, -50.0)
    sales = pd.read_csv(path / "sheffield_houseprices.csv")[["easting", "northing"]].to_numpy(float)
    across, down = (np.exp(-0.5 * ((at[:, None] - own) / 75.0) ** 2) for at, own in zip((x, y), sales.T))
    density = raster(np.log1p(down @ across.T / (2 * np.pi * 75.0**2) * 1e4), x, y, fine.crs)
    return Case(fine, areas.msoa_idx.to_numpy(), cell=25.0, covariates={"sales": density})


def trees(path) -> Case:
    """3,604 trees in 50 cells of 100 m and 800 of 25 m."""
    data = np.load(path / "bei.npz")
    n, m = 40, 20
    column, row = np.meshgrid(np.arange(n), np.arange(m))
    column, row = column.ravel(), row.ravel()
    count = np.histogram2d(data["x"], data["y"], [np.arange(n + 1) * 25.0, np.arange(m + 1) * 25.0])[0][column, row]
    shapes = [box(25 * i, 25 * j, 25 * i + 25, 25 * j + 25) for i, j in zip(column, row)]
    fine = gpd.GeoDataFrame({"count": count}, geometry=shapes, crs=32617)
    rows, columns = data["elev"].shape
    x, y = 5.0 * np.arange(columns), 5.0 * np.arange(rows)[::-1]
    covariates = {
        name: raster(data[key][::-1], x, y, fine.crs) for name, key in (("elevation", "elev"), ("gradient", "grad"))
    }
    return Case(fine, column // 4 + 10 * (row // 4), cell=5.0, covariates=covariates)


def raster(values: np.ndarray, x: np.ndarray, y: np.ndarray, crs: Any) -> xr.DataArray:
    """Values at the centres of pixels, from north to south."""
    return xr.DataArray(values, {"y": y, "x": x}, ("y", "x")).rio.write_crs(crs)


CASES = {
    "counties": ("breast_cancer_ne_usa", counties),
    "sheffield": ("sheffield_census", sheffield),
    "trees": ("point_patterns", trees),
}
PEERS = {"areal weighting (tobler)": Case.areal, "pycnophylactic (tobler)": Case.pycnophylactic}
OURS = {  # whether covariates go in, and whether totals are those reported
    "ag.disaggregate, without covariates, benchmark=True": (False, True),
    "ag.disaggregate, without covariates": (False, False),
    "ag.disaggregate, benchmark=True": (True, True),
    "ag.disaggregate": (True, False),
}


def compute(options, name: str, method: str) -> dict[str, str]:
    source, make = CASES[name]
    case = make(folder(options, source))
    with warnings.catch_warnings(), stopwatch() as passed:
        warnings.simplefilter("ignore")
        if method in OURS:
            return {**scored(case, case.ours(*OURS[method])), **passed()}
        found, best = case.numbers(PEERS[method])
        return {**scored(case, found), "log_score_best": f"{best:.4f}", **passed()}


def scored(case: Case, found: Found) -> dict[str, str]:
    return {
        "log_score": f"{found.log_density.mean():.4f}",
        "rmse": f"{ag.metrics.rmse(case.wanted, found.mean):.3f}",
        "mae": f"{ag.metrics.mae(case.wanted, found.mean):.3f}",
        "coverage": f"{ag.metrics.coverage(case.wanted, found.lower, found.upper):.4f}",
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", choices=list(CASES), action="append", help="one of the data sets")
    options = parser.parse_args()
    names = options.only or list(CASES)
    keys = [(n, m) for n in names for m in (*PEERS, *OURS) if not (n == "counties" and OURS.get(m, (False,))[0])]
    columns = ["case", "method", *COLUMNS]
    rows = resumable("populations", keys, columns, functools.partial(compute, options), options.fresh)
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
