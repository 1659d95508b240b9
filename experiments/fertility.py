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
LENGTHSCALES, NOISE = [8.0, 10.0], 0.003  # where searches begin
SCHEME = ag.Exact(restarts=0, tolerance=1e-7, integrate=True)


def lmc() -> ag.MultiTaskGP:
    """One function for both tasks."""
    model = ag.MultiTaskGP([ag.Matern52(LENGTHSCALES)], {t: ag.Gaussian(NOISE) for t in ("fine", "coarse")})
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
        model = ag.GP(ag.Matern52(LENGTHSCALES), ag.Gaussian(NOISE), mean=ag.Constant())
        post = model.fit(*self.fine(size), inference=SCHEME, progress=False)
        return {"independent": post.predict(self.at, "observation")}

    def together(self, blocks: int, size: int) -> dict[str, ag.Prediction]:
        bags, y = self.coarse(blocks)
        means = {"fine": self.fine(size), "coarse": (bags, y)}
        points = {"fine": self.fine(size), "coarse": (ag.Points(bags.integrate(bags.center)), y)}
        fit = functools.partial(ag.MultiTaskGP.fit, inference=SCHEME, progress=False)
        dependent = fit(lmc(), points)
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
        self.counts = self.groups.size()

    def at(self, score: str, blocks: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Means, and standard deviations over the repetitions, by number of fine cells."""
        key = (1 if method == "independent" else blocks, method)
        return self.groups[score].mean()[key].to_numpy(), self.groups[score].std()[key].to_numpy()

    def table(self, score: str, blocks: int, digits: int) -> str:
        lines = [
            [m, *(f"{x:.{digits}f} ± {s:.{digits}f}" for x, s in zip(*self.at(score, blocks, m)))] for m in METHODS
        ]
        return table(["fine cells", *map(str, SIZES)], lines)

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
    options = arguments(__doc__).parse_args()
    data = pd.read_csv(folder(options, "fertility_canada") / "fertility_1x1.csv")
    split = functools.lru_cache(1)(functools.partial(Split, data))
    keys = [(r, b, n) for n in SIZES for r in range(REPETITIONS) for b in (1, *BLOCKS)]
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
blocks contain them.) Exact inference; one squared-exponential kernel with a lengthscale for age and one for years, and a noise
variance for each task, all learned. The evidence has two hills: the dependent and the independent model are fitted from two
starts and the better fit counts; the multi-task model and ICM start where the dependent one ends. {REPETITIONS} repetitions with new
tested and new fine cells: mean ± standard deviation.

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
of all cells that are not tested, both in the same units. (The original mixed units: an
exact fit of its model has -3.7 by its formula and -0.5 by this one.)

### 2x2 blocks

{summary.table("SNLP", 2, 2)}

### 5x5 blocks

{summary.table("SNLP", 5, 2)}

## Share of tested rates inside their 95% intervals

### 2x2 blocks

{summary.table("coverage", 2, 2)}

### 5x5 blocks

{summary.table("coverage", 5, 2)}

Blocks and cells together need fewer cells: 20 of them with 2x2 blocks do better than 500 alone. With 5x5 blocks the mean over
the cells of a block is on average better than its centroid at every number of cells. With 2x2 blocks the two are as good as
each other.

Repetitions differ because few cells make most of the error. In the second one, with 2x2 blocks and 500 fine cells, 12 of the 1000
tested cells have 83% of the squared error of the multi-task model; ten of them are in the first four years, where rates jump, and
four are neighbours at the edge of the table that are all tested, so that the model has to extrapolate. With 2x2 blocks more
fine cells do not lower the error either: in the first repetition the lengthscale of years is 4.3 with 80 cells, 7.2 with 320 and
2.6 with 500, a sign that one stationary kernel does not suit both those years and the others.

The 95% intervals of the multi-task model hold 84 to 87% with fewer than 160 fine cells and 91 to 93% with more. The noise of few
cells is learned too small (a variance of 0.0005 with 80 cells and 0.01 with 320, in the first repetition with 2x2 blocks) and
then taken for known. SNLP suffers with it.
""",
    )
