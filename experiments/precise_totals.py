"""Precise totals of a function that varies within the bags: hyper-parameters from the bound, or from totals.

f ~ GP(0, Matérn-3/2) on a line. Its lengthscale and variance are drawn from their priors, log-normal about 1 with a standard
deviation of one in the logarithm, so that intervals of 95% should hold 95% of the rates on average. 24 bags of 16 places
each report a count, whose expectation is 100 Σ_i e^{f_i} times a log-normal factor of a known standard
deviation (the scatter). The search by totals is that of `SVI(search="totals")`; both searches end with the same kind of
q, and integrate over the hyper-parameters.
"""

import numpy as np
import pandas as pd
from common import arguments, page, resumable, table

import aggregauss as ag

BAGS, EACH, PEOPLE, SEEDS, SPREAD = 24, 16, 100.0, 20, 1.0
SETTINGS = ((1.0, 0.1), (2.0, 0.1), (4.0, 0.1), (2.0, 0.02))  # width of a bag, scatter
SEARCHES = ("totals", "bound")
COLUMNS = ["width", "scatter", "seed", "search", "lengthscale", "variance", "coverage", "rmse_log"]


def simulated(width: float, scatter: float, seed: int) -> tuple[ag.Support, np.ndarray, np.ndarray, np.ndarray]:
    """Bags, their counts, the rate at each place, and the lengthscale and variance."""
    rng = np.random.default_rng([seed, int(100 * width), int(100 * scatter)])
    hyper = np.exp(SPREAD * rng.standard_normal(2))
    x = np.sort(rng.uniform(0, width * BAGS, BAGS * EACH))[:, None]
    K = np.asarray(ag.cov(ag.Matern32(*hyper), ag.Points(x)))
    rate = np.exp(np.linalg.cholesky(K + 1e-10 * np.eye(len(x))) @ rng.standard_normal(len(x)))
    totals = np.add.reduceat(PEOPLE * rate, np.arange(0, len(x), EACH))
    y = rng.poisson(totals * np.exp(scatter * rng.standard_normal(BAGS)))
    return ag.Bags(x, np.repeat(np.arange(BAGS), EACH), np.full(len(x), PEOPLE)), y, rate, hyper


def compute(width: float, scatter: float, seed: int, search: str) -> dict[str, str]:
    bags, y, rate, hyper = simulated(width, scatter, seed)
    prior = ag.LogNormal(1.0, SPREAD)
    kernel = ag.Matern32(ag.param(1.0, prior=prior), ag.param(1.0, prior=prior))
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(scatter))
    model = ag.GP(kernel, likelihood, mean=ag.Constant(ag.fixed(0.0)), aggregation="response")
    post = model.fit(bags, y, inference=ag.SVI(inducing=bags.center[::2], search=search), progress=False)
    predicted = post.predict(ag.Points(bags.center))
    low, high = (np.asarray(end) for end in predicted.interval(0.95))
    found = np.array([post.model.kernel.lengthscale, post.model.kernel.variance], float)
    figures = dict(zip(("lengthscale", "variance"), found / hyper)) | {
        "coverage": ag.metrics.coverage(rate, low, high),
        "rmse_log": ag.metrics.rmse(np.log(rate), np.log(np.asarray(predicted.mean))),
    }
    return {name: f"{value:.4f}" for name, value in figures.items()}


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    keys = [(*setting, seed, search) for seed in range(SEEDS) for setting in SETTINGS for search in SEARCHES]
    rows = pd.DataFrame(resumable("precise_totals", keys, COLUMNS, compute, options.fresh))
    report(rows.astype(dict.fromkeys((c for c in COLUMNS if c != "search"), float)))


def report(rows: pd.DataFrame) -> None:
    """The page."""
    lines = []
    for width, scatter in SETTINGS:
        for search in SEARCHES:
            t = rows[(rows.width == width) & (rows.scatter == scatter) & (rows.search == search)]
            lines.append(
                [
                    f"{width:g}, {100 * scatter:g}%, {search}",
                    *(f"{np.exp(np.log(t[name]).mean()):.2f}" for name in ("lengthscale", "variance")),
                    f"{100 * t.coverage.mean():.0f} ± {100 * t.coverage.std() / np.sqrt(len(t)):.0f}",
                    f"{t.rmse_log.mean():.3f}",
                ]
            )
    header = ["width of a bag, scatter, search", "lengthscale, found / true", "variance, found / true"]
    header += ["inside 95%, %", "RMSE of log rates"]
    body = f"""{__doc__.split(chr(10), 1)[1].strip()}

{table(header, lines)}

Geometric means of the best values over the true ones, and means of the others, over {rows.seed.nunique()} simulations; ± is the
standard error."""
    page("precise_totals", "Precise totals: hyper-parameters from the bound or from totals", body)


if __name__ == "__main__":
    main()
