"""Draws of the totals of bags, given what was observed of them.

They are those of `totals`: log-normal, with hyper-parameters that are uncertain as the posterior's mixture says. Very
many bags are taken in parts that know of each other through the hyper-parameters alone.
"""

import jax.numpy as jnp
import numpy as np

from aggregauss.inference.by_totals import resting
from aggregauss.inference.data import Observations
from aggregauss.inference.draws import parts_of
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.totals import BAGS, log_totals, totals
from aggregauss.parameters import pack


def total_draws(post: Posterior, observations: Observations, n: int, seed: int = 0) -> np.ndarray:
    """Shape (n, bags); the draws of each value of the hyper-parameters are those of `latent_draws`."""
    support = observations.support
    rng, out = np.random.default_rng([seed, 2]), np.zeros((n, len(support)))
    rows = np.flatnonzero(support.mass > 0)
    for chunk in np.array_split(rows, max(1, -(-len(rows) // BAGS))):
        data, first = totals(observations[chunk], seed), 0
        for model, _, k in parts_of(post, n):
            vector = jnp.asarray(pack(model))
            effects = resting(model, vector, data, jnp.zeros(model.mean.effects))
            mean, root = (np.asarray(x) for x in log_totals(model, vector, data, effects))
            drawn = mean + rng.standard_normal((k, len(chunk))) @ root.T
            out[first : first + k, chunk] = np.exp(drawn)
            first += k
    return out
