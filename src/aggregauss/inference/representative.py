"""What is lost when every place x_i is taken for a representative point z_i (Shikuri 2025, section 4).

    e = f(x) - f(z) ~ N(0, C),        C_ij = k(x_i, x_j) - k(x_i, z_j) - k(z_i, x_j) + k(z_i, z_j),
    η = min over δ of  δ + P(Σ_i p_i e_i² > δ²),

with shares p_i of the places (1/n each) and f in units of its prior standard deviation. If a likelihood is at most B
and its slope at most G, then the marginal likelihoods of places and of points differ by at most max(B, G √n) η: within
the ball the likelihood changes by at most G √n δ, outside by at most B. This is Theorem 4.6 before its probability is
replaced by a bound. Here the bound is Chernoff's: with the eigenvalues λ of diag(√p) C diag(√p) and 0 < 2 s λ_1 < 1,

    log P(Σ_k λ_k g_k² > δ²)  ≤  -s δ² - ½ Σ_k log(1 - 2 s λ_k).

The printed η puts √(ξ λ1/κ) + √(ξ λ2) in the place of δ and F(m, ξ m), a tail of χ², in that of the probability, with
λ1 the largest eigenvalue of Kuu and κ⁻¹ = (m/n) max |(W - Kfu Kuu⁻¹) u|² / |u|². It is a bound, but a loose one: it
pairs the largest swings of u, which are slow, with the largest errors of interpolation, which belong to fast ones.
λ1 grows with m. κ hardly moves, because halfway between two points the weight of the wrong one is about one half,
however close they are. So the printed η begins to rise with m where the errors go on falling.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaincc
from jaxtyping import Array, Float, Int

from aggregauss import linalg
from aggregauss.kernels.kernel import Kernel
from aggregauss.supports.layout import at_points

LEAST_XI = 1.451974  # the larger root of 2 √(π ξ) exp(-ξ) = 1
STEPS = 256  # of each grid: every point of one gives a valid bound, so a grid is enough


class Difference(NamedTuple):
    """How f at the places differs from f at their points; `eta`, `error` in prior standard deviations."""

    eta: Float[Array, ""]
    error: Float[Array, ""]  # root of the mean of E e²
    beta: Float[Array, ""]  # largest change of a covariance
    variance: Float[Array, ""]  # mean of k(x, x)


class Interpolation(NamedTuple):
    """The printed quantities: how well the points interpolate the places."""

    eta: Float[Array, ""]
    gamma: Float[Array, ""]
    kappa: Float[Array, ""]
    lambda1: Float[Array, ""]
    lambda2: Float[Array, ""]


@eqx.filter_jit
def difference(kernel: Kernel, X: Float[Array, "n d"], Z: Float[Array, "n d"], p: Float[Array, " n"]) -> Difference:
    """η and its kin for places `X` with shares `p`, each represented by its row of `Z`."""
    xx, xz, zz = _block(kernel, X, X), _block(kernel, X, Z), _block(kernel, Z, Z)
    variance = jnp.sum(p * jnp.diagonal(xx))
    root = jnp.sqrt(p)
    C = (xx - xz - xz.T + zz) * root[:, None] * root[None, :] / variance
    beta = jnp.maximum(jnp.max(jnp.abs(xx - zz)), jnp.max(jnp.abs(xx - xz)))
    return Difference(_eta(jnp.linalg.eigvalsh(C)), jnp.sqrt(jnp.maximum(jnp.trace(C), 0.0)), beta, variance)


@eqx.filter_jit
def interpolation(
    kernel: Kernel,
    X: Float[Array, "n d"],
    Z: Float[Array, "m d"],
    owner: Int[Array, " n"],
    p: Float[Array, " n"],
    total: Float[Array, ""],
) -> Interpolation:
    """The printed quantities for places `X` of the points `Z[owner]`, where `total` individuals have shares `p`."""
    m = len(Z)
    uu, fu = _block(kernel, Z, Z), _block(kernel, X, Z)
    L = linalg.factor(uu)
    half = linalg.lower_solve(L, fu.T)
    off = jax.nn.one_hot(owner, m, dtype=X.dtype) - jax.scipy.linalg.solve_triangular(L, half, lower=True, trans=1).T
    root = jnp.sqrt(p)
    worst = jnp.linalg.eigvalsh((off * p[:, None]).T @ off)[-1]  # κ = 1 / (m worst)
    unexplained = (_block(kernel, X, X) - half.T @ half) * root[:, None] * root[None, :]
    lambda1, lambda2 = jnp.linalg.eigvalsh(uu)[-1], total * jnp.linalg.eigvalsh(unexplained)[-1]
    variance = jnp.sum(p * kernel.own(at_points(X)))
    xi = LEAST_XI * jnp.geomspace(1.0, 100.0, STEPS)
    delta = jnp.sqrt(xi) * (jnp.sqrt(lambda1 * m * worst / variance) + jnp.sqrt(jnp.maximum(lambda2, 0.0) / variance))
    eta = jnp.min(delta + gammaincc(m / 2 * jnp.ones_like(xi), xi * m / 2))
    return Interpolation(eta, jnp.max(jnp.abs(off)), 1 / (m * worst), lambda1, lambda2)


def _eta(eigenvalues: Float[Array, " n"]) -> Float[Array, ""]:
    """min over δ of δ + P(Σ λ g² > δ²), at most one: δ = 0 is always allowed."""
    values = jnp.maximum(eigenvalues, 0.0)
    largest = jnp.maximum(values[-1], 1e-32)  # a larger bound on λ_1 only narrows the choice of s
    share = jax.nn.sigmoid(jnp.linspace(-9.0, 9.0, STEPS))  # 2 s λ_1
    half_log = -0.5 * jnp.sum(jnp.log1p(-share[:, None] * values[None, :] / largest), axis=1)
    delta = jnp.maximum(jnp.sqrt(jnp.sum(values)), 1e-12) * jnp.geomspace(1.0, 40.0, STEPS)
    log_tail = half_log[:, None] - share[:, None] * delta[None, :] ** 2 / (2 * largest)
    tail = jnp.exp(jnp.minimum(jnp.min(log_tail, axis=0), 0.0))
    return jnp.minimum(jnp.min(delta + tail), 1.0)


def _block(kernel: Kernel, X: Float[Array, "n d"], Y: Float[Array, "m d"]) -> Float[Array, "n m"]:
    return kernel.block(at_points(X), at_points(Y))
