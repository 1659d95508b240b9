"""The model of R `disaggregation` on its own example, malaria in Madagascar: published MCMC, ours, and the preset's fit.

y_a ~ Poisson(Σ_i w_i exp(β₀ + βᵀx_i + u(s_i) + v_a)) for 109 districts and 28,877 pixels, coordinates in degrees, priors
as the R package has them: β₀ ~ N(0, 10²), β_j ~ N(0, 0.5²), P(ρ < 5.16) = 0.1 (a third of the diagonal), P(σ > 1.04) = 0.1
(the standard deviation of the counts over their mean), and log τ flat, because the prior on it that the package asks for
does not reach its fit.

NUTS has the field in a basis of sines on a box that is 3 degrees larger on every side (Solin and Särkkä 2020), with the
spectral density of the Matern field of order one; the effects of districts are integrated out by quadrature. "Pooled" has at most
32 weighted pixels of each district, "all" every pixel; the finest sines have 6 radians per degree, "finer" 15.
"""

import argparse
import csv
import time
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from common import ROWS, arguments, folder, page, table
from sines import Sines, matern

import aggregauss as ag
from aggregauss.maps.classic import classic, classic_inference
from aggregauss.parameters import with_values

NAMES = ("elevation", "EVI", "LST")
COLUMNS = ["elevation_z", "evi_z", "lst_mean_z", "lon", "lat"]
RANGE_BELOW, SD_ABOVE, SLOPE_SD, INTERCEPT_SD = 5.1626, 1.0377, 0.5, 10.0
PUBLISHED = {"intercept": -3.23, "elevation": -0.47, "EVI": 0.41, "LST": 0.21, "log sigma": 0.07, "log rho": 0.82}
QUANTITIES = [*PUBLISHED, "log tau"]
MARGIN = 3.0  # degrees around the map
CHAINS = {"pooled": (32, 6.0), "all": (None, 6.0), "all-finer": (None, 15.0)}  # pixels of a district, finest sines
WARMUP, BLOCK, ACCEPTED = 500, 50, 0.9
FIELDS = ["individuals", "chain", "draw", *QUANTITIES, "leapfrogs", "divergent", "seconds"]


def read(data: Path) -> tuple[ag.Support, np.ndarray, pd.DataFrame]:
    """Districts as bags, their counts (they are estimates: rounded), and the pixels, holes filled as the R package does."""
    import geopandas as gpd

    pixels = pd.read_parquet(data / "madagascar_pixels.parquet")
    pixels["population"] = pixels["population"].fillna(0.0)
    pixels["lst_mean_z"] = pixels["lst_mean_z"].fillna(pixels["lst_mean_z"].median())
    districts = gpd.read_file(data / "madagascar_districts.gpkg").sort_values("polygon_index")
    bags = ag.Bags(pixels[COLUMNS].to_numpy(float), pixels["polygon_index"], weights=pixels["population"].to_numpy())
    return bags, districts["cases"].round().to_numpy(), pixels


def model_of(bags: Any, y: np.ndarray, highest: float) -> Any:
    """The NumPyro model."""
    import numpyro
    from numpyro import distributions as dist

    sines, X = Sines(bags.center[:, 3:], MARGIN, highest), jnp.asarray(bags.center[:, :3])
    weight, owner, counts = jnp.asarray(bags.weight), jnp.asarray(bags.owner), jnp.asarray(y)
    shortest, largest = -np.log(0.1) * RANGE_BELOW, -np.log(0.1) / SD_ABOVE

    def model() -> None:
        intercept = numpyro.sample("intercept", dist.Normal(0.0, INTERCEPT_SD))
        slopes = numpyro.sample("slopes", dist.Normal(0.0, SLOPE_SD).expand([3]).to_event(1))
        log_sigma, log_rho, log_tau = (
            numpyro.sample(name, dist.ImproperUniform(dist.constraints.real, (), ()))
            for name in ("log_sigma", "log_rho", "log_tau")
        )
        sigma, rho = jnp.exp(log_sigma), jnp.exp(log_rho)
        numpyro.factor("prior", -shortest / rho - log_rho - largest * sigma + log_sigma)
        z = numpyro.sample("z", dist.Normal().expand(sines.shape).to_event(2))
        f = intercept + X @ slopes + sines.field(z, matern(1.0, sigma**2, rho / 2, sines.square))
        eta = jax.ops.segment_sum(weight * jnp.exp(f), owner, len(y), indices_are_sorted=True)
        likelihood = with_values(ag.Poisson(region_effect=True), {"region_sd": jnp.exp(log_tau)})
        numpyro.factor("data", jnp.sum(likelihood.log_prob(counts, eta)))

    return model


def sample(bags: Any, y: np.ndarray, individuals: str, chain: int, draws: int, path: Path) -> None:
    """One chain, appended to the file in blocks."""
    from numpyro.infer import MCMC, NUTS, init_to_value

    most, highest = CHAINS[individuals]
    bags = bags if most is None else ag.pool(bags, most)
    rng = np.random.default_rng(chain)
    start = {
        "intercept": -3.0 + 0.3 * rng.standard_normal(),
        "slopes": 0.2 * rng.standard_normal(3),
        "log_sigma": 0.3 * rng.standard_normal(),
        "log_rho": 0.8 + 0.3 * rng.standard_normal(),
        "log_tau": -0.5 + 0.2 * rng.standard_normal(),
        "z": 0.1 * rng.standard_normal(Sines(bags.center[:, 3:], MARGIN, highest).shape),
    }
    strategy = init_to_value(values={k: jnp.asarray(v) for k, v in start.items()})
    kernel = NUTS(model_of(bags, y, highest), init_strategy=strategy, target_accept_prob=ACCEPTED)
    mcmc = MCMC(kernel, num_warmup=WARMUP, num_samples=BLOCK, progress_bar=False)
    key, began = jax.random.key(chain), time.perf_counter()
    mcmc.warmup(key, extra_fields=("num_steps", "diverging"))
    for block in range(draws // BLOCK):
        mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=("num_steps", "diverging"))
        mcmc.post_warmup_state = mcmc.last_state
        found, extra = mcmc.get_samples(), mcmc.get_extra_fields()
        values = np.column_stack(
            [found["intercept"], found["slopes"], found["log_sigma"], found["log_rho"], found["log_tau"]]
        )
        with path.open("a", newline="") as stream:
            for i, row in enumerate(values):
                beside = [int(extra["num_steps"][i]), int(extra["diverging"][i]), round(time.perf_counter() - began, 1)]
                csv.writer(stream).writerow([individuals, chain, block * BLOCK + i, *row.round(5), *beside])


def preset(bags: ag.Support, y: np.ndarray, pixels: pd.DataFrame) -> tuple[pd.DataFrame, ag.Posterior]:
    """Means and standard deviations by the preset, its priors as above."""
    covariates, where = pixels[COLUMNS[:3]].to_numpy(float), pixels[COLUMNS[3:]].to_numpy()
    model = classic(NAMES, where, ag.Poisson(region_effect=True), range_below=RANGE_BELOW, sd_above=SD_ABOVE)
    post = model.fit(bags, y, inference=classic_inference(covariates, where), progress=False)
    effects = post.effects()
    weights = np.array([part.weight for part in post.mixture])
    packed = np.array([part.vector for part in post.mixture]) @ np.diag([1.0, 0.5, 1.0]) + [np.log(2.0), 0.0, 0.0]
    mean = weights @ packed
    sd = np.sqrt(weights @ (packed - mean) ** 2)
    order = [1, 0, 2]  # the kernel's lengthscale comes first
    rows = pd.DataFrame({"mean": mean[order], "std": sd[order]}, index=QUANTITIES[4:])
    return pd.concat([effects[["mean", "std"]], rows]), post


def summaries(draws: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation, Monte Carlo error and R-hat of each quantity."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    out = {}
    for name in QUANTITIES:
        chains = [own[name].to_numpy() for _, own in draws.groupby("chain")]
        x = np.stack([c[: min(map(len, chains))] for c in chains])
        ess = float(effective_sample_size(x))
        out[name] = {"mean": x.mean(), "std": x.std(), "error": x.std() / np.sqrt(ess), "rhat": split_gelman_rubin(x)}
    return pd.DataFrame(out).T


def arrays(options: argparse.Namespace) -> tuple[Any, np.ndarray]:
    """Districts and counts, from a file of arrays where there is one: then chains need JAX and NumPyro only."""
    if options.arrays and Path(options.arrays).exists():
        known = dict(np.load(options.arrays))
        return types.SimpleNamespace(**known), known["y"]
    bags, y, _ = read(folder(options, "malaria_madagascar"))
    if options.arrays:
        np.savez_compressed(options.arrays, center=bags.center, weight=bags.weight, owner=bags.owner, y=y)
    return bags, y


def main(options: argparse.Namespace) -> None:
    bags, y = arrays(options)
    rows = Path(options.rows)
    rows.mkdir(exist_ok=True)
    for individuals, chain in ((i, c) for i in options.individuals for c in range(options.first, options.chains)):
        path = rows / f"classic_madagascar_{individuals}_{chain}.csv"
        if options.fresh or not path.exists() or len(pd.read_csv(path)) < options.draws:
            path.write_text(",".join(FIELDS) + "\n")
            sample(bags, y, individuals, chain, options.draws, path)
    if options.first == 0 and not options.arrays:
        bags, y, pixels = read(folder(options, "malaria_madagascar"))
        found = [pd.read_csv(path) for path in sorted(rows.glob("classic_madagascar_*.csv"))]
        report(pd.concat(found), *preset(bags, y, pixels))


def report(draws: pd.DataFrame, ours: pd.DataFrame, post: ag.Posterior) -> None:
    """The page."""
    found = {name: summaries(draws[draws.individuals == name]) for name in CHAINS}
    rows = []
    for name in QUANTITIES:
        row = {"": name, "published MCMC": f"{PUBLISHED[name]:.2f}" if name in PUBLISHED else ""}
        for individuals, s in found.items():
            at = s.loc[name]
            row[f"NUTS, {individuals}"] = f"{at['mean']:.2f} ± {at['std']:.2f} ({at['error']:.2f})"
        row["preset, SVI"] = f"{ours.loc[name, 'mean']:.2f} ± {ours.loc[name, 'std']:.2f}"
        rows.append(row)
    worst = max(float(s["rhat"].max()) for s in found.values())
    nuts = found["all"]
    away = {n: (ours.loc[n, "mean"] - PUBLISHED[n]) / nuts.loc[n, "std"] for n in PUBLISHED}
    theirs = {n: (nuts.loc[n, "mean"] - PUBLISHED[n]) / nuts.loc[n, "std"] for n in PUBLISHED}
    finer, counts = found["all-finer"], draws.groupby(["individuals", "chain"]).size()
    body = f"""{__doc__.split(chr(10), 1)[1].strip()}

{table(list(rows[0]), (row.values() for row in rows))}

Posterior mean ± standard deviation; in brackets the Monte Carlo error of the mean. Two chains of {counts.min()} draws for each column
of NUTS; largest R-hat {worst:.3f}; divergent draws: {draws.divergent.sum()}.

In standard deviations of NUTS with all pixels, its means lie within {_furthest(theirs)} of the published ones, and those of the
preset within {_furthest(away)}; the means of the preset lie within
{_furthest({n: (ours.loc[n, "mean"] - nuts.loc[n, "mean"]) / nuts.loc[n, "std"] for n in QUANTITIES})} of those of NUTS, and within
{_furthest({n: (ours.loc[n, "mean"] - finer.loc[n, "mean"]) / finer.loc[n, "std"] for n in QUANTITIES})} of those with finer sines.
How far the field reaches depends on how fine it may be: a field of this kind is rough, and sines that end early are smoother than it is.

"Preset" is the preset's model with the priors above and coordinates in degrees. `ag.disaggregate(..., model="classic")` takes
kilometres, P(σ > 1) = 0.1, and a half-normal prior on τ with P(τ > 1) = 0.1.

What differs: the R package has the field on a mesh of 427 nodes with edges of 0.7 degrees and linear interpolation between
them, tapered by its boundary; NUTS here has {_sines(post, 6.0)} sines, and {_sines(post, 15.0)} finer ones, and the preset
{len(post.inducing) if post.inducing is not None else 0} inducing points with what they leave open added. The published
counts are not whole numbers, and the R package takes them as they are; here they are rounded."""
    page("classic_madagascar", "The classic model: malaria in Madagascar", body)


def _sines(post: ag.Posterior, highest: float) -> str:
    return " x ".join(map(str, Sines(post.observations.support.center[:, 3:], MARGIN, highest).shape))


def _furthest(away: dict[str, float]) -> str:
    """How far the furthest is, which that is, and how far the others are."""
    order = sorted(away, key=lambda name: -abs(away[name]))
    return f"{abs(away[order[0]]):.1f} ({order[0]}; the others {abs(away[order[1]]):.1f})"


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=1000, help="draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="first chain of this process; the page is written by 0")
    parser.add_argument("--individuals", nargs="+", default=list(CHAINS), choices=list(CHAINS))
    parser.add_argument("--arrays", help="file of the data as arrays; written if it is not there, then chains only")
    parser.add_argument("--rows", default=str(ROWS), help="folder of the chains")
    main(parser.parse_args())
