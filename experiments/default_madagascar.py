"""The default model of a map from 22 regions of Madagascar to their 109 districts: by variational inference and by NUTS.

The model is that of `ag.disaggregate`, with a scatter of reported counts that is the default's or another. NUTS has the
field in a basis of sines and each district as at most 32 weighted pixels; its draws and those of the fit are scored alike.
"""

import csv
import functools
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from common import ROWS, arguments, page, table
from sines import Sines, matern

import aggregauss as ag
from aggregauss.maps import Settings, read_map, validate
from aggregauss.maps.regroup import regrouped
from aggregauss.parameters import log_prior, with_values

SCATTERS = (0.05, 0.2, 0.4)
MARGIN, HIGHEST = 350.0, 0.06  # km around the map, and radians per km of the finest sines
LEARNED = ("lengthscale", "variance")
MOST, WARMUP, DRAWS, CHAINS = 32, 500, 1000, 2


@functools.cache
def country() -> tuple[Any, np.ndarray, Any]:
    """Pixels of the districts, the region of each district, and the same pixels with regions for districts."""
    files = ag.datasets.madagascar()
    pixels, groups = read_map(files.districts, "cases", files.population, files.covariates, groups="region")
    groups = np.asarray(groups)
    return pixels, groups, regrouped(pixels, np.arange(len(groups)), groups, "total")


def default(scatter: float) -> ag.GP:
    """The model that `ag.disaggregate` builds for the regions, with a scatter of one's own."""
    usual, _ = Settings().build(country()[2])
    likelihood = ag.Poisson(region_effect=True, region_sd=ag.fixed(scatter))
    return ag.GP(usual.kernel, likelihood, mean=usual.mean, aggregation="response")


def sample(scatter: float, chain: int) -> dict[str, np.ndarray]:
    """Expected counts of the districts and hyper-parameters, a row for each draw."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS, init_to_value

    pixels, groups, seen = country()
    bags = ag.pool(pixels.bags("total"), MOST)
    c = len(pixels.names)
    known = seen.bags("total").sample().center[:, :c]
    X = jnp.asarray((bags.center[:, :c] - known.mean(axis=0)) / known.std(axis=0))
    sines = Sines(bags.center[:, c:], MARGIN, HIGHEST)
    weight, owner = jnp.asarray(bags.weight), jnp.asarray(bags.owner)
    labels = seen.regions["label"].to_numpy(str)
    parent = jnp.asarray(np.searchsorted(labels, groups.astype(str)))
    y = jnp.asarray(np.round(seen.regions["observed"].to_numpy(float)))
    model = default(scatter)
    level = float(np.log((np.asarray(y).sum() + 0.5) / (seen.totals().sum() + 1.0)))

    def density() -> None:
        beta = numpyro.sample("intercept", dist.Normal(level, 2.0))
        slopes = numpyro.sample("slopes", dist.Normal().expand([c]).to_event(1))
        logs = {n: numpyro.sample(f"log_{n}", dist.ImproperUniform(dist.constraints.real, (), ())) for n in LEARNED}
        hyper = {name: jnp.exp(log) for name, log in logs.items()}
        numpyro.factor("prior", log_prior(with_values(model.kernel, hyper)) + sum(logs.values()))
        z = numpyro.sample("z", dist.Normal().expand(sines.shape).to_event(2))
        spectrum = matern(1.5, hyper["variance"], hyper["lengthscale"], sines.square)
        f = beta + X @ slopes + sines.field(z, spectrum)
        eta = jax.ops.segment_sum(weight * jnp.exp(f), owner, len(groups), indices_are_sorted=True)
        numpyro.deterministic("districts", eta)
        numpyro.factor("data", jnp.sum(model.likelihood.log_prob(y, jnp.zeros(len(y)).at[parent].add(eta))))

    rng = np.random.default_rng(chain)
    start = {
        "intercept": level + 0.3 * rng.standard_normal(),
        "slopes": 0.2 * rng.standard_normal(c),
        "log_lengthscale": np.log(100.0) + 0.3 * rng.standard_normal(),
        "log_variance": 0.3 * rng.standard_normal(),
        "z": 0.1 * rng.standard_normal(sines.shape),
    }
    strategy = init_to_value(values={name: jnp.asarray(value) for name, value in start.items()})
    mcmc = MCMC(NUTS(density, init_strategy=strategy), num_warmup=WARMUP, num_samples=DRAWS, progress_bar=False)
    mcmc.run(jax.random.key(chain), extra_fields=("num_steps", "diverging"))
    found, extra = mcmc.get_samples(), mcmc.get_extra_fields()
    return {name: np.asarray(value) for name, value in {**found, **extra}.items() if name != "z"}


if __name__ == "__main__":
    import sys

    scatter, chain = float(sys.argv[1]), int(sys.argv[2])
    t = time.time()
    found = sample(scatter, chain)
    print(time.time() - t, found["num_steps"].mean(), found["diverging"].sum())
    np.savez(f"/tmp/nuts_{scatter}_{chain}.npz", **found)
