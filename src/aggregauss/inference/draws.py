"""Joint draws of the latent function at many points, without the covariance of all pairs of them.

With whitened inducing variables ε ~ N(μ, C Cᵀ) and R of `conditional`, a draw at the point s is

    f(s) = m(s) + k(s, T) α + (Cᵀ R k(T, s))ᵀ z + √(k(s, s) - |R k(T, s)|²) e,        z, e standard normal:

z is shared by all points, e is each point's own (what the inducing variables leave open is taken to be independent).
Where hyper-parameters are uncertain, each value of the mixture has its share of the draws.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from aggregauss.inference.conditional import Conditional, _features, _solves
from aggregauss.inference.posterior import Posterior
from aggregauss.kernels.covariance import diagonal
from aggregauss.latent.effects import with_effects
from aggregauss.latent.means import Moments, moments
from aggregauss.parameters import unpack
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support

BLOCK = 2048  # points at a time


def latent_draws(post: Posterior, points: Support, n: int, seed: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of points, each with `n` draws of the function there, shape (n, points); the same in every call."""
    if post.conditional.root is None:
        raise TypeError(f"draws: known for sparse schemes, but this posterior is by {post.scheme}. Use SVI().")
    scaled = points if post.scaler is None else post.scaler(points)
    rng, parts = np.random.default_rng(seed), parts_of(post, n)
    z = [rng.standard_normal((len(state.alpha), k)) for _, state, k in parts]
    for number, start in enumerate(range(0, len(points), BLOCK)):
        rows = np.arange(start, min(start + BLOCK, len(points)))
        block = scaled[np.concatenate([rows, np.full(BLOCK - len(rows), rows[-1])])]
        e = np.random.default_rng([seed, 1, number]).standard_normal((n, BLOCK))
        drawn, first = np.empty((n, BLOCK)), 0
        for (model, state, k), own in zip(parts, z):
            mean, back, left = (
                np.asarray(x) for x in _pieces(model, post._training, state, layout(block), moments(block))
            )
            mine = slice(first, first + k)
            drawn[mine] = mean + own.T @ back + left * e[mine]
            first += k
        yield slice(start, start + len(rows)), drawn[:, : len(rows)]


def parts_of(post: Posterior, n: int) -> list[tuple[Any, Conditional, int]]:
    """The model and the conditional of each value of the hyper-parameters, and how many of `n` draws it has."""
    if not post.mixture:
        return [(post.model, post.conditional, n)]
    shares = _shares(np.array([c.weight for c in post.mixture]), n)
    models = (unpack(post.model, jnp.asarray(c.vector)) for c in post.mixture)
    return [(model, c.conditional, int(k)) for model, c, k in zip(models, post.mixture, shares)]


def _shares(weights: np.ndarray, n: int) -> np.ndarray:
    """Whole numbers in proportion to the weights that add up to n."""
    exact = weights / weights.sum() * n
    shares = np.floor(exact).astype(int)
    shares[np.argsort(shares - exact)[: n - shares.sum()]] += 1
    return shares


@eqx.filter_jit
def _pieces(
    model: Any, train: Layout | None, state: Conditional, test: Layout, where: Moments
) -> tuple[Array, Array, Array]:
    """The mean, Cᵀ R k and the standard deviation of the rest."""
    K = _features(model, train, state, test, where)
    V, back = _solves(state, K)
    rest = diagonal(with_effects(model.kernel, model.mean), test) - jnp.sum(V**2, axis=0)
    return model.mean.integrate(where) + K @ state.alpha, back, jnp.sqrt(jnp.maximum(rest, 0.0))
