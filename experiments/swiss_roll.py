"""Rates of individuals from counts of bags, on a swiss roll (Law et al. 2018, sections 4.1 and H.1.1).

Every individual has a rate, half of its angle on the roll, and a Poisson count. Only the counts of bags are seen; the
rates of the individuals in them are wanted. Once the number of bags varies, once the number of individuals in a bag.
"""

import functools
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import page, picture, table
from swiss import (
    BESIDE,
    BEST,
    COVERED,
    COVERS,
    DESIGN_KEY,
    DESIGNS,
    LANDMARKS,
    PILOT_SEED,
    SEEDS,
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
    p_value,
    pilot,
    pilot_table,
    run,
)

import aggregauss as ag
from aggregauss.metrics import LEVELS, mse, poisson_nll

SCORES = ["nll", "exact nll", "mse", "bag nll", "bag mse"]
PRINTED = {  # p-values of Tables 4 to 7: NLL, MSE
    ("bags", "square", "nn"): ("7.0e-06", "0.00025"),
    ("bags", "square", "nystrom"): ("0.00048", "0.00015"),
    ("bags", "exp jensen", "nn"): ("2.5e-06", "2.5e-05"),
    ("bags", "exp jensen", "nystrom"): ("0.0005", "0.00025"),
    ("size", "square", "nn"): ("1.8e-05", "9.5e-06"),
    ("size", "square", "nystrom"): ("0.062", "0.041"),
    ("size", "exp jensen", "nn"): ("6.7e-05", "0.00016"),
    ("size", "exp jensen", "nystrom"): ("0.049", "0.062"),
}


def ours(data: Splits, seed: int, link: str, bound: str | None = None) -> Fit:
    """A Gaussian process, learned from the training bags alone; no bound means the library's default."""
    train, Z = data.train, landmarks(data.train.X, seed)
    model = ag.GP(ag.RBF(), likelihood=ag.Poisson(link=link), aggregation="response", mean=ag.Constant())
    inference = ag.SVI(inducing=Z) if bound is None else ag.SVI(inducing=Z, bound=bound)
    return gaussian_process(model.fit(train.bags, train.y, inference=inference, seed=seed, progress=False))


@functools.cache
def tried(fresh: bool = False) -> pd.DataFrame:
    """All settings of the baselines on a set of 150 bags that is no part of the experiment."""
    data = designed("bags", 150, PILOT_SEED, "poisson")
    estimators = {m: estimator(m, data, PILOT_SEED, "poisson") for m in ("nystrom", "nn")}
    return pilot("swiss_roll", estimators, data, fresh)


def tuned(method: str, data: Splits, seed: int) -> Fit:
    """A baseline: of the pilot's best settings, the one that the validation bags prefer."""
    return baseline(estimator(method, data, seed, "poisson"), best_settings(tried(), method), data)


METHODS: dict[str, Callable[[Splits, int], Fit]] = {
    "constant": lambda data, seed: constant(data),
    "oracle": lambda data, seed: by_individuals(lambda sample: sample.truth),
    "nystrom": lambda data, seed: tuned("nystrom", data, seed),
    "nn": lambda data, seed: tuned("nn", data, seed),
    "exp": lambda data, seed: ours(data, seed, "exp"),
    "square": lambda data, seed: ours(data, seed, "square"),
    "exp jensen": lambda data, seed: ours(data, seed, "exp", "jensen"),
}
NAMES = {"constant": "constant in a bag", "oracle": "true rates", "nystrom": "Nyström-Exp", "nn": "NN-Exp"}
NAMES |= {m: f"ours, {m}" for m in METHODS if m not in NAMES}


def compute(design: str, value: int, seed: int, method: str) -> dict:
    data = designed(design, value, seed, "poisson")
    start = time.perf_counter()
    fit = METHODS[method](data, seed)
    seconds = time.perf_counter() - start
    rate, totals = fit.individuals(data.train), fit.totals(data.test)
    scores = [
        poisson_nll(data.train.label, rate, stirling=True),
        poisson_nll(data.train.label, rate),
        mse(data.train.truth, rate),
        poisson_nll(data.test.y, totals, stirling=True),
        mse(data.test.total(data.test.truth), totals),
    ]
    found = {**dict(zip(SCORES, scores)), **coverages(fit, data.train)}
    return {**{name: f"{x:.6g}" for name, x in found.items()}, "seconds": f"{seconds:.2f}", "setting": fit.setting}


def is_ours(names: dict[str, str]) -> list[str]:
    return [m for m in names if names[m].startswith("ours")]


def by_value(rows: pd.DataFrame, design: str, names: dict[str, str], digits: int = 3) -> str:
    """NLL of the individuals for each number of bags or of individuals, means over repetitions."""
    means = rows[rows.design == design].groupby(["method", "value"]).nll.mean()
    values = [v for v in DESIGNS[design] if v in means.index.get_level_values("value")]
    known = [m for m in names if m in means and means[m].notna().any()]
    lines = [[names[m], *(f"{means.get((m, v), np.nan):.{digits}f}" for v in values)] for m in known]
    return table(["NLL of individuals", *map(str, values)], lines)


def overall(rows: pd.DataFrame, design: str) -> str:
    """All scores, averaged over the design, and the share of the way from the constant to the true rates."""
    part = rows[rows.design == design].assign(error=coverage_error)
    means = part.groupby("method")[[*SCORES, "error", "seconds"]].mean().reindex(list(METHODS))
    way = (means.nll["constant"] - means.nll) / (means.nll["constant"] - means.nll["oracle"])
    printed, lines = {"constant": ("2.22", "0.85")}, []
    for m, r in means.dropna(subset=["nll"]).iterrows():
        scores = [f"{r[s]:.{d}f}" for s, d in zip(SCORES, (3, 3, 3, 2, 0))]
        error = "" if np.isnan(r.error) else f"{r.error:.3f}"
        tail = [error, f"{r.seconds:.1f}", *printed.get(m, ("", ""))]
        lines.append([NAMES[m], *scores[:2], f"{way[m]:.0%}", *scores[2:], *tail])
    header = ["method", "NLL", "exact NLL", "of the way", "MSE", "bag NLL", "bag MSE", "coverage error", "seconds"]
    return table([*header, "printed NLL", "printed MSE"], lines)


def tests(rows: pd.DataFrame, design: str, names: dict[str, str], printed: dict[tuple, tuple[str, str]]) -> str:
    """p-values of ours against the baselines, and the printed ones."""
    part, lines = rows[rows.design == design], []
    for m in is_ours(names):
        for other in ("nystrom", "nn"):
            found = [p_value(part, DESIGN_KEY, m, other, score) for score in ("nll", "mse")]
            lines.append([f"{names[m]}, against {names[other]}", *found, *printed.get((design, m, other), ("", ""))])
    return table(["p-value", "NLL", "MSE", "printed NLL", "printed MSE"], lines)


def calibration(rows: pd.DataFrame, names: dict[str, str]) -> str:
    """The share of true values inside the intervals of each level, and how far the averages and single sets are off."""
    lines = []
    for design in DESIGNS:
        for m in is_ours(names):
            part = rows[(rows.design == design) & (rows.method == m)]
            if part.empty:
                continue
            varied = "number of bags" if design == "bags" else "size of bags"
            average = part[COVERS].mean()
            error = float(np.abs(average - np.array(LEVELS)).mean())
            cells = [f"{x:.1%}" for x in average]
            lines.append([f"{names[m]}; {varied}", *cells, f"{error:.3f}", f"{coverage_error(part).mean():.3f}"])
    return table(["inside", *(f"{level:.0%}" for level in LEVELS), "error of these averages", "of a single set"], lines)


def chosen(rows: pd.DataFrame, names: dict[str, str]) -> str:
    """How often each setting of a baseline had the lowest NLL on the validation bags."""
    counts = rows.dropna(subset=["setting"]).groupby("method").setting.value_counts()
    return table(["setting", "times chosen"], [[f"{names[m]}: {s}", n] for (m, s), n in counts.items()])


def draw(rows: pd.DataFrame, names: dict[str, str], name: str, labels: dict[str, str]) -> None:
    """One picture of scores (`labels` names their axes) against each design, one of the calibration."""
    import matplotlib.pyplot as plt

    varied = {"bags": "training bags", "size": "mean number of individuals in a bag"}
    styles = {m: {"color": f"C{i}", "linestyle": "--" if "jensen" in m else "-"} for i, m in enumerate(names)}
    figure, axes = plt.subplots(len(labels), 2, figsize=(10, 3.5 * len(labels)), layout="constrained", squeeze=False)
    for column, design in zip(axes.T, DESIGNS):
        for axis, (score, label) in zip(column, labels.items()):
            for m in names:
                part = rows[(rows.design == design) & (rows.method == m)].groupby("value")[score]
                mean, sd = part.mean().dropna(), part.std()
                axis.plot(mean.index, mean, label=names[m], **styles[m])
                low, high = mean - sd[mean.index], mean + sd[mean.index]
                axis.fill_between(mean.index, low, high, color=styles[m]["color"], alpha=0.15, linewidth=0)
            axis.set(xlabel=varied[design], ylabel=label)
    handles, shown = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, shown, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    picture(figure, name)

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    axes[0].plot(LEVELS, LEVELS, "k:", linewidth=1)
    for m in is_ours(names):
        part = rows[rows.method == m].assign(error=coverage_error)
        axes[0].plot(LEVELS, part[COVERS].mean(), label=names[m], **styles[m])
        for axis, design in zip(axes[1:], DESIGNS):
            error = part[part.design == design].groupby("value").error.mean()
            axis.plot(error.index, error, **styles[m])
            axis.set(xlabel=varied[design], ylabel="mean absolute coverage error")
    axes[0].set(xlabel="level of the interval", ylabel="share of true values inside")
    axes[0].legend(frameon=False, fontsize=8)
    picture(figure, f"{name}_calibration")


if __name__ == "__main__":
    options = options_for(__doc__, METHODS, SEEDS)
    if options.pilot:
        print(pilot_table(tried(options.fresh), NAMES))
        raise SystemExit
    columns = [*DESIGN_KEY, "method", *SCORES, *COVERS, "seconds", "setting"]
    if {"nystrom", "nn"} & set(options.methods):
        tried()  # before the clocks of single methods
    rows, complete = run("swiss_roll", DESIGNS, columns, compute, METHODS, SEEDS, options)
    if not complete:
        print("\n\n".join(f"{by_value(rows, d, NAMES)}\n\n{overall(rows, d)}" for d in DESIGNS))
        print("\nThe page is written when all methods and repetitions have been run.")
        raise SystemExit
    draw(rows, NAMES, "swiss_roll", {"nll": "NLL of individuals", "mse": "MSE of rates"})
    page(
        "swiss_roll",
        "Rates of individuals from counts of bags: swiss roll, Poisson",
        f"""
Individuals lie on a swiss roll in 18 dimensions, have a rate between 2.4 and 7.1 and a Poisson count; only the counts of
bags are seen. {SEEDS} repetitions of every setting ({BESIDE} with Jensen's bound). NLL is the mean negative log-likelihood of the training individuals'
counts, which no method sees, at the estimated rate; like the printed figures it has Stirling's formula for log y!, and
*exact NLL* has log y! itself. *Of the way* is where the NLL lies between the constant (0%) and the true rates (100%). MSE is
that of the individuals' rates. Bags are 500 test bags: NLL of their counts (Stirling), MSE of their expected counts.
Coverage error is the mean absolute difference between the levels 70, 75, ..., 95% and the share of true rates inside the
intervals, here for single sets; averages over sets are below. Seconds are those of learning, with all settings that were tried, on a machine that did other work beside.

## Number of bags: 150 ± 50 individuals in each

{by_value(rows, "bags", NAMES)}

Means over all numbers of bags:

{overall(rows, "bags")}

The paper shows its methods in pictures only; the constant's figures are in their captions (NLL 2.22 in Figure 1, 2.23 in
Figure 12).

One-sided Wilcoxon signed-rank tests over the {len(DESIGNS["bags"]) * SEEDS} pairs ({len(DESIGNS["bags"]) * BESIDE} with Jensen's bound); small: ours is better. The paper's VBAgg-Exp has Jensen's bound,
its VBAgg-Sq a Taylor approximation; where ours names no bound, it has the library's default.

{tests(rows, "bags", NAMES, PRINTED)}

## Number of individuals in a bag: 600 bags, standard deviation half of the mean

{by_value(rows, "size", NAMES)}

{overall(rows, "size")}

{tests(rows, "size", NAMES, PRINTED)}

The paper does not print the sizes that it used. Its small p-values in this design are multiples of 2⁻²⁰ to the digits
given, as they are for 20 pairs, that is four sizes; the four above are ours.

![NLL and MSE of individuals](pictures/swiss_roll.png)

## Calibration

{calibration(rows, NAMES)}

![Coverage of the true rates](pictures/swiss_roll_calibration.png)

Intervals of {COVERED:,} random training individuals of each set. All individuals of a set share one estimated function, so in a
single set far more or far fewer than the nominal share lie inside, whatever the method; intervals are calibrated when the
averages over sets are right.

## Protocol

All Gaussian processes and Nyström have the same {LANDMARKS} landmarks (k-means++ seeding). Ours learn from the training bags alone, with
the library's defaults. The baselines stop early by a second set of bags and take the setting with the lowest NLL on a third,
as in the paper. A baseline takes 1,500 to 4,500 steps of Adam on 15 bags each, which is the paper's schedule at 150 bags. The
paper's whole grid (with a third learning rate, half as many landmarks or units, and three initialisations) was too long to
run for every set. So the settings below were tried on one set of 150 bags that is no part of the experiment, and the {BEST} with
the lowest NLL of its validation bags are tried on every set. A manifold penalty of 100, which the paper has too, was left
out: in a first try, whose rows are not kept, it was clearly worse (NLL of validation bags 5.4, against 4.8).

{pilot_table(tried(), NAMES)}

How often each was taken:

{chosen(rows, NAMES)}
""",
    )
