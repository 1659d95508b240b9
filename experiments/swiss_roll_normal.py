"""Means of individuals from sums over bags, on a swiss roll with normal labels (Law et al. 2018, section H.2.1).

The designs are those of swiss_roll.py. Labels have the angle on the roll, scaled to [0, 1], for a mean and a variance τ
of 0.01; the sum of a bag's labels is seen. The means of the individuals and τ are wanted.
"""

import functools
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import page, table
from swiss import (
    BEST,
    COVERED,
    COVERS,
    DESIGN_KEY,
    DESIGNS,
    LANDMARKS,
    NOISE,
    PILOT_SEED,
    Fit,
    Splits,
    baseline,
    best_settings,
    by_individuals,
    constant,
    coverage_error,
    coverages,
    designed,
    estimator,
    gaussian_process,
    landmarks,
    options_for,
    pilot,
    pilot_table,
    run,
)
from swiss_roll import by_value, calibration, chosen, draw, tests

import aggregauss as ag
from aggregauss.metrics import LEVELS, gaussian_nlpd, mse

REPETITIONS = 3
SCORES = ["nll", "mse", "bag nll", "full bag nll", "bag mse", "tau"]
PRINTED = {  # p-values of Tables 8 and 9: NLL, MSE
    ("bags", "ours", "nn"): ("6.0e-07", "4.8e-09"),
    ("bags", "ours", "nystrom"): ("4.0e-08", "6.5e-09"),
    ("size", "ours", "nn"): ("4.8e-06", "4.8e-06"),
    ("size", "ours", "nystrom"): ("4.8e-06", "4.8e-06"),
}


def ours(data: Splits, seed: int) -> Fit:
    """A Gaussian process with noise of one variance for each individual."""
    train, Z = data.train, landmarks(data.train.X, seed)
    model = ag.GP(ag.RBF(), likelihood=ag.Gaussian(per="individual"), mean=ag.Constant())
    inference = ag.Collapsed(inducing=Z)
    post = model.fit(train.bags, train.y, inference=inference, seed=seed, progress=False)
    return gaussian_process(post, normal=True)


@functools.cache
def tried(fresh: bool = False) -> pd.DataFrame:
    """All settings of the baselines on a set of 150 bags that is no part of the experiment."""
    data = designed("bags", 150, PILOT_SEED, "normal")
    estimators = {m: estimator(m, data, PILOT_SEED, "normal") for m in ("nystrom", "nn")}
    return pilot("swiss_roll_normal", estimators, data, fresh)


def tuned(method: str, data: Splits, seed: int) -> Fit:
    """A baseline: of the pilot's best settings, the one that the validation bags prefer."""
    return baseline(estimator(method, data, seed, "normal"), best_settings(tried(), method), data)


METHODS: dict[str, Callable[[Splits, int], Fit]] = {
    "constant": lambda data, seed: constant(data),
    "oracle": lambda data, seed: by_individuals(lambda sample: sample.truth, tau=NOISE**2),
    "nystrom": lambda data, seed: tuned("nystrom", data, seed),
    "nn": lambda data, seed: tuned("nn", data, seed),
    "ours": ours,
}
NAMES = {"constant": "constant in a bag", "oracle": "true means", "nystrom": "Nyström", "nn": "NN", "ours": "ours"}


def compute(design: str, value: int, seed: int, method: str) -> dict:
    data = designed(design, value, seed, "normal")
    train, test = data.train, data.test
    start = time.perf_counter()
    fit = METHODS[method](data, seed)
    seconds = time.perf_counter() - start
    mean, totals = fit.individuals(train), fit.totals(test)
    scores = [
        gaussian_nlpd(train.label, mean, fit.tau),
        mse(train.truth, mean),
        gaussian_nlpd(test.y, totals, test.size * fit.tau),
        np.nan if fit.bag_variance is None else gaussian_nlpd(test.y, totals, fit.bag_variance(test)),
        mse(test.total(test.truth), totals),
        fit.tau,
    ]
    found = {**dict(zip(SCORES, scores)), **coverages(fit, train)}
    return {**{name: f"{x:.6g}" for name, x in found.items()}, "seconds": f"{seconds:.2f}", "setting": fit.setting}


def overall(rows: pd.DataFrame, design: str) -> str:
    """All scores, averaged over the design."""
    part = rows[rows.design == design].assign(error=coverage_error)
    means = part.groupby("method")[[*SCORES, "error", "seconds"]].mean().reindex(list(METHODS))
    printed, lines = {"constant": "0.040" if design == "bags" else "0.039"}, []
    for m, r in means.dropna(subset=["mse"]).iterrows():
        numbers = zip([*SCORES, "error"], (3, 4, 2, 2, 2, 4, 3))
        scores = ["" if np.isnan(r[s]) else f"{r[s]:.{d}f}" for s, d in numbers]
        lines.append([NAMES[m], *scores, f"{r.seconds:.1f}", printed.get(m, "")])
    header = ["method", "NLL", "MSE", "bag NLL", "with its variance", "bag MSE", "τ", "coverage error", "seconds"]
    return table([*header, "printed MSE"], lines)


def short(rows: pd.DataFrame) -> str:
    """By how much intervals hold too little."""
    own = rows[rows.method == "ours"]
    part = own[own.design == "size"]
    gap = {design: 100 * (np.array(LEVELS) - each[COVERS].mean()) for design, each in own.groupby("design")}
    most = part.value.max()
    worst = 100 * part[part.value == most][COVERS].mean()
    return f"""With 150 individuals in a bag and a varying number of bags, intervals are right to within {gap["bags"].abs().max():.1f} points. With 600 bags of
varying size they hold {gap["size"].mean():.1f} points too little on average over the levels; with {most} individuals in a bag, {worst.min():.1f} to {worst.max():.1f}% where 70 to
95% is meant."""


if __name__ == "__main__":
    options = options_for(__doc__, METHODS, REPETITIONS)
    if options.pilot:
        print(pilot_table(tried(options.fresh), NAMES))
        raise SystemExit
    columns = [*DESIGN_KEY, "method", *SCORES, *COVERS, "seconds", "setting"]
    if {"nystrom", "nn"} & set(options.methods):
        tried()  # before the clocks of single methods
    rows, complete = run("swiss_roll_normal", DESIGNS, columns, compute, METHODS, REPETITIONS, options)
    if not complete:
        print("\n\n".join(f"{by_value(rows, d, NAMES)}\n\n{overall(rows, d)}" for d in DESIGNS))
        print("\nThe page is written when all methods and repetitions have been run.")
        raise SystemExit
    draw(rows, NAMES, "swiss_roll_normal", {"nll": "NLL of individuals", "mse": "MSE of means"})
    page(
        "swiss_roll_normal",
        "Means of individuals from sums over bags: swiss roll, normal",
        f"""
The [swiss roll](swiss_roll.md) with normal labels: means between 0 and 1, variance τ = {NOISE**2:.2f} (the paper writes τ = 0.1, which is the
standard deviation). The sum of a bag's labels is seen. {REPETITIONS} repetitions of every setting. NLL is the mean negative
log-likelihood of the training individuals' labels, which no method sees, at the estimated mean and τ; MSE is that of the
individuals' means. Bags are 500 test bags: NLL of their sums at variance N τ, as in the paper, and for ours also with the
posterior variance of the sum; MSE of their expected sums. Coverage error is the mean absolute difference between the levels
70, 75, ..., 95% and the share of true means inside the intervals, of {COVERED:,} random training individuals of each set, for single sets; averages are below. Seconds
are those of learning, with all settings that were tried, on a machine that did other work beside. The constant has no τ, so no likelihood.

## Number of bags: 150 ± 50 individuals in each

{by_value(rows, "bags", NAMES)}

Means over all numbers of bags:

{overall(rows, "bags")}

One-sided Wilcoxon signed-rank tests over the {len(DESIGNS["bags"]) * REPETITIONS} pairs; small: ours is better.

{tests(rows, "bags", NAMES, PRINTED)}

## Number of individuals in a bag: 600 bags, standard deviation half of the mean

{by_value(rows, "size", NAMES)}

{overall(rows, "size")}

{tests(rows, "size", NAMES, PRINTED)}

![NLL and MSE of individuals](pictures/swiss_roll_normal.png)

## Calibration

{calibration(rows, NAMES)}

![Coverage of the true means](pictures/swiss_roll_normal_calibration.png)

{short(rows)}

## Protocol

As on the page of the [Poisson model](swiss_roll.md). Ours has the same {LANDMARKS} landmarks as Nyström and the optimal distribution of
the values there in closed form. All settings of the baselines on one set of 150 bags that is no part of the experiment:

{pilot_table(tried(), NAMES)}

The {BEST} with the lowest NLL of validation bags were tried on every set. How often each was taken:

{chosen(rows, NAMES)}
""",
    )
