"""The default model of a map, from 22 regions of Madagascar to their 109 districts: by variational inference and by NUTS.

The model is that of `ag.disaggregate`, with a scatter of reported counts that is the default's (0.2) or another.
"Totals" is the default: hyper-parameters by the evidence of totals, then q at its best, then draws of the posterior that
begin with draws of q. "Bound" has hyper-parameters from the bound itself. NUTS (`default_nuts.py`) has the field in a basis
of sines and each district as at most 32 weighted pixels; its draws are scored as the fits are.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import default_nuts as nuts
import jax
import jax.numpy as jnp
import numpy as np
from common import arguments, page, resumable, table
from scipy.special import logsumexp

import aggregauss as ag
from aggregauss.maps import Settings, fit_pixels, read_map, validate
from aggregauss.maps.record import run_record
from aggregauss.maps.regroup import regrouped
from aggregauss.metrics import coverage, rmse

SCATTERS = (0.05, 0.2, 0.4)
SEARCHES = ("totals", "bound")
COLUMNS = ["method", "scatter", "lengthscale", "lengthscale_sd", "variance", "variance_sd", "log_score", "rmse"]
COLUMNS += ["rmse_log", "coverage", "rhat", "divergent"]


@functools.cache
def country() -> tuple[Any, np.ndarray, Any]:
    """Pixels of the districts, the region of each district, and the same pixels with regions for districts."""
    files = ag.datasets.madagascar()
    pixels, groups = read_map(files.districts, "cases", files.population, files.covariates, groups="region")
    groups = np.asarray(groups)
    return pixels, groups, regrouped(pixels, np.arange(len(groups)), groups, "total")


def default(scatter: float) -> ag.GP:
    """The model that `ag.disaggregate` builds for the regions, with a scatter of one's own."""
    usual, _ = Settings().build(country()[2])
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(scatter))
    return ag.GP(usual.kernel, likelihood, mean=usual.mean, aggregation="response")


def by_nuts(scatter: float, folder: str | None) -> dict[str, Any]:
    """Scores of the draws, as `validate` finds those of a fit; the draws are those in the folder, or are made here."""
    from numpyro.diagnostics import split_gelman_rubin

    kept = None if folder is None else Path(folder) / f"{scatter}.npz"
    found = dict(np.load(kept)) if kept and kept.exists() else nuts.sample(nuts.problem(*country()), scatter)
    divergent = int(found.pop("divergent"))
    worst = max(float(np.max(split_gelman_rubin(value))) for value in found.values())
    eta = found["districts"].reshape(-1, found["districts"].shape[-1])
    y = observed()
    log_prob = np.asarray(jax.vmap(lambda e: default(scatter).likelihood.log_prob(jnp.asarray(y), e))(jnp.asarray(eta)))
    rng = np.random.default_rng(0)
    counts = rng.poisson(eta * np.exp(scatter * rng.standard_normal(eta.shape)))
    low, high = np.quantile(counts, [0.025, 0.975], axis=0)
    hyper = {}
    for name in nuts.LEARNED:
        values = np.exp(found[f"log_{name}"])
        hyper |= {name: values.mean(), f"{name}_sd": values.std()}
    score = logsumexp(log_prob, axis=0) - np.log(len(eta))
    beside = {"rhat": worst, "divergent": divergent}
    return {**hyper, **scored(score, eta.mean(axis=0), low, high), **beside}


def by_fit(search: str, scatter: float) -> dict[str, Any]:
    """Hyper-parameters at their best, and the scores of `validate`."""
    pixels, groups, seen = country()
    settings = Settings(model=default(scatter))
    inference = dataclasses.replace(settings.build(seen)[1], search=search)
    t = validate(pixels, settings, groups=groups, inference=inference, progress=False).table
    figures = scored(t["log_score"].to_numpy(), t["fitted"].to_numpy(), t["lower95%"], t["upper95%"])
    kernel = fit_pixels(seen, settings, run_record({}), inference=inference, progress=False).posterior.model.kernel
    return {**{name: float(getattr(kernel, name)) for name in nuts.LEARNED}, **figures}


def observed() -> np.ndarray:
    """Counts of the districts."""
    return np.round(country()[0].regions["observed"].to_numpy(float))


def scored(score: np.ndarray, mean: np.ndarray, low: Any, high: Any) -> dict[str, float]:
    """Log density of log counts, error of rates per 1,000 people and of log counts, and how often intervals hold."""
    y, people = observed(), country()[0].totals()
    return {
        "log_score": float((score + np.log(y)).mean()),
        "rmse": rmse(1000 * y / people, 1000 * mean / people),
        "rmse_log": rmse(np.log(y), np.log(mean)),
        "coverage": coverage(y, np.asarray(low), np.asarray(high)),
    }


def compute(folder: str | None, method: str, scatter: float) -> dict[str, str]:
    found = by_nuts(scatter, folder) if method == "NUTS" else by_fit(method, scatter)
    return {name: f"{value:.4f}" for name, value in found.items()}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--draws", help="folder with files 0.05.npz, 0.2.npz, 0.4.npz of default_nuts.py, if they are made"
    )
    options = parser.parse_args()
    keys = [(method, scatter) for scatter in SCATTERS for method in (*SEARCHES, "NUTS")]
    report(resumable("default_madagascar", keys, COLUMNS, functools.partial(compute, options.draws), options.fresh))


def report(rows: list[dict[str, str]]) -> None:
    """The page."""

    def cell(row: dict[str, str], name: str, digits: int, unit: float = 1.0) -> str:
        value = f"{unit * float(row[name]):.{digits}f}"
        return f"{value} ± {float(row[f'{name}_sd']):.{digits}f}" if row.get(f"{name}_sd") else value

    order = {(str(s), m): (s, i) for s in SCATTERS for i, m in enumerate((*SEARCHES, "NUTS"))}
    lines = []
    for row in sorted(rows, key=lambda row: order[row["scatter"], row["method"]]):
        figures = [cell(row, "lengthscale", 0), cell(row, "variance", 2), cell(row, "log_score", 3)]
        figures += [cell(row, "rmse", 1), cell(row, "rmse_log", 3), cell(row, "coverage", 0, 100.0)]
        lines.append([f"{float(row['scatter']):.0%}, {row['method']}", *figures])
    header = ["scatter, method", "lengthscale, km", "variance", "log score", "RMSE", "RMSE of logs", "inside 95%, %"]
    chains = [row for row in rows if row["method"] == "NUTS"]
    body = f"""{__doc__.split(chr(10), 1)[1].strip()}

{table(header, lines)}

Lengthscales and variances are the best ones of a fit, and posterior means ± standard deviations of NUTS ({nuts.CHAINS} chains of {nuts.DRAWS} draws
after {nuts.WARMUP}; largest R-hat {max(float(row["rhat"]) for row in chains):.3f}; divergent draws: {sum(int(float(row["divergent"])) for row in chains)}). The log score is the mean log density of
log counts, RMSE that of rates per 1,000 people, as on the page [beside peers](peers.md)."""
    page("default_madagascar", "The default map: variational inference beside NUTS", body)


if __name__ == "__main__":
    main()
