"""What is lost when every place x_i is taken for a representative point z_i (Shikuri 2024, section 4).

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
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.linalg import eigh, solve_triangular
from scipy.special import expit, gammaincc

from aggregauss import linalg
from aggregauss.kernels.kernel import Kernel
from aggregauss.supports.layout import at_points

LEAST_XI = 1.451974  # the larger root of 2 √(π ξ) exp(-ξ) = 1
STEPS = 256  # of each grid: every point of one gives a valid bound, so a grid is enough
Matrix = Float[np.ndarray, "n d"]
Vector = Float[np.ndarray, " n"]


class Difference(NamedTuple):
    """How f at the places differs from f at their points; `eta` and `error` in prior standard deviations."""

    eta: float
    error: float  # root of the mean of E e²
    beta: float  # largest change of a covariance
    variance: float  # mean of k(x, x)


class Interpolation(NamedTuple):
    """The printed quantities: how well the points interpolate the places."""

    eta: float
    gamma: float
    kappa: float
    lambda1: float
    lambda2: float


def difference(kernel: Kernel, X: Matrix, Z: Matrix, p: Vector) -> Difference:
    """η and its kin for places `X` with shares `p`, each represented by its row of `Z`."""
    n = len(X)
    K = np.asarray(_gram(kernel, jnp.asarray(np.concatenate([X, Z]))))
    xx, xz, zz = K[:n, :n], K[:n, n:], K[n:, n:]
    variance = p @ np.diagonal(xx)
    root = np.sqrt(p / variance)
    C = (xx - xz - xz.T + zz) * root[:, None] * root
    beta = max(np.abs(xx - zz).max(), np.abs(xx - xz).max())
    return Difference(
        least_eta(np.linalg.eigvalsh(C)), float(np.sqrt(max(np.trace(C), 0.0))), float(beta), float(variance)
    )


def interpolation(
    kernel: Kernel, X: Matrix, Z: Float[np.ndarray, "m d"], owner: Int[np.ndarray, " n"], p: Vector, total: float
) -> Interpolation:
    """The printed quantities for places `X` of the points `Z[owner]`, where `total` individuals have shares `p`."""
    n, m = len(X), len(Z)
    K = np.asarray(_gram(kernel, jnp.asarray(np.concatenate([X, Z]))))
    ff, fu, uu = K[:n, :n], K[:n, n:], K[n:, n:]
    L = np.asarray(linalg.factor(jnp.asarray(uu)))
    half = solve_triangular(L, fu.T, lower=True)
    off = np.eye(m)[owner] - solve_triangular(L, half, lower=True, trans=1).T
    root = np.sqrt(p)
    worst = _largest((off @ off.T) * root[:, None] * root)  # κ = 1 / (m worst)
    lambda1 = _largest(uu)
    lambda2 = total * max(_largest((ff - half.T @ half) * root[:, None] * root), 0.0)
    xi = LEAST_XI * np.geomspace(1.0, 100.0, STEPS)
    delta = np.sqrt(xi / (p @ np.diagonal(ff))) * (np.sqrt(lambda1 * m * worst) + np.sqrt(lambda2))
    eta = np.min(delta + gammaincc(m / 2, xi * m / 2))
    kappa = 1 / (m * worst) if worst > 0 else np.inf
    return Interpolation(*(float(x) for x in (eta, np.abs(off).max(), kappa, lambda1, lambda2)))


def least_eta(eigenvalues: Vector) -> float:
    """min over δ of δ + P(Σ λ g² > δ²) for ascending λ; at most one, because δ = 0 is always allowed."""
    values = np.maximum(eigenvalues, 0.0)
    largest = max(values[-1], 1e-32)  # a larger bound on λ_1 only narrows the choice of s
    share = expit(np.linspace(-9.0, 9.0, STEPS))  # 2 s λ_1
    half_log = -0.5 * np.sum(np.log1p(-share[:, None] * values / largest), axis=1)
    delta = max(np.sqrt(np.sum(values)), 1e-12) * np.geomspace(1.0, 40.0, STEPS)
    log_tail = np.min(half_log[:, None] - share[:, None] * delta**2 / (2 * largest), axis=0)
    return float(min(np.min(delta + np.exp(np.minimum(log_tail, 0.0))), 1.0))


def _largest(A: Float[np.ndarray, "n n"]) -> float:
    """The largest eigenvalue of a symmetric matrix."""
    return float(eigh(A, eigvals_only=True, subset_by_index=[len(A) - 1, len(A) - 1])[0])


@eqx.filter_jit
def _gram(kernel: Kernel, X: Float[Array, "n d"]) -> Float[Array, "n n"]:
    return kernel.block(at_points(X), at_points(X))
