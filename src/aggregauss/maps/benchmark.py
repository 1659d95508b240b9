"""Maps whose regional totals are those that were reported, exactly.

Of every joint draw of the rates r_i, those of the pixels in region a are multiplied by y_a / Σ_i w_i r_i. What was
reported is then met by each draw, and so by means and quantiles of totals; what remains uncertain is how a region's
total is spread within it. A pixel that lies in several regions has the average of their factors.
"""

import dataclasses
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from aggregauss.inference.draws import latent_draws
from aggregauss.inference.posterior import Posterior
from aggregauss.io.pixel_record import Pixels

DRAWS = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class Benchmarked:
    """Draws of the rates of all pixels that agree with the reported totals."""

    pixels: Pixels
    post: Posterior
    factors: np.ndarray  # (draws, regions)
    seed: int

    def rates(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of pixels with their draws, shape (draws, pixels)."""
        p = self.pixels
        inside = np.bincount(p.pixel, p.share, minlength=len(p.population))
        for rows, drawn in _rates(self.post, p, len(self.factors), self.seed):
            mine = np.flatnonzero((p.pixel >= rows.start) & (p.pixel < rows.stop))
            scale = np.zeros_like(drawn)
            np.add.at(scale.T, p.pixel[mine] - rows.start, (self.factors[:, p.region[mine]] * p.share[mine]).T)
            covered = inside[rows]
            yield rows, drawn * np.where(covered > 0, scale / np.where(covered > 0, covered, 1.0), 1.0)

    def totals(self, owner: np.ndarray, pixel: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
        """Draws of Σ_j weight_j rate(pixel_j) over the pieces j of each owner, shape (draws, size)."""
        return _sums(self.rates(), owner, pixel, weight, len(self.factors), size)


def benchmarked(post: Posterior, pixels: Pixels, y: np.ndarray, seed: int = 0, draws: int = DRAWS) -> Benchmarked:
    """Draws of the map, scaled to the reported totals y."""
    totals = _sums(_rates(post, pixels, draws, seed), pixels.region, pixels.pixel, pixels.weight, draws, len(y))
    return Benchmarked(pixels, post, y / totals, seed)


def _rates(post: Posterior, pixels: Pixels, draws: int, seed: int) -> Iterator[tuple[slice, np.ndarray]]:
    link = post.model.likelihood.g
    for rows, latent in latent_draws(post, pixels.points(), draws, seed):
        yield rows, np.asarray(link.forward(jnp.asarray(latent)))


def _sums(
    blocks: Iterator[tuple[slice, np.ndarray]],
    owner: np.ndarray,
    pixel: np.ndarray,
    weight: np.ndarray,
    draws: int,
    size: int,
) -> np.ndarray:
    out = np.zeros((draws, size))
    for rows, drawn in blocks:
        mine = np.flatnonzero((pixel >= rows.start) & (pixel < rows.stop))
        np.add.at(out.T, owner[mine], (drawn[:, pixel[mine] - rows.start] * weight[mine]).T)
    return out
