"""Polygons as points or as boxes: output areas of Sheffield (Smith, Alvarez and Lawrence 2019, Tables 5 and 6).

Table 5. The populations of 40 random groups of output areas are known; the density of every single area is wanted.
Table 6. Covariances between three sets of output areas. Both ask how many atoms a support needs.
"""

import functools

import numpy as np
from common import arguments, folder, page, picture, resumable, table
from shapely.ops import unary_union

import aggregauss as ag

METHODS = {"uniform": "points", "sobol": "low-discrepancy points", "boxes": "boxes"}
GROUPS, LENGTHSCALE = 40, 0.16  # km
PREDICTIONS = {"boxes": (2, 4, 8, 16, 32, 64), "uniform": (2, 4, 8, 16, 32, 64, 128, 256)}
PREDICTIONS["sobol"] = PREDICTIONS["uniform"]
COVARIANCES = {"boxes": (4, 8, 16, 32, 64, 128), "uniform": (4, 8, 16, 32, 64, 128, 512, 1024)}
COVARIANCES["sobol"] = COVARIANCES["uniform"]
EXACT = "boxes", 256  # as good as exact: halving it moves nothing that is printed
DRAWS, PLACEMENTS = 8, 3
PRINTED5 = {
    2: (242.3, 242.0, 198.0),
    4: (209.2, 207.7, 183.8),
    8: (194.4, 193.6, 185.1),
    16: (187.3, 189.4, 187.1),
    32: (186.1, 187.6, 185.7),
    64: (185.5, 185.9, 185.4),
}
PRINTED6 = {16: ("0.0197", "0.0049"), 32: ("0.0084", "0.0018"), 64: ("0.0007", "0.0002"), 128: ("0.0004", "<0.00015")}


class Groups:
    """Output areas dealt at random to groups, whose populations are all that the model sees."""

    def __init__(self, areas, draw: int):
        self.population, self.km2 = areas.population.to_numpy(float), areas.geometry.area.to_numpy()
        home = np.random.default_rng(draw).integers(GROUPS, size=len(areas))
        self.shapes = [unary_union(areas.geometry[home == g].to_list()) for g in np.unique(home)]
        self.totals = np.array([self.population[home == g].sum() for g in np.unique(home)])
        self.single = ag.Polygons(list(areas.geometry), measure="mean", atoms=8)
        level = ag.Constant(ag.fixed(self.population.sum() / self.km2.sum()))
        kernel = ag.RBF(ag.fixed(LENGTHSCALE))
        fitted = ag.GP(kernel, mean=level).fit(
            self.support("boxes", 16, 0), self.totals, inference=ag.Exact(restarts=1), progress=False
        )
        self.model = fitted.model.freeze()
        self.converged = self.predict(*EXACT, 0)

    def support(self, method: str, atoms: int, seed: int) -> ag.Support:
        return ag.Polygons(self.shapes, method=method, atoms=atoms, seed=seed)

    def predict(self, method: str, atoms: int, seed: int) -> np.ndarray:
        post = self.model.fit(self.support(method, atoms, seed), self.totals, progress=False)
        return post.predict(self.single).mean

    def errors(self, method: str, atoms: int) -> dict:
        seeds = range(1 if method == "boxes" else PLACEMENTS)
        found = np.array([self.predict(method, atoms, s) for s in seeds])
        truth = self.population / self.km2
        return {
            "error": np.abs(found - truth).mean(),
            "deviation": np.abs(found - self.converged).mean(),
            "exact": np.abs(self.converged - truth).mean(),
            "constant": np.abs(self.population.sum() / self.km2.sum() - truth).mean(),
        }


class Sets:
    """Three random groups of output areas, and the covariances of the means over them."""

    def __init__(self, areas, draw: int):
        home = np.random.default_rng(1000 + draw).permutation(len(areas)) % GROUPS
        self.shapes = [unary_union(areas.geometry[home == g].to_list()) for g in range(3)]
        self.converged = self.matrix("boxes", 1024, 0)

    def matrix(self, method: str, atoms: int, seed: int) -> np.ndarray:
        support = ag.Polygons(self.shapes, measure="mean", method=method, atoms=atoms, seed=seed)
        return np.asarray(ag.cov(ag.RBF(1.0, 3.0), support))

    def errors(self, method: str, atoms: int) -> dict:
        """Deviations from the converged matrix: of single placements, and of their average."""
        seeds = range(1 if method == "boxes" else 4 * PLACEMENTS)
        gaps = np.array([self.matrix(method, atoms, s) for s in seeds]) - self.converged
        return {"error": np.abs(gaps).mean(), "bias": np.abs(gaps.mean(axis=0)).mean()}


def needed(counts: np.ndarray, errors: np.ndarray, target: float) -> float:
    """How many atoms reach the target, read off the straight line between counts on logarithmic scales."""
    falling = np.minimum.accumulate(errors)
    if falling[-1] > target:
        return np.inf
    return float(np.exp(np.interp(-np.log(target), -np.log(falling), np.log(counts))))


class Summary:
    """Means over the draws of one table, by method and number of atoms."""

    def __init__(self, rows: list[dict[str, str]], columns: list[str]):
        self.columns = columns
        keys = dict.fromkeys((r["method"], int(r["atoms"])) for r in rows)
        self.values = {
            key: np.array([[float(r[c]) for c in columns] for r in rows if (r["method"], int(r["atoms"])) == key])
            for key in keys
        }

    def mean(self, column: str, method: str, atoms: int) -> float:
        return float(self.values[method, atoms][:, self.columns.index(column)].mean())

    def curve(self, column: str, method: str) -> tuple[np.ndarray, np.ndarray]:
        counts = [n for m, n in self.values if m == method]
        return np.array(counts), np.array([self.mean(column, method, n) for n in counts])

    def ratio(self, column: str, method: str, atoms: int) -> str:
        """How many times as many points as boxes the same error takes."""
        counts, errors = self.curve(column, method)
        target = self.mean(column, "boxes", atoms)
        if target > errors[0]:
            return f"below {counts[0] / atoms:g}"
        found = needed(counts, errors, target) / atoms
        return f"{found:.1f}" if np.isfinite(found) else f"more than {counts[-1] / atoms:.0f}"


def draw_curves(predictions: Summary, covariances: Summary) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, summary, column in zip(axes, (predictions, covariances), ("deviation", "error")):
        for method, marker in zip(METHODS, "oxs"):
            axis.loglog(*summary.curve(column, method), marker=marker, label=METHODS[method])
        axis.set(xlabel="atoms in each support")
    axes[0].set(ylabel="deviation from converged, people per km²", title="Predicted densities")
    axes[1].set(ylabel="mean absolute error", title="Covariances")
    axes[0].legend(frameon=False, fontsize=8)
    picture(figure, "sheffield")


def write(predictions: Summary, covariances: Summary) -> None:
    order = ("uniform", "sobol", "boxes")
    first = [
        [
            n,
            *PRINTED5[n],
            *(f"{predictions.mean('error', m, n):.1f}" for m in order),
            *(f"{predictions.mean('deviation', m, n):.1f}" for m in order),
        ]
        for n in PRINTED5
    ]
    second = [
        [
            n,
            *PRINTED6.get(n, ("", "")),
            *(f"{covariances.mean('error', m, n):.5f}" for m in order),
            *(f"{covariances.mean('bias', m, n):.5f}" for m in order[:2]),
        ]
        for n in COVARIANCES["boxes"]
    ]
    third = [
        [
            n,
            *(predictions.ratio("deviation", m, n) if n in PREDICTIONS["boxes"] else "" for m in order[:2]),
            *(covariances.ratio("error", m, n) if n in COVARIANCES["boxes"] else "" for m in order[:2]),
        ]
        for n in (2, 4, 8, 16, 32, 64, 128)
    ]
    exact, constant = (predictions.mean(c, "boxes", 2) for c in ("exact", "constant"))
    names = ["points", "low-discrepancy", "boxes"]
    page(
        "sheffield",
        "Polygons as points or as boxes: Sheffield's output areas",
        f"""
280 output areas of the 2011 census (the paper's own window has populations for 195 of its 358 areas only, so its figures
are of another kind: compare the shape of the columns; the mean absolute error in a notebook of the authors is 3910.7). Averages over {DRAWS} random groupings, and over {PLACEMENTS}
placements for each where points are random. Atoms are counted per support, that is per group of about seven areas.

## Densities of single areas from {GROUPS} random groups (Table 5)

RBF kernel, ℓ = {LENGTHSCALE} km as printed; its variance and the noise by marginal likelihood from boxes, the mean fixed
to the overall density. Mean absolute error in people per km², and mean absolute deviation from the prediction with
{EXACT[1]} boxes for each group, which says what the atoms alone spoil.

{table(["atoms", *(f"printed, {x}" for x in names), *(f"MAE, {x}" for x in names), *(f"deviation, {x}" for x in names)], first)}

With converged covariances the error is {exact:.1f}; the overall density for every area gives {constant:.1f}. Random groups
say little about single areas, whatever the method.

## Covariances of three sets (Table 6)

Means over three random groups of seven areas, RBF with variance 3 and ℓ = 1 km. The printed error is that of the *average*
of 150 placements of points and 50 of rectangles, which a user who places them once does not get; both kinds are shown.

{table(["atoms", "printed, points", "printed, rectangles", *(f"error, {x}" for x in names), *(f"error of the average of {4 * PLACEMENTS}, {x}" for x in names[:2])], second)}

## How many points replace a box

Number of points needed for the error that the given number of boxes has, divided by that number of boxes.

{table(["boxes", "densities, points", "densities, low-discrepancy", "covariances, points", "covariances, low-discrepancy"], third)}

![Errors against the number of atoms](pictures/sheffield.png)

A box here carries the area, the mean and the variances of the piece it stands for, so it may reach over the border of the
piece or over a gap between two. With a lengthscale of 1 km (covariances) each of 4 boxes is worth {covariances.ratio("error", "uniform", 4)} points, each of 8 is worth
{covariances.ratio("error", "uniform", 8)}. With one of {LENGTHSCALE} km (densities) 2 or 4 boxes for a group of about seven areas are worse than as many points,
each of 8 is worth {predictions.ratio("deviation", "uniform", 8)} points, each of 16 is worth {predictions.ratio("deviation", "uniform", 16)}: where the lengthscale is short, give more boxes than a shape has parts
that lie apart.
""",
    )


if __name__ == "__main__":
    import geopandas as gpd

    options = arguments(__doc__).parse_args()
    areas = gpd.read_file(folder(options, "sheffield_census") / "sheffield_oa.gpkg", layer="oa")
    areas["geometry"] = areas.geometry.affine_transform([1e-3, 0, 0, 1e-3, 0, 0])  # kilometres
    groups, sets = (functools.lru_cache(1)(functools.partial(kind, areas)) for kind in (Groups, Sets))

    keys = [(d, m, n) for d in range(DRAWS) for m in METHODS for n in PREDICTIONS[m]]
    columns = ["error", "deviation", "exact", "constant"]
    five = resumable(
        "sheffield_predictions",
        keys,
        ["draw", "method", "atoms", *columns],
        lambda d, m, n: groups(d).errors(m, n),
        options.fresh,
    )
    keys = [(d, m, n) for d in range(DRAWS) for m in METHODS for n in COVARIANCES[m]]
    six = resumable(
        "sheffield_covariances",
        keys,
        ["draw", "method", "atoms", "error", "bias"],
        lambda d, m, n: sets(d).errors(m, n),
        options.fresh,
    )
    predictions, covariances = Summary(five, columns), Summary(six, ["error", "bias"])
    draw_curves(predictions, covariances)
    write(predictions, covariances)
