"""Supports on the device: atoms in equal tiles, so that covariances run in bounded memory and few shapes.

A support of many atoms is cut into pieces of at most `a` atoms, padded with atoms of weight zero. Pieces are stacked
into tiles of s pieces; the covariance of two tiles is one dense block of (s·a) x (s·a) atoms, and pieces of the same
support are summed at the end.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aggregauss.supports.support import Support

SMALL_TILE, LARGE_TILE = 128, 1024  # atoms per tile: small ones let a symmetric matrix skip half of its tiles
PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class Atoms(eqx.Module):
    """A dense batch of atoms, as kernels see it."""

    center: Float[Array, "*n d"]
    width: Float[Array, "*n d"]
    extremes: Float[Array, "2 d"]  # smallest and largest width of the whole batch, by which a kernel chooses its rule
    wide: tuple[bool, ...] = eqx.field(static=True)  # dimensions in which some atom has width

    def select(self, dims: tuple[int, ...] | None) -> "Atoms":
        """The atoms seen along some dimensions only."""
        if dims is None:
            return self
        index = np.array(dims)
        return Atoms(
            self.center[..., index],
            self.width[..., index],
            self.extremes[:, index],
            tuple(self.wide[j] for j in dims),
        )


def at_points(X: Float[Array, "*b n d"]) -> Atoms:
    """Points as atoms."""
    return Atoms(X, jnp.zeros_like(X), jnp.zeros((2, X.shape[-1]), X.dtype), (False,) * X.shape[-1])


class Layout(eqx.Module):
    """A batch of supports as tiles of pieces of atoms: arrays of shape (tiles, s, a, ...)."""

    center: Float[Array, "tiles s a d"]
    width: Float[Array, "tiles s a d"]
    weight: Float[Array, "tiles s a"]
    extremes: Float[Array, "2 d"]
    owner: Int[Array, " pieces"] | None  # None: one piece for each support, in order
    siblings: Int[Array, "2 pairs"] | None  # pairs of pieces that belong to the same support; None: each is alone
    wide: tuple[bool, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return self.center.shape[0]

    @property
    def atoms_per_tile(self) -> int:
        """Atoms in one tile, padding included."""
        return self.center.shape[1] * self.center.shape[2]

    @property
    def dim(self) -> int:
        """Number of input dimensions."""
        return self.center.shape[3]

    def take(self, tiles: Int[Array, " k"] | np.ndarray) -> tuple[Atoms, Float[Array, "k s a"]]:
        """The atoms of some tiles, flat within each tile, and their weights."""
        shape = (len(tiles), self.atoms_per_tile, self.dim)
        center, width = (x[tiles].reshape(shape) for x in (self.center, self.width))
        return Atoms(center, width, self.extremes, self.wide), self.weight[tiles]

    def take_pieces(self, pieces: Int[Array, " k"] | np.ndarray) -> tuple[Atoms, Float[Array, "k a"]]:
        """The atoms of some pieces, and their weights."""
        center, width, weight = (x.reshape(-1, *x.shape[2:])[pieces] for x in (self.center, self.width, self.weight))
        return Atoms(center, width, self.extremes, self.wide), weight

    def all_pieces(self) -> tuple[Atoms, Float[Array, "n a"]]:
        """Every atom in a row, support after support, and the weights; only where each support is one piece."""
        assert self.owner is None, "supports are cut into pieces"
        per_support = self.center.shape[2]
        center, width = (x.reshape(-1, self.dim)[: self.size * per_support] for x in (self.center, self.width))
        weight = self.weight.reshape(-1, per_support)[: self.size]
        return Atoms(center, width, self.extremes, self.wide), weight


def layout(support: Support, dtype: np.dtype | type = np.float64, *, whole: bool = False) -> Layout:
    """Arrange the atoms of `support` for the device; `whole` keeps every support in one piece, however large."""
    counts = support.atom_counts
    length = int(counts.max()) if whole else _piece_length(counts)
    per_support = -(-counts // length)
    owner = np.repeat(np.arange(support.size), per_support)
    atom_in_support = np.arange(len(support.owner)) - (np.cumsum(counts) - counts)[support.owner]
    first_piece = np.cumsum(per_support) - per_support
    piece = first_piece[support.owner] + atom_in_support // length

    pieces = len(owner)
    cut = pieces > support.size
    per_tile = _pieces_per_tile(pieces, length)
    tiles = -(-pieces // per_tile)
    source = np.zeros((tiles * per_tile, length), int)  # padding repeats the first atom, with weight zero
    weight = np.zeros((tiles * per_tile, length))
    slot = atom_in_support % length
    source[piece, slot] = np.arange(len(support.owner))
    weight[piece, slot] = support.effective_weight

    def stack(x: np.ndarray) -> Array:
        return jnp.asarray(x.reshape(tiles, per_tile, length, *x.shape[2:]), dtype)

    return Layout(
        center=stack(support.center[source]),
        width=stack(support.width[source]),
        weight=stack(weight),
        extremes=jnp.asarray(np.stack([support.width.min(axis=0), support.width.max(axis=0)]), dtype),
        owner=jnp.asarray(owner) if cut else None,
        siblings=jnp.asarray(_siblings(per_support)) if cut else None,
        wide=support.wide,
        size=support.size,
    )


def _piece_length(counts: np.ndarray) -> int:
    """The piece length with least padding that makes at most two pieces for each support on average."""
    lengths = {*PIECES, min(int(counts.max()), PIECES[-1])}
    fitting = [a for a in lengths if (-(-counts // a)).sum() <= 2 * len(counts)] or [PIECES[-1]]
    return min(fitting, key=lambda a: ((-(-counts // a)).sum() * a, -a))


def _pieces_per_tile(pieces: int, length: int) -> int:
    total = pieces * length
    if total <= SMALL_TILE:
        return pieces
    target = SMALL_TILE if total <= 4 * LARGE_TILE else LARGE_TILE
    fitting = max(1, target // length)
    return -(-pieces // -(-pieces // fitting))  # spread evenly, so that the last tile is not mostly padding


def _siblings(per_support: np.ndarray) -> np.ndarray:
    first = np.cumsum(per_support) - per_support
    left = np.concatenate([np.repeat(np.arange(f, f + k), k) for f, k in zip(first, per_support)])
    right = np.concatenate([np.tile(np.arange(f, f + k), k) for f, k in zip(first, per_support)])
    return np.stack([left, right])
