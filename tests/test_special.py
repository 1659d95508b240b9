"""Special functions against arbitrary precision."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import dawsn

from aggregauss.special import expected_log_square

X = np.concatenate([[0.0], np.geomspace(1e-8, 1e8, 120)])
FIRST = jax.jit(jax.vmap(jax.grad(expected_log_square)))
SECOND = jax.jit(jax.vmap(jax.grad(jax.grad(expected_log_square))))


def _exact(x):
    """-γ - log 2 + x² ₂F₂(1, 1; 3/2, 2; -x²/2), beyond 30 the divergent expansion up to terms of 1e-20."""
    with mp.workdps(60):
        x = mp.mpf(x)
        if x < 30:
            return float(-mp.euler - mp.log(2) + x**2 * mp.hyp2f2(1, 1, 1.5, 2, -(x**2) / 2))
        return float(2 * mp.log(x) - sum(mp.fac2(2 * k - 1) / (k * x ** (2 * k)) for k in range(1, 13)))


def test_expected_log_square_agrees_with_its_hypergeometric_form():
    ours = jax.jit(expected_log_square)(jnp.asarray(X))
    np.testing.assert_allclose(ours, [_exact(float(x)) for x in X], rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(jax.jit(expected_log_square)(-jnp.asarray(X)), ours)


@pytest.mark.parametrize("x", [0.0, 0.7, 2.5, 9.0])
def test_expected_log_square_is_an_expectation(x):
    def integrand(z):
        return np.log((x + z) ** 2) * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)

    integral = quad(integrand, -12.0, -x)[0] + quad(integrand, -x, 12.0)[0]
    assert float(expected_log_square(jnp.asarray(x))) == pytest.approx(integral, abs=1e-8)


def test_slopes_of_expected_log_square_follow_the_dawson_function():
    x = np.concatenate([-X[::-1], X])
    dawson = 2 * np.sqrt(2) * dawsn(x / np.sqrt(2))
    bend = SECOND(jnp.asarray(x))
    np.testing.assert_allclose(FIRST(jnp.asarray(x)), dawson, rtol=1e-12)
    np.testing.assert_allclose(bend, 2 - x * dawson, atol=1e-12)
    assert float(bend[-1]) == pytest.approx(-2e-16, rel=1e-9)


def test_slopes_of_expected_log_square_agree_with_differences():
    x, h = jnp.linspace(-40.0, 40.0, 2 * len(X)), 1e-4
    left, middle, right = (jax.jit(expected_log_square)(x + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose(FIRST(x), (right - left) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(SECOND(x), (left - 2 * middle + right) / h**2, atol=2e-6)


def test_expected_log_square_keeps_single_precision():
    x = jnp.asarray(X, jnp.float32)
    ours = expected_log_square(x)
    assert ours.dtype == jnp.float32
    np.testing.assert_allclose(ours, expected_log_square(jnp.asarray(x, jnp.float64)), rtol=1e-5, atol=1e-5)
    assert bool(jnp.isfinite(FIRST(x)).all())
    assert bool(jnp.isfinite(SECOND(x)).all())


def test_expected_log_square_gives_the_expected_logarithm_of_any_normal_square():
    mean, variance = 1.3, 0.4
    draws = np.random.default_rng(0).normal(mean, np.sqrt(variance), 200_000)
    ours = np.log(variance) + float(expected_log_square(jnp.asarray(mean / np.sqrt(variance))))
    assert ours == pytest.approx(np.mean(np.log(draws**2)), abs=0.02)
