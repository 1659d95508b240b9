"""Covariances of supports: cov = W_A k(atoms_A, atoms_B) W_Bᵀ, tile by tile in bounded memory."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from tqdm.auto import tqdm

from aggregauss.checks import warn
from aggregauss.kernels.kernel import Kernel
from aggregauss.supports.layout import Atoms, Layout, layout
from aggregauss.supports.support import Support, halved

Indices = Int[Array, " k"] | Int[np.ndarray, " k"]
AT_ONCE = 1 << 21  # pairs of atoms that are evaluated together: 16 MB for each intermediate array
PER_CALL = 1 << 33  # pairs of atoms in one compiled call, so that a progress bar can move


def cov(kernel: Kernel, A: Support, B: Support | None = None, *, dtype: type = np.float64) -> Float[Array, "n m"]:
    """Covariance matrix of the integrals of f ~ GP(0, kernel) over two batches of supports (or one with itself).

    >>> import aggregauss as ag
    >>> bins = ag.Intervals([0.0, 1.0], [1.0, 2.0], measure="mean")
    >>> ag.cov(ag.RBF(lengthscale=1.0), bins, ag.Points([1.0])).round(6)
    Array([[0.855624],
           [0.855624]], dtype=float64)
    """
    _check(kernel, A, B)
    left = layout(A, dtype)
    if B is None or B is A:
        return _gram(kernel, left)
    right = layout(B, dtype)
    per_tile = left.atoms_per_tile * right.atoms_per_tile * right.tiles
    step = max(1, PER_CALL // per_tile)
    if left.owner is not None or step >= left.tiles:
        return _cross(kernel, left, right)
    rows = [
        _cross_pieces(kernel, _tiles(left, i, i + step), right)
        for i in tqdm(range(0, left.tiles, step), desc="covariance", delay=2.0, leave=False)
    ]
    return jnp.concatenate(rows)[: left.size, : right.size]


def variances(kernel: Kernel, A: Support, *, dtype: type = np.float64) -> Float[Array, " n"]:
    """The diagonal of `cov(kernel, A)`, without the rest."""
    _check(kernel, A, None)
    return _diagonal(kernel, layout(A, dtype))


def explain(kernel: Kernel, A: Support, B: Support | None = None) -> str:
    """Which rule computes the covariance of two batches of supports.

    >>> import aggregauss as ag
    >>> bins = ag.Intervals([0.0, 1.0], [1.0, 2.0])
    >>> print(ag.explain(ag.Matern52() + ag.RationalQuadratic(), bins, bins))
    Intervals x Intervals: width in dimension 0
      Matern52: closed form over boxes
      RationalQuadratic: Gauss-Legendre quadrature, 24 nodes in each of 1 dimension(s) with width
    """
    B = A if B is None else B
    _check(kernel, A, B)
    wide = tuple(a or b for a, b in zip(A.wide, B.wide))
    where = ", ".join(str(j) for j, is_wide in enumerate(wide) if is_wide)
    head = f"{A.kind} x {B.kind}: " + (f"width in dimension {where}" if where else "points only")
    return "\n".join([head, *(f"  {rule}" for rule in kernel.rules(wide))])


def warn_if_coarse(kernel: Kernel, A: Support, tolerance: float = 1e-3) -> None:
    """Warn where quadrature stands in for a closed form and the boxes are too wide for it.

    The mean over a box is the average of the means over its halves, whatever the kernel: a difference is an error.
    """
    if not any("quadrature" in rule for rule in kernel.rules(A.wide)):
        return
    rows = np.unique(np.linspace(0, len(A) - 1, 32).astype(int))
    whole, halves = A[rows], halved(A[rows])
    exact = cov(kernel, halves)
    error = float(jnp.max(jnp.abs(cov(kernel, whole) - exact)) / jnp.max(jnp.diagonal(exact)))
    if error > tolerance:
        warn(
            f"{type(kernel).__name__}: over these supports the kernel is integrated by quadrature, with an error of "
            f"about {error:.1%}, because boxes are wide beside its lengthscale. Split them finer, or use a kernel with "
            'a closed form (RBF, or Matern with form="product"); explain(kernel, support) says which rule runs.'
        )


def gram(kernel: Kernel, A: Layout) -> Float[Array, "n n"]:
    """cov(A, A) on and below the diagonal, from the tiles there; what stands above is not to be read."""
    i, j = np.tril_indices(A.tiles)
    blocks = _over_pairs(lambda u, v: _tile_block(kernel, A.take(u), A.take(v)), i, j, A.atoms_per_tile**2)
    t, s = A.tiles, A.center.shape[1]
    grid = jnp.zeros((t, s, t, s), blocks.dtype).at[i, :, j, :].set(blocks, unique_indices=True)
    matrix = grid.reshape(t * s, t * s)
    return matrix[: A.size, : A.size] if A.owner is None else _merge(symmetric(matrix), A, A)


def symmetric(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric matrix whose lower triangle is given."""
    return jnp.tril(lower) + jnp.tril(lower, -1).T


def cross(kernel: Kernel, A: Layout, B: Layout) -> Float[Array, "n m"]:
    """cov(A, B)."""
    return _merge(_pieces(kernel, A, B), A, B)


def with_atoms(kernel: Kernel, A: Atoms, B: Atoms, weight: Float[Array, "m a"]) -> Float[Array, "*n m"]:
    """Covariances of means over atoms with integrals over supports of `a` atoms each, which lie in a row in B."""
    lead, (m, per_support) = A.center.shape[:-2], weight.shape
    center, width = (jnp.broadcast_to(x, (*lead, *x.shape)) for x in (B.center, B.width))
    block = kernel.block(A, Atoms(center, width, B.extremes, B.wide))
    if per_support == 1:
        return block * weight.reshape((1,) * (block.ndim - 1) + (m,))
    return jnp.einsum("...ma,ma->...m", block.reshape(*block.shape[:-1], m, per_support), weight)


def diagonal(kernel: Kernel, A: Layout, B: Layout | None = None) -> Float[Array, " n"]:
    """The diagonal of cov(A, A), or of cov(A, B) where B are supports of the same pieces."""

    def own(i: Array, j: Array) -> Array:
        (a, u), (b, v) = A.take_pieces(i), (A if B is None else B).take_pieces(j)
        return jnp.einsum("kab,ka,kb->k", kernel.block(a, b), u, v)

    i, j = (jnp.arange(A.size),) * 2 if A.siblings is None else A.siblings
    values = _over_pairs(own, i, j, A.center.shape[2] ** 2)
    return values if A.owner is None else jax.ops.segment_sum(values, A.owner[i], A.size)


_gram = eqx.filter_jit(lambda kernel, A: symmetric(gram(kernel, A)))
_cross, _diagonal = eqx.filter_jit(cross), eqx.filter_jit(diagonal)


def _check(kernel: Kernel, A: Support, B: Support | None) -> None:
    if B is not None and A.dim != B.dim:
        raise ValueError(f"cov: the supports must have the same dimensions, but have {A.dim} and {B.dim}.")
    kernel.check_dim(A.dim)


def _pieces(kernel: Kernel, A: Layout, B: Layout) -> Float[Array, "pieces_a pieces_b"]:
    i, j = np.divmod(np.arange(A.tiles * B.tiles), B.tiles)
    cost = A.atoms_per_tile * B.atoms_per_tile
    blocks = _over_pairs(lambda u, v: _tile_block(kernel, A.take(u), B.take(v)), i, j, cost)
    grid = blocks.reshape(A.tiles, B.tiles, A.center.shape[1], B.center.shape[1])
    return grid.transpose(0, 2, 1, 3).reshape(A.tiles * A.center.shape[1], B.tiles * B.center.shape[1])


_cross_pieces = eqx.filter_jit(_pieces)


def _tile_block(kernel: Kernel, left: tuple[Atoms, Array], right: tuple[Atoms, Array]) -> Float[Array, "k s t"]:
    """Weighted sums over the atoms of each pair of pieces, for pairs of tiles."""
    (a, u), (b, v) = left, right
    block = kernel.block(a, b)
    if u.shape[2] == v.shape[2] == 1:
        return block * u * jnp.swapaxes(v, 1, 2)
    return jnp.einsum("ksatb,ksa,ktb->kst", block.reshape(*u.shape, *v.shape[1:]), u, v)


def _over_pairs(f: Callable[[Array, Array], Array], i: Indices, j: Indices, cost: int) -> Array:
    """f of all pairs of indices: together if they fit, else in batches whose intermediates are not kept."""
    batch = max(1, AT_ONCE // cost)
    if len(i) <= batch:
        return f(jnp.asarray(i), jnp.asarray(j))
    steps = -(-len(i) // batch)
    pairs = (
        jnp.pad(jnp.stack([i, j]), ((0, 0), (0, steps * batch - len(i)))).reshape(2, steps, batch).transpose(1, 0, 2)
    )
    out = jax.lax.map(jax.checkpoint(lambda pair: f(pair[0], pair[1])), pairs)
    return out.reshape(-1, *out.shape[2:])[: len(i)]


def _merge(matrix: Array, A: Layout, B: Layout) -> Array:
    """Rows and columns of pieces to rows and columns of supports."""
    rows = matrix[: A.size] if A.owner is None else _sum_rows(matrix, A)
    return rows[:, : B.size] if B.owner is None else _sum_rows(rows.T, B).T


def _sum_rows(matrix: Array, A: Layout) -> Array:
    assert A.owner is not None
    return jax.ops.segment_sum(matrix[: len(A.owner)], A.owner, A.size)


def _tiles(A: Layout, start: int, stop: int) -> Layout:
    chosen = (A.center[start:stop], A.width[start:stop], A.weight[start:stop])
    return eqx.tree_at(lambda x: (x.center, x.width, x.weight), A, chosen)
