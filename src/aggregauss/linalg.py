"""The one home of matrix factorisations, and the one owner of jitter.

Jitter is relative to each diagonal entry: totals over large supports and values at points share one matrix, and what is
negligible beside the former would drown the latter.
"""

import itertools

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

JITTER, MOST_JITTER = 1e-11, 1e-5


def add_diagonal(K: Float[Array, "n n"], d: Float[Array, " n"]) -> Float[Array, "n n"]:
    """K + diag(d), in one pass."""
    return K + jnp.where(_rows(K) == _columns(K), d[:, None], 0.0)


def cholesky(K: Float[Array, "n n"], jitter: float | Array = JITTER) -> Float[Array, "n n"]:
    """Lower Cholesky factor of the symmetric matrix with this lower triangle; NaN if not positive definite."""
    nudged = jnp.where(_rows(K) == _columns(K), K * (1.0 + jitter), K)
    return jax.lax.linalg.cholesky(nudged, symmetrize_input=False)


def factor(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """`cholesky` that raises the jitter tenfold until it succeeds; NaN if that is never enough. Has no derivative."""

    def failed(state: tuple[Array, Array]) -> Array:
        jitter, L = state
        return jnp.isnan(L[-1, -1]) & (jitter < MOST_JITTER)

    def retry(state: tuple[Array, Array]) -> tuple[Array, Array]:
        jitter = 10.0 * state[0]
        return jitter, cholesky(K, jitter)

    jitter = jnp.asarray(JITTER, K.dtype)
    return jax.lax.while_loop(failed, retry, (jitter, cholesky(K, jitter)))[1]


@jax.custom_vjp
def log_density(K: Float[Array, "n n"], r: Float[Array, " n"]) -> Float[Array, ""]:
    """log N(r; 0, K), reading the lower triangle of K only; NaN where K is not positive definite."""
    return _log_density_fwd(K, r)[0]


def _log_density_fwd(K: Array, r: Array) -> tuple[Array, tuple[Array, Array]]:
    L = cholesky(K)
    alpha = cho_solve((L, True), r)
    return gaussian_log_density(L, r, alpha), (L, alpha)


def _log_density_bwd(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    L, alpha = saved
    gradient = alpha[:, None] * alpha[None, :] - lower_inverse(L)
    i, j = _rows(L), _columns(L)
    each = jnp.where(i > j, g, jnp.where(i == j, 0.5 * g, 0.0))  # an entry below the diagonal stands for two
    return gradient * each, -g * alpha


log_density.defvjp(_log_density_fwd, _log_density_bwd)


def gaussian_log_density(L: Float[Array, "n n"], r: Float[Array, " n"], alpha: Float[Array, " n"]) -> Float[Array, ""]:
    """log N(r; 0, L Lᵀ), given α = (L Lᵀ)⁻¹ r."""
    return -0.5 * r @ alpha - jnp.sum(jnp.log(jnp.diagonal(L))) - 0.5 * len(r) * jnp.log(2 * jnp.pi)


def lower_solve(L: Float[Array, "n n"], B: Float[Array, "n *m"]) -> Float[Array, "n *m"]:
    """L⁻¹ B."""
    return solve_triangular(L, B, lower=True)


@jax.custom_jvp
def root(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower L with L Lᵀ = K; NaN if K is not positive definite.

    With W = L⁻ᵀ and Φ the lower triangle, its diagonal halved: dL = L Φ(Wᵀ dK W). That is three products where the
    derivative of a Cholesky factor by itself takes the time of a dozen. It reads both triangles of dK: give K whole.
    """
    return jax.lax.linalg.cholesky(K, symmetrize_input=False)


@root.defjvp
def _root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    L = root(*primals)
    inverse = lower_solve(L, jnp.eye(L.shape[0], dtype=L.dtype))
    return L, L @ _half(inverse @ tangents[0] @ inverse.T)


@jax.custom_jvp
def inverse_root(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """W = L⁻ᵀ as above, so that W Wᵀ = K⁻¹; dW = -W Φ(Wᵀ dK W)ᵀ."""
    return lower_solve(root(K), jnp.eye(K.shape[0], dtype=K.dtype)).T


@inverse_root.defjvp
def _inverse_root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    W = inverse_root(*primals)
    return W, -W @ _half(W.T @ tangents[0] @ W).T


@jax.custom_jvp
def inverse(K: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """K⁻¹, with d K⁻¹ = -K⁻¹ dK K⁻¹; NaN if K is not positive definite."""
    W = inverse_root(K)
    return W @ W.T


@inverse.defjvp
def _inverse_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    found = inverse(*primals)
    return found, -(found @ tangents[0]) @ found


def _half(S: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower triangle with half the diagonal."""
    i, j = _rows(S), _columns(S)
    return jnp.where(i > j, S, jnp.where(i == j, 0.5 * S, 0.0))


def lower_inverse(L: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower triangle of (L Lᵀ)⁻¹, with zeros or rubbish above.

    From row k on, columns k, k+1, ... of the inverse depend on the trailing block L[k:, k:] alone: taking the columns
    in a few groups does less than half of the work of solving for the whole identity.
    """
    n = L.shape[0]
    groups = 1 if n < 256 else 4
    edges = [n * g // groups for g in range(groups + 1)]
    columns = [
        jnp.pad(cho_solve((L[k:, k:], True), jnp.eye(n - k, stop - k, dtype=L.dtype)), ((k, 0), (0, 0)))
        for k, stop in itertools.pairwise(edges)
    ]
    return jnp.concatenate(columns, axis=1)


def inverse_diagonal(L: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The diagonal of (L Lᵀ)⁻¹."""
    return jnp.sum(lower_solve(L, jnp.eye(L.shape[0], dtype=L.dtype)) ** 2, axis=0)


def _rows(K: Array) -> Array:
    return jax.lax.broadcasted_iota(jnp.int32, K.shape, 0)


def _columns(K: Array) -> Array:
    return jax.lax.broadcasted_iota(jnp.int32, K.shape, 1)
