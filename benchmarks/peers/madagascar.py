"""Malaria in Madagascar: trained on the counts of 22 regions, scored on the 109 districts that they are made of.

Every method that gives numbers without a distribution is scored as a log-normal distribution around its number, whose
spread is its own error when it is trained on 11 pairs of neighbouring regions and scored on the 22 regions;
`log_score_best` instead takes the spread that is the best for the districts, which nobody knows.

Ours is the check that `aggregauss demo` makes, with the options of the row, from the files of the package: the distribution
of a new count of each district is its own. `check` is the score at the pairs, by which a user chooses between models; for
the others it is the score with the spread that is the best for the regions.
"""

import functools
import warnings
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from peers import SCORES, Found, arguments, folder, log_normal, resumable, scores, stopwatch

import aggregauss as ag

NAMES = ["elevation_z", "evi_z", "lst_mean_z"]
POPULATED = 100.0  # people in a pixel of about 20 km² from which it counts as lived in


class Country:
    """Pixels, 109 districts, and their 22 regions."""

    def __init__(self, path):
        self.path = path / "madagascar_stack.tif"
        pixels = pd.read_parquet(path / "madagascar_pixels.parquet")
        districts = gpd.read_file(path / "madagascar_districts.gpkg").sort_values("polygon_index", ignore_index=True)
        mean = pixels.groupby("polygon_index").lst_mean_z.transform("mean")
        pixels["lst_mean_z"] = pixels.lst_mean_z.fillna(mean)
        self.pixels = pixels = pixels[pixels.population > 0].reset_index(drop=True)
        places = gpd.points_from_xy(pixels.lon, pixels.lat, crs=4326).to_crs(32738)
        self.X = np.column_stack([pixels[NAMES], places.x / 1000, places.y / 1000])
        self.people = pixels.population.to_numpy(float)
        self.district = pixels.polygon_index.to_numpy() - 1
        self.districts = districts.to_crs(32738)
        self.region_of, self.regions = pd.factorize(districts.Name_1, sort=True)
        self.cases = np.round(districts.cases.to_numpy())
        self.population = np.bincount(self.district, self.people)

    @functools.cached_property
    def pairs(self) -> np.ndarray:
        """The pair of each region: neighbours, matched at random but compactly."""
        place = self.means(self.region_of)[:, -2:]
        away = np.hypot(*(place[:, None] - place[None]).T)
        rng, best, least = np.random.default_rng(0), np.zeros(len(place), int), np.inf
        for _ in range(200):
            left, pair, total = list(rng.permutation(len(place))), np.zeros(len(place), int), 0.0
            for number in range(len(place) // 2):
                one = left.pop()
                other = left.pop(int(np.argmin(away[one, left])))
                pair[[one, other]], total = number, total + away[one, other]
            best, least = (pair, total) if total < least else (best, least)
        return best

    def means(self, group: np.ndarray) -> np.ndarray:
        """Population-weighted means of all columns over groups of districts."""
        code = group[self.district]
        return (
            np.stack([np.bincount(code, self.people * c) for c in self.X.T], axis=1)
            / np.bincount(code, self.people)[:, None]
        )

    def shapes(self, group: np.ndarray, cases: np.ndarray) -> gpd.GeoDataFrame:
        """Groups of districts as polygons with their cases."""
        shapes = self.districts[["geometry"]].assign(group=group).dissolve("group")
        return shapes.assign(cases=cases, rate=cases / np.bincount(group, self.population))


class Task:
    """Counts of `source` groups of districts are known, those of `target` groups are wanted."""

    def __init__(self, country: Country, source: np.ndarray, target: np.ndarray):
        self.country, self.source, self.target = country, source, target
        self.known = np.bincount(source, country.cases)
        self.wanted = np.bincount(target, country.cases)
        self.exposure = np.bincount(target, country.population)
        first = np.unique(target, return_index=True)[1]
        self.parent = source[first]

    def constant(self) -> np.ndarray:
        return self.exposure * self.known.sum() / self.exposure.sum()

    def population(self) -> np.ndarray:
        """The rate of its region for every district: cases in proportion to population."""
        return self.exposure * (self.known / np.bincount(self.source, self.country.population))[self.parent]

    def areal(self) -> np.ndarray:
        from tobler.area_weighted import area_interpolate

        known = self.country.shapes(self.source, self.known)
        return area_interpolate(known, self.country.shapes(self.target, self.wanted), ["cases"])["cases"].to_numpy()

    def dasymetric(self) -> np.ndarray:
        from tobler.dasymetric import masked_area_interpolate

        known, wanted = (
            self.country.shapes(*x).to_crs(4326) for x in ((self.source, self.known), (self.target, self.wanted))
        )
        found = masked_area_interpolate(known, wanted, self.mask, pixel_values=[1], extensive_variables=["cases"])
        return found["cases"].to_numpy()

    @functools.cached_property
    def mask(self) -> str:
        """A raster that is 1 where people live."""
        import tempfile

        import rasterio

        with rasterio.open(self.country.path) as stack:
            lived = (np.nan_to_num(stack.read(1)) >= POPULATED).astype("uint8")
            profile = stack.profile | {"count": 1, "dtype": "uint8", "nodata": 255}
        path = tempfile.mkdtemp() + "/mask.tif"
        with rasterio.open(path, "w", **profile) as file:
            file.write(lived, 1)
        return path

    def glm(self) -> np.ndarray:
        """Poisson regression on the population-weighted means of the covariates."""
        import statsmodels.api as sm

        design = [sm.add_constant(self.country.means(g)[:, :3]) for g in (self.source, self.target)]
        offset = np.log(np.bincount(self.source, self.country.population))
        fit = sm.GLM(self.known, design[0], family=sm.families.Poisson(), offset=offset).fit()
        return fit.predict(design[1], offset=np.log(self.exposure))

    def centroids(self, covariates: bool = True) -> Found:
        """A Gaussian process of log rates at population-weighted centroids; scikit-learn."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        X, new = (self.country.means(g) for g in (self.source, self.target))
        center, scale = X.mean(axis=0), X.std(axis=0)
        scale[-2:] = scale[-2:].mean()
        columns, lengthscale = (slice(None), [1.0] * 5) if covariates else (slice(-2, None), 1.0)
        kernel = ConstantKernel(1.0) * Matern(lengthscale, (0.1, 100), nu=1.5) + WhiteKernel(0.1)
        y = np.log(self.known / np.bincount(self.source, self.country.population))
        gp = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=10, random_state=0)
        gp.fit(((X - center) / scale)[:, columns], y)
        mean, sd = gp.predict(((new - center) / scale)[:, columns], return_std=True)
        return log_normal(self.exposure * np.exp(mean), sd, self.wanted)

    def scores(self, found: Found) -> dict[str, str]:
        """Those of all methods, and the mean squared error in excess of that of shares by population.

        `excess_se` is its standard error over sources, `excess_most` what comes from the source that matters most.
        """
        mine, theirs = (((x - self.wanted) / self.exposure * 1000) ** 2 for x in (found.mean, self.population()))
        parts = np.bincount(self.parent, mine - theirs) / len(mine)
        return scores(found, self.wanted, self.exposure, unit=1000.0) | {
            "excess": f"{parts.sum():.1f}",
            "excess_se": f"{np.sqrt(len(parts) * parts.var(ddof=1)):.1f}",
            "excess_most": f"{parts[np.argmax(np.abs(parts))]:.1f}",
        }


NUMBERS = {
    "constant rate": Task.constant,
    "areal weighting (tobler)": Task.areal,
    "dasymetric, lived-in pixels (tobler)": Task.dasymetric,
    "in proportion to population": Task.population,
    "Poisson GLM on covariates": Task.glm,
    "GP on centroids, mean only": lambda task: task.centroids().mean,
    "GP on centroids, places and mean only": lambda task: task.centroids(False).mean,
}
CENTROIDS = {"GP on centroids": True, "GP on centroids, places only": False}
OURS: dict[str, dict[str, Any]] = {
    "ag.disaggregate": {},
    "ag.disaggregate, benchmark=True": {"benchmark": True},
    'ag.disaggregate, model="smooth"': {"model": "smooth"},
    "ag.disaggregate, without covariates": {"covariates": ()},
}


def mapped(country: Country, covariates: Any = None, **settings: Any) -> tuple[Found, float]:
    """`ag.disaggregate` from regions to districts, and the log score at the pairs."""
    from aggregauss.maps import Settings, read_map, validate
    from aggregauss.maps.regroup import regrouped

    files, asked = ag.datasets.madagascar(), Settings(**settings)
    rasters = files.covariates if covariates is None else covariates
    pixels, regions = read_map(files.districts, "cases", files.population, rasters, groups="region")
    t = validate(pixels, asked, groups=regions, progress=False).table.set_index("label")
    t = t.loc[country.districts["Name_2"].astype(str)]
    found = Found(
        t["fitted"].to_numpy(),
        t["log_score"].to_numpy() + np.log(country.cases),
        t["lower95%"].to_numpy(),
        t["upper95%"].to_numpy(),
    )
    known = regrouped(pixels, np.arange(len(pixels.regions)), np.asarray(regions), asked.measure)
    pair = dict(zip(country.regions, country.pairs))
    names = [f"pair {pair[label]}" for label in known.regions["label"]]
    tried = validate(known, asked, groups=names, progress=False).table
    return found, float((tried["log_score"] + np.log(tried["observed"])).mean())


def compute(country: Country, method: str) -> list[dict[str, str]]:
    own = np.arange(len(country.cases))
    task, check = (
        Task(country, country.region_of, own),
        Task(country, country.pairs[country.region_of], country.region_of),
    )
    with warnings.catch_warnings(), stopwatch() as passed:
        warnings.simplefilter("ignore")
        if method in OURS:
            found, tried = mapped(country, **OURS[method])
            return [{"spread": "own", **task.scores(found), "check": f"{tried:.4f}", **passed()}]
        if method in CENTROIDS:
            found = task.centroids(CENTROIDS[method])
            return [{"spread": "own", **task.scores(found), **passed()}]
        tried, mean = NUMBERS[method](check), NUMBERS[method](task)
        took = passed()
    error, known = (ag.metrics.rmse(np.log(t.wanted), np.log(x)) for t, x in ((check, tried), (task, mean)))
    found, best = (log_normal(mean, sd, task.wanted) for sd in (error, known))
    row = task.scores(found)
    row |= {"log_score_best": f"{best.log_density.mean():.4f}", "own": f"{error:.4f}"}
    row |= {"check": f"{log_normal(tried, error, check.wanted).log_density.mean():.4f}"}
    return [{"spread": "checked", **row, **took}]


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    country = Country(folder(options, "malaria_madagascar"))
    keys = [(method,) for method in (*NUMBERS, *CENTROIDS, *OURS)]
    rows = resumable(
        "madagascar",
        keys,
        ["method", "spread", *SCORES, "excess", "excess_se", "excess_most"],
        functools.partial(compute, country),
        options.fresh,
    )
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
