"""Where the search for hyper-parameters starts: from the user's values, and from scales read off the data."""

from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from aggregauss.inference.data import Observations
from aggregauss.parameters import Parameter, parameters, with_values

M = TypeVar("M")


class Scales:
    """Typical sizes of things, as the data show them."""

    def __init__(self, observations: Observations):
        low, high = observations.support.bounding_box()
        density = observations.density
        self.extent = np.where(high > low, high - low, 1.0)
        self.middle = (low + high) / 2
        mass = observations.support.integrate(np.ones(len(observations.support.owner)))
        self.level = float(observations.y.sum() / mass.sum())
        self.spread = _positive(float(np.var(density)), self.level**2)
        self.noise = _positive(float(np.var(observations.y - self.level * mass)), float(np.mean(observations.y**2)))

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
                value = (
                    0.1 * self.noise * (1.0 if rng is None else np.exp(rng.uniform(np.log(1e-3), np.log(10.0), shape)))
                )
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


def starts(model: M, observations: Observations, restarts: int, seed: int) -> list[M]:
    """The user's start (parameters left open are read off the data), then `restarts` random ones."""
    scales, rng = Scales(observations), np.random.default_rng(seed)
    learned = [p for p in parameters(model) if not p.mark.fixed]
    first = {p.path: scales.typical(p, None) for p in learned if p.mark.start_from_data}
    others = [{p.path: scales.typical(p, rng) for p in learned} for _ in range(restarts)]
    return [with_values(model, values) for values in (first, *others)]


def _positive(value: float, otherwise: float) -> float:
    return float(value) if value > 0 else float(otherwise) or 1.0
