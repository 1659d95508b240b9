"""Breast cancer in 217 counties of the north-eastern USA: the rate of each county from those of all others.

Every method sees all counties when it learns its covariance (the variogram of kriging, the hyper-parameters of ours); then
each county is predicted from the others alone. Population is known at 5,001 points. Intervals are for the reported rate:
to the variance of kriging, which is that of the risk, `count noise` adds rate / (2.5 population), as of the women among the
population in five years. Ours has that noise as known, or half of it, or none, beside a learned one that is the same for
all counties; between the three the evidence decides.
"""

import functools
import json
import warnings
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from peers import ROWS, arguments, folder, merged, resumable, stopwatch

import aggregauss as ag

NINETY_FIVE = 1.959964
PERSON_YEARS = 2.5  # of women in five years, for each person
STEP, RANGE, NEIGHBOURS, ITERATIONS = 40_000.0, 300_001.0, 8, 5  # m; as in pyinterpolate's own example with these data
KEPT = ROWS / "breast_cancer_variogram.json"
BELOW, CELL = 50.0, 40.0  # km: a range that is unlikely; points of a county in one cell are merged for ours


class Counties:
    """Rates per 100,000, and people at points."""

    def __init__(self, path):
        file = path / "breast_cancer_ne_usa.gpkg"
        self.shapes = gpd.read_file(file, layer="counties").sort_values("FIPS", ignore_index=True)
        points = gpd.read_file(file, layer="population_points").dropna(subset="FIPS")
        self.points = points[points.POP10 > 0].astype({"FIPS": int}).reset_index(drop=True)
        self.rate = self.shapes.rate.to_numpy(float)
        self.people = self.points.groupby("FIPS").POP10.sum().to_numpy(float)

    @property
    def noise(self) -> np.ndarray:
        """Variances of rates that are counts over women-years, at the average rate."""
        return np.average(self.rate, weights=self.people) * 1e5 / (PERSON_YEARS * self.people)

    @functools.cached_property
    def support(self):
        """pyinterpolate's blocks and points."""
        from pyinterpolate import Blocks, PointSupport

        shapes = self.shapes[["FIPS", "rate", "geometry"]]
        blocks = Blocks(ds=shapes, value_column_name="rate", index_column_name="FIPS", geometry_column_name="geometry")
        points = self.points[["POP10", "geometry"]]
        support = PointSupport(
            points=points, blocks=blocks, points_value_column="POP10", points_geometry_column="geometry", verbose=False
        )
        return blocks, support

    def variogram(self):
        """Of points, found from that of counties by deconvolution, and kept in a file with the time that it took."""
        from pyinterpolate import Deconvolution, TheoreticalVariogram

        if not KEPT.exists():
            with stopwatch() as passed:
                blocks, support = self.support
                found = Deconvolution(verbose=False)
                found.fit(blocks=blocks, point_support=support, step_size=STEP, max_range=RANGE)
                found.transform(max_iters=ITERATIONS)
                final = found.final_theoretical_model.to_dict()
                model = {name: float(final[name]) for name in ("nugget", "sill", "rang")}
                model |= {"variogram_model_type": final["variogram_model_type"], "direction": None}
                KEPT.write_text(json.dumps({"model": model, **passed()}))
        kept = json.loads(KEPT.read_text())
        model = TheoreticalVariogram()
        model.from_dict(kept.pop("model"))
        return model, kept

    def kriged(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and standard deviations; NaN where kriging gave up."""
        from pyinterpolate import area_to_area_pk, area_to_point_pk, centroid_poisson_kriging

        _, support = self.support
        (model, _), mean, sd = self.variogram(), [], []
        settings = {"raise_when_negative_prediction": False, "raise_when_negative_error": False}
        for county in self.shapes.FIPS:
            one = (model, support, county, NEIGHBOURS)
            try:
                if kind == "area-to-point":
                    found = np.asarray(next(iter(area_to_point_pk(*one, **settings).values())), float)
                    zhat, sig = found[:, 2].sum(), np.nan
                else:
                    predict = {"area-to-area": area_to_area_pk, "centroids": centroid_poisson_kriging}[kind]
                    found = predict(*one, **settings)
                    zhat, sig = found["zhat"], found["sig"]
            except Exception:  # singular systems and negative variances: the method's own failures are counted
                zhat = sig = np.nan
            mean.append(float(zhat))
            sd.append(float(sig))
        return np.array(mean), np.array(sd)

    def ours(self, share: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Rates are means over the population of a Gaussian process; exact, each county left out in closed form.

        `share` of the variance of counts is noise that is known. The log evidence comes along.
        """
        X, fips = self.points[["x", "y"]].to_numpy() / 1000, self.points.FIPS.to_numpy()
        key = np.column_stack([fips, X // CELL])
        X, people, first = merged(X, self.points.POP10.to_numpy(float), key)
        bags = ag.Bags(X, bag=fips[first], weights=people, measure="mean")
        kernel = ag.Matern32(
            ag.param(60.0, prior=ag.RangePrior(below=BELOW)), ag.param(100.0, prior=ag.LogNormal(100.0, 1.0))
        )
        model = ag.GP(kernel, ag.Gaussian(ag.param(20.0, prior=ag.LogNormal(30.0, 1.0))), mean=ag.Constant())
        post = model.fit(bags, self.rate, share * self.noise if share else None, progress=False)
        left = post.leave_one_out()
        return left.mean, left.std, post.evidence

    def others(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean rate of all other counties."""
        n = len(self.rate)
        return (self.rate.sum() - self.rate) / (n - 1), np.full(n, self.rate.std() * np.sqrt(1 + 1 / n))


METHODS = {
    "mean of the others": Counties.others,
    "pyinterpolate, centroids": lambda c: c.kriged("centroids"),
    "pyinterpolate, area to area": lambda c: c.kriged("area-to-area"),
    "pyinterpolate, area to point": lambda c: c.kriged("area-to-point"),
}
OURS = {"aggregauss": 1.0, "aggregauss, half of the count noise": 0.5, "aggregauss, no count noise": 0.0}


def compute(counties: Counties, method: str) -> list[dict[str, Any]]:
    """A row for each county."""
    before = counties.variogram()[1] if "pyinterpolate" in method else {}
    with warnings.catch_warnings(), stopwatch() as passed:
        warnings.simplefilter("ignore")
        mean, sd, *evidence = counties.ours(OURS[method]) if method in OURS else METHODS[method](counties)
        took = {name: f"{float(value) + float(before.get(name, 0.0)):.1f}" for name, value in passed().items()}
    same = {"evidence": f"{evidence[0]:.2f}" if evidence else "", **took}
    known = (counties.shapes.FIPS, counties.rate, counties.noise, mean, sd)
    rows = zip(*(np.round(np.asarray(x, float), 5) for x in known))
    return [dict(zip(("county", "observed", "noise", "mean", "sd"), row)) | same for row in rows]


def summary(method: str, own: pd.DataFrame) -> dict[str, Any]:
    """Scores of one method."""
    y, mean, sd, noise = (own[name].to_numpy() for name in ("observed", "mean", "sd", "noise"))
    ok, known = np.isfinite(mean), np.isfinite(sd)
    full = np.sqrt(sd**2 + noise) if "pyinterpolate" in method else sd

    def inside(spread: np.ndarray) -> Any:
        ends = ((mean + sign * spread)[known] for sign in (-NINETY_FIVE, NINETY_FIVE))
        return round(ag.metrics.coverage(y[known], *ends), 4) if known.any() else ""

    score = -ag.metrics.gaussian_nlpd(y[known], mean[known], full[known] ** 2) if known.any() else None
    return {
        "log_score": "" if score is None else round(float(score), 4),
        "rmse": round(ag.metrics.rmse(y, np.where(ok, mean, y.mean())), 3),
        "rmse_people": round(float(np.sqrt(np.average((y - np.where(ok, mean, y.mean())) ** 2, weights=1 / noise))), 3),
        "coverage": inside(full),
        "coverage_own": inside(sd),
        "failed": int((~ok).sum()),
        "negative": int((mean < 0).sum()),
        **own[["evidence", "seconds", "cpu_seconds"]].iloc[0],
    }


def against(ours: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, float]:
    """Mean squared error of theirs less that of ours, and its standard error over counties."""
    excess = ((theirs["mean"] - theirs["observed"]) ** 2).to_numpy() - (
        (ours["mean"] - ours["observed"]) ** 2
    ).to_numpy()
    return {"excess": round(float(excess.mean()), 1), "excess_se": round(float(excess.std() / np.sqrt(len(excess))), 1)}


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    counties = Counties(folder(options, "breast_cancer_ne_usa"))
    keys = [(method,) for method in (*METHODS, *OURS)]
    columns = ["method", "county", "observed", "noise", "mean", "sd", "evidence", "seconds", "cpu_seconds"]
    make = functools.partial(compute, counties)
    found = pd.DataFrame(resumable("breast_cancer_counties", keys, columns, make, options.fresh))
    found = found.replace("", np.nan).astype(dict.fromkeys(columns[1:], float))
    of = dict(iter(found.groupby("method", sort=False)))
    best = max(OURS, key=lambda method: of[method]["evidence"].iloc[0])
    rows = [{"method": m, **summary(m, of[m]), **against(of[best], of[m])} for (m,) in keys]
    pd.DataFrame(rows).to_csv(ROWS / "breast_cancer.csv", index=False)
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
