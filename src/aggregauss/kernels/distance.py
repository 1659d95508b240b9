"""Distances between points in units of the lengthscale, with derivatives that are finite everywhere."""

import jax.numpy as jnp
from jaxtyping import Array, Float

FEW = 4  # up to so many dimensions differences are exact and as fast as a matrix product


def squared(X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"], scale: Float[Array, " d"]) -> Float[Array, "*b n m"]:
    """Σ_j (x_j - y_j)² / scale_j² for all pairs, without an n x m x d array."""
    dim = X.shape[-1]
    if dim <= FEW:
        parts = [((X[..., :, None, j] - Y[..., None, :, j]) / scale[j]) ** 2 for j in range(dim)]
        return sum(parts[1:], parts[0])
    centre = jnp.mean(X, axis=-2, keepdims=True)  # the product form cancels least about the middle of the data
    X, Y = ((Z - centre) / scale.reshape((1,) * (X.ndim - 1) + (dim,)) for Z in (X, Y))
    squares = jnp.sum(X**2, axis=-1)[..., :, None] + jnp.sum(Y**2, axis=-1)[..., None, :]
    return jnp.maximum(squares - 2.0 * X @ jnp.swapaxes(Y, -1, -2), 0.0)


def euclidean(
    X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"], scale: Float[Array, " d"]
) -> Float[Array, "*b n m"]:
    """The square root; its derivative at zero is zero."""
    square = squared(X, Y, scale)
    apart = square > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)
