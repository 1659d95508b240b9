"""Is the verdict of `granularity` right on draws that its thresholds were not set on?

Each draw has a kernel, a lengthscale, a variance, a noise, one dimension or two, a size of cells, and 500 individuals,
evenly or in towns: all at random. What the verdict should say is what the fits do: the points do *harm* if their RMSE is
at least a tenth above that of the individuals' places, or if their 95% intervals hold at least five in a hundred less of
the truth. The fits are written out in NumPy, since every number of cells would compile the library's anew.
"""

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import resumable, table
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

import aggregauss as ag
from aggregauss.inference.granularity import HIDDEN, level
from aggregauss.inference.representative import difference

SIDE, INDIVIDUALS, NEW = 6.0, 500, 300
RUNS = {"known": 400, "learned": 200}
CORRELATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "RBF": lambda r: np.exp(-0.5 * r**2),
    "Matern52": lambda r: (1 + 5**0.5 * r + 5 / 3 * r**2) * np.exp(-(5**0.5) * r),
    "Matern32": lambda r: (1 + 3**0.5 * r) * np.exp(-(3**0.5) * r),
    "Matern12": lambda r: np.exp(-r),
}
SETTINGS = ["kernel", "dim", "design", "width"]  # of cells, in lengthscales
FIGURES = ["eta", "level", "hidden", "lengthscale"]  # hidden: the error of a summary is little beside its noise
SCORES = ["rmse", "rmse_places", "coverage", "coverage_places"]
COLUMNS = ["parameters", "draw", *SETTINGS, *FIGURES, *SCORES]


class Draw:
    """Individuals in cells, the function at new places, and all distances."""

    def __init__(self, number: int):
        rng = np.random.default_rng([7919, number])
        self.kernel, self.design = str(rng.choice(list(CORRELATIONS))), str(rng.choice(["evenly", "in towns"]))
        self.dim = int(rng.choice([1, 2]))
        low, high = np.log([[0.4, 0.25, 0.1, 0.06], [3.0, 4.0, 1.0, 2.5]])
        scale, variance, noise, self.width = np.exp(rng.uniform(low, high))
        self.truth = np.array([scale, variance, variance * noise**2])
        places = self._places(rng)
        values, vectors = np.linalg.eigh(self.covariance(self.truth, cdist(places, places)))
        f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
        self.X, self.new, self.f_new = places[:INDIVIDUALS], places[INDIVIDUALS:], f[INDIVIDUALS:]
        y = f[:INDIVIDUALS] + np.sqrt(self.truth[2]) * rng.standard_normal(INDIVIDUALS)
        cells = ag.summarise(self.X, y, grid=self.width * scale, origin=np.zeros(self.dim))
        self.n, self.mean, self.s2, self.Z = cells.counts, cells.mean, cells.variances, cells.points.center
        self.owner = np.unique(np.floor(self.X / (self.width * scale)), axis=0, return_inverse=True)[1].ravel()
        self.share = np.eye(len(self.n))[:, self.owner] / self.n[:, None]

    def _places(self, rng: np.random.Generator) -> np.ndarray:
        places = rng.uniform(0, SIDE, (INDIVIDUALS + NEW, self.dim))
        if self.design == "evenly":
            return places
        towns = rng.uniform(0, SIDE, (20 * self.dim, self.dim))
        near = towns[rng.integers(len(towns), size=len(places))] + 0.2 * rng.standard_normal(places.shape)
        inside = np.abs(SIDE - np.abs(SIDE - np.abs(near)))
        return np.where(rng.random(len(places))[:, None] < 0.8, inside, places)

    def covariance(self, parameters: np.ndarray, distances: np.ndarray) -> np.ndarray:
        return parameters[1] * CORRELATIONS[self.kernel](distances / parameters[0])

    def covariances(self, parameters: np.ndarray, support: str) -> tuple[np.ndarray, np.ndarray]:
        """Of the summaries, and of the function at new places with them."""
        if support == "centres":
            return tuple(self.covariance(parameters, cdist(x, self.Z)) for x in (self.Z, self.new))
        among, cross = (self.covariance(parameters, cdist(x, self.X)) for x in (self.X, self.new))
        return self.share @ among @ self.share.T, cross @ self.share.T


def log_evidence(draw: Draw, parameters: np.ndarray, support: str) -> float:
    """Of all individuals, from their summaries."""
    K, phi = draw.covariances(parameters, support)[0], parameters[2]
    factor = cho_factor(K + np.diag(phi / draw.n), lower=True)
    fit = -0.5 * draw.mean @ cho_solve(factor, draw.mean) - np.log(np.diag(factor[0])).sum()
    return fit - 0.5 * np.sum((draw.n - 1) * np.log(phi) + draw.n * draw.s2 / phi)


def learned(draw: Draw, support: str) -> np.ndarray:
    """Lengthscale, variance and noise of the greatest evidence, searched from the true ones."""
    start = np.log(draw.truth)
    bounds = [(x - 5.0, x + 5.0) for x in start]
    search = minimize(lambda x: -log_evidence(draw, np.exp(x), support), start, bounds=bounds, method="L-BFGS-B")
    return np.exp(search.x)


def scores(draw: Draw, parameters: np.ndarray, support: str) -> tuple[float, float]:
    """RMSE and coverage of 95% intervals at new places."""
    K, cross = draw.covariances(parameters, support)
    factor = cho_factor(K + np.diag(parameters[2] / draw.n), lower=True)
    mean = cross @ cho_solve(factor, draw.mean)
    variance = parameters[1] - np.sum(cross * cho_solve(factor, cross.T).T, axis=1)
    away = np.abs(mean - draw.f_new)
    return float(np.sqrt(np.mean(away**2))), float(np.mean(away <= 1.959964 * np.sqrt(np.maximum(variance, 0.0))))


def judged(draw: Draw, parameters: np.ndarray) -> dict:
    """What `granularity` says under this kernel."""
    scale, variance, phi = parameters
    kernel = getattr(ag, draw.kernel)(scale, variance)
    n, z = len(draw.X), draw.Z[draw.owner]
    eta = difference(kernel, draw.X, z, np.full(n, 1 / n)).eta
    xx, xz = (draw.covariance(parameters, cdist(draw.X, x)) for x in (draw.X, draw.Z))
    apart = np.sum((draw.share @ xx) * draw.share, axis=1) - 2 * np.sum(draw.share * xz.T, axis=1) + variance
    error, noise = np.sum(draw.n * apart), np.sum(draw.n * phi / draw.n)
    return {"eta": eta, "level": level(eta), "hidden": int(error < HIDDEN**2 * noise), "lengthscale": scale}


def compute(parameters: str, number: int) -> dict:
    draw = Draw(number)
    values = {s: draw.truth if parameters == "known" else learned(draw, s) for s in ("centres", "places")}
    each = [scores(draw, values[s], s) for s in ("centres", "places")]
    found = {name: getattr(draw, name) for name in SETTINGS} | judged(draw, values["centres"])
    found |= dict(zip(SCORES, (each[0][0], each[1][0], each[0][1], each[1][1])))
    return {name: f"{x:.5g}" if isinstance(x, float) else x for name, x in found.items()}


def rows(fresh: bool) -> pd.DataFrame:
    """A row for each draw."""
    keys = [(p, k) for p, n in RUNS.items() for k in range(n)]
    numbers = dict.fromkeys(["width", "eta", "hidden", "lengthscale", *SCORES], float)
    return pd.DataFrame(resumable("verdicts", keys, COLUMNS, compute, fresh)).astype(numbers)


def confusion(found: pd.DataFrame) -> str:
    """What the verdict was, and what the fits did."""
    lines = []
    for parameters in RUNS:
        for name in ("fine", "borderline", "coarse"):
            part = found[(found.parameters == parameters) & (found.level == name)]
            ratio, less = (part.rmse / part.rmse_places).median() - 1, (part.coverage_places - part.coverage).mean()
            lines.append(
                [f"{parameters}, {name}", len(part), (~part.harm).sum(), part.harm.sum(), f"{ratio:.0%}", f"{less:.0%}"]
            )
    return table(
        ["parameters, verdict", "draws", "no harm", "harm", "RMSE above places (median)", "coverage lost (mean)"], lines
    )


def by_eta(found: pd.DataFrame) -> str:
    """How often the points do harm, the parameters known."""
    known, ends = found[found.parameters == "known"], (0.0, 0.1, 0.2, 0.3, 0.45, 0.7, 0.95, 1.01)
    parts = [known[(known.eta >= low) & (known.eta < high)] for low, high in itertools.pairwise(ends)]
    header = ["η", *(f"{low:g} to {min(high, 1.0):g}" for low, high in itertools.pairwise(ends))]
    return table(header, [["draws", *map(len, parts)], ["harm", *(f"{part.harm.mean():.0%}" for part in parts)]])


def section(found: pd.DataFrame) -> str:
    """Of the page of `points_or_regions`."""
    harm = (found.rmse >= 1.1 * found.rmse_places) | (found.coverage <= found.coverage_places - 0.05)
    found = found.assign(harm=harm)
    known, learned = (found[found.parameters == name] for name in RUNS)

    def right(part: pd.DataFrame, name: str, wanted: bool) -> str:
        of = part[part.level == name]
        return f"{(of.harm == wanted).sum()} of {len(of)}"

    def rate(part: pd.DataFrame, hidden: int) -> str:
        of = part[(part.level == "fine") & (part.hidden == hidden)]
        return f"{of.harm.sum()} of {len(of)}"

    told = found[found.hidden.astype(bool) & (found.level != "fine")]
    smoothed = learned[(learned.level == "fine") & (learned.width > 0.5)]
    return f"""
## The verdict on other draws

The thresholds of the verdict were chosen by looking at tables such as those above, so these do not test it. {RUNS["known"]} new draws do, of
which {RUNS["learned"]} also with parameters learned (at the centres, for centres and for the verdict; at the places, for places). Each has a kernel (RBF or a Matern),
a lengthscale, a variance, a noise, one dimension or two, a size of cells from 0.06 to 2.5 lengthscales, and {INDIVIDUALS} individuals,
evenly or in towns, all at random. Before any was drawn it was written down what counts: the centres do *harm* if their RMSE is at least a tenth
above that of the places, or if their intervals hold at least 5% less of the truth.

{confusion(found)}

{by_eta(found)}

* **"Fine enough" can be relied on**, not blindly: {right(known, "fine", False)} are without harm with known parameters, {right(learned, "fine", False)} with learned ones. η is
  blind to noise: of verdicts "fine enough" there is harm in {rate(known, 1)} where the error of a summary is below {HIDDEN:g} of its noise, and
  in {rate(known, 0)} where it is not. Look at both numbers.
* **"Borderline" is a toss-up**: harm in {right(known, "borderline", True)} and {right(learned, "borderline", True)}.
* **"Too coarse" does not promise that places do better.** With known parameters there is harm in {right(known, "coarse", True)}, with learned ones in
  {right(learned, "coarse", True)}: coarse centres mislead most about the kernel itself.
* η hardly tells harm from none above 0.3. The advice beside it ("points will do", where the error of a summary is below
  {HIDDEN:g} of its noise) overruled the level {len(told)} times, and {(~told.harm).sum()} times rightly.
* A verdict is only as good as the kernel. Of {(learned.level == "fine").sum()} verdicts "fine enough" under learned kernels, {len(smoothed)} were of cells wider than half the true
  lengthscale: the function had been learned as too smooth.

The thresholds were left as they are: moving them to suit these draws would leave them untested again.
"""


if __name__ == "__main__":
    rows(fresh=False)
