"""Joint draws of the latent function at many points, without the covariance of all pairs of them.

With whitened inducing variables ε ~ N(μ, C Cᵀ) and R of `conditional`, a draw at the point s is

    f(s) = m(s) + k(s, T) α + (Cᵀ R k(T, s))ᵀ z + r(s, l) L⁻ᵀ e + √(r(s, s) - |L⁻¹ r(l, s)|²) e',

with z, e and e' standard normal. z is shared by all points. r(s, s') = k(s, s') - (R k(T, s))ᵀ (R k(T, s')) is what the
inducing variables leave open; it reaches no further than they lie apart. Points are taken in tiles of neighbours; l are
some of the tile's points, r(l, l) = L Lᵀ, and e is shared by the tile. Only what these leave open, too, is each point's
own. Where hyper-parameters are uncertain, each value of the mixture has its share of the draws.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from aggregauss import linalg
from aggregauss.heap import give_back
from aggregauss.inference.conditional import Conditional, _features, _solves
from aggregauss.inference.posterior import Posterior
from aggregauss.kernels.covariance import cross, diagonal
from aggregauss.latent.effects import with_effects
from aggregauss.latent.means import Moments, moments
from aggregauss.parameters import unpack
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.nearby import nearby
from aggregauss.supports.support import Support

TILE, LOCAL = 2048, 256  # points of a tile, and those of them that stand for the others
ROUNDING = 1e-9  # of prior variances, in differences of them


def latent_draws(
    post: Posterior,
    points: Support,
    n: int,
    seed: int = 0,
    near: np.ndarray | None = None,
    z: Sequence[np.ndarray] | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tiles of points, each with `n` draws of the function there, shape (n, points); the same in every call.

    Neighbours are those in the columns `near`, by default those of the points. `z` is standard normal unless given, for
    each value of the hyper-parameters (see `refined`).
    """
    parts, weights = parts_of(post)
    scaled = points if post.scaler is None else post.scaler(points)
    order = nearby(scaled.center if near is None else near)
    size = min(TILE, 1 << (len(points) - 1).bit_length())
    step = max(1, size // LOCAL)
    middle = jnp.arange(step // 2, size, step)  # of every few points
    if z is None:
        rng, numbers = np.random.default_rng(seed), shares(weights, n)
        z = [rng.standard_normal((len(state.alpha), k)) for (_, state), k in zip(parts, numbers)]
    for number, start in enumerate(range(0, len(points), size)):
        rows = order[start : start + size]
        tile = scaled[np.concatenate([rows, np.full(size - len(rows), rows[-1])])]
        there, where, some = layout(tile), moments(tile), layout(tile[np.asarray(middle)])
        rng = np.random.default_rng([seed, 1, number])
        shared, own = rng.standard_normal((n, size // step)), rng.standard_normal((n, size))
        drawn, first = np.empty((n, size)), 0
        for (model, state), ahead in zip(parts, z):
            found = _pieces(model, post._training, state, there, where, some, middle)
            mean, back, local, left = (np.asarray(x) for x in found)
            mine = slice(first, first + ahead.shape[1])
            drawn[mine] = mean + ahead.T @ back + shared[mine] @ local + left * own[mine]
            first = mine.stop
        give_back()
        yield rows, drawn[:, : len(rows)]


def parts_of(post: Posterior) -> tuple[list[tuple[Any, Conditional]], np.ndarray]:
    """The model and the conditional for each value of the hyper-parameters, and their weights."""
    if post.conditional.root is None:
        raise TypeError(f"draws: known for sparse schemes, but this posterior is by {post.scheme}. Use SVI().")
    if not post.mixture:
        return [(post.model, post.conditional)], np.ones(1)
    parts = [(unpack(post.model, jnp.asarray(c.vector)), c.conditional) for c in post.mixture]
    return parts, np.array([c.weight for c in post.mixture])


def shares(weights: np.ndarray, n: int) -> list[int]:
    """Whole numbers in proportion to the weights that add up to n."""
    exact = weights / weights.sum() * n
    found = np.floor(exact).astype(int)
    found[np.argsort(found - exact)[: n - found.sum()]] += 1
    return found.tolist()


@eqx.filter_jit
def _pieces(
    model: Any, train: Layout | None, state: Conditional, test: Layout, where: Moments, some: Layout, which: Array
) -> tuple[Array, Array, Array, Array]:
    """The mean, Cᵀ R k, L⁻¹ r and the standard deviation of the rest; `some` are the points `which` of the tile."""
    kernel = with_effects(model.kernel, model.mean)
    K = _features(model, train, state, test, where)
    V, back = _solves(state, K)
    prior = diagonal(kernel, test)
    r = cross(kernel, some, test) - V[:, which].T @ V
    L = linalg.factor(linalg.add_diagonal(r[:, which], ROUNDING * prior[which]))
    local = linalg.lower_solve(L, r)
    left = prior - jnp.sum(V**2, axis=0) - jnp.sum(local**2, axis=0)
    return model.mean.integrate(where) + K @ state.alpha, back, local, jnp.sqrt(jnp.maximum(left, 0.0))
