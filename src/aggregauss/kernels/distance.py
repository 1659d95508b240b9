"""Distances between points in units of the lengthscale, with derivatives that are finite everywhere.

For D_ij = Σ_k (x_ik - y_jk)² / s_k² and G = ∂L/∂D, in scaled coordinates x̃ = x/s,

    ∂L/∂x̃_i = 2 (Σ_j G_ij x̃_i - (G ỹ)_i),        ∂L/∂ỹ_j = 2 (Σ_i G_ij ỹ_j - (Gᵀ x̃)_j),
    s_k ∂L/∂s_k = -2 Σ_ij G_ij (x̃_ik - ỹ_jk)² = -2 Σ_i x̃_ik (Σ_j G_ij x̃_ik - 2 (G ỹ)_ik) - 2 Σ_j (Σ_i G_ij) ỹ_jk²:

matrix products with d columns, where automatic differentiation would make an n x m array for every dimension. The
scales need one of them; the compiler leaves out the other where no place moves.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

FEW = 4  # up to so many dimensions differences are exact and as fast as a matrix product


@jax.custom_vjp
def squared(X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"], scale: Float[Array, " d"]) -> Float[Array, "*b n m"]:
    """Σ_j (x_j - y_j)² / scale_j² for all pairs, without an n x m x d array."""
    dim = X.shape[-1]
    if dim <= FEW:
        parts = [((X[..., :, None, j] - Y[..., None, :, j]) / scale[j]) ** 2 for j in range(dim)]
        return sum(parts[1:], parts[0])
    X, Y = _scaled(X, Y, scale)
    squares = jnp.sum(X**2, axis=-1)[..., :, None] + jnp.sum(Y**2, axis=-1)[..., None, :]
    return jnp.maximum(squares - 2.0 * X @ jnp.swapaxes(Y, -1, -2), 0.0)


def _squared_fwd(X: Array, Y: Array, scale: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    return squared(X, Y, scale), (X, Y, scale)


def _squared_bwd(saved: tuple[Array, Array, Array], G: Array) -> tuple[Array, Array, Array]:
    scale = saved[2]
    X, Y = _scaled(*saved)
    total, GY = _product(G, Y)
    dX, dY = 2.0 * (total * X - GY), _pull(jnp.swapaxes(G, -1, -2), Y, X)
    rows, columns = tuple(range(X.ndim - 1)), jnp.sum(G, axis=-2)[..., :, None]
    # What the scales need cancels between the two sums only: they are in double precision, but not the large G.
    x, y, of_x, Gy, of_y = (a.astype(float) for a in (X, Y, total, GY, columns))
    apart = jnp.sum(x * (of_x * x - 2.0 * Gy), axis=rows) + jnp.sum(of_y * y**2, axis=rows)
    per = scale.reshape((1,) * (X.ndim - 1) + (-1,))
    return dX / per, dY / per, -2.0 * apart.astype(scale.dtype) / scale


squared.defvjp(_squared_fwd, _squared_bwd)


def _product(G: Array, Y: Array) -> tuple[Array, Array]:
    """Σ_j G_ij and (G y)_i in one go over G, which the compiler then fills only once."""
    both = G @ jnp.concatenate([Y, jnp.ones_like(Y[..., :1])], axis=-1)
    return both[..., -1:], both[..., :-1]


def _pull(G: Array, X: Array, Y: Array) -> Array:
    """2 (Σ_j G_ij x_i - (G y)_i)."""
    total, GY = _product(G, Y)
    return 2.0 * (total * X - GY)


def euclidean(
    X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"], scale: Float[Array, " d"]
) -> Float[Array, "*b n m"]:
    """The square root; its derivative at zero is zero."""
    square = squared(X, Y, scale)
    apart = square > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)


def _scaled(X: Array, Y: Array, scale: Array) -> tuple[Array, Array]:
    """In units of the scale, about the middle of the data, where products cancel least."""
    centre = jnp.mean(X, axis=-2, keepdims=True)
    per = scale.reshape((1,) * (X.ndim - 1) + (-1,))
    return (X - centre) / per, (Y - centre) / per
