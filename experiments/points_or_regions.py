"""A summary for each cell: is its centre enough, or does it take the cell, or the places of the individuals?

Individuals live on a square of six lengthscales, evenly or in towns; y = f(x) + N(0, 0.5²) with f ~ GP(0, RBF(1)).
Each cell publishes its mean and its count. The same model is fitted to the means three times: at the centres
(`Points`), over the cells (`Boxes`), and over the individuals' places (`Bags`).
"""

import functools

import numpy as np
import pandas as pd
import verdicts
from common import arguments, page, picture, resumable, table

import aggregauss as ag
from aggregauss.inference.granularity import granularity

SIDE, INDIVIDUALS, NOISE = 6.0, 1000, 0.5
WIDTHS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
DESIGNS = ("evenly", "in towns")
RUNS = {"known": (8, DESIGNS, WIDTHS), "learned": (5, DESIGNS[:1], (0.5, 1.0, 2.0))}
SUPPORTS = ("centres", "cells", "places")
TRUTH = ag.RBF(1.0, 1.0)
COLUMNS = [
    "parameters",
    "design",
    "width",
    "seed",
    "support",
    "rmse",
    "coverage",
    "width95",
    "lengthscale",
    "eta",
    "summary_error",
    "noise",
]


class Town:
    """Places, the function there and at 500 more, and what the individuals report."""

    def __init__(self, design: str, seed: int):
        rng = np.random.default_rng([seed, DESIGNS.index(design)])
        places = rng.uniform(0, SIDE, (INDIVIDUALS + 500, 2))
        if design == "in towns":
            centres = rng.uniform(0, SIDE, (40, 2))
            near = centres[rng.integers(40, size=len(places))] + 0.2 * rng.standard_normal(places.shape)
            places = np.where(rng.random(len(places))[:, None] < 0.8, SIDE - np.abs(SIDE - np.abs(near)), places)
        K = np.asarray(ag.cov(TRUTH, ag.Points(places)))
        values, vectors = np.linalg.eigh(K)
        f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
        self.X, self.test = places[:INDIVIDUALS], places[INDIVIDUALS:]
        self.y, self.f_test = f[:INDIVIDUALS] + NOISE * rng.standard_normal(INDIVIDUALS), f[INDIVIDUALS:]


@functools.lru_cache(2)
def town(design: str, seed: int) -> Town:
    return Town(design, seed)


def fit(parameters: str, support: ag.Support, data: ag.Summaries) -> ag.Posterior:
    """With the parameters of the draw, or with all of them learned, from the variances within cells too."""
    if parameters == "known":
        model = ag.GP(TRUTH, ag.SampleQuasi("gaussian", dispersion=ag.fixed(NOISE**2)))
        return model.fit(support, data.mean, counts=data.counts, inference=ag.Exact(optimise=False), progress=False)
    model = ag.GP(ag.RBF(1.0, 1.0), ag.SampleQuasi("gaussian"))
    return model.fit(
        support,
        data.mean,
        counts=data.counts,
        variances=data.variances,
        inference=ag.Exact(restarts=0),
        progress=False,
    )


def compute(parameters: str, design: str, width: float, seed: int) -> list[dict]:
    data = town(design, seed)
    cells = ag.summarise(data.X, data.y, grid=width, origin=[0.0, 0.0])
    noise = NOISE**2 / cells.counts
    judged = granularity(TRUTH, cells.points.center, cells.bags, cells.counts, noise)
    rows = []
    for name, support in zip(SUPPORTS, (cells.points, cells.regions, cells.bags)):
        post = fit(parameters, support, cells)
        found = post.predict(ag.Points(data.test))
        low, high = found.interval(0.95)
        figures = {
            "rmse": np.sqrt(np.mean((found.mean - data.f_test) ** 2)),
            "coverage": np.mean((low <= data.f_test) & (data.f_test <= high)),
            "width95": np.mean(high - low),
            "lengthscale": float(post.model.kernel.lengthscale),
            "eta": judged.eta,
            "summary_error": judged.summary_error,
            "noise": judged.noise,
        }
        rows.append({"support": name, **{key: f"{float(x):.5g}" for key, x in figures.items()}})
    return rows


def average(rows: pd.DataFrame, parameters: str) -> pd.DataFrame:
    """Means over repetitions, by design, width of cells and support."""
    part = rows[rows.parameters == parameters]
    numbers = ["rmse", "coverage", "width95", "lengthscale", "eta", "summary_error", "noise"]
    return part.groupby(["design", "width", "support"])[numbers].mean()


def summary(rows: pd.DataFrame, parameters: str, design: str) -> str:
    mean = average(rows, parameters).loc[design]
    lines = []
    for width in RUNS[parameters][2]:
        each = [mean.loc[(width, name)] for name in SUPPORTS]
        judged = [f"{each[0].eta:.2f}", f"{each[0].summary_error / each[0].noise:.2f}"]
        lines.append([width, *judged, *(f"{x.rmse:.3f}" for x in each), *(f"{x.coverage:.0%}" for x in each)])
    header = [
        "cell / lengthscale",
        "η",
        "error / noise",
        *(f"RMSE, {n}" for n in SUPPORTS),
        *(f"95%, {n}" for n in SUPPORTS),
    ]
    return table(header, lines)


def paired(rows: pd.DataFrame, design: str, width: float, other: str) -> str:
    """How much lower the RMSE is than at the centres, over the same draws, with its standard error."""
    part = rows[(rows.parameters == "known") & (rows.design == design) & (rows.width == width)]
    each = part.pivot(index="seed", columns="support", values="rmse")
    gain = 1 - each[other] / each.centres
    return f"{round(gain.mean(), 2) + 0.0:.0%} ± {gain.std() / np.sqrt(len(gain)):.0%}"


def draw(rows: pd.DataFrame) -> None:
    import matplotlib.pyplot as plt

    mean = average(rows, "known")
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharex=True, sharey="row", layout="constrained")
    for column, design in enumerate(DESIGNS):
        for name, colour in zip(SUPPORTS, ("tab:red", "tab:orange", "tab:blue")):
            part = mean.loc[design].xs(name, level="support")
            axes[0, column].plot(part.index, part.rmse, "o-", color=colour, label=name)
            axes[1, column].plot(part.index, part.coverage, "o-", color=colour)
        axes[0, column].set_title(f"individuals {design}")
        axes[1, column].axhline(0.95, color="gray", linewidth=0.8)
        axes[1, column].set_xlabel("side of a cell / lengthscale")
    axes[0, 0].set_ylabel("RMSE")
    axes[1, 0].set_ylabel("coverage of 95% intervals")
    axes[0, 0].legend()
    picture(figure, "points_or_regions")


def main() -> None:
    options = arguments(__doc__).parse_args()
    keys = [(q, d, w, s) for q, (n, designs, widths) in RUNS.items() for s in range(n) for d in designs for w in widths]
    found = pd.DataFrame(resumable("points_or_regions", keys, COLUMNS, compute, options.fresh))
    rows = found.astype({name: float for name in COLUMNS if name not in ("parameters", "design", "support")})
    draw(rows)

    def trio(parameters: str, design: str, width: float, score: str = "rmse") -> str:
        mean = average(rows, parameters).loc[(design, width)][score]
        return "/".join(f"{mean[n]:.0%}" if score == "coverage" else f"{mean[n]:.3g}" for n in SUPPORTS)

    gains = [
        [f"{design}, {width}", *(paired(rows, design, width, other) for other in ("cells", "places"))]
        for design in DESIGNS
        for width in WIDTHS
    ]
    tables = "\n\n".join(
        f"## Parameters {parameters}, individuals {design} ({n} repetitions)\n\n{summary(rows, parameters, design)}"
        for parameters, (n, designs, _) in RUNS.items()
        for design in designs
    )
    body = f"""
{__doc__.split("individuals?")[1].strip()} {INDIVIDUALS:,} individuals; 500 more at places of the same
kind are predicted. "Parameters known": kernel and noise are those of the draw, so that only the support differs. "Learned":
lengthscale, variance and noise are fitted, the latter from the variances within cells too.

![RMSE and coverage against the size of cells](pictures/points_or_regions.png)

η and "error / noise" (the difference between the mean over a cell's individuals and the value at its centre, in units of the
noise of the cell's mean) are what `post.granularity()` reports.

{tables}

## How much lower the RMSE is than at the centres (parameters known, same draws, ± standard error)

{table(["individuals, cell / lengthscale", "cells", "places"], gains)}

## What to make of it

* **Up to a quarter of the lengthscale** (η about 0.16) the three are alike: RMSE {trio("known", "evenly", 0.25)}. The verdict is
  "fine enough".
* **At half a lengthscale** (η about 0.3, "borderline") cells hardly lower the RMSE of centres; places lower it by a tenth.
* **At one lengthscale** (η about 0.6, "too coarse") and with individuals spread evenly, the RMSE is {trio("known", "evenly", 1.0)} for
  centres, cells and places, and 95% intervals hold {trio("known", "evenly", 1.0, "coverage")} of the truth: the error of the centres is more
  than the noise they are told of.
* **Cells are right where individuals are spread evenly.** In towns they need not be: a cell claims that people are all
  over it. At one lengthscale the RMSE is {trio("known", "in towns", 1.0)}, worst for cells, and intervals hold
  {trio("known", "in towns", 1.0, "coverage")}. Only the places themselves repair that.
* **Beyond**, at two lengthscales, hardly anything is known of the function within a cell, all errors are large, and supports
  differ less. With known parameters 95% intervals hold {trio("known", "evenly", 2.0, "coverage")} (evenly) and {trio("known", "in towns", 2.0, "coverage")} (in towns)
  of the truth, with learned ones {trio("learned", "evenly", 2.0, "coverage")}. Nine cells say little about a lengthscale, and centres make the function
  seem smooth: it is learned as {trio("learned", "evenly", 2.0, "lengthscale")} on average, where 1 is true.
"""
    body += verdicts.section(verdicts.rows(options.fresh))
    page("points_or_regions", "The centre, the cell, or the places", body)


if __name__ == "__main__":
    main()
