"""How far the approximate posterior is from the true one: 60 bags, 3,000 individuals, Poisson counts, exp link.

A function is drawn from the prior on a square of 10 x 10, cut into 60 cells with 50 individuals each; a cell's count is
Poisson with mean Σ p_i exp f(x_i). The same model, hyper-parameters known, is sampled by NUTS (NumPyro): there the
function is written in the eigenvectors of its covariance matrix, to a relative 1e-10 of its largest eigenvalue. Beyond
the NUTS runs, more simulations give the coverage of intervals of the true log rate, with hyper-parameters known, and
learned from the 60 counts. Harder are the countries of 40 districts of ten pixels each, in a row, whose function varies
*within* the districts (Matern-3/2, lengthscale four pixels, variance 0.5): with about 10 counts in a district, and with
about 100, which say precisely what the sum of exponentials is but little of its terms.
"""

import dataclasses
import functools
import time

import numpy as np
import pandas as pd
from common import arguments, page, resumable, table

import aggregauss as ag
from aggregauss.metrics import LEVELS, calibration

BAGS, PER_BAG, LENGTHSCALE, VARIANCE, LEVEL = 60, 50, 2.0, 1.0, 0.0
CHAINS, WARMUP, DRAWS = 2, 500, 3000
BOUNDS = ("matched", "taylor", "jensen", "mc")
COVERS = [f"cover {level:.2f}" for level in LEVELS]


def simulate(seed: int) -> dict:
    """Individuals, weights, the true function, its root (f = level + R z) and the counts."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(BAGS), PER_BAG)
    corner = np.column_stack([cell // 6, (cell % 6) * (10 / 6)])
    X = corner + rng.uniform(size=(len(cell), 2)) * np.array([1.0, 10 / 6])
    p = rng.uniform(0.5, 1.5, len(cell))
    K = np.asarray(ag.cov(ag.RBF(LENGTHSCALE, VARIANCE), ag.Points(X)))
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-10 * values.max()
    R = vectors[:, keep] * np.sqrt(values[keep])
    f = LEVEL + R @ rng.standard_normal(keep.sum())
    y = rng.poisson(np.bincount(cell, p * np.exp(f)))
    return {"X": X, "bag": cell, "p": p, "f": f, "R": R, "y": y}


def districts(population: float, seed: int) -> dict:
    """A country of 40 districts; the mean population of a pixel is given."""
    rng = np.random.default_rng(seed)
    X, bag, p = np.arange(400.0)[:, None], np.arange(400) // 10, population * rng.uniform(0.5, 1.5, 400)
    K = np.asarray(ag.cov(ag.Matern32(4.0, 0.5), ag.Points(X)))
    f = np.linalg.cholesky(K + 1e-10 * np.eye(400)) @ rng.standard_normal(400)
    return {"X": X, "bag": bag, "p": p, "f": f, "y": rng.poisson(np.bincount(bag, p * np.exp(f)))}


def in_districts(data: dict, bound: str, learned: bool) -> ag.Posterior:
    kernel = ag.Matern32() if learned else ag.Matern32(ag.fixed(4.0), ag.fixed(0.5))
    mean = ag.Constant() if learned else ag.Constant(ag.fixed(0.0))
    model = ag.GP(kernel, likelihood=ag.Poisson(), aggregation="response", mean=mean)
    inference = ag.SVI(inducing=data["X"][::2], bound=bound, optimise=learned)
    bags = ag.Bags(data["X"], data["bag"], weights=data["p"])
    return model.fit(bags, data["y"], inference=inference, progress=False)


def ours(data: dict, bound: str, learned: bool) -> ag.Posterior:
    kernel = ag.RBF() if learned else ag.RBF(ag.fixed(LENGTHSCALE), ag.fixed(VARIANCE))
    mean = ag.Constant() if learned else ag.Constant(ag.fixed(LEVEL))
    model = ag.GP(kernel, likelihood=ag.Poisson(), aggregation="response", mean=mean)
    bags = ag.Bags(data["X"], data["bag"], weights=data["p"])
    inference = ag.SVI(inducing=120, bound=bound, probes=PER_BAG, optimise=learned, tolerance=1e-4)
    return model.fit(bags, data["y"], inference=inference, progress=False)


def nuts(data: dict, seed: int) -> np.ndarray:
    """Draws of f, (draws, individuals)."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    R, p, bag = (jnp.asarray(data[k]) for k in ("R", "p", "bag"))

    def model() -> None:
        z = numpyro.sample("z", dist.Normal(jnp.zeros(R.shape[1]), 1).to_event(1))
        eta = jax.ops.segment_sum(p * jnp.exp(LEVEL + R @ z), bag, BAGS)
        numpyro.sample("y", dist.Poisson(eta), obs=jnp.asarray(data["y"]))

    chains = MCMC(
        NUTS(model),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    chains.run(jax.random.key(seed))
    return LEVEL + np.asarray(chains.get_samples()["z"]) @ np.asarray(R).T


def against_nuts(seed: int) -> list[dict]:
    data = simulate(seed)
    start = time.perf_counter()
    draws = nuts(data, seed)
    taken = time.perf_counter() - start
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    halves = (draws[:DRAWS].mean(axis=0) - draws[DRAWS:].mean(axis=0)) / sd / 2
    rows = []
    for bound in BOUNDS:
        start = time.perf_counter()
        f = ours(data, bound, learned=False).predict(ag.Points(data["X"]), "latent")
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


DESIGNS = {
    "60 bags": (simulate, ours),
    "40 districts of 10": (functools.partial(districts, 1.0), in_districts),
    "40 districts of 100": (functools.partial(districts, 10.0), in_districts),
}


def coverage(design: str, bound: str, hyper: str, seed: int) -> list[dict]:
    """One row; where hyper-parameters are learned, one more for the fit in which they are then taken to be known."""
    make, fit = DESIGNS[design]
    data = make(1000 + seed)
    post = fit(data, bound, hyper == "learned")
    posts = {hyper: post}
    if hyper == "learned":
        posts["learned, then taken as known"] = dataclasses.replace(post, mixture=())
    rows = []
    for name, one in posts.items():
        shares = calibration(data["f"], one.predict(ag.Points(data["X"]), "latent").interval)
        rows.append({"given": name, **{column: f"{x:.4f}" for column, x in zip(COVERS, shares.values())}})
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--nuts", type=int, default=5, help="simulations that are sampled by NUTS")
    parser.add_argument("--simulations", type=int, default=25, help="for coverage")
    options = parser.parse_args()
    columns = ["seed", "bound", "mean difference", "largest", "sd ratio", "nuts error", "seconds", "nuts seconds"]
    close = pd.DataFrame(
        resumable("accuracy_nuts", [(s,) for s in range(options.nuts)], columns, against_nuts, options.fresh)
    )
    cases = [("matched", "known"), ("jensen", "known"), ("matched", "learned"), ("jensen", "learned")]
    keys = [(d, b, h, s) for s in range(options.simulations) for d in DESIGNS for b, h in cases]
    keys = [key for key in keys if key[0] == "60 bags" or key[1:3] != ("jensen", "learned")]
    columns = ["design", "bound", "hyper", "seed", "given", *COVERS]
    covered = pd.DataFrame(resumable("accuracy_coverage", keys, columns, coverage, options.fresh))
    write(close, covered)


def write(close: pd.DataFrame, covered: pd.DataFrame) -> None:
    numbers = close.drop(columns=["seed", "bound"]).astype(float).assign(bound=close.bound)
    mean, worst = numbers.groupby("bound").mean(), numbers.groupby("bound").max()
    first = [
        [
            b, f"{mean['mean difference'][b]:.3f}", f"{worst['mean difference'][b]:.3f}", f"{worst.largest[b]:.3f}",
            f"{mean['sd ratio'][b]:.3f}", f"{mean.seconds[b]:.1f}",
        ]
        for b in BOUNDS
    ]  # fmt: skip
    shares = covered[COVERS].astype(float).join(covered[["design", "bound", "given"]])
    second = []
    for (d, b, h), part in shares.groupby(["design", "bound", "given"], sort=False):
        average, error = part[COVERS].mean(), part[COVERS].std() / np.sqrt(len(part))
        cells = [f"{100 * average[c]:.1f} ± {100 * error[c]:.1f}" for c in COVERS]
        worst_level = 100 * np.abs(average.to_numpy() - np.array(LEVELS)).max()
        second.append([f"{d}, {b}, hyper-parameters {h} ({len(part)})", *cells, f"{worst_level:.1f}"])
    body = f"""
{__doc__.split("individuals, Poisson counts, exp link.")[1].strip()}

Differences of posterior means of the log rate from those of NUTS ({CHAINS} chains of {DRAWS:,} draws), in posterior standard
deviations, over {close.seed.nunique()} simulations; the error of the NUTS means themselves, from the difference of its chains,
is {mean["nuts error"].iloc[0]:.3f} on average. NUTS took {mean["nuts seconds"].iloc[0]:.0f} s. Default: matched.

{table(["bound", "mean difference", "its worst simulation", "largest of any individual", "ratio of sd", "seconds"], first)}

Share of true log rates inside central intervals, in per cent, ± the standard error over simulations (in brackets their
number):

{table(["model and bound", *(f"{100 * level:.0f}" for level in LEVELS), "largest error of an average"], second)}

By default learned hyper-parameters are integrated over; *then taken as known* is the same fit without that.
"""
    page("accuracy", "The approximate posterior against NUTS", body)


if __name__ == "__main__":
    main()
