"""Classes: p(y = c) = e^{f_c} / Σ_k e^{f_k} with f_0 = 0.

    E log p(y | f) = -E log Σ_k e^{f_k - f_y},

the expectation by Gauss-Hermite quadrature for up to three classes, and by a fixed set of quasi-random normal numbers
for more: its error is then about 1e-3.
"""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import whole_number
from aggregauss.likelihoods.joint import JointLikelihood
from aggregauss.likelihoods.likelihood import Seen, Values, whole
from aggregauss.marginals import ClassMarginals, Marginals

NODES, DRAWS = 24, 256


class Categorical(JointLikelihood):
    """One of several classes 0, 1, ...; the log odds of each against class 0 is a function; for `MultiTaskGP`.

    >>> import aggregauss as ag
    >>> ag.Categorical(3).functions
    2
    """

    classes: int = eqx.field(static=True, kw_only=True)

    def __init__(self, classes: int):
        self.classes = whole_number(classes, "Categorical", "classes", least=2)
        self._declare()
        self._set_link("identity")

    @property
    def functions(self) -> int:
        """One less than there are classes."""
        return self.classes - 1

    def log_prob(self, y: Values, eta: Values, size: Values | float = 1.0) -> Values:
        """log p(y | f), functions along the last axis."""
        logs = jax.nn.log_softmax(_with_zero(eta), axis=-1)
        return jnp.take_along_axis(logs, y.astype(int)[..., None], axis=-1)[..., 0]

    def expected_jointly(self, seen: Seen, m: Float[Array, "n p"], C: Float[Array, "n p p"]) -> Values:
        """The formula above."""
        nodes, weights = _nodes(self.functions)
        f = _draws(m, C, jnp.asarray(nodes, m.dtype))
        f = _with_zero(f)
        own = jnp.take_along_axis(f, seen.y.astype(int)[:, None, None], axis=-1)
        return -jax.nn.logsumexp(f - own, axis=-1) @ jnp.asarray(weights, m.dtype)

    def response_jointly(self, m: np.ndarray, C: np.ndarray) -> Marginals:
        """Probabilities of the classes."""
        nodes, weights = _nodes(self.functions)
        f = _draws(jnp.asarray(m), jnp.asarray(C), jnp.asarray(nodes))
        return ClassMarginals.of(np.asarray(jax.nn.softmax(_with_zero(f), axis=-1)), weights)

    def observation_jointly(self, m: np.ndarray, C: np.ndarray) -> Marginals:
        """Their expectations are the probabilities of a new label."""
        return self.response_jointly(m, C)

    def scales(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log odds of the classes."""
        share = np.bincount(y.astype(int), minlength=self.classes) + 0.5
        return np.log(share[1:] / share[0]), np.ones(self.functions)

    def check(self, y: np.ndarray, counts: np.ndarray | None, is_mean: bool) -> None:
        """Labels 0 ... classes - 1."""
        super().check(y, counts, is_mean)
        self._refuse(
            y, ~whole(y) | (y >= self.classes), f"labels 0 to {self.classes - 1}", "Number the classes from 0."
        )


def _with_zero(f: Float[Array, "*n p"]) -> Float[Array, "*n c"]:
    return jnp.concatenate([jnp.zeros_like(f[..., :1]), f], axis=-1)


def _draws(m: Float[Array, "n p"], C: Float[Array, "n p p"], nodes: Float[Array, "s p"]) -> Float[Array, "n s p"]:
    return m[:, None, :] + jnp.einsum("sp,nqp->nsq", nodes, _root(C))


def _root(C: Float[Array, "n p p"]) -> Float[Array, "n p p"]:
    """The Cholesky factor, with pivots and slopes that stay finite where rounding leaves C not quite definite."""
    floor = 10 * jnp.finfo(C.dtype).eps * jnp.maximum(jnp.trace(C, axis1=1, axis2=2), 1e-6)
    columns = []
    for j in range(C.shape[1]):
        known = sum((column[:, j : j + 1] * column for column in columns), jnp.zeros_like(C[:, 0]))
        rest = C[:, :, j] - known
        pivot = jnp.sqrt(jnp.maximum(rest[:, j], floor))
        below = jnp.arange(C.shape[1])[None, :] > j
        columns.append(jnp.where(below, rest / pivot[:, None], 0.0).at[:, j].set(pivot))
    return jnp.stack(columns, axis=2)


@functools.cache
def _nodes(functions: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights for averages over independent standard normal numbers."""
    if functions <= 2:
        z, w = np.polynomial.hermite_e.hermegauss(NODES)
        weights = np.prod(list(itertools.product(w / w.sum(), repeat=functions)), axis=1)
        return np.array(list(itertools.product(z, repeat=functions))), weights
    from scipy.stats import qmc

    half = qmc.MultivariateNormalQMC(np.zeros(functions), rng=np.random.default_rng(0)).random(DRAWS // 2)
    return np.concatenate([half, -half]), np.full(DRAWS, 1.0 / DRAWS)
