"""Fertility rates of single ages and years from block means and a few single cells (Yousefi's thesis 2021, Figure 5.4).

f_t = level_t + w_t u with one function u for two tasks: "fine", some 1x1 cells, and "coarse", means over blocks of cells.
A block's mean is taken over the cells of the block that are not tested, and its support is the Bag of just these cells.
"""

import functools

import numpy as np
import pandas as pd
from common import arguments, folder, page, picture, resumable, table

import aggregauss as ag

BLOCKS, SIZES, REPETITIONS, TESTED = (2, 5), (20, 40, 80, 160, 320), 3, 1000
METHODS = ("multi-task", "dependent GP, centroids", "ICM, centroids", "independent")
SCORES = ["SMSE", "SNLP", "coverage"]
FIRST_AGE = 15
LENGTHSCALES = [8.0, 10.0]  # where searches begin
SCHEME = ag.Exact(restarts=0, tolerance=1e-7, integrate=True)
SEARCHED = ag.Exact(restarts=2, tolerance=1e-7, integrate=True)  # for models that begin at no other's end


def noise() -> ag.Gaussian:
    """It begins at the scatter of the births of 170,000 women, and stays above a sixth of that.

    Blocks are sums of the very cells: without a bound, searches end at a variance of zero and a singular matrix.
    """
    return ag.Gaussian(ag.param(0.003, bounds=(0.0005, 1.0)))


def lmc() -> ag.MultiTaskGP:
    """One function for both tasks."""
    model = ag.MultiTaskGP([ag.Matern52(LENGTHSCALES)], {t: noise() for t in ("fine", "coarse")})
    return model.replace({"mixing[0].weights": ag.param([2.0, 2.0]), "mean.values": ag.param([1.8, 1.8])})


def icm(fitted: ag.MultiTaskGP) -> ag.MultiTaskGP:
    """Two functions for both tasks, beginning near a model with one."""
    model = ag.MultiTaskGP(list(fitted.latents), dict(zip(fitted.tasks, fitted.likelihoods)), rank=2)
    first, second = np.asarray(fitted.mixing[0].weights)
    weights = [first, second, 0.3]  # of the second function the second task alone has a share
    return model.replace({"mixing[0].weights": ag.param(weights), "mean.values": ag.param(fitted.mean.values)})


class Split:
    """Rates in births per hundred women; 1000 random cells are tested, the others are what may be learned from."""

    def __init__(self, data: pd.DataFrame, repetition: int):
        self.X, self.y = data[["age", "year_index"]].to_numpy(float), 100 * data.rate_1.to_numpy()
        order = np.random.default_rng(repetition).permutation(len(self.y))
        self.test, self.rest = order[:TESTED], order[TESTED:]
        self.at = ag.Points(self.X[self.test])

    def coarse(self, blocks: int) -> tuple[ag.Support, np.ndarray]:
        """Means over what is left of each block; a block of which nothing is left is none."""
        block = (self.X[self.rest] - [FIRST_AGE, 0]) // blocks @ [1000.0, 1.0]
        bags = ag.Bags(self.X[self.rest], block, measure="mean")
        return bags, bags.integrate(self.y[self.rest][np.argsort(block, kind="stable")])

    def alone(self, size: int) -> dict[str, ag.Prediction]:
        model = ag.GP(ag.Matern52(LENGTHSCALES), noise(), mean=ag.Constant())
        post = model.fit(*self.fine(size), inference=SEARCHED, progress=False)
        return {"independent": post.predict(self.at, "observation")}

    def together(self, blocks: int, size: int) -> dict[str, ag.Prediction]:
        bags, y = self.coarse(blocks)
        means = {"fine": self.fine(size), "coarse": (bags, y)}
        points = {"fine": self.fine(size), "coarse": (ag.Points(bags.integrate(bags.center)), y)}
        fit = functools.partial(ag.MultiTaskGP.fit, inference=SCHEME, progress=False)
        dependent = fit(lmc(), points, inference=SEARCHED)
        fits = {
            "multi-task": fit(dependent.model, means),
            "dependent GP, centroids": dependent,
            "ICM, centroids": fit(icm(dependent.model), points),
        }
        return {name: post.predict({"fine": self.at}, "observation")["fine"] for name, post in fits.items()}

    def fine(self, size: int) -> tuple[ag.Support, np.ndarray]:
        return ag.Points(self.X[self.rest[:size]]), self.y[self.rest[:size]]

    def scores(self, blocks: int, size: int) -> list[dict]:
        y, seen = self.y[self.test], self.y[self.rest]
        trivial = ag.metrics.gaussian_nlpd(y, seen.mean(), seen.var())
        found = self.together(blocks, size) if blocks > 1 else self.alone(size)
        return [
            {
                "method": name,
                "SMSE": ag.metrics.mse(y, prediction.mean) / y.var(),
                "SNLP": -prediction.log_density(y).mean() - trivial,
                "coverage": ag.metrics.coverage(y, *prediction.interval(0.95)),
            }
            for name, prediction in found.items()
        ]


class Summary:
    """Scores by blocks, method and number of fine cells; without coarse blocks, the same for all of them."""

    def __init__(self, found: list[dict[str, str]]):
        rows = pd.DataFrame(found).astype({"blocks": int, "size": int, **dict.fromkeys(SCORES, float)})
        self.groups = rows.groupby(["blocks", "method", "size"])
        wide = rows.pivot_table(index=["repetition", "blocks", "size"], columns="method", values=SCORES)
        self.cases = wide.drop(index=1, level="blocks")

    def at(self, score: str, blocks: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Means, and standard deviations over the repetitions, by number of fine cells."""
        key = (1 if method == "independent" else blocks, method)
        return self.groups[score].mean()[key].to_numpy(), self.groups[score].std()[key].to_numpy()

    def table(self, score: str, blocks: int, digits: int) -> str:
        def cell(mean: float, sd: float) -> str:
            return f"{mean:.{digits}f}" + (f" ± {sd:.{digits}f}" if np.isfinite(sd) else "")

        lines = [[m, *(cell(x, s) for x, s in zip(*self.at(score, blocks, m)))] for m in METHODS]
        return table(["fine cells", *map(str, SIZES)], lines)

    def best(self, score: str, blocks: int) -> str:
        """In how many cases the multi-task model is the best of those with blocks."""
        found = self.cases[score].xs(blocks, level="blocks").drop(columns="independent", errors="ignore")
        return f"{(found.idxmin(axis=1) == 'multi-task').sum()} of {len(found)}"

    def ahead(self, score: str, blocks: int) -> str:
        """The numbers of fine cells at which the multi-task model has the lowest mean of those with blocks."""
        each = np.array([self.at(score, blocks, m)[0] for m in METHODS if m != "independent"])
        sizes = [str(n) for n, best in zip(SIZES, each.argmin(axis=0)) if METHODS[best] == "multi-task"]
        return f"{', '.join(sizes[:-1])} and {sizes[-1]}"

    def covered(self) -> str:
        """The least and the largest mean coverage of models with blocks."""
        each = [self.at("coverage", b, m)[0] for b in BLOCKS for m in METHODS if m != "independent"]
        return f"{np.min(each):.0%} to {np.max(each):.0%}"

    def draw(self) -> None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
        for axis, blocks in zip(axes, BLOCKS):
            for method, marker in zip(METHODS, "oxs^"):
                axis.loglog(SIZES, self.at("SMSE", blocks, method)[0], marker=marker, label=method)
            axis.set(xlabel="fine cells", title=f"{blocks}x{blocks} blocks")
            axis.set_xticks(SIZES, map(str, SIZES), minor=False)
            axis.set_xticks([], minor=True)
        axes[0].set(ylabel="SMSE of tested cells")
        axes[1].legend(frameon=False, fontsize=8)
        picture(figure, "fertility")


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    options = parser.parse_args()
    data = pd.read_csv(folder(options, "fertility_canada") / "fertility_1x1.csv")
    split = functools.lru_cache(1)(functools.partial(Split, data))
    keys = [(r, b, n) for n in SIZES for r in range(options.repetitions) for b in (1, *BLOCKS)]
    columns = ["repetition", "blocks", "size", "method", *SCORES]
    found = resumable("fertility", keys, columns, lambda r, b, n: split(r).scores(b, n), options.fresh)
    summary = Summary(found)
    summary.draw()
    page(
        "fertility",
        "Fertility of single ages and years from blocks and a few cells",
        f"""
Rates of first births of Canada, ages 15 to 54 in 66 years: 2640 cells of one age and one year. {TESTED} random cells are tested,
some of the others are the task "fine", and means over blocks of cells are the task "coarse". The mean of a block is over those
of its cells that are not tested, and so is its support, a Bag: no aggregate knows a tested cell. (In the data of the thesis the
blocks contain them.) Exact inference; one Matern-5/2 kernel with a lengthscale for age and one for years, and a noise variance
for each task, all learned and then integrated over (`Exact(integrate=True)`). The searches of the independent and of the dependent model have
three starts; the multi-task model and ICM start where the dependent one ends. {options.repetitions} repetition(s), each with new tested and new fine cells: mean, ± standard deviation where there are several.

* **multi-task**: f_t = level_t + w_t u, each block the mean of u over its cells;
* **dependent GP, centroids**: the same, each block a point at the centroid of its cells;
* **ICM, centroids**: blocks as points too, and two functions u of one kernel (rank 2);
* **independent**: fine cells only.

## Squared error over the variance of the tested rates (SMSE)

The original's notebook, with 2x2 blocks, 80 fine cells and a noise that is not learned, has 0.0439.

### 2x2 blocks

{summary.table("SMSE", 2, 4)}

### 5x5 blocks

{summary.table("SMSE", 5, 4)}

![SMSE against the number of fine cells](pictures/fertility.png)

## Log score (SNLP)

Mean negative log predictive density of a tested rate, less that of the normal distribution with the mean and the variance
of all cells that are not tested, both in the same units. (The original mixed units: in a run whose rows are not kept, an
exact fit of its model had -3.7 by its formula and -0.5 by this one.)

### 2x2 blocks

{summary.table("SNLP", 2, 2)}

### 5x5 blocks

{summary.table("SNLP", 5, 2)}

## Share of tested rates inside their 95% intervals

### 2x2 blocks

{summary.table("coverage", 2, 2)}

### 5x5 blocks

{summary.table("coverage", 5, 2)}

## Where centroids are better

Of the three models with blocks, the multi-task model has the smallest squared error with 2x2 blocks in {summary.best("SMSE", 2)} and
with 5x5 blocks in {summary.best("SMSE", 5)} cases; the best log score with 2x2 blocks in {summary.best("SNLP", 2)} and with 5x5
blocks in {summary.best("SNLP", 5)}.

In squared error the three differ by less than they scatter over repetitions with 2x2 blocks; with 5x5 blocks the multi-task
model has the smallest at {summary.ahead("SMSE", 5)} fine cells. Its log score with 5x5 blocks is the best of the three at {summary.ahead("SNLP", 5)};
with more, that of a centroid model is. Intervals of 95% of the models with blocks hold {summary.covered()} on average, with few fine cells
as with many.
""",
    )
