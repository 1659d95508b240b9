"""Maps whose regional totals are known.

Of every joint draw r of the rates, the pixels i are scaled so that each region a has the total T_a,

    x_i = r_i Π_a f_a^θ_ia,    Σ_i w_ai x_i = T_a,        f_a ← f_a T_a / Σ_i w_ai x_i   until all agree.

A pixel of one region has the factor of this region, a pixel on a border a geometric mean of the factors on both sides:
θ_ia is the part of it that lies in region a, rounded. With θ_ia in proportion to w_ai, x is of all maps that agree the
nearest to r in the sense of Kullback and Leibler. Where a region has nothing f_a = 0, also in the pixels that it
shares. The totals may be those that were reported, or those of the draws of the posterior (`refined`): r differs from
these by what the inducing points leave open, and by pixels that were pooled, and keeps their totals.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from scipy import sparse

from aggregauss.checks import warn
from aggregauss.inference.data import observe
from aggregauss.inference.draws import latent_draws
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.refined import Refined, refined
from aggregauss.io.pixel_record import Pixels
from aggregauss.io.words import several
from aggregauss.maps.overlay import Pieces

DRAWS = 1000
PARTS = 4  # of a pixel to which θ is rounded: pixels of equal θ have equal factors, and are raked as one
ROUNDS = 500
AGREEMENT = 1e-12  # of log totals
MUCH = 1e-6  # by which totals may differ before it is said
BLOCK = 32  # draws at a time
KEPT = 1 << 26  # numbers of single precision, 256 MB: maps of this size are drawn once

Tiles = list[tuple[np.ndarray, np.ndarray]]  # pixels, and their rates in single precision, (draws, pixels)


@dataclasses.dataclass(frozen=True, eq=False)
class Raked:
    """Draws of the rates of all pixels that agree with the totals of regions."""

    pixels: Pixels
    post: Posterior
    z: Sequence[np.ndarray] | None  # of `latent_draws`
    log_factors: np.ndarray  # (draws, regions)
    reached: np.ndarray  # totals of the regions, (draws, regions)
    seed: int
    kept: Tiles | None  # r, if it is small
    last: dict[Pieces, np.ndarray] = dataclasses.field(default_factory=dict)  # totals that were asked for before

    def rates(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some pixels at a time with their draws, shape (draws, pixels)."""
        theta = _exponents(self.pixels)
        drawn = self.kept or _rates(self.post, self.pixels, self.z, len(self.log_factors), self.seed)
        for rows, rate in drawn:
            yield rows, rate * _scale(theta[rows], self.log_factors)

    def totals(self, pieces: Pieces) -> np.ndarray:
        """Draws of the totals of any polygons, shape (draws, polygons)."""
        if pieces not in self.last:
            size = len(self.log_factors), len(pieces.labels)
            found = _sums(self.rates(), pieces.owner, pieces.pixel, pieces.weight, *size)
            self.last.clear()
            self.last[pieces] = found
        return self.last[pieces]


def as_known(post: Posterior, pixels: Pixels, y: np.ndarray, seed: int = 0) -> Raked:
    """Draws of a map of totals of exponentials, which are as uncertain as the counts `y` leave them."""
    z, totals = _refined(post, pixels, y, seed)
    return _with_totals(post, pixels, z, totals, seed)


def benchmarked(post: Posterior, pixels: Pixels, y: np.ndarray | None, reported: np.ndarray, seed: int = 0) -> Raked:
    """Draws of the map that have exactly the reported totals; `y` are the counts if totals are of exponentials."""
    z = None if y is None else _refined(post, pixels, y, seed).z
    found = _with_totals(post, pixels, z, np.tile(reported, (DRAWS, 1)), seed)
    _say_what_differs(found.reached, reported, pixels)
    return found


def _refined(post: Posterior, pixels: Pixels, y: np.ndarray, seed: int) -> Refined:
    bags = pixels.bags("total")
    return refined(post, observe(bags if post.scaler is None else post.scaler(bags), y, None), DRAWS, seed)


def _with_totals(
    post: Posterior, pixels: Pixels, z: Sequence[np.ndarray] | None, totals: np.ndarray, seed: int
) -> Raked:
    theta = _exponents(pixels)
    codes = np.random.default_rng(0).random(totals.shape[1])  # sums of which tell one set of exponents from another
    _, first, group = np.unique(theta @ codes, return_index=True, return_inverse=True)
    alike = theta[first]
    pair, owner = np.unique(pixels.region * len(first) + group[pixels.pixel], return_inverse=True)
    drawn = _rates(post, pixels, z, DRAWS, seed)
    kept = list(drawn) if DRAWS * len(pixels) <= KEPT else None
    unscaled = _sums(kept or drawn, owner, pixels.pixel, pixels.weight, DRAWS, len(pair))
    region, group = np.divmod(pair, len(first))
    parts = [slice(start, start + BLOCK) for start in range(0, DRAWS, BLOCK)]
    found = [_raked(unscaled[rows], region, group, alike, totals[rows]) for rows in parts]
    log_factors, reached = (np.concatenate(x) for x in zip(*found))
    return Raked(pixels, post, z, log_factors, reached, seed, kept)


def _exponents(pixels: Pixels) -> sparse.csr_array:
    """θ, (pixels, regions)."""
    shape = len(pixels.population), len(pixels.regions)
    inside = np.bincount(pixels.pixel, pixels.share, minlength=shape[0])[pixels.pixel]
    part = np.ceil(PARTS * pixels.share / inside - 1e-9)
    whole = np.bincount(pixels.pixel, part, minlength=shape[0])[pixels.pixel]
    return sparse.csr_array((part / whole, (pixels.pixel, pixels.region)), shape)


def _scale(theta: sparse.csr_array, log_factors: np.ndarray) -> np.ndarray:
    """Π_a f_a^θ_ia, (draws, rows of θ)."""
    return np.exp(theta @ log_factors.T).T


def _raked(
    unscaled: np.ndarray, region: np.ndarray, group: np.ndarray, theta: sparse.csr_array, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log factors of some draws, and the totals that they make of those of pairs of a region and a group of pixels."""
    log_factors = np.where(wanted > 0, 0.0, -np.inf)
    shape = wanted.shape[1], len(region)
    gather = sparse.csr_array((np.ones(len(region)), (region, np.arange(len(region)))), shape)

    def totals() -> np.ndarray:
        return (gather @ (unscaled * _scale(theta, log_factors)[:, group]).T).T

    for _ in range(ROUNDS):
        now = totals()
        reachable = (wanted > 0) & (now > 0)
        step = np.log(np.where(reachable, wanted, 1.0) / np.where(reachable, now, 1.0))
        if np.abs(step).max() < AGREEMENT:
            break
        log_factors += step
    return log_factors, totals()


def _say_what_differs(totals: np.ndarray, y: np.ndarray, pixels: Pixels) -> None:
    """A warning where no scaling of the pixels has the reported totals."""
    worst = np.abs(totals - y).max(axis=0) / np.where(y > 0, y, 1.0)
    apart = worst > MUCH
    if apart.any():
        most = int(np.argmax(worst))
        warn(
            f"predict: {several(int(apart.sum()), 'region')} cannot have what was reported, because neighbours share "
            f'their pixels; most of all "{pixels.regions["label"].iloc[most]}" with {totals[:, most].mean():.4g} for '
            f"{y[most]:.4g}. Give finer rasters or a finer resolution."
        )


def _rates(
    post: Posterior, pixels: Pixels, z: Sequence[np.ndarray] | None, draws: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    link, near = post.model.likelihood.g, pixels.coordinates if pixels.coordinates.shape[1] else None
    for rows, latent in latent_draws(post, pixels.points(), draws, seed, near, z):
        yield rows, np.asarray(link.forward(jnp.asarray(latent)), np.float32)


def _sums(
    tiles: Iterable[tuple[np.ndarray, np.ndarray]],
    owner: np.ndarray,
    pixel: np.ndarray,
    weight: np.ndarray,
    draws: int,
    size: int,
) -> np.ndarray:
    """Draws of Σ weight · rate over the pixels of each owner, (draws, size)."""
    out = np.zeros((draws, size))
    place = np.full(1 + pixel.max(initial=0), -1)
    for rows, drawn in tiles:
        known = np.flatnonzero(rows < len(place))
        place[rows[known]] = known
        mine = np.flatnonzero(place[pixel] >= 0)
        gather = sparse.csr_array((weight[mine], (owner[mine], place[pixel[mine]])), (size, len(rows)))
        out += (gather @ drawn.T).T
        place[rows[known]] = -1
    return out
