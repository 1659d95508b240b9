"""Manifold regularisation: individuals that are alike should have similar values.

    ½ Σ_ij (f_i - f_j)² k(x_i, x_j) = fᵀ L f,   L = diag(K 1) - K,

with K ≈ Φ Φᵀ for random Fourier features Φ of an RBF kernel, so that fᵀ L f ≈ Σ_i f_i² (Φ Φᵀ 1)_i - |Φᵀ f|² costs one
pass over Φ. The double sum of the paper's (28) is twice this form. Reference: Rahimi and Recht (2007).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

FEATURES = 500
SAMPLE = 1000  # individuals that a median distance is read off


def laplacian_form(f: Float[Array, " N"], features: Float[Array, "N p"]) -> Float[Array, ""]:
    """fᵀ L f with K = Φ Φᵀ; rows of zeros take no part."""
    degree = features @ features.sum(axis=0)
    return jnp.sum(f**2 * degree) - jnp.sum((f @ features) ** 2)


def random_frequencies(dim: int, bandwidth: float, rng: np.random.Generator, features: int = FEATURES) -> np.ndarray:
    """ω ~ Normal(0, I / bandwidth²), one column for each pair of features."""
    return rng.standard_normal((dim, features // 2)) / bandwidth


def random_features(x: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Φ = [cos(xω), sin(xω)] / √m, so that Φ Φᵀ ≈ exp(-|x - x'|² / (2 bandwidth²)) and its diagonal is one."""
    angles = x @ frequencies
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(frequencies.shape[1])


def rbf_features(x: np.ndarray, bandwidth: float | None, rng: np.random.Generator) -> np.ndarray:
    """Random features of an RBF kernel with the given bandwidth, or with the median one."""
    chosen = median_bandwidth(x, rng) if bandwidth is None else bandwidth
    return random_features(x, random_frequencies(x.shape[1], chosen, rng))


def median_bandwidth(x: np.ndarray, rng: np.random.Generator) -> float:
    """√(median of |x - x'|² / 2) over pairs of at most a thousand individuals."""
    from scipy.spatial.distance import pdist  # slow to import

    sample = x if len(x) <= SAMPLE else x[rng.choice(len(x), SAMPLE, replace=False)]
    distances = pdist(sample)
    distances = distances[distances > 0]
    return float(np.median(distances) / np.sqrt(2)) if len(distances) else 1.0
