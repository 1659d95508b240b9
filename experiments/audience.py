"""How many people will answer the next survey (Smith, Alvarez and Lawrence 2019, Table 4).

A panel grows with time. A survey at some date asks for an income range and an age range, and everybody in them who has
joined by then answers: a count over a box in (income, age, day of joining). From 5 to 18 such counts the next one is
predicted.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import arguments, folder, page, resumable, table

import aggregauss as ag
from aggregauss.metrics import bootstrap, mae, rmse

LAST_DAY, PANEL = 600.0, 5802
METHODS = ("integral", "centroid")
PRINTED = {"integral": ("126.3 ± 10.74", "73.1 ± 4.52"), "centroid": ("223.1 ± 14.88", "143.5 ± 7.51")}


def simulate(families: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """People with income (thousand dollars), age and day of joining, from families by income and age of the head.

    Heads of 75 and more are left out. Young people are more likely to be on the panel (weight 40/(age - 10)) and join
    earlier: uniformly between a day drawn from N(5 age, 300²), clipped to the period, and the last day.
    """
    ages = np.array([int(c.removeprefix("age_")) for c in families.columns[1:]])[:-1]
    cells = families.iloc[:, 1:-1].to_numpy(float) * 40 / (ages - 10)
    drawn = rng.choice(cells.size, PANEL, p=(cells / cells.sum()).ravel())
    row, column = np.unravel_index(drawn, cells.shape)
    income = families.iloc[:, 0].to_numpy(float)[row] / 1000 + rng.uniform(0, 5, PANEL)
    age = ages[column] + rng.uniform(0, 5, PANEL)
    earliest = np.clip(rng.normal(5 * age, 300), 0, LAST_DAY)
    return np.column_stack([income, age, rng.uniform(earliest, LAST_DAY)])


def surveys(people: np.ndarray, rng: np.random.Generator, by_date: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """6 to 19 random surveys: lower corners, upper corners, counts. The last one is to be predicted."""
    number = rng.integers(6, 20)
    ranges = [(0.0, 205.0, 20.0), (20.0, 75.0, 5.0)]  # lowest, highest and least width of income and of age
    ends = [_range(rng, number, *limits) for limits in ranges]
    days = rng.uniform(30, LAST_DAY, number)
    low = np.column_stack([*(e[0] for e in ends), np.zeros(number)])
    high = np.column_stack([*(e[1] for e in ends), np.sort(days) if by_date else days])
    inside = (people[:, None] >= low) & (people[:, None] < high)
    return low, high, inside.all(axis=2).sum(axis=0).astype(float)


def _range(rng: np.random.Generator, number: int, least: float, most: float, width: float) -> np.ndarray:
    """Random intervals that are not narrower than `width`."""
    draws = np.sort(rng.uniform(least, most, (1000, 2)), axis=1)
    return draws[draws[:, 1] - draws[:, 0] >= width][:number].T


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to set the comparison up; the first is the protocol, the others show how much hangs on it."""

    text: str
    sets: int
    restarts: int = 4
    poisson: bool = False
    by_date: bool = False


VARIANTS = {
    "main": Variant("the library's defaults: five starts, noise learned", 800),
    "one start": Variant("one start, from lengthscales of five standard deviations", 250, restarts=0),
    "known noise": Variant("the variance of a Poisson count as known noise beside the learned one", 250, poisson=True),
    "by date": Variant("surveys in order of their dates, so that the last is always the latest", 250, by_date=True),
}


def predict(method: str, variant: Variant, low: np.ndarray, high: np.ndarray, counts: np.ndarray) -> float:
    """The last survey's count from the others; axes are in units of the standard deviation of the boxes' corners."""
    scale = np.concatenate([low, high]).std(axis=0)
    low, high = low / scale, high / scale
    volume = (high - low).prod(axis=1)
    noise = counts if variant.poisson else np.zeros(len(counts))
    if method == "integral":
        support, y, factor = ag.Boxes(low, high), counts, 1.0
    else:
        support, y, noise, factor = ag.Points((low + high) / 2), counts / volume, noise / volume**2, volume[-1]
    model = ag.GP(ag.RBF(ag.param(np.full(3, 5.0), bounds=(0.1, 100.0))))
    inference = ag.Exact(restarts=variant.restarts)
    post = model.fit(support[:-1], y[:-1], noise[:-1], inference=inference, progress=False)
    return float(post.predict(support[-1:]).mean[0] * factor)


def with_interval(truth: pd.Series, found: pd.Series, statistic: Callable) -> str:
    """The statistic and half the width of its 95% bootstrap interval."""
    low, high = bootstrap(np.c_[truth, found], lambda pairs: statistic(*pairs.T))
    return f"{statistic(truth, found):.1f} ± {(high - low) / 2:.1f}"


def advantage(rows: pd.DataFrame, statistic: Callable) -> str:
    """How much lower the integral's statistic is, with a 95% bootstrap interval over sets (paired)."""

    def gain(triples: np.ndarray) -> float:
        truth, integral, centroid = triples.T
        return statistic(truth, centroid) - statistic(truth, integral)

    triples = rows[["truth", *METHODS]].to_numpy()
    low, high = bootstrap(triples, gain)
    return f"{gain(triples):+.1f} ({low:+.1f} to {high:+.1f})"


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    families = pd.read_csv(folder(options, "us_income_age") / "families_income_x_age_2016.csv")

    def one_set(name: str, number: int) -> dict:
        variant, rng = VARIANTS[name], np.random.default_rng([7, number])
        low, high, counts = surveys(simulate(families, rng), rng, variant.by_date)
        volume = (high - low).prod(axis=1)
        found = {m: predict(m, variant, low, high, counts) for m in METHODS}
        found["proportional"] = counts[:-1].sum() / volume[:-1].sum() * volume[-1]
        return {"surveys": len(counts), "truth": counts[-1], **found}

    columns = ["variant", "set", "surveys", "truth", *METHODS, "proportional"]
    keys = [(name, i) for name, variant in VARIANTS.items() for i in range(variant.sets)]
    rows = pd.DataFrame(resumable("audience", keys, columns, one_set, options.fresh))
    rows = rows.astype(dict.fromkeys(columns[1:], float))
    main = rows[rows.variant == "main"]
    lines = []
    for m in columns[4:]:
        scores = [with_interval(main.truth, main[m], statistic) for statistic in (rmse, mae)]
        lines.append([m, *scores, *PRINTED.get(m, ("", ""))])
    others = []
    for name, variant in VARIANTS.items():
        part = rows[rows.variant == name]
        closer = np.mean((part.integral - part.truth).abs() < (part.centroid - part.truth).abs())
        gains = [advantage(part, statistic) for statistic in (rmse, mae)]
        others.append([variant.text, len(part), *gains, f"{closer:.0%}"])
    page(
        "audience",
        "Size of the next survey's audience",
        f"""
{len(main)} sets of 6 to 19 random surveys; each set has a simulated panel of {PANEL:,} people of its own. Errors of the
predicted count of the last survey (mean count {main.truth.mean():.0f}), ± half of a 95% bootstrap interval.

{table(["method", "RMSE", "MAE", "printed RMSE", "printed MAE"], lines)}

*integral* reads a count as the total over its box. *centroid* reads count/volume as the density at the box's centre, and
multiplies the density predicted at the centre of the new box with its volume. *proportional* is the overall density times
the new volume. Both Gaussian processes have zero mean and an RBF kernel with a lengthscale for each axis, and learn all
parameters by marginal likelihood, with the library's defaults. The printed centroid figures come from test centres that were
computed with a corner of another box; here they are right. How the paper drew its boxes is not known in full, so the
sizes of errors are not comparable, only the methods within a column.

## How much hangs on the protocol

The integral's advantage (centroid's statistic minus the integral's; positive is better), with a paired 95% interval.

{table(["variant", "sets", "RMSE", "MAE", "integral closer"], others)}

The integral has the lower RMSE and MAE in every row, but no interval excludes zero: with the baseline done right, the two
methods are on a par here. How much of the printed gap the wrong corner makes was not measured. The protocol was fixed before
these sets were drawn. About a dozen settings had been tried on other sets (with and without a level, known noise, priors on
lengthscales, one start or several, sorted or not), and their differences had both signs. With one kernel for all sets, learned
from 300 surveys, the centroid was clearly better (RMSE 73 against 124 over 424 sets). The rows of these trials are not kept.
""",
    )
