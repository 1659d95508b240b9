"""Roots and inverses of matrices: what defines them, and their derivatives beside those that JAX finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aggregauss import linalg

RNG = np.random.default_rng(4)
A = RNG.standard_normal((7, 7))
K = jnp.asarray(A @ A.T + np.eye(7))
SLOPE = jnp.asarray(RNG.standard_normal((7, 7)))
BY_CHOLESKY = {
    linalg.root: jnp.linalg.cholesky,
    linalg.inverse_root: lambda K: jnp.linalg.inv(jnp.linalg.cholesky(K)).T,
    linalg.inverse: jnp.linalg.inv,
}


def test_a_root_times_itself_is_the_matrix_and_the_inverse_undoes_it():
    L, W = linalg.root(K), linalg.inverse_root(K)
    np.testing.assert_allclose(L @ L.T, K, rtol=1e-12)
    np.testing.assert_allclose(W.T @ K @ W, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(linalg.inverse(K) @ K, np.eye(7), atol=1e-12)


@pytest.mark.parametrize("rule", BY_CHOLESKY, ids=lambda rule: rule.__name__)
def test_derivatives_are_those_through_the_cholesky_factor(rule):
    """Forward and backward, along symmetric changes of a symmetric matrix."""

    def along(rule, t):
        return jnp.sum(SLOPE * rule(K + t * (SLOPE + SLOPE.T)))

    mine, theirs = (jax.grad(along, 1)(r, 0.1) for r in (rule, BY_CHOLESKY[rule]))
    np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    forward = jax.jvp(lambda t: along(rule, t), (0.1,), (1.0,))[1]
    np.testing.assert_allclose(forward, theirs, rtol=1e-10)


@pytest.mark.parametrize("rule", BY_CHOLESKY, ids=lambda rule: rule.__name__)
def test_what_is_not_positive_definite_has_no_number(rule):
    with jax.debug_nans(False):
        assert np.isnan(np.asarray(rule(K.at[6, 6].set(-1.0)))[-1, -1])
