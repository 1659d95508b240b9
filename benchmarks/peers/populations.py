"""Coarse counts to fine ones: people of counties to hexagons, of MSOAs to output areas, trees of large cells to small.

Opponents are areal weighting and pycnophylactic interpolation (tobler). They give numbers without a distribution, and
are scored as negative binomial counts around their numbers, whose dispersion is the likeliest when they are trained on
pairs of neighbouring units and scored on the units themselves. `log_score_best` instead takes the dispersion that is the
best for the fine counts: nobody knows it, but no other would serve them better.

Ours is treated alike: what a fine unit has of its own, beyond the field, is log-normal with the standard deviation that is
likeliest when the model is trained on the pairs and scored on the units; `check` is that score. "As it comes" is without:
the 20% of the default model.
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable

import geopandas as gpd
import numpy as np
import pandas as pd
from peers import (
    SCATTER,
    Found,
    Rates,
    adding_up,
    arguments,
    counted,
    folder,
    likeliest_own,
    ours,
    resumable,
    stopwatch,
)
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom
from shapely.geometry import Polygon, box

import aggregauss as ag

COLUMNS = ["log_score", "log_score_best", "rmse", "mae", "coverage", "check", "own", "seconds", "cpu_seconds"]
LEAST = 0.5  # a number that is predicted to be below cannot be scored by a count


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Fine units with their counts, the coarse unit of each, and the points that stand for a fine unit."""

    fine: gpd.GeoDataFrame  # count, geometry
    parent: np.ndarray  # coarse unit of each fine one
    X: np.ndarray  # covariates, then places, of points
    unit: np.ndarray  # fine unit of each point
    area: np.ndarray  # that a point stands for
    names: list[str]  # of the covariates
    below: float  # a range that is unlikely
    cell: float  # of the raster of the pycnophylactic surface
    inducing: int = 150

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
        unit = self.parent[self.unit]
        return dataclasses.replace(self, fine=self.coarse.reset_index(drop=True), parent=pair, unit=unit)

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

    def rates(self, covariates: bool) -> Rates:
        """Counts to be expected of the fine units by our model, those of a coarse unit adding up to its own."""
        names = self.names if covariates else []
        X = self.X if covariates else self.X[:, -2:]
        bags = ag.Bags(X, bag=self.parent[self.unit], weights=self.area)
        model, scheme = ours(names, X, self.below, self.inducing)
        known = self.coarse["count"].to_numpy(float)
        post = model.fit(bags, known, inference=scheme, progress=False)
        return adding_up(post.predict(ag.Bags(X, bag=self.unit, weights=self.area)), self.parent, known)


def negative_binomial(size: float, mean: np.ndarray):
    return nbinom(size, size / (size + mean))


def likelihood(size: float, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return negative_binomial(size, mean).logpmf(y)


def likeliest(y: np.ndarray, mean: np.ndarray) -> float:
    found = minimize_scalar(lambda s: -likelihood(np.exp(s), y, mean).sum(), bounds=(-5.0, 12.0), method="bounded")
    return float(np.exp(found.x))


def counties(path) -> Case:
    """5,001 hexagons of 87 km² in 217 counties; places in km."""
    file = path / "breast_cancer_ne_usa.gpkg"
    points = gpd.read_file(file, layer="population_points").dropna(subset="FIPS").reset_index(drop=True)
    side = 10_000 / np.sqrt(3)
    corner = side * np.column_stack([np.cos(np.arange(6) * np.pi / 3), np.sin(np.arange(6) * np.pi / 3)])
    shapes = [Polygon(corner + [x, y]) for x, y in zip(points.x, points.y)]
    fine = gpd.GeoDataFrame({"count": points.POP10}, geometry=shapes, crs=points.crs)
    xy = points[["x", "y"]].to_numpy() / 1000
    area = np.full(len(xy), fine.geometry.area.iloc[0] / 1e6)
    parent = pd.factorize(points.FIPS, sort=True)[0]
    return Case(fine, parent, xy, np.arange(len(xy)), area, [], below=15.0, cell=2000.0, inducing=300)


def sheffield(path) -> Case:
    """280 output areas in 18 MSOAs, as points 90 m apart; the covariate is the density of house sales, log of 1 + per ha."""
    areas = gpd.read_file(path / "sheffield_oa.gpkg", layer="oa")
    fine = gpd.GeoDataFrame({"count": areas.population}, geometry=areas.geometry, crs=areas.crs)
    west, south, east, north = fine.total_bounds
    grid = np.stack(np.meshgrid(np.arange(west, east, 90.0), np.arange(south, north, 90.0)), -1).reshape(-1, 2)
    inside = gpd.sjoin(gpd.GeoDataFrame(geometry=gpd.points_from_xy(*grid.T), crs=fine.crs), fine, predicate="within")
    missed = np.setdiff1d(np.arange(len(fine)), inside.index_right)
    xy = np.concatenate([grid[inside.index], [[p.x, p.y] for p in fine.representative_point().iloc[missed]]])
    unit = np.concatenate([inside.index_right.to_numpy(), missed])
    sales = pd.read_csv(path / "sheffield_houseprices.csv")[["easting", "northing"]].to_numpy()
    near = np.array([np.sum(np.exp(-0.5 * ((sales - p) ** 2).sum(axis=1) / 75.0**2)) for p in xy])
    density = np.log1p(near / (2 * np.pi * 75.0**2) * 1e4)
    area = (fine.geometry.area.to_numpy() / np.bincount(unit, minlength=len(fine)))[unit] / 1e6
    X = np.column_stack([density, xy / 1000])
    return Case(fine, areas.msoa_idx.to_numpy(), X, unit, area, ["sales"], below=0.25, cell=25.0)


def trees(path) -> Case:
    """3,604 trees in 50 cells of 100 m and 800 of 25 m; 4 points in each of these."""
    data = np.load(path / "bei.npz")
    n, m = 40, 20
    column, row = np.meshgrid(np.arange(n), np.arange(m))
    column, row = column.ravel(), row.ravel()
    count = np.histogram2d(data["x"], data["y"], [np.arange(n + 1) * 25.0, np.arange(m + 1) * 25.0])[0][column, row]
    shapes = [box(25 * i, 25 * j, 25 * i + 25, 25 * j + 25) for i, j in zip(column, row)]
    fine = gpd.GeoDataFrame({"count": count}, geometry=shapes, crs=32617)
    at = np.array([(x, y) for x in (6.25, 18.75) for y in (6.25, 18.75)])
    xy = (25.0 * np.column_stack([column, row])[:, None] + at).reshape(-1, 2)
    i, j = (np.round(xy / 5.0)).astype(int).T
    covariates = [(data[name] - data[name].mean()) / data[name].std() for name in ("elev", "grad")]
    X = np.column_stack([*(c[j, i] for c in covariates), xy / 1000])
    unit, area = np.repeat(np.arange(n * m), 4), np.full(4 * n * m, 12.5**2 / 1e6)
    return Case(fine, column // 4 + 10 * (row // 4), X, unit, area, ["elevation", "gradient"], below=0.03, cell=5.0)


CASES = {
    "counties": ("breast_cancer_ne_usa", counties),
    "sheffield": ("sheffield_census", sheffield),
    "trees": ("point_patterns", trees),
}
PEERS = {"areal weighting (tobler)": Case.areal, "pycnophylactic (tobler)": Case.pycnophylactic}
OURS = {"field only": False, "with covariates": True}


def compute(options, name: str, method: str) -> list[dict[str, str]] | dict[str, str]:
    source, make = CASES[name]
    case = make(folder(options, source))
    with warnings.catch_warnings(), stopwatch() as passed:
        warnings.simplefilter("ignore")
        if method in PEERS:
            found, best = case.numbers(PEERS[method])
            return {"spread": "checked", **scored(case, found), "log_score_best": f"{best:.4f}", **passed()}
        rates, took = case.rates(OURS[method]), passed()
        own, check = likeliest_own(case.pairs.rates(OURS[method]), case.pairs.wanted)
        checked = {"check": f"{check:.4f}", "own": own, **passed()}
    usual = {**scored(case, counted(rates, SCATTER, case.wanted)), "own": SCATTER, **took}
    return [
        {"spread": "as it comes", **usual},
        {"spread": "checked", **scored(case, counted(rates, own, case.wanted)), **checked},
    ]


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
    keys = [(n, m) for n in names for m in (*PEERS, *OURS) if not (n == "counties" and OURS.get(m))]
    columns = ["case", "method", "spread", *COLUMNS]
    rows = resumable("populations", keys, columns, functools.partial(compute, options), options.fresh)
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
