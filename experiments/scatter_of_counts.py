"""How literally should a map take its counts? Simulated maps whose districts are known.

Rates on the pixels of Madagascar follow lines in its covariates and a field over space. The counts of 22 regions are
fitted; the counts of the 109 districts that they are made of are scored. What differs is the scatter of a
reported count about its expectation: fixed, or learned with a log-normal prior.
"""

import dataclasses
import functools

import numpy as np
import pandas as pd
from common import arguments, page, resumable, table

import aggregauss as ag
from aggregauss.io.pixel_record import Pixels
from aggregauss.maps import Settings, read_map, validate
from aggregauss.maps.regroup import regrouped

STEP = 1 / 6  # degrees: pixels of about 18 km
SEEDS = 6
RATE, SLOPES = 0.06, 0.5  # cases per person; standard deviation of the effects of covariates
FIELD = ag.Matern32(90.0, 0.7)
TRUTHS = {  # the field, what a district's count is off by, and the standard deviation of effects of squares
    "field of the model's kind": (FIELD, 0.0, 0.0),
    "rougher field": (ag.Matern12(60.0, 1.0), 0.0, 0.0),
    "districts off by 30%": (FIELD, 0.3, 0.0),
    "hot spots": (FIELD + ag.Matern12(25.0, 1.0), 0.0, 0.0),
    "effects that bend": (FIELD, 0.0, 0.35),
}
SCATTERS = {
    "fixed at 5%": ag.fixed(0.05),
    "fixed at 20%": ag.fixed(0.2),
    "fixed at 40%": ag.fixed(0.4),
    "learned": ag.param(0.2, prior=ag.LogNormal(0.2, 1.0)),
}
COLUMNS = ["truth", "seed", "scatter", "log_score", "rmse_log", "coverage"]


@functools.cache
def country() -> tuple[Pixels, np.ndarray]:
    """Pixels of the districts, and the region of each district."""
    files = ag.datasets.madagascar()
    where = {"groups": "region", "resolution": STEP}
    pixels, groups = read_map(files.districts, "cases", files.population, files.covariates, **where)
    return pixels, np.asarray(groups)


@functools.lru_cache(1)
def simulated(truth: str, seed: int) -> Pixels:
    """The same map with counts of its own."""
    pixels, _ = country()
    kernel, off, bend = TRUTHS[truth]
    rng = np.random.default_rng([seed, list(TRUTHS).index(truth)])
    root = np.linalg.cholesky(np.asarray(ag.cov(kernel, ag.Points(pixels.coordinates))) + 1e-8 * np.eye(len(pixels)))
    z = (pixels.covariates - pixels.covariates.mean(axis=0)) / pixels.covariates.std(axis=0)
    f = z @ rng.normal(0.0, SLOPES, z.shape[1]) + root @ rng.standard_normal(len(pixels))
    if bend:
        f += (z**2 - 1) @ rng.normal(0.0, bend, z.shape[1])
    cases = np.bincount(pixels.region, pixels.weight * np.exp(f)[pixels.pixel], minlength=len(pixels.regions))
    cases *= RATE * pixels.totals().sum() / cases.sum() * np.exp(rng.normal(0.0, off, len(cases)))
    return dataclasses.replace(pixels, regions=pixels.regions.assign(observed=rng.poisson(cases)))


def compute(truth: str, seed: int, scatter: str) -> dict[str, str]:
    pixels, groups = simulated(truth, seed), country()[1]
    seen = regrouped(pixels, np.arange(len(groups)), groups, "total")
    usual, _ = Settings().build(seen)
    likelihood = ag.Poisson(region_effect=True, region_sd=SCATTERS[scatter])
    model = ag.GP(usual.kernel, likelihood, mean=usual.mean, aggregation="response")
    t = validate(pixels, Settings(model=model), groups=groups, progress=False).table
    some = t["observed"] > 0
    figures = {
        "log_score": (t["log_score"] + np.log(t["observed"]))[some].mean(),
        "rmse_log": ag.metrics.rmse(np.log(t["observed"][some]), np.log(t["fitted"][some])),
        "coverage": ag.metrics.coverage(t["observed"], t["lower95%"], t["upper95%"]),
    }
    return {name: f"{x:.4f}" for name, x in figures.items()}


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    keys = [(truth, seed, scatter) for seed in range(SEEDS) for truth in TRUTHS for scatter in SCATTERS]
    rows = pd.DataFrame(resumable("scatter_of_counts", keys, COLUMNS, compute, options.fresh))
    report(rows.astype(dict.fromkeys(COLUMNS[3:], float)))


def report(rows: pd.DataFrame) -> None:
    """The page."""
    lines = []
    for truth in [*TRUTHS, "all"]:
        of_truth = rows if truth == "all" else rows[rows.truth == truth]
        scores = of_truth.pivot_table(index=["truth", "seed"], columns="scatter", values="log_score")
        for scatter in SCATTERS:
            ahead = scores[scatter] - scores["fixed at 20%"]
            t = of_truth[of_truth.scatter == scatter]
            error = "" if scatter == "fixed at 20%" else f" ± {ahead.std() / np.sqrt(len(ahead)):.3f}"
            cells = [f"{t.log_score.mean():.3f}", f"{ahead.mean():+.3f}{error}", f"{t.rmse_log.mean():.3f}"]
            lines.append([f"{truth}; {scatter}", *cells, f"{100 * t.coverage.mean():.0f}"])
    header = ["truth; scatter", "log score", "ahead of 20%", "RMSE of logs", "inside 95%, %"]
    body = f"""{__doc__.split(chr(10), 1)[1].strip()}

{table(header, lines)}

Means over {rows.seed.nunique()} simulations of each truth; ± is the standard error of a difference of log scores on the same
simulations. The log score is the mean log density of log counts of the districts."""
    page("scatter_of_counts", "How literally a map should take its counts", body)


if __name__ == "__main__":
    main()
