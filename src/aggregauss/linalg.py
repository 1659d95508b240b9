"""The one home of matrix factorisations, and the one owner of jitter."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

FIRST_JITTER, LAST_JITTER = 1e-13, 1e-4  # relative to the mean of the diagonal; each retry adds a hundredfold


def factor(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower Cholesky factor of the symmetric matrix whose lower triangle is given.

    If K is not numerically positive definite, the smallest jitter of a short ladder that makes it so is added to its
    diagonal. NaN if none does.
    """
    scale = jnp.mean(jnp.diagonal(K))

    def attempt(jitter: Array) -> Array:
        nudged = K + (jitter * scale) * jnp.eye(K.shape[0], dtype=K.dtype)
        return jax.lax.linalg.cholesky(nudged, symmetrize_input=False)

    def failed(state: tuple[Array, Array]) -> Array:
        jitter, L = state
        return jnp.isnan(L[-1, -1]) & (jitter <= LAST_JITTER)

    def retry(state: tuple[Array, Array]) -> tuple[Array, Array]:
        jitter, _ = state
        return 100.0 * jitter, attempt(jitter)

    first = jax.lax.linalg.cholesky(K, symmetrize_input=False)
    return jax.lax.while_loop(failed, retry, (jnp.asarray(FIRST_JITTER, K.dtype), first))[1]


@jax.custom_vjp
def log_density(K: Float[Array, "n n"], r: Float[Array, " n"]) -> Float[Array, ""]:
    """log N(r; 0, K), reading the lower triangle of K only."""
    return _log_density_fwd(K, r)[0]


def _log_density_fwd(K: Array, r: Array) -> tuple[Array, tuple[Array, Array]]:
    L = factor(K)
    alpha = cho_solve((L, True), r)
    value = -0.5 * r @ alpha - jnp.sum(jnp.log(jnp.diagonal(L))) - 0.5 * len(r) * jnp.log(2 * jnp.pi)
    return value, (L, alpha)


def _log_density_bwd(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    L, alpha = saved
    n = len(alpha)
    eye = jnp.eye(n, dtype=L.dtype)
    gradient = alpha[:, None] * alpha[None, :] - cho_solve((L, True), eye)
    halves = jnp.tril(jnp.ones_like(L)) - 0.5 * eye  # each entry below the diagonal stands for two
    return g * gradient * halves, -g * alpha


log_density.defvjp(_log_density_fwd, _log_density_bwd)


def lower_solve(L: Float[Array, "n n"], B: Float[Array, "n *m"]) -> Float[Array, "n *m"]:
    """L⁻¹ B."""
    return solve_triangular(L, B, lower=True)


def inverse_diagonal(L: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The diagonal of (L Lᵀ)⁻¹."""
    return jnp.sum(lower_solve(L, jnp.eye(L.shape[0], dtype=L.dtype)) ** 2, axis=0)
