"""How far the approximate posterior is from the true one: counts of bags, hyper-parameters known and learned.

* *60 bags*: a function is drawn from the prior (RBF, lengthscale 2) on a square of 10 x 10, cut into 60 cells with 50
  individuals each; a cell's count is Poisson with mean Σ p_i exp f(x_i), or Σ p_i f(x_i)² with the square link.
* *40 districts*: ten pixels each, in a row; the function varies *within* the districts (Matern-3/2, lengthscale four
  pixels, variance 0.5). A district has about 10 counts, or about 100, which say precisely what the sum of exponentials
  is but little of its terms.

The same models, hyper-parameters known, are sampled by NUTS (NumPyro), where the function is written as a root of its
covariance matrix times standard normal variables.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from common import arguments, page, resumable, table

import aggregauss as ag
from aggregauss.metrics import LEVELS, calibration

CHAINS, WARMUP, DRAWS = 2, 500, 2000
BOUNDS = ("linearised", "matched", "taylor", "jensen", "mc")
COVERS = [f"cover {level:.2f}" for level in LEVELS]


@dataclasses.dataclass(frozen=True, eq=False)
class Simulation:
    """Individuals in bags, the true function f = level + root z, and the counts."""

    X: np.ndarray
    bag: np.ndarray
    p: np.ndarray
    f: np.ndarray
    root: np.ndarray
    y: np.ndarray

    @property
    def bags(self) -> ag.Support:
        return ag.Bags(self.X, self.bag, weights=self.p)


@dataclasses.dataclass(frozen=True)
class Design:
    """What is simulated, and the model of it with hyper-parameters known or learned."""

    kernel: type
    lengthscale: float
    variance: float
    level: float
    link: str
    place: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]  # X, bag, p
    scheme: Callable[[Simulation], dict[str, Any]]

    def simulate(self, seed: int) -> Simulation:
        rng = np.random.default_rng(seed)
        X, bag, p = self.place(rng)
        values, vectors = np.linalg.eigh(np.asarray(ag.cov(self.kernel(self.lengthscale, self.variance), ag.Points(X))))
        keep = values > 1e-10 * values.max()
        root = vectors[:, keep] * np.sqrt(values[keep])
        f = self.level + root @ rng.standard_normal(keep.sum())
        response = np.exp(f) if self.link == "exp" else f**2
        return Simulation(X, bag, p, f, root, rng.poisson(np.bincount(bag, p * response)))

    def fit(self, data: Simulation, bound: str, learned: bool) -> ag.Posterior:
        known = (ag.fixed(self.lengthscale), ag.fixed(self.variance))
        kernel = self.kernel() if learned else self.kernel(*known)
        mean = ag.Constant() if learned else ag.Constant(ag.fixed(self.level))
        model = ag.GP(kernel, likelihood=ag.Poisson(link=self.link), aggregation="response", mean=mean)
        inference = ag.SVI(bound=bound, optimise=learned, **self.scheme(data))
        return model.fit(data.bags, data.y, inference=inference, progress=False)


def cells(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cell = np.repeat(np.arange(60), 50)
    corner = np.column_stack([cell // 6, (cell % 6) * (10 / 6)])
    X = corner + rng.uniform(size=(len(cell), 2)) * np.array([1.0, 10 / 6])
    return X, cell, rng.uniform(0.5, 1.5, len(cell))


def row_of_districts(population: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.arange(400.0)[:, None], np.arange(400) // 10, population * rng.uniform(0.5, 1.5, 400)


def _many(data: Simulation) -> dict[str, Any]:
    return {"inducing": 120, "probes": 50, "tolerance": 1e-4}


def _every_other(data: Simulation) -> dict[str, Any]:
    return {"inducing": data.X[::2]}


DESIGNS = {
    "60 bags": Design(ag.RBF, 2.0, 1.0, 0.0, "exp", cells, _many),
    "60 bags, square": Design(ag.RBF, 2.0, 0.3, 1.5, "square", cells, _many),
    "40 districts of 10": Design(
        ag.Matern32, 4.0, 0.5, 0.0, "exp", functools.partial(row_of_districts, 1.0), _every_other
    ),
    "40 districts of 100": Design(
        ag.Matern32, 4.0, 0.5, 0.0, "exp", functools.partial(row_of_districts, 10.0), _every_other
    ),
}


BESIDE = {d: "jensen" if d.startswith("60") else "matched" for d in DESIGNS}  # the bound whose coverage is shown beside


def nuts(design: Design, data: Simulation, seed: int) -> np.ndarray:
    """Draws of f, (draws, individuals)."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    root, p, bag = jnp.asarray(data.root), jnp.asarray(data.p), jnp.asarray(data.bag)

    def model() -> None:
        z = numpyro.sample("z", dist.Normal(jnp.zeros(root.shape[1]), 1).to_event(1))
        f = design.level + root @ z
        response = jnp.exp(f) if design.link == "exp" else f**2
        eta = jax.ops.segment_sum(p * response, bag, len(data.y))
        numpyro.sample("y", dist.Poisson(eta), obs=jnp.asarray(data.y))

    chains = MCMC(
        NUTS(model),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    chains.run(jax.random.key(seed))
    return design.level + np.asarray(chains.get_samples()["z"]) @ data.root.T


def against_nuts(name: str, seed: int) -> list[dict]:
    design = DESIGNS[name]
    data = design.simulate(seed)
    start = time.perf_counter()
    draws = nuts(design, data, seed)
    taken = time.perf_counter() - start
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    halves = (draws[:DRAWS].mean(axis=0) - draws[DRAWS:].mean(axis=0)) / sd / 2
    rows = []
    for bound in BOUNDS:
        start = time.perf_counter()
        f = design.fit(data, bound, learned=False).predict(ag.Points(data.X), "latent")
        seconds = time.perf_counter() - start
        away = np.abs(f.mean - mean) / sd
        figures = {
            "mean difference": away.mean(),
            "largest": away.max(),
            "sd ratio": np.mean(f.std / sd),
            "nuts error": np.abs(halves).mean(),
        }
        rounded = {name: f"{x:.4f}" for name, x in figures.items()}
        rows.append({"bound": bound, **rounded, "seconds": f"{seconds:.1f}", "nuts seconds": f"{taken:.1f}"})
    return rows


def coverage(name: str, bound: str, hyper: str, seed: int) -> list[dict]:
    """One row; where hyper-parameters are learned, one more for the fit in which they are then taken to be known."""
    design = DESIGNS[name]
    data = design.simulate(1000 + seed)
    post = design.fit(data, bound, hyper == "learned")
    posts = {hyper: post}
    if hyper == "learned":
        posts["learned, then taken as known"] = dataclasses.replace(post, mixture=())
    lengthscale = float(post.model.kernel.lengthscale)
    rows = []
    for given, one in posts.items():
        shares = calibration(data.f, one.predict(ag.Points(data.X), "latent").interval)
        covers = {column: f"{x:.4f}" for column, x in zip(COVERS, shares.values())}
        rows.append({"given": given, **covers, "lengthscale": f"{lengthscale:.4g}"})
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--nuts", type=int, default=2, help="simulations of each design that are sampled by NUTS")
    parser.add_argument("--simulations", type=int, default=40, help="of the first design, for coverage")
    parser.add_argument("--fewer", type=int, default=8, help="simulations of the others, and of other bounds")
    options = parser.parse_args()
    columns = ["design", "seed", "bound", "mean difference", "largest", "sd ratio", "nuts error", "seconds"]
    columns.append("nuts seconds")
    keys = [(d, s) for s in range(options.nuts) for d in DESIGNS]
    close = pd.DataFrame(resumable("accuracy_nuts", keys, columns, against_nuts, options.fresh))
    cases = {d: [("linearised", "known"), ("linearised", "learned"), (other, "learned")] for d, other in BESIDE.items()}
    many = {("60 bags", "linearised"): options.simulations}
    keys = [(d, b, h, s) for d in DESIGNS for b, h in cases[d] for s in range(many.get((d, b), options.fewer))]
    columns = ["design", "bound", "hyper", "seed", "given", *COVERS, "lengthscale"]
    covered = pd.DataFrame(resumable("accuracy_coverage", keys, columns, coverage, options.fresh))
    write(*(part.sort_values("design", key=_place, kind="stable").reset_index(drop=True) for part in (close, covered)))


def _place(designs: pd.Series) -> pd.Series:
    return designs.map(list(DESIGNS).index)


def distances(close: pd.DataFrame) -> str:
    numbers = close.drop(columns=["design", "bound"]).astype(float).join(close[["design", "bound"]])
    lines = []
    for (d, b), part in numbers.groupby(["design", "bound"], sort=False):
        average = part.mean(numeric_only=True)
        lines.append(
            [
                f"{d}, {b}", f"{average['mean difference']:.3f}", f"{part['mean difference'].max():.3f}",
                f"{part.largest.max():.2f}", f"{average['sd ratio']:.3f}", f"{average['nuts error']:.3f}",
                f"{average.seconds:.1f}", f"{average['nuts seconds']:.0f}",
            ]
        )  # fmt: skip
    header = ["design and bound", "mean difference", "its worst simulation", "largest of any individual", "ratio of sd"]
    return table([*header, "error of NUTS itself", "seconds", "of NUTS"], lines)


def coverages(covered: pd.DataFrame) -> str:
    lines = []
    for (d, b, h), part in covered.groupby(["design", "bound", "given"], sort=False):
        shares = part[COVERS].astype(float)
        average, error = shares.mean(), shares.std() / np.sqrt(len(part))
        cells = [f"{100 * average[c]:.1f} ± {100 * error[c]:.1f}" for c in COVERS]
        worst = 100 * np.abs(average.to_numpy() - np.array(LEVELS)).max()
        middle = part.lengthscale.astype(float).median() if h == "learned" else np.nan
        learned = "" if np.isnan(middle) else f"{middle:.1f}"
        lines.append([f"{d}, {b}, hyper-parameters {h} ({len(part)})", *cells, f"{worst:.1f}", learned])
    header = ["design and bound", *(f"{100 * level:.0f}" for level in LEVELS), "largest error", "median lengthscale"]
    return table(header, lines)


def write(close: pd.DataFrame, covered: pd.DataFrame) -> None:
    body = f"""
{__doc__.split(chr(10), 2)[2].strip()}

## Against NUTS

Differences of posterior means of the latent function from those of NUTS ({CHAINS} chains of {DRAWS:,} draws), in posterior
standard deviations, hyper-parameters known, over {close.seed.nunique()} simulations of each design; the ratio of posterior standard deviations
to those of NUTS; and the error of the NUTS means themselves, from the difference of its chains. The default is
*linearised*.

{distances(close)}

## Coverage

Share of true values of the latent function inside central intervals, in per cent, ± the standard error over simulations (in
brackets their number), and the largest error of these averages. The true lengthscales are 2 with bags and 4 with
districts. By default learned hyper-parameters are integrated over; *then taken as known* is the same fit without that.

{coverages(covered)}
"""
    page("accuracy", "The approximate posterior against NUTS", body)


if __name__ == "__main__":
    main()
