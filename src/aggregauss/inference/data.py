"""Observations, checked and arranged for the device."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aggregauss.archive import storable
from aggregauss.checks import as_vector, first_bad
from aggregauss.latent.means import Moments, moments
from aggregauss.likelihoods import Gaussian, Likelihood
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support


class Data(eqx.Module):
    """What an objective needs: where, what, and how noisy."""

    layout: Layout
    moments: Moments
    y: Float[Array, " n"]
    noise_variance: Float[Array, " n"]
    scale: Float[Array, " n"]  # Σ w² over the individuals of each support
    task: Int[Array, " n"]  # number of the task that each observation belongs to


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """Supports with their observed values and known noise variances, on the host."""

    support: Support
    y: np.ndarray
    noise_variance: np.ndarray
    counts: np.ndarray | None = None  # numbers of trials
    task: np.ndarray | None = None  # number of the task of each row, where there are several

    def on_device(self) -> Data:
        """The same as arrays in tiles."""
        return Data(
            layout(self.support),
            moments(self.support),
            jnp.asarray(self.y),
            jnp.asarray(self.noise_variance),
            jnp.asarray(self.support.square_weight),
            jnp.zeros(len(self.y), int) if self.task is None else jnp.asarray(self.task),
        )

    def __getitem__(self, rows: np.ndarray) -> "Observations":
        """Some of the rows."""
        optional = (None if x is None else x[rows] for x in (self.counts, self.task))
        return Observations(self.support[rows], self.y[rows], self.noise_variance[rows], *optional)

    def noise_scale(self, likelihood: Likelihood) -> np.ndarray:
        """What the learned noise variance of each observation is multiplied by."""
        individual = isinstance(likelihood, Gaussian) and likelihood.per == "individual"
        return self.support.square_weight if individual else np.ones(len(self.y))

    @property
    def density(self) -> np.ndarray:
        """Each observation as a level of the latent function: totals over their mass, means as they are."""
        return self.y / self.support.effective_mass


def observe(support: Any, y: Any, noise_variance: Any, counts: Any = None) -> Observations:
    """Checked observations; a pandas Series is aligned with the labels of the support."""
    if not isinstance(support, Support):
        raise TypeError(
            f'fit: "support" must be a batch of supports such as Points, Intervals or Bags, but got '
            f"{type(support).__name__}. Wrap point locations as Points(X)."
        )
    if len(support) == 0:
        raise ValueError('fit: "support" has no rows. Give at least one observation.')
    values = as_vector(_aligned(support, y, "y"), "fit", "y", len(support))
    if noise_variance is None:
        noise = np.zeros(len(support))
    else:
        given = np.broadcast_to(noise_variance, len(support)) if np.ndim(noise_variance) == 0 else noise_variance
        noise = as_vector(given, "fit", "noise_variance", len(support))
    if (noise < 0).any():
        row = first_bad(noise < 0)[0]
        raise ValueError(f'fit: "noise_variance" must not be negative, but row {row} is {noise[row]}.')
    trials = None if counts is None else as_vector(_aligned(support, counts, "counts"), "fit", "counts", len(support))
    return Observations(support, values, noise, trials)


def refuse_duplicates(observations: Observations) -> None:
    """Two noise-free observations of the same support either contradict each other or say the same thing twice."""
    support = observations.support
    exact = np.flatnonzero(observations.noise_variance == 0)
    seen: dict[bytes, int] = {}
    atoms = np.split(
        np.column_stack([support.center, support.width, support.effective_weight]),
        np.cumsum(support.atom_counts)[:-1],
    )
    for row in exact:
        key = atoms[row].tobytes()
        if key in seen:
            raise ValueError(
                f"fit: rows {seen[key]} and {row} observe the same support without noise, so their covariance is "
                "singular. Merge them, give noise_variance, or let Gaussian() learn a noise variance."
            )
        seen[key] = int(row)


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
    side, label = ("supports", next(iter(missing))) if missing else (f'"{name}"', next(iter(extra)))
    raise ValueError(f'fit: "{name}" and the supports must name the same rows, but "{label}" is only in the {side}.')
