"""Where the search for hyper-parameters starts: from the user's values, and from scales read off the data."""

import dataclasses
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.inference.data import Observations
from aggregauss.inference.inducing import JITTER, Inducing, inducing_factor, inducing_mean, of_level
from aggregauss.latent.coregionalisation import without_channel
from aggregauss.likelihoods import Conjugate, Gaussian, JointLikelihood, Likelihood
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.likelihoods.links import LINKS, Link, Square
from aggregauss.parameters import Parameter, bounds, learned, pack, with_values

MANY_DIMS = 3
FRACTIONS = (4.0, 16.0)  # of a lengthscale


class Scales:
    """Typical sizes of things, as the data show them."""

    def __init__(self, observations: Observations, likelihood: Likelihood):
        support, y = observations.support, observations.y
        low, high = support.bounding_box()
        self.extent = np.where(high > low, high - low, 1.0)
        if support.dim > MANY_DIMS:  # distances grow with the number of dimensions
            sd = support.sample().center.std(axis=0)
            self.extent = 5.0 * np.where(sd > 0, sd, 1.0) * np.sqrt(support.dim)
        self.middle = (low + high) / 2
        mass = support.effective_mass
        self.level, self.spread = _through_link(observations, likelihood, mass)
        level = float(y.sum() / mass.sum())
        self.noise = likelihood.typical_noise(Seen(*map(jnp.asarray, observations.seen())), y - level * mass)

    def typical(self, p: Parameter, rng: np.random.Generator | None) -> Array:
        """A value for one parameter: a sensible one, or with `rng` a random one around it."""
        shape = p.value.shape
        spread = 0.0 if rng is None else 1.0
        shake = np.exp(spread * (rng.standard_normal(shape) if rng else np.zeros(shape)))
        dims = getattr(p.owner, "active_dims", None)
        extent = self.extent if dims is None else self.extent[list(dims)]
        middle = self.middle if dims is None else self.middle[list(dims)]
        if not shape:
            extent, middle = extent.mean(), middle.mean()
        along = np.broadcast_to(extent, shape)
        match p.role:
            case "lengthscale":
                value = 0.2 * along * (1.0 if rng is None else np.exp(rng.uniform(np.log(0.1), np.log(10.0), shape)))
            case "variance":
                value = self.spread * shake
            case "noise":
                value = self.noise * (1.0 if rng is None else np.exp(rng.uniform(np.log(1e-3), np.log(10.0), shape)))
            case "slope_variance":
                value = self.spread / along**2 * shake
            case "level":
                value = self.level + (0.5 * np.sqrt(self.spread) * rng.standard_normal(shape) if rng else 0.0)
            case "slope":
                value = np.sqrt(self.spread) / along * (rng.standard_normal(shape) if rng else 0.0)
            case "location":
                value = middle
            case _:
                value = np.asarray(p.value) * shake
        if p.mark.bounds is not None:
            value = np.clip(value, *p.mark.bounds)
        return jnp.asarray(np.broadcast_to(value, shape), float)


class TaskScales:
    """The same where there are several tasks: each has its own level and spread, and all share the functions."""

    def __init__(self, model: Any, observations: Observations):
        task = observations.task
        assert task is not None
        own = [observations[np.flatnonzero(task == i)] for i in range(len(model.likelihoods))]
        self.own = [Scales(part, likelihood) for part, likelihood in zip(own, model.likelihoods)]
        each = [
            g.scales(part.y) if isinstance(g, JointLikelihood) else ([scale.level], [scale.spread])
            for g, part, scale in zip(model.likelihoods, own, self.own)
        ]
        self.level, self.spread = (np.concatenate(x) for x in zip(*each))  # of every channel
        whole = dataclasses.replace(observations, support=without_channel(observations.support))
        self.shared = Scales(whole, Gaussian())  # of which only extents are used
        self.shared.spread = 1.0  # the mixing has the units

    def typical(self, p: Parameter, rng: np.random.Generator | None) -> Array:
        """A value for one parameter."""
        if p.role == "mixing":  # functions that start alike would stay alike
            shape = (p.owner.channels, p.owner.rank)  # pyright: ignore[reportAttributeAccessIssue]
            own = np.random.default_rng(list(p.path.encode())) if rng is None else rng
            share = own.normal(1.0, 0.5, shape) if rng is None else own.standard_normal(shape)
            return jnp.asarray((np.sqrt(self.spread)[:, None] * share)[p.owner.entries])  # pyright: ignore
        if p.role == "level":
            shake = 0.0 if rng is None else 0.5 * rng.standard_normal(len(self.level))
            return jnp.asarray(self.level + shake * np.sqrt(self.spread))
        step = re.match(r"(likelihoods|latents)\[(\d+)\]", p.path)
        if step is None or step[1] == "latents":
            value = self.shared.typical(p, rng)
            order = 0 if step is None or p.role != "lengthscale" else int(step[2])
            return value / 3.0**order
        return self.own[int(step[2])].typical(p, rng)


def starts(model: Any, observations: Observations, restarts: int, seed: int) -> list[Any]:
    """The user's start (parameters left open are read off the data), then `restarts` random ones."""
    scales = Scales(observations, model.likelihood) if observations.task is None else TaskScales(model, observations)
    rng, moved = np.random.default_rng(seed), learned(model)
    first = {p.path: scales.typical(p, None) for p in moved if p.mark.start_from_data}
    others = [{p.path: scales.typical(p, rng) for p in moved} for _ in range(restarts)]
    return [with_values(model, values) for values in (first, *others)]


def shorter(model: Any, template: Any) -> list[np.ndarray]:
    """Packed starts at fractions of the lengthscales that were left open; none where all were given.

    From a long one the way may lead to where the function vanishes, which is a top of its own.
    """
    still_open = [
        p.role == "lengthscale" and p.mark.start_from_data for p in learned(model) for _ in range(p.value.size)
    ]
    vector, (low, high) = np.asarray(pack(template)), bounds(template)
    tried = [np.clip(vector - np.log(n) * np.array(still_open), low, high) for n in FRACTIONS]
    return [other for other in tried if not np.array_equal(other, vector)]


def level_function(model: Any, Z: Inducing, observations: Observations) -> Float[Array, " m"]:
    """ε of the function that has the level of the data at all inducing variables."""
    level = Scales(observations, model.likelihood).level
    away = of_level(model, Z, level) - inducing_mean(model, Z)
    return linalg.lower_solve(inducing_factor(model, Z, JITTER["float64"]), away)


def _through_link(observations: Observations, likelihood: Likelihood, mass: np.ndarray) -> tuple[float, float]:
    """Level and variance of the latent function, as rates seen through the inverse of the link suggest them."""
    counts, link = observations.counts, likelihood.g
    trials = mass if counts is None or not likelihood.counts_trials else counts
    if isinstance(likelihood, Conjugate):  # whose observations are levels of the latent function
        link = LINKS["identity"]
    rate, overall = observations.y / trials, float(observations.y.sum() / trials.sum())
    if link.low == -np.inf:
        return overall, _positive(float(np.var(rate)), overall**2)
    typical = np.clip(overall, 1e-12, 0.99 if link.high == 1.0 else np.inf)
    most = np.inf if link.high == np.inf else 1 - 0.5 * (1 - typical)
    inside = np.clip(rate, 0.2 * typical, most)  # a zero count says little about how low its rate is
    level = float(link.inverse(jnp.asarray(float(typical))))
    latent = np.asarray(link.inverse(jnp.asarray(inside)))
    return level, float(np.clip(np.var(latent), 0.05 * _unit(level, link), 4.0 * _unit(level, link)))


def _unit(level: float, link: Link) -> float:
    """A variance of natural size: one, or for links without a scale of their own the level's square."""
    return level**2 if isinstance(link, Square) else 1.0


def _positive(value: float, otherwise: float) -> float:
    return float(value) if value > 0 else float(otherwise) or 1.0
