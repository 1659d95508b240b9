"""Several outputs from few functions: f_c = Σ_q Σ_r W_q[c, r] u_qr, with independent u_qr ~ GP(0, k_q).

The number c of an output, its *channel*, is one more column of the inputs, the last:

    Cov(f_c(x), f_c'(x')) = Σ_q B_q[c, c'] k_q(x, x'),        B_q = W_q W_qᵀ of rank R_q.

The functions u_qr have channels too, after those of the outputs: there W_q goes on with unit rows. So values
of u_qr at inducing points, and covariances of outputs with them, are values of the one kernel like any other.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aggregauss.kernels.covariance import with_atoms
from aggregauss.kernels.kernel import Kernel, Wide
from aggregauss.kernels.white import White, continuous
from aggregauss.latent.means import Mean, Moments
from aggregauss.parameters import Mark, Param, Parametric, parameter
from aggregauss.supports.layout import Atoms, at_points
from aggregauss.supports.support import Support


class Mixing(Parametric):
    """W_q: how much of each function u_q1 ... u_qR every channel takes.

    Above its diagonal W_q is zero: every W_q W_qᵀ can be had so, and the data could not tell more.
    """

    weights: Float[Array, " entries"] = parameter(constraint="real", role="mixing")  # of W_q row by row
    channels: int = eqx.field(static=True, kw_only=True)
    rank: int = eqx.field(static=True, kw_only=True)

    def __init__(self, channels: int, rank: int = 1, weights: Any = None):
        self.channels, self.rank = channels, rank
        start = Param(np.ones(len(self.entries[0])), Mark(start_from_data=True))
        self._declare(weights=start if weights is None else weights)

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of W_q that are not zero."""
        return np.tril_indices(self.channels, m=self.rank)

    @property
    def matrix(self) -> Float[Array, "channels rank"]:
        """W_q."""
        empty = jnp.zeros((self.channels, self.rank), self.weights.dtype)
        return empty.at[self.entries].set(self.weights)


class Coregionalised(Kernel):
    """The covariance above; inputs have the channel as their last column."""

    latents: tuple[Kernel, ...]
    mixing: tuple[Mixing, ...]

    def __init__(self, latents: tuple[Kernel, ...], mixing: tuple[Mixing, ...]):
        self.latents, self.mixing = tuple(latents), tuple(mixing)
        self.active_dims, self.marks = None, ()

    @property
    def channels(self) -> int:
        """Number of outputs."""
        return self.mixing[0].channels

    @property
    def functions(self) -> int:
        """Number of functions u_qr."""
        return sum(m.rank for m in self.mixing)

    @property
    def continuous(self) -> "Kernel":
        """Without white parts; a white kernel if nothing else is there."""
        parts = [(continuous(kernel), m) for kernel, m in zip(self.latents, self.mixing)]
        kept = [(kernel, m) for kernel, m in parts if kernel is not None]
        return Coregionalised(*zip(*kept)) if kept else White()

    def rows(self, q: int, dtype: Any) -> Float[Array, "channels_functions rank"]:
        """W_q, continued by unit rows for its own functions and zeros for those of others."""
        before = sum(m.rank for m in self.mixing[:q])
        own = jnp.eye(self.functions, self.mixing[q].rank, -before, dtype=dtype)
        return jnp.concatenate([self.mixing[q].matrix.astype(dtype), own])

    def block(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """Σ_q B_q ∘ (means of k_q over pairs of atoms)."""
        (a, c), (b, d) = _split(A), _split(B)
        total = None
        for q, kernel in enumerate(self.latents):
            W = self.rows(q, a.center.dtype)
            part = (W[c] @ jnp.swapaxes(W[d], -1, -2)) * kernel.block(a, b)
            total = part if total is None else total + part
        assert total is not None
        return total

    def with_functions(self, A: Atoms, B: Atoms, weight: Float[Array, "m a"]) -> Float[Array, "*n m"]:
        """Covariances of atoms of one channel with integrals of all functions u_qr in their order, as many of each."""
        (a, c), (b, _), parts = _split(A), _split(B), []
        center, width, weights = (jnp.split(x, self.functions) for x in (b.center, b.width, weight))
        own = (Atoms(x, w, b.extremes, b.wide) for x, w in zip(center, width))
        each = zip(own, weights)
        for q, kernel in enumerate(self.latents):
            W = self.rows(q, a.center.dtype)[c.ravel()[0]]
            parts += [W[r] * with_atoms(kernel, a, *next(each)) for r in range(self.mixing[q].rank)]
        return jnp.concatenate(parts, axis=-1)

    def own(self, A: Atoms) -> Float[Array, "*n"]:
        """Σ_q B_q[c, c] times the mean of k_q over each atom paired with itself."""
        a, c = _split(A)
        parts = [jnp.sum(self.rows(q, a.center.dtype)[c] ** 2, axis=-1) * k.own(a) for q, k in enumerate(self.latents)]
        return sum(parts[1:], parts[0])

    def points(self, X: Float[Array, "*b n d"], Y: Float[Array, "*b m d"]) -> Float[Array, "*b n m"]:
        """At points."""
        return self.block(at_points(X), at_points(Y))

    def boxes(self, A: Atoms, B: Atoms) -> Float[Array, "*b n m"]:
        """Each part has its own rule."""
        return self.block(A, B)

    def integrable(self, wide: Wide) -> bool:
        """Always: the mean of a sum is the sum of the means."""
        return True

    def rules(self, wide: Wide) -> list[str]:
        """The rule of each latent function's kernel."""
        return [rule for kernel in self.latents for rule in kernel.rules(wide[:-1])]

    def touches(self, dim: int) -> frozenset[int]:
        """Whatever some latent function depends on, and the channel."""
        return frozenset({dim - 1}).union(*(kernel.touches(dim - 1) for kernel in self.latents))

    def check_dim(self, dim: int) -> None:
        """Each latent function's own check."""
        for kernel in self.latents:
            kernel.check_dim(dim - 1)


class Levels(Mean):
    """A constant mean for each channel; the functions u_qr have none."""

    values: Float[Array, " channels"] = parameter(constraint="real", role="level")

    def __init__(self, channels: int, values: Any = None):
        self._declare(values=Param(np.zeros(channels), Mark(start_from_data=True)) if values is None else values)

    def integrate(self, moments: Moments) -> Float[Array, " n"]:
        """value · ∫ 1 dμ, with the value of the support's channel."""
        channel = jnp.round(moments.x[:, -1] / moments.one).astype(int)
        values = jnp.where(channel < len(self.values), self.values[jnp.minimum(channel, len(self.values) - 1)], 0.0)
        return values.astype(moments.one.dtype) * moments.one


def with_channel(support: Support, channel: int) -> Support:
    """The same supports as those of one channel."""
    column = np.full((len(support.center), 1), float(channel))
    center = np.hstack([support.center, column])
    return dataclasses.replace(support, center=center, width=np.hstack([support.width, 0.0 * column]))


def channels_on(atoms: Atoms, steps: int) -> Atoms:
    """The same atoms in a later channel."""
    return eqx.tree_at(lambda a: a.center, atoms, atoms.center.at[..., -1].add(steps))


def without_channel(support: Support) -> Support:
    """The supports themselves."""
    return dataclasses.replace(support, center=support.center[:, :-1], width=support.width[:, :-1])


def _split(A: Atoms) -> tuple[Atoms, Int[Array, "*n"]]:
    """The atoms without their last column, and the channels in it."""
    return A.select(tuple(range(A.center.shape[-1] - 1))), jnp.round(A.center[..., -1]).astype(int)
