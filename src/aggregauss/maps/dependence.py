"""Partial dependence: how the rate goes with one covariate when all else stays as it is.

For a covariate j and a value v, the latent function is averaged over a sample of pixels whose x_j is set to v, weighted
by population. The average is a linear functional of the function, so its band is exact given the posterior; through
the link it is the rate of a typical pixel.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from aggregauss.inference.posterior import Posterior
from aggregauss.io.pixel_record import Pixels
from aggregauss.supports.bags import Bags

VALUES, SAMPLE, RUG = 25, 64, 200


@dataclasses.dataclass(frozen=True, eq=False)
class Dependence:
    """The rate of a typical pixel at some values of a covariate, with a band."""

    name: str
    x: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rug: np.ndarray  # values that pixels have


def dependence(post: Posterior, pixels: Pixels, level: float = 0.95, seed: int = 0) -> list[Dependence]:
    """One for each covariate."""
    inputs = pixels.columns
    rng = np.random.default_rng(seed)
    people = pixels.population > 0
    chance = np.where(people, pixels.population, 0.0) / pixels.population[people].sum()
    chosen = rng.choice(len(inputs), min(SAMPLE, int(people.sum())), replace=False, p=chance)
    rug = rng.choice(len(inputs), min(RUG, len(inputs)), replace=False)
    return [_along(post, inputs, j, name, chosen, rug, level) for j, name in enumerate(pixels.names)]


def _along(
    post: Posterior, inputs: np.ndarray, j: int, name: str, chosen: np.ndarray, rug: np.ndarray, level: float
) -> Dependence:
    low, high = (float(x) for x in np.quantile(inputs[:, j], [0.01, 0.99]))
    values = np.unique(np.linspace(low, high, VALUES))
    moved = np.tile(inputs[chosen], (len(values), 1))
    moved[:, j] = np.repeat(values, len(chosen))
    bags = Bags(moved, np.repeat(np.arange(len(values)), len(chosen)), measure="mean")
    found = post.predict(bags, "latent")
    through = post.model.likelihood.g.forward
    lower, upper = found.interval(level)
    ends = (np.asarray(through(jnp.asarray(x))) for x in (found.mean, lower, upper))
    return Dependence(name, values, *ends, rug=np.sort(inputs[rug, j]))
