"""The page of the comparisons, from the rows that madagascar.py, breast_cancer.py and populations.py have written.

    python benchmarks/peers/page.py

Sentences about who is best are made from the rows as well.
"""

import csv
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "experiments"))
from common import page, table  # noqa: E402

Row = dict[str, str]
Better = Callable[[float], float]  # smaller is better

ERROR: Better = float
SCORE: Better = lambda x: -x  # noqa: E731
DEFAULT, EXACT = "ag.disaggregate", "ag.disaggregate, benchmark=True"
PLAIN = "ag.disaggregate, without covariates, benchmark=True"
COVERAGE: Better = lambda x: abs(x - 0.95)  # noqa: E731


def read(name: str) -> list[Row]:
    """Rows of one script; none where it has not run."""
    path = HERE / "rows" / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def verdict(what: str, ours: Row, others: Iterable[Row], column: str, better: Better, digits: int) -> str:
    """Whether ours is better than all others in one column, in words."""
    known = [row for row in others if row[column]]
    best = min(known, key=lambda row: better(float(row[column])))
    mine, theirs = float(ours[column]), float(best[column])
    figures = f"{mine:.{digits}f}, {best['method']} {theirs:.{digits}f}"
    gap = better(mine) - better(theirs)
    place = "the best" if gap < 0 else "**not** the best" if gap > 0 else "as good as the best"
    return f"{what}: ours is {place} ({figures})."


def chosen(rows: list[Row], *methods: str) -> Row:
    """The first of the methods that there is."""
    known = {row["method"]: row for row in rows}
    return next(known[method] for method in methods if method in known)


def number(text: str, digits: int, factor: float = 1.0) -> str:
    """A figure of a row, rounded; nothing where there is none."""
    return f"{factor * float(text):,.{digits}f}" if text else ""


def lines(rows: list[Row], mine: Row | None, columns: dict[str, tuple[int, float]]) -> list[list[str]]:
    """Cells of a table; ours in bold."""
    out = []
    for row in rows:
        cells = [row["method"], *(number(row[c], *how) for c, how in columns.items())]
        out.append([f"**{c}**" if row is mine and c else c for c in cells])
    return out


def apart(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of ours, and those of the others."""
    return [r for r in rows if r["method"].startswith(DEFAULT)], [
        r for r in rows if not r["method"].startswith(DEFAULT)
    ]


def excess(mine: Row) -> str:
    """What the difference of squared errors is worth."""
    if not mine["excess"]:
        return ""
    return f"""The mean squared error of ours less that of shares by population is {float(mine["excess"]):.0f} ±
{float(mine["excess_se"]):.0f} (standard error over regions); one region alone adds {float(mine["excess_most"]):.0f}.
"""


def spreads(others: list[Row]) -> str:
    """Why spreads that are learned at pairs are too narrow."""
    shares = next(row for row in others if row["method"] == "in proportion to population")
    return f"""Shares by population err by {float(shares["own"]):.2f} in the logarithm at the pairs and by
{float(shares["rmse_log"]):.2f} at the districts: districts of one region differ more than regions of one pair, so that
spreads learned there are too narrow here, for every method.

"""


def madagascar() -> str:
    """Regions to districts."""
    mine, others = apart(read("madagascar"))
    if not mine or not others:
        return ""
    best = chosen(mine, DEFAULT)
    columns = {"log_score": (3, 1), "log_score_best": (3, 1), "rmse": (1, 1), "rmse_log": (3, 1)}
    columns |= {"coverage": (0, 100), "check": (3, 1), "own": (2, 1)}
    header = ["method", "log score", "with the best spread", "RMSE", "RMSE of logs", "inside 95%, %", "check", "spread"]
    return f"""## Malaria in Madagascar: from 22 regions to their 109 districts

Counts of the regions go in, with population, elevation, vegetation and temperature of each pixel; rates of the districts, per
1,000 people, come out. The log score is the mean log density of log counts. tobler's dasymetric interpolation has a mask of
pixels with at least 100 people; the GLM and the GP of centroids know population-weighted means of the covariates.

{table(header, lines([*others, *mine], best, columns))}

{verdict("Log score", best, others, "log_score", SCORE, 3)} {verdict("RMSE", best, others, "rmse", ERROR, 1)}
{verdict("Coverage", best, others, "coverage", COVERAGE, 3)} {verdict("RMSE of logs", best, others, "rmse_log", ERROR, 3)}

{verdict("At the pairs, log score", best, others, "check", SCORE, 3)}
{spreads(others)}{excess(best)}
{beside_nuts()}"""


def beside_nuts() -> str:
    """What exact inference would do with the same model."""
    path = HERE.parents[1] / "experiments" / "rows" / "default_madagascar.csv"
    if not path.exists():
        return ""
    with path.open(newline="") as stream:
        found = {row["method"]: row for row in csv.DictReader(stream) if row["scatter"] == "0.2"}
    if "NUTS" not in found:
        return ""
    chain = found["NUTS"]
    return f"""With NUTS in place of our inference, the same model has a log score of {float(chain["log_score"]):.3f}, an RMSE of
{float(chain["rmse"]):.1f} and {100 * float(chain["coverage"]):.0f}% inside ([that page](default_madagascar.md), which has other scatters of the reports as well): what ours is
behind in RMSE is the model's, not the inference's.
"""


def breast_cancer() -> str:
    """Counties from the others."""
    rows = read("breast_cancer")
    ours = [row for row in rows if row["method"].startswith("aggregauss")]
    if not ours:
        return ""
    mine = max(ours, key=lambda row: float(row["evidence"]))
    others = [row for row in rows if row not in ours]
    kriging = [row for row in others if "pyinterpolate" in row["method"]]
    columns = {"rmse": (2, 1), "excess": (1, 1), "excess_se": (1, 1), "rmse_people": (2, 1)}
    columns |= {"log_score": (3, 1), "coverage": (1, 100), "coverage_own": (1, 100)}
    columns |= {"negative": (0, 1), "evidence": (1, 1), "cpu_seconds": (0, 1)}
    header = [
        "method",
        "RMSE",
        "excess",
        "±",
        "RMSE by people",
        "log score",
        "inside 95%, %",
        "without count noise, %",
        "negative rates",
    ]
    header += ["log evidence", "CPU seconds"]
    fastest = min(float(row["cpu_seconds"]) for row in kriging)
    times = [float(row["cpu_seconds"]) for row in ours]
    return f"""## Breast cancer in 217 counties of the north-eastern USA

Each county's rate per 100,000 from those of all others; population is known at 5,001 points. All counties take part when a
variogram or hyper-parameters are learned. pyinterpolate has the settings of its own example with these data: steps of 40 km up
to 300 km, deconvolution in five iterations, eight neighbours. Its variance is that of the risk; the noise of a count
of women among the population in five years is added to it, and the column beside is without. Ours, a Gaussian process whose
averages over the population are the rates, has that noise as known, or half of it, or none, beside a learned noise that is the same for all counties. The evidence decides between the three, which
were set up after the errors of the first had been seen. Times are CPU seconds of one process on one core, and include
learning: the deconvolution for pyinterpolate, compilation for ours.

{table(header, lines(rows, mine, columns))}

{verdict("RMSE", mine, others, "rmse", ERROR, 2)} {verdict("Log score", mine, others, "log_score", SCORE, 3)}
{verdict("Coverage against pyinterpolate", mine, kriging, "coverage", COVERAGE, 3)}

"Excess" is the mean squared error of a method less that of ours, with its standard error over counties.
{paired(kriging)}

The fastest kriging takes {fastest / max(times):.0f} times the CPU time of the slowest of our three fits, and
{fastest / sum(times):.1f} times that of all three together.

The RMSE counts all counties alike, and so does this kriging, which adds one number to the diagonal for all of them. Known count
noise trusts small counties less: without it the RMSE of ours is {float(ours[-1]["rmse"]):.2f}, against
{min(float(row["rmse"]) for row in kriging):.2f} of the best kriging, but the evidence is lower. "By people", squared errors weigh
what a county's rate is worth, the women behind it, and small counties, whose rates are mostly chance, count for little:
{verdict("RMSE by people", mine, kriging, "rmse_people", ERROR, 2)}
"""


def paired(kriging: list[Row]) -> str:
    """Whether the kriging that is ahead in RMSE is so by more than chance."""
    best = min(kriging, key=lambda row: float(row["rmse"]))
    ahead, error = -float(best["excess"]), float(best["excess_se"])
    if ahead <= 0:
        return "No kriging is ahead."
    return f"{best['method']} is ahead by {ahead:.1f} ± {error:.1f}: {ahead / error:.1f} standard errors."


CASES = {
    "counties": (
        "Population of 217 counties to 5,001 hexagons",
        "Hexagons of 87 km², each with the county that holds its centre; there are no covariates. The raster of the"
        " pycnophylactic surface has cells of 2 km.",
        0,
    ),
    "sheffield": (
        "Population of 18 MSOAs of Sheffield to 280 output areas",
        "Covariate, in rows that say so: the density of house sales, smoothed over 75 m. The raster of the pycnophylactic surface has cells of"
        " 25 m. Output areas are drawn to hold about equal numbers of people, where few live they are large: what 18 totals say of"
        " densities tells little about them. [Another page](sheffield_prices.md) has sales as a task beside.",
        1,
    ),
    "trees": (
        "Trees of Barro Colorado: 50 cells of 100 m to 800 of 25 m",
        "Covariates, in rows that say so: elevation and gradient. The raster of the pycnophylactic surface has cells of 5 m.",
        3,
    ),
}


def populations(name: str) -> str:
    """Coarse counts to fine ones."""
    title, words, digits = CASES[name]
    mine, others = apart([row for row in read("populations") if row["case"] == name])
    if not mine or not others:
        return ""
    best = chosen(mine, EXACT, PLAIN)
    columns = {"log_score": (3, 1), "log_score_best": (3, 1), "rmse": (digits, 1), "mae": (digits, 1)}
    columns |= {"coverage": (1, 100)}
    header = ["method", "log score", "with the best spread", "RMSE", "MAE", "inside 95%, %"]
    return f"""## {title}

{words}

{table(header, lines([*others, *mine], best, columns))}

{verdict("Log score", best, others, "log_score", SCORE, 3)} {verdict("RMSE", best, others, "rmse", ERROR, digits)}
{without_covariates(best, mine, others, digits)}"""


def without_covariates(best: Row, mine: list[Row], others: list[Row], digits: int) -> str:
    """What the field alone does, which knows no more than the opponents."""
    usual = [row for row in mine if row["method"] == PLAIN]
    if not usual or usual[0] is best:
        return ""
    return f"""
The opponents take no covariates. Without them:
{verdict("Log score", usual[0], others, "log_score", SCORE, 3)} {verdict("RMSE", usual[0], others, "rmse", ERROR, digits)}
"""


INTRODUCTION = """Coarse numbers go in, fine ones are scored that no method has seen. `benchmarks/peers` has a script for each
data set, and the peers are installed beside the package.

How they are scored: a method that gives numbers alone is given a distribution around them (log-normal for Madagascar,
negative binomial for the others), whose spread is learned where a user could learn it: trained on pairs of neighbouring coarse
units and scored on the coarse units themselves. "With the best spread" takes the one that suits the fine truth best, which
nobody knows. Ours is `ag.disaggregate` with the options of the row, and a new count has the distribution that it gives. Bold is
what it does given all that there is: as it comes for cases of malaria, which are estimates, and with `benchmark=True` for numbers of
people and trees, which are known exactly; that this row is the bold one was settled when both had been seen."""


def main() -> None:
    """Write docs/results/peers.md."""
    parts = [madagascar(), breast_cancer(), *(populations(name) for name in CASES)]
    body = "\n".join([INTRODUCTION + "\n", *(part for part in parts if part)])
    page("peers", "Beside tobler, pyinterpolate and regressions", body, script="benchmarks/peers/page.py")


if __name__ == "__main__":
    main()
