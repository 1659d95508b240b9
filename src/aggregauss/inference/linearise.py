"""The covariance of q from bags taken as single individuals, and the mean that is best with it.

A total that is known precisely confines f to a curved surface, Σ_i w_i g(f_i) = y. A Gaussian that maximises the bound
stays close to it by being too narrow *along* it. With each bag taken as one individual g(v), v = a + c (ε - μ) to first
order, the precision is

    Λ = I + Σ_a h_a c_a c_aᵀ,        h_a = -E ∂² log p(y_a | g(v)) / ∂v²,

that of a regression with Gaussian sites. For bags of one individual it is the variational one itself. Then the mean
alone climbs the bound again, so that the fitted totals stay where they were.
"""

import dataclasses
from collections.abc import Iterable

import jax.numpy as jnp
from jaxtyping import Array

from aggregauss.inference import ascent
from aggregauss.inference.passes import Passes
from aggregauss.inference.profile import climb
from aggregauss.inference.sparse import Group, Moments2


def linearised(passes: Passes, held: Iterable[Group], state: ascent.State, tolerance: float) -> Moments2:
    """μ and Σ as above, from a q at the top of the bound."""
    natural = dataclasses.replace(passes.settings, natural=True)
    start = ascent.by_moments(state, passes.settings.natural)
    passes = dataclasses.replace(passes, settings=natural)
    precision = jnp.eye(len(start.q.mean)) + passes.bag_precision(start, held)
    top, _ = climb(lambda s: passes.over(s, held), ascent.with_precision(start, precision), tolerance, _mean_only)
    return ascent.moments(top, natural=True)


def _mean_only(state: ascent.State, target: ascent.Target, share: Array) -> tuple[ascent.State, Array]:
    return ascent.mean_step(state, target, share), share
