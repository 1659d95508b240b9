"""Observations, checked and arranged for the device."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from aggregauss.archive import storable
from aggregauss.checks import as_numbers, as_rows, as_vector, first_bad
from aggregauss.latent.means import Moments, moments
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support

CHANCE = 6.0  # standard errors between two observations of one support
TINY = 1e-200  # variance in place of none
FAR = 64  # rows of one support that are compared with all others of it


class Data(eqx.Module):
    """What an objective needs: where, and what was seen there."""

    layout: Layout
    moments: Moments
    seen: Seen
    task: Int[Array, " n"]  # number of the task that each observation belongs to


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """Supports with their observed values and what is known of these, on the host."""

    support: Support
    y: np.ndarray
    noise_variance: np.ndarray
    counts: np.ndarray | None = None  # numbers of trials, or of individuals that a summary is of
    task: np.ndarray | None = None  # number of the task of each row, where there are several
    variances: np.ndarray | None = None  # within each summary; NaN where they are not known

    def on_device(self) -> Data:
        """The same as arrays in tiles."""
        return Data(
            layout(self.support),
            moments(self.support),
            Seen(*map(jnp.asarray, self.seen())),
            jnp.zeros(len(self.y), int) if self.task is None else jnp.asarray(self.task),
        )

    def __getitem__(self, rows: np.ndarray) -> "Observations":
        """Some of the rows."""
        optional = (None if x is None else x[rows] for x in (self.counts, self.task, self.variances))
        return Observations(self.support[rows], self.y[rows], self.noise_variance[rows], *optional)

    def seen(self) -> Seen:
        """All but the supports."""
        size = np.ones(len(self.y)) if self.counts is None else self.counts
        variances = np.full(len(self.y), np.nan) if self.variances is None else self.variances
        known = np.isfinite(variances)
        free, square = np.where(known, size - 1.0, 0.0), np.where(known, size * variances, 0.0)
        return Seen(self.y, size, self.noise_variance, self.support.square_weight, free, square)  # pyright: ignore

    @property
    def density(self) -> np.ndarray:
        """Each observation as a level of the latent function: totals over their mass, means as they are."""
        return self.y / self.support.effective_mass


def observe(support: Any, y: Any, noise_variance: Any, counts: Any = None, variances: Any = None) -> Observations:
    """Checked observations; a pandas Series is aligned with the labels of the support."""
    if not isinstance(support, Support):
        raise TypeError(
            f'fit: "support" must be a batch of supports such as Points, Intervals or Bags, but got '
            f"{type(support).__name__}. Wrap point locations as Points(X)."
        )
    if len(support) == 0:
        raise ValueError('fit: "support" has no rows. Give at least one observation.')
    values = as_vector(_aligned(support, y, "y"), "fit", "y", len(support))
    noise = np.zeros(len(support)) if noise_variance is None else _each(support, noise_variance, "noise_variance")
    if (noise < 0).any():
        row = first_bad(noise < 0)[0]
        raise ValueError(f'fit: "noise_variance" must not be negative, but row {row} is {noise[row]}.')
    trials = None if counts is None else _each(support, counts, "counts")
    return Observations(support, values, noise, trials, variances=_variances(support, trials, variances))


def _each(support: Support, given: Any, name: str) -> np.ndarray:
    """One number for each row, where one alone is that of all."""
    return as_rows(_aligned(support, given, name), "fit", name, len(support))


def _variances(support: Support, counts: np.ndarray | None, given: Any) -> np.ndarray | None:
    """That of one individual is zero, though it is often written as not a number."""
    if given is None:
        return None
    raw = as_numbers(_aligned(support, given, "variances"), "fit", "variances")
    raw = raw[:, 0] if raw.shape == (len(support), 1) else raw
    if counts is not None and raw.shape in ((), counts.shape):
        raw = np.where((counts == 1) & np.isnan(raw), 0.0, raw)
    return as_rows(raw, "fit", "variances", len(support))


def refuse_duplicates(observations: Observations, noise: np.ndarray) -> None:
    """Two noise-free observations of the same support either contradict each other or say the same thing twice."""
    exact = np.flatnonzero(noise == 0)
    for rows in _alike(observations.support[exact]) if len(exact) else ():
        first, other = exact[rows[:2]]
        raise ValueError(
            f"fit: rows {first} and {other} observe the same support without noise, so their covariance is "
            "singular. Merge them, give noise_variance, or let the likelihood learn a noise variance."
        )


def contradiction(observations: Observations, noise: np.ndarray) -> tuple[int, int, float] | None:
    """Two rows of the same support that differ by more standard errors than chance allows, and by how many.

    Of two that are z apart, one is at least z / √2 from their weighted mean: those far from it are compared with all.
    """
    worst = None
    for rows in _alike(observations.support):
        y, v = observations.y[rows], np.maximum(noise[rows], TINY)
        from_mean = np.abs(y - np.average(y, weights=1 / v)) / np.sqrt(v)
        far = np.argsort(-from_mean)[:FAR]
        apart = np.abs(y[far, None] - y) / np.sqrt(v[far, None] + v)
        one, other = np.unravel_index(np.argmax(apart), apart.shape)
        z, pair = float(apart[one, other]), sorted((rows[far[one]], rows[other]))
        if z > CHANCE and (worst is None or z > worst[2]):
            worst = (int(pair[0]), int(pair[1]), z)
    return worst


def _alike(support: Support) -> list[np.ndarray]:
    """Rows of every support that occurs more than once."""
    table = np.column_stack([support.center, support.width, support.effective_weight])
    atoms = np.split(table, np.cumsum(support.atom_counts)[:-1])
    found: dict[bytes, list[int]] = {}
    for row, own in enumerate(atoms):
        found.setdefault(own.tobytes(), []).append(row)
    return [np.array(rows) for rows in found.values() if len(rows) > 1]


def _aligned(support: Support, y: Any, name: str) -> Any:
    index = getattr(y, "index", None)
    if support.labels is None or index is None or not hasattr(y, "reindex"):
        return y
    missing = set(support.labels) - set(index)
    extra = set(index) - set(support.labels)
    if not missing and not extra:
        if len(index) > len(support):
            twice = index[index.duplicated()][0]
            raise ValueError(f'fit: "{name}" must have one value for each support, but "{twice}" has several.')
        return y.reindex(support.labels)
    if list(index) == list(range(len(index))):
        return y  # a default index carries no names
    side, label = ("supports", min(missing, key=str)) if missing else (f'"{name}"', min(extra, key=str))
    same = {str(x) for x in index} == {str(x) for x in support.labels}
    kinds = (type(x).__name__ for x in (next(iter(index)), support.labels[0]))
    remedy = " The names are {} in the one and {} in the other: convert one of them.".format(*kinds) if same else ""
    raise ValueError(
        f'fit: "{name}" and the supports must name the same rows, but "{label}" is only in the {side}.{remedy}'
    )
