"""Inducing variables: u = (∫ f dμ_j over supports, whitened coefficients of linear effects).

A point is a support like any other, and so is an interval or a bag. Covariances among the integrals are those of
`kernels.covariance`; between an atom x and the integral over a support of atoms j with weights w it is Σ_j w_j k(x, j).
"""

import functools
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.kernels.covariance import gram, symmetric, with_atoms
from aggregauss.latent.coregionalisation import Coregionalised
from aggregauss.latent.means import Moments
from aggregauss.supports.layout import Atoms, Layout, layout
from aggregauss.supports.support import Support

JITTER = {"float64": 1e-8, "float32": 1e-4}  # relative to the diagonal of Kzz: Q is applied in working precision

Inducing = Layout | None  # every support in one piece; None where there is no kernel


def on_device(support: Support | None) -> Inducing:
    """The supports, ready for the functions below."""
    return None if support is None else layout(support, whole=True)


def entries(Z: Inducing, effects: int) -> int:
    """Numbers that one row of covariances with the inducing variables takes while it is made."""
    return effects if Z is None else Z.size * Z.center.shape[2] + effects


def inducing_factor(model: Any, Z: Inducing, jitter: float) -> Float[Array, "m m"]:
    """L, the Cholesky factor of Kzz."""
    return linalg.root(inducing_covariance(model, Z, jitter))


def inducing_covariance(model: Any, Z: Inducing, jitter: float) -> Float[Array, "m m"]:
    """Kzz, with the jitter; whole, because the derivative of a root reads both triangles."""
    p = model.mean.effects
    if Z is None:
        return jnp.eye(p)
    K = symmetric(gram(model.kernel, Z))
    K = K + jnp.diag(jitter * jnp.diagonal(K))
    return jnp.eye(Z.size + p, dtype=K.dtype).at[: Z.size, : Z.size].set(K)


def inducing_mean(model: Any, Z: Inducing) -> Float[Array, " m"]:
    """Prior mean of u."""
    rest = jnp.zeros(model.mean.effects)
    if Z is None:
        return rest
    mass, x = _moments(Z)
    return jnp.concatenate([model.mean.integrate(Moments(mass, x)), rest])


def of_level(model: Any, Z: Inducing, level: float) -> Float[Array, " m"]:
    """What u would be if f were constant."""
    rest = jnp.zeros(model.mean.effects)
    return rest if Z is None else jnp.concatenate([level * _moments(Z)[0], rest])


def features(model: Any, atoms: Atoms, Z: Inducing) -> Float[Array, "*n m"]:
    """Covariances of f at atoms with u."""
    parts = []
    if Z is not None:
        kernel, several = model.kernel, isinstance(model.kernel, Coregionalised)
        rule = kernel.with_functions if several else functools.partial(with_atoms, kernel)
        parts.append(rule(atoms, *Z.all_pieces()))
    if model.mean.effects:
        parts.append(model.mean.features(atoms.center))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)


def _moments(Z: Layout) -> tuple[Float[Array, " m"], Float[Array, "m d"]]:
    atoms, weight = Z.all_pieces()
    center = atoms.center.reshape(*weight.shape, -1)
    return jnp.sum(weight, axis=1), jnp.einsum("mad,ma->md", center, weight)
