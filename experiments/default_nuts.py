"""NUTS of the default model of a map, on Madagascar's regions.

    python default_nuts.py problem.npz                                    # what is to be sampled, as arrays
    python default_nuts.py problem.npz --scatter 0.2 --draws 0.2.npz      # needs JAX and NumPyro only; a minute on a GPU

The field is a sum of sines on a box that is larger than the map on every side (Solin and Särkkä 2020), and each district
is at most 32 weighted pixels.
"""

import argparse
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sines import Sines, matern

import aggregauss as ag
from aggregauss.parameters import log_prior, with_values

MARGIN, HIGHEST = 350.0, 0.15  # km around the map, and radians per km of the finest sines
LEARNED = ("lengthscale", "variance")
MOST, WARMUP, DRAWS, CHAINS = 32, 500, 1000, 4


def problem(pixels: Any, groups: np.ndarray, seen: Any) -> dict[str, np.ndarray]:
    """Arrays: individuals of the districts, the region of each district, counts of the regions, and what priors need."""
    from aggregauss.maps.settings import Settings

    bags, c = ag.pool(pixels.bags("total"), MOST), len(pixels.names)
    known = seen.bags("total").sample().center[:, :c]
    model, _ = Settings().build(seen)
    field = model.kernel.marks[0][1].prior
    return {
        "X": (bags.center[:, :c] - known.mean(axis=0)) / known.std(axis=0),
        "xy": bags.center[:, c:],
        "weight": bags.weight,
        "owner": bags.owner,
        "parent": np.searchsorted(seen.regions["label"].to_numpy(str), groups.astype(str)),
        "y": np.round(seen.regions["observed"].to_numpy(float)),
        "level": np.asarray(model.mean.value),
        "below": np.asarray(field.below),
    }


def sample(given: dict[str, np.ndarray], scatter: float) -> dict[str, np.ndarray]:
    """Draws of the hyper-parameters and of the expected counts of the districts, and how many diverged."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    X, weight, owner, parent, y = (jnp.asarray(given[name]) for name in ("X", "weight", "owner", "parent", "y"))
    sines, level, c = Sines(given["xy"], MARGIN, HIGHEST), float(given["level"]), X.shape[1]
    prior = ag.RangePrior(below=float(given["below"]), probability=0.05)
    kernel = ag.Matern32(ag.param(100.0, prior=prior), ag.param(1.0, prior=ag.LogNormal(1.0, 1.0)))
    likelihood, districts = ag.Poisson(region_effect=True, region_sd=ag.fixed(scatter)), len(given["parent"])

    def density() -> None:
        beta = numpyro.sample("intercept", dist.Normal(level, 2.0))
        slopes = numpyro.sample("slopes", dist.Normal().expand([c]).to_event(1))
        logs = {n: numpyro.sample(f"log_{n}", dist.ImproperUniform(dist.constraints.real, (), ())) for n in LEARNED}
        hyper = {name: jnp.exp(log) for name, log in logs.items()}
        numpyro.factor("prior", log_prior(with_values(kernel, hyper)) + sum(logs.values()))
        z = numpyro.sample("z", dist.Normal().expand(sines.shape).to_event(2))
        spectrum = matern(1.5, hyper["variance"], hyper["lengthscale"], sines.square)
        f = beta + X @ slopes + sines.field(z, spectrum)
        eta = jax.ops.segment_sum(weight * jnp.exp(f), owner, districts, indices_are_sorted=True)
        numpyro.deterministic("districts", eta)
        numpyro.factor("data", jnp.sum(likelihood.log_prob(y, jnp.zeros(len(y)).at[parent].add(eta))))

    rng = np.random.default_rng(0)
    start = {
        "intercept": level + 0.3 * rng.standard_normal(CHAINS),
        "slopes": 0.2 * rng.standard_normal((CHAINS, c)),
        "log_lengthscale": np.log(60.0) + 0.3 * rng.standard_normal(CHAINS),
        "log_variance": 0.3 * rng.standard_normal(CHAINS),
        "z": 0.1 * rng.standard_normal((CHAINS, *sines.shape)),
    }
    how = {"num_warmup": WARMUP, "num_samples": DRAWS, "num_chains": CHAINS, "chain_method": "vectorized"}
    mcmc = MCMC(NUTS(density), progress_bar=False, **how)
    begun = {name: jnp.asarray(value) for name, value in start.items()}
    mcmc.run(jax.random.key(0), init_params=begun, extra_fields=("diverging",))
    found = {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items() if name != "z"}
    return {**found, "divergent": np.asarray(mcmc.get_extra_fields()["diverging"].sum())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", help="file of arrays, written unless --draws is given")
    parser.add_argument("--scatter", type=float, default=0.2)
    parser.add_argument("--draws", help="file for the draws")
    options = parser.parse_args()
    if options.draws:
        np.savez_compressed(options.draws, **sample(dict(np.load(options.problem)), options.scatter))
        return
    from default_madagascar import country

    np.savez_compressed(options.problem, **problem(*country()))


if __name__ == "__main__":
    main()
