"""The latent function through m inducing variables, and what a group of bags says about them.

u (see `inducing`) is whitened, u = m + L ε with L Lᵀ = Kzz and q(ε) = N(μ, Σ). With k_x = cov(f(x), u) and W = L⁻ᵀ,

    mean of f at x       m(x) + k_x α,                    α = W μ
    cov of f at x, y     k(x, y) - k_x Q k_yᵀ,            Q = W (I - Σ) Wᵀ
                         = r(x, y) + c_x Σ c_yᵀ,          c_x = k_x W,    r(x, y) = k(x, y) - k_x P k_yᵀ,    P = W Wᵀ

r is what the inducing variables leave open. Variances at N atoms need one N x m x m product forward and one backward.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from aggregauss import linalg
from aggregauss.inference.inducing import Inducing, features, inducing_covariance
from aggregauss.inference.variational import Moments2
from aggregauss.latent.means import Moments
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.supports.layout import Atoms


class Group(eqx.Module):
    """Whole bags, padded: atoms in a row with their owners, and a few probes of each bag."""

    atoms: Atoms  # (a, d)
    weight: Float[Array, " a"]
    owner: Int[Array, " a"]
    probes: Atoms  # (b, j, d): all atoms of a bag if they are few, else a sample of them
    probe_weight: Float[Array, "b j"]
    complete: Float[Array, " b"]  # 1 where the probes are all atoms, 0 where pairs of equal probes are left out
    seen: Seen
    present: Float[Array, " b"]  # 0 for padding
    task: int = eqx.field(static=True, default=0)
    every_atom: bool = eqx.field(static=True, default=False)  # whether the probes are all atoms in every bag
    in_rows: bool = eqx.field(static=True, default=False)  # whether the atoms are the probes, one row after another


class Prepared(NamedTuple):
    """The m x m quantities of the formulas above, in working precision."""

    alpha: Float[Array, " m"]
    Q: Float[Array, "m m"]
    P: Float[Array, "m m"]
    whiten: Float[Array, "m m"]
    covariance: Float[Array, "m m"]


def prior_variance(model: Any, atoms: Atoms) -> Float[Array, " n"]:
    """k(x, x) at atoms, effects included."""
    total = jnp.zeros(atoms.center.shape[:-1], atoms.center.dtype)
    if model.kernel is not None:
        total = total + model.kernel.own(atoms)
    if model.mean.effects:
        total = total + jnp.sum(model.mean.features(atoms.center) ** 2, axis=-1)
    return total


def prior_covariance(model: Any, atoms: Atoms) -> Float[Array, "*n j j"]:
    """k(x, y) within each row of atoms, effects included."""
    total = jnp.zeros((*atoms.center.shape[:-1], atoms.center.shape[-2]), atoms.center.dtype)
    if model.kernel is not None:
        total = total + model.kernel.block(atoms, atoms)
    if model.mean.effects:
        H = model.mean.features(atoms.center)
        total = total + H @ jnp.swapaxes(H, -1, -2)
    return total


def mean_at(model: Any, atoms: Atoms) -> Float[Array, "*n"]:
    """Prior mean at atoms."""
    flat = atoms.center.reshape(-1, atoms.center.shape[-1])
    return model.mean.integrate(Moments(jnp.ones_like(flat[:, 0]), flat)).reshape(atoms.center.shape[:-1])


def prepare(model: Any, Z: Inducing, q: Moments2, jitter: float) -> Prepared:
    """Everything of size m, in double precision."""
    whiten = linalg.inverse_root(inducing_covariance(model, Z, jitter))
    return prepare_white(whiten, whiten @ q.mean, q.covariance)


def prepare_white(whiten: Float[Array, "m m"], alpha: Float[Array, " m"], covariance: Float[Array, "m m"]) -> Prepared:
    """The same, given W and α."""
    Q = (whiten @ (jnp.eye(len(alpha)) - covariance)) @ whiten.T
    return Prepared(alpha, Q, whiten @ whiten.T, whiten, covariance)


def learned_variance(now: Prepared, T: Float[Array, "n m"]) -> Float[Array, " n"]:
    """c Σ cᵀ for rows of covariances with the inducing variables."""
    white = T @ now.whiten
    return jnp.sum((white @ now.covariance) * white, axis=1)


@jax.custom_vjp
def row_quadratic(K: Float[Array, "n m"], Q: Float[Array, "m m"]) -> Float[Array, " n"]:
    """k_i Q k_iᵀ for symmetric Q; keeping K Q makes the derivative one more product."""
    return _row_quadratic_fwd(K, Q)[0]


def _row_quadratic_fwd(K: Array, Q: Array) -> tuple[Array, tuple[Array, Array]]:
    KQ = K @ Q
    return jnp.sum(KQ * K, axis=1), (K, KQ)


def _row_quadratic_bwd(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    K, KQ = saved
    return 2.0 * g[:, None] * KQ, K.T @ (g[:, None] * K)


row_quadratic.defvjp(_row_quadratic_fwd, _row_quadratic_bwd)


class Probed(NamedTuple):
    """Moments of f at the probes of each bag; `open` is r and `learned` the part that q describes."""

    mean: Float[Array, "b j"]
    variance: Float[Array, "b j"]
    open: Float[Array, "b j j"]
    learned: Float[Array, "b j j"]


def probe(model: Any, Z: Inducing, now: Prepared, group: Group) -> Probed:
    """Joint moments of f at the probes."""
    K = features(model, group.probes, Z)
    white = K @ now.whiten
    learned = (white @ now.covariance) @ jnp.swapaxes(white, -1, -2)
    left = prior_covariance(model, group.probes) - white @ jnp.swapaxes(white, -1, -2)
    variance = jnp.diagonal(left + learned, axis1=-2, axis2=-1)
    return Probed(mean_at(model, group.probes) + K @ now.alpha, variance, left, learned)


def pair_sum(group: Group, values: Float[Array, "b j j"]) -> Float[Array, " b"]:
    """Σ over pairs of probes, an unbiased estimate of the sum over all pairs of individuals of the bag.

    Where probes are a sample, drawn in proportion to the weights, a pair of equal draws is left out.
    """
    w = group.probe_weight
    total = jnp.einsum("bi,bij,bj->b", w, values, w)
    own = jnp.sum(w**2 * jnp.diagonal(values, axis1=-2, axis2=-1), axis=-1)
    return total - (1.0 - group.complete) * own
