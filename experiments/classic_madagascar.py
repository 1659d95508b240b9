"""The model of R `disaggregation` on its own example, malaria in Madagascar: published MCMC, ours, and the preset's fit.

y_a ~ Poisson(Σ_i w_i exp(β₀ + βᵀx_i + u(s_i) + v_a)) for 109 districts and 28,877 pixels, coordinates in degrees, priors
as the R package has them: β₀ ~ N(0, 10²), β_j ~ N(0, 0.5²), P(ρ < 5.16) = 0.1 (a third of the diagonal), P(σ > 1.04) = 0.1
(the standard deviation of the counts over their mean), and log τ flat, because the prior on it that the package asks for
does not reach its fit.

NUTS has the field in a basis of sines on a box that is 3 degrees larger on every side (Solin and Särkkä 2020), with the
spectral density of the Matern field of order one; the effects of districts are integrated out by quadrature.
"""

import argparse
import csv
import time
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
MARGIN, HIGHEST = 3.0, 6.0  # degrees around the map, and radians per degree of the finest sines
WARMUP, BLOCK = 400, 50
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


def model_of(bags: ag.Support, y: np.ndarray) -> Any:
    """The NumPyro model."""
    import numpyro
    from numpyro import distributions as dist

    sines, X = Sines(bags.center[:, 3:], MARGIN, HIGHEST), jnp.asarray(bags.center[:, :3])
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


def sample(bags: ag.Support, y: np.ndarray, individuals: str, chain: int, draws: int, path: Path) -> None:
    """One chain, appended to the file in blocks."""
    from numpyro.infer import MCMC, NUTS, init_to_value

    rng = np.random.default_rng(chain)
    start = {
        "intercept": -3.0 + 0.3 * rng.standard_normal(),
        "slopes": 0.2 * rng.standard_normal(3),
        "log_sigma": 0.3 * rng.standard_normal(),
        "log_rho": 0.8 + 0.3 * rng.standard_normal(),
        "log_tau": -0.5 + 0.2 * rng.standard_normal(),
        "z": 0.1 * rng.standard_normal(Sines(bags.center[:, 3:], MARGIN, HIGHEST).shape),
    }
    kernel = NUTS(model_of(bags, y), init_strategy=init_to_value(values={k: jnp.asarray(v) for k, v in start.items()}))
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


def main(options: argparse.Namespace) -> None:
    bags, y, pixels = read(folder(options, "malaria_madagascar"))
    ROWS.mkdir(exist_ok=True)
    for individuals, chain in ((i, c) for i in options.individuals for c in range(options.first, options.chains)):
        path = ROWS / f"classic_madagascar_{individuals}_{chain}.csv"
        if options.fresh or not path.exists() or len(pd.read_csv(path)) < options.draws:
            path.write_text(",".join(FIELDS) + "\n")
            sample(bags if individuals == "all" else ag.pool(bags, 32), y, individuals, chain, options.draws, path)
    if options.first == 0:
        found = [pd.read_csv(path) for path in sorted(ROWS.glob("classic_madagascar_*.csv"))]
        stopped = [own for own in found if 0 < len(own) < options.draws]
        report(pd.concat([own for own in found if len(own) >= options.draws]), stopped, *preset(bags, y, pixels))


def report(draws: pd.DataFrame, stopped: list[pd.DataFrame], ours: pd.DataFrame, post: ag.Posterior) -> None:
    """The page."""
    found = {name: summaries(own) for name, own in draws.groupby("individuals")}
    rows = []
    for name in QUANTITIES:
        row = {"": name, "published MCMC": f"{PUBLISHED[name]:.2f}" if name in PUBLISHED else ""}
        for individuals, s in found.items():
            at = s.loc[name]
            row[f"our NUTS, {individuals} pixels"] = f"{at['mean']:.2f} ± {at['std']:.2f} ({at['error']:.2f})"
        row["preset, SVI"] = f"{ours.loc[name, 'mean']:.2f} ± {ours.loc[name, 'std']:.2f}"
        rows.append(row)
    worst = max(float(s["rhat"].max()) for s in found.values())
    spread = max(abs(PUBLISHED[n] - s.loc[n, "mean"]) / s.loc[n, "std"] for s in found.values() for n in PUBLISHED)
    nuts = next(iter(found.values()))
    furthest, rest = _far({n: (ours.loc[n, "mean"] - PUBLISHED[n]) / nuts.loc[n, "std"] for n in PUBLISHED})
    apart, others = _far({n: (ours.loc[n, "mean"] - nuts.loc[n, "mean"]) / nuts.loc[n, "std"] for n in QUANTITIES})
    short = "".join(
        f" A chain on {own.individuals[0]} pixels was stopped after {len(own)} draws and is not shown."
        for own in stopped
    )
    counts = draws.groupby(["individuals", "chain"]).size().to_dict()
    body = f"""{__doc__.split(chr(10), 1)[1].strip()}

{table(list(rows[0]), (row.values() for row in rows))}

Posterior mean ± standard deviation; in brackets the Monte Carlo error of the mean. Draws by pixels and chain: {counts};
largest R-hat {worst:.3f}; divergent draws: {draws.divergent.sum()}.{short}
In standard deviations of NUTS, the published means lie within {spread:.2f} of those of NUTS, and within {rest} of those of the
preset, but for {furthest}; those of the preset lie within {others} of those of NUTS, but for {apart}.
"Pooled" pixels are those of the preset's search: at most 32 weighted ones for each district (3,259 of 28,877 pixels).

"Preset" is the preset's model with the priors above and coordinates in degrees. `ag.disaggregate(..., model="classic")` takes
kilometres, P(σ > 1) = 0.1, and a half-normal prior on τ with P(τ > 1) = 0.1.

What differs: the R package has the field on a mesh of 427 nodes with edges of 0.7 degrees and linear interpolation between
them, tapered by its boundary; NUTS here has {Sines(post.observations.support.center[:, 3:], MARGIN, HIGHEST).shape} sines, and the preset
{len(post.inducing) if post.inducing is not None else 0} inducing points with what they leave open added. The published
counts are not whole numbers, and the R package takes them as they are; here they are rounded."""
    page("classic_madagascar", "The classic model: malaria in Madagascar", body)


def _far(away: dict[str, float]) -> tuple[str, str]:
    """What is furthest away, with how far, and how far the others are at most."""
    order = sorted(away, key=lambda name: -abs(away[name]))
    return f"{order[0]} ({abs(away[order[0]]):.1f})", f"{abs(away[order[1]]):.1f}"


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=1000, help="draws of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="first chain of this process; the page is written by 0")
    parser.add_argument("--individuals", nargs="+", default=["pooled", "all"], choices=["pooled", "all"])
    main(parser.parse_args())
