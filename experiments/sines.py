"""A Gaussian field over the plane as a sum of sines (Solin and Särkkä 2020), for chains that need many values of it."""

import jax
import jax.numpy as jnp
import numpy as np


class Sines:
    """u(s) = Σ √S(ω) φ(s) z on a box that is `margin` larger than the map on every side, up to the frequency `highest`.

    The two directions are multiplied one after the other: the matrix of all basis functions is never whole.
    """

    def __init__(self, xy: np.ndarray, margin: float, highest: float):
        middle, half = (xy.max(0) + xy.min(0)) / 2, np.ptp(xy, axis=0) / 2 + margin
        counts = np.floor(highest * 2 * half / np.pi).astype(int)
        waves = [np.pi * np.arange(1, n + 1) / (2 * h) for n, h in zip(counts, half)]
        self.parts = [
            jnp.asarray(np.sin((x[:, None] - m + h) * w) / np.sqrt(h)) for x, m, h, w in zip(xy.T, middle, half, waves)
        ]
        self.square = jnp.asarray(waves[0][:, None] ** 2 + waves[1] ** 2)
        self.shape = tuple(map(int, counts))

    def field(self, z: jax.Array, density: jax.Array) -> jax.Array:
        """The field's values at the places, `density` being S at the frequencies whose squares are `square`."""
        return jnp.sum((self.parts[0] @ (jnp.sqrt(density) * z)) * self.parts[1], axis=1)


def matern(order: float, variance: jax.Array, lengthscale: jax.Array, square: jax.Array) -> jax.Array:
    """S(ω) = σ² 4π ν κ^{2ν} / (κ² + ω²)^{ν+1} with κ² = 2ν / ℓ², the Matern field of order ν in the plane."""
    kappa = 2 * order / lengthscale**2
    return variance * 4 * jnp.pi * order * kappa**order / (kappa + square) ** (order + 1)
