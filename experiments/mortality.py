"""Death rates at single ages from age classes: 0-4, 5-9, ..., 80-84 and everybody of 85 or more.

The rate of a class is the exposure-weighted mean of the rates of its ages, so rates are a Bag with known noise D/E².
Log rates suit a curve that spans four orders of magnitude, but the log of a mean is not the mean of logs. Either this is
ignored, or the class rate log Σ w exp(f) is replaced by its tangent at the last estimate of f, a Bag with weights
w exp(f), until the estimate stays.
"""

import numpy as np
import pandas as pd
from common import arguments, folder, page, picture, resumable, table

import aggregauss as ag

YEARS = (1980, 1990, 2000, 2010, 2014)
LAST = 104  # oldest age that is scored; beyond it a few people are left
CLASSES = {"five-year": [0, *range(5, 90, 5)], "infants apart": [0, 1, *range(5, 90, 5)]}
SCORES = ["deaths 0-104", "deaths 5-104", "log rates 1-104", "log rates 5-104", "coverage"]
AGE = np.arange(111.0)
KNOWN_NOISE = ag.Gaussian(ag.fixed(0.0))


def rbf(low: float, dim: int = 0) -> ag.RBF:
    """Within a class variation is not identified, so the lengthscale stays above `low`."""
    return ag.RBF(lengthscale=ag.param(bounds=(low, 40 * low)), active_dims=[dim])


def interpolated(year: "Year", log: bool) -> np.ndarray:
    """Straight lines through the class rates at the mean ages of exposure, continued beyond the last."""
    x, y = year.pool(year.exposure * AGE) / year.E, np.log(year.D / year.E) if log else year.D / year.E
    line = np.interp(AGE, x, y) + np.maximum(AGE - x[-1], 0) * (y[-1] - y[-2]) / (x[-1] - x[-2])
    return np.exp(line) if log else line


class Year:
    """One year's deaths and exposure by age, and pooled by class (capital letters)."""

    def __init__(self, data: pd.DataFrame, year: int, classes: str):
        rows = data[data.year == year].sort_values("age")
        self.deaths, self.exposure = rows.deaths.to_numpy(), rows.exposure.to_numpy()
        self.home = np.searchsorted(CLASSES[classes], AGE, side="right") - 1
        self.D, self.E = self.pool(self.deaths), self.pool(self.exposure)

    def pool(self, x: np.ndarray) -> np.ndarray:
        return np.bincount(self.home, x)

    def fit(
        self, model: ag.GP, X: np.ndarray, weights: np.ndarray, y: np.ndarray, noise: np.ndarray, restarts: int = 4
    ):
        inference = ag.Exact(restarts=restarts)
        post = model.fit(ag.Bags(X, self.home, weights, "mean"), y, noise, inference=inference, progress=False)
        return post, post.predict(ag.Points(X))

    def rates(self) -> tuple:
        model = ag.GP(rbf(5.0), KNOWN_NOISE)
        _, f = self.fit(model, AGE[:, None], self.exposure, self.D / self.E, self.D / self.E**2)
        return f.mean, lambda z: f.mean + f.std * z

    def relative(self) -> tuple:
        expected = self.exposure * interpolated(self, log=True)
        total = self.pool(expected)
        model = ag.GP(rbf(5.0), KNOWN_NOISE, mean=ag.Constant(ag.fixed(1.0)))
        _, f = self.fit(model, AGE[:, None], expected, self.D / total, self.D / total**2)
        standard = interpolated(self, log=True)
        return standard * f.mean, lambda z: standard * (f.mean + f.std * z)

    def logs(self, tangents: int, with_log_age: bool = False) -> tuple:
        X = np.column_stack([AGE, np.log1p(AGE)]) if with_log_age else AGE[:, None]
        kernel = rbf(5.0) + rbf(0.2, dim=1) if with_log_age else rbf(5.0)
        model = ag.GP(kernel, KNOWN_NOISE, mean=ag.LinearMean([0.1, 0.0][: X.shape[1]]))
        y = np.log(self.D / self.E)
        post, f = self.fit(model, X, self.exposure, y, 1 / self.D)
        for _ in range(tangents):
            weights = self.exposure * np.exp(f.mean)
            value, slope = np.log(self.pool(weights) / self.E), weights / self.pool(weights)[self.home]
            post, f = self.fit(post.model, X, weights, y - value + self.pool(slope * f.mean), 1 / self.D, restarts=0)
        return np.exp(f.mean), lambda z: np.exp(f.mean + f.std * z)

    def score(self, rate: np.ndarray, draw=None) -> dict:
        rng, seen = np.random.default_rng(0), AGE <= LAST
        expected = self.exposure * rate
        both = (self.deaths > 0) & (rate > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.deaths / self.exposure) - np.log(rate)
        found = [ag.metrics.rmse(self.deaths[seen & (a <= AGE)], expected[seen & (a <= AGE)]) for a in (0, 5)]
        found += [np.sqrt(np.mean(logs[both & seen & (a <= AGE)] ** 2)) for a in (1, 5)]
        covered = np.nan
        if draw is not None:
            counts = rng.poisson(self.exposure * np.maximum(draw(rng.standard_normal((4000, len(AGE)))), 0))
            covered = ag.metrics.coverage(self.deaths[seen], *np.quantile(counts, [0.025, 0.975], axis=0)[:, seen])
        return {**dict(zip(SCORES, found)), "coverage": covered, "negative": int((rate[seen] <= 0).sum())}


METHODS = {
    "constant within the class": lambda y: ((y.D / y.E)[y.home],),
    "linear interpolation": lambda y: (interpolated(y, log=False),),
    "log-linear interpolation": lambda y: (interpolated(y, log=True),),
    "GP on rates": Year.rates,
    "GP on the ratio to log-linear interpolation": Year.relative,
    "GP on log rates, class = mean of logs": lambda y: y.logs(0),
    "GP on log rates, tangent": lambda y: y.logs(8),
    "GP on log rates of age and log age, tangent": lambda y: y.logs(8, with_log_age=True),
}


def draw(data: pd.DataFrame, number: int = 2014) -> None:
    import matplotlib.pyplot as plt

    year = Year(data, number, "five-year")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    with np.errstate(divide="ignore", invalid="ignore"):
        left.semilogy(AGE, year.deaths / year.exposure, "k.", markersize=3, label="single ages (not seen)")
    right.plot(AGE, year.deaths, "k.", markersize=3)
    left.step(AGE, (year.D / year.E)[year.home], "0.6", where="post", label="classes (seen)")
    right.step(AGE, year.exposure * (year.D / year.E)[year.home], "0.6", where="mid")
    z = np.array([-1.96, 1.96])[:, None]
    for name, colour in (("GP on rates", "C0"), ("GP on log rates of age and log age, tangent", "C3")):
        rate, interval = METHODS[name](year)
        left.semilogy(AGE, rate, colour, label=name)
        left.fill_between(AGE, *np.maximum(interval(z), 1e-6), color=colour, alpha=0.2, linewidth=0)
        right.plot(AGE, year.exposure * rate, colour)
    left.set(xlabel="age", ylabel=f"deaths per person-year, {number}", ylim=(1e-5, 2), xlim=(0, 108))
    right.set(xlabel="age", ylabel=f"deaths, {number}", xlim=(60, 108))
    left.legend(frameon=False, fontsize=8)
    picture(figure, "mortality")


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    data = pd.read_csv(folder(options, "mortality_ungroup") / "deaths_exposure_age_year.csv")

    def compute(classes: str, year: int, method: str) -> dict:
        one = Year(data, year, classes)
        return one.score(*METHODS[method](one))

    keys = [(c, y, m) for c in CLASSES for y in YEARS for m in METHODS]
    columns = ["classes", "year", "method", *SCORES, "negative"]
    rows = pd.DataFrame(resumable("mortality", keys, columns, compute, options.fresh))
    rows[[*SCORES, "negative"]] = rows[[*SCORES, "negative"]].astype(float)
    draw(data)

    def summary(classes: str) -> str:
        means = rows[rows.classes == classes].groupby("method")[[*SCORES, "negative"]].mean()
        digits = [1, 1, 3, 3]
        lines = []
        for method in METHODS:
            r = means.loc[method]
            covered = "" if np.isnan(r.coverage) else f"{r.coverage:.1%}"
            lines.append([method, *(f"{r[c]:.{d}f}" for c, d in zip(SCORES, digits)), covered, f"{r.negative:.1f}"])
        return table(["method", *SCORES[:4], "95% coverage", "ages with a negative rate"], lines)

    means = rows.groupby(["classes", "method"])[SCORES].mean()
    logs, tangent, both = (
        means.xs(f"GP on log rates{m}", level="method")
        for m in (", class = mean of logs", ", tangent", " of age and log age, tangent")
    )
    lower = 1 - tangent / logs
    held = means.coverage.groupby("classes").agg(["min", "max"])

    def of(part: pd.DataFrame, classes: str, score: str) -> str:
        return f"{part.loc[classes, score]:{'.3f' if 'log' in score else '.1f'}}"

    page(
        "mortality",
        "Deaths at single ages from age classes",
        f"""
Both sexes of a country of nine million, years {", ".join(map(str, YEARS))}; in go the deaths and the exposure of 0-4, 5-9, ..., 80-84 and of
everybody of 85 or more, out come single ages 0 to {LAST}. Exposure is known at single ages. Columns are root mean squared
errors, averaged over the years: of deaths, from birth and from age 5; and of log rates where anybody died. Coverage is the
share of single-age death counts inside their 95% prediction interval (posterior and Poisson variation together).

## Five-year classes and 85+

{summary("five-year")}

## The same with infants apart: 0, 1-4, 5-9, ...

{summary("infants apart")}

![Rates and deaths at single ages](pictures/mortality.png)

A Gaussian process on rates has one variance for a curve that spans four orders of magnitude. From five-year classes it is
the best of all for the number of deaths, most of which are old people's; but with infants apart its curve is negative at
about four ages. On log rates no rate is negative, but a class is not a linear functional of the curve any more; the tangent
iteration makes it one at the current estimate. From five-year classes its errors are {lower.loc["five-year", SCORES[0]]:.0%} (deaths) and {lower.loc["five-year", SCORES[2]]:.0%} (log rates) lower
than those of taking the mean of logs; with infants apart that of deaths is {lower.loc["infants apart", SCORES[0]]:.0%} lower, and that of log rates higher ({of(tangent, "infants apart", SCORES[2])} against
{of(logs, "infants apart", SCORES[2])}). With log age as a second input both are lower: {of(both, "five-year", SCORES[0])} deaths from five-year classes and {of(both, "infants apart", SCORES[0])} with infants apart,
where age alone has {of(tangent, "five-year", SCORES[0])} and {of(tangent, "infants apart", SCORES[0])}. Intervals of 95% hold {held.loc["five-year", "min"]:.0%} to {held.loc["five-year", "max"]:.0%} of the counts from five-year classes, {held.loc["infants apart", "min"]:.0%} to {held.loc["infants apart", "max"]:.0%} with
infants apart. A Poisson likelihood with the sum inside (`aggregation="response"`) needs no tangent; it was not tried here.
""",
    )
