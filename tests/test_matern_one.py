"""Matern of order one: Bessel functions against mpmath and SciPy, and the field that SPDE software describes."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special

import aggregauss as ag
from aggregauss.kernels.bessel import t_k0, t_k1

AT = np.concatenate([np.geomspace(1e-9, 2.0, 60), [2.0 - 1e-12, 2.0 + 1e-12], np.geomspace(2.0, 600.0, 60)])


@pytest.mark.parametrize(("ours", "order"), [(t_k1, 1), (t_k0, 0)])
def test_bessel_functions_equal_mpmath(ours, order):
    with mpmath.workdps(40):
        truth = np.array([float(mpmath.mpf(float(t)) * mpmath.besselk(order, mpmath.mpf(float(t)))) for t in AT])
    np.testing.assert_allclose(ours(jnp.asarray(AT)), truth, rtol=3e-14)


def test_bessel_functions_equal_scipy():
    t = np.random.default_rng(0).exponential(3.0, 2000)
    np.testing.assert_allclose(t_k1(jnp.asarray(t)), t * special.k1(t), rtol=3e-14)
    np.testing.assert_allclose(t_k0(jnp.asarray(t)), t * special.k0(t), rtol=3e-14)


def test_at_zero_the_correlation_is_one_and_flat():
    value, slope = jax.value_and_grad(t_k1)(jnp.zeros(()))
    assert (float(value), float(slope)) == (1.0, 0.0)


def test_slope_is_minus_t_k0_and_curvature_follows():
    t = jnp.asarray(AT[::4])
    np.testing.assert_allclose(jax.vmap(jax.grad(t_k1))(t), -np.asarray(t) * special.k0(t), rtol=3e-14)
    second = jax.vmap(jax.grad(jax.grad(t_k1)))(t)
    np.testing.assert_allclose(second, np.asarray(t) * special.k1(t) - special.k0(t), rtol=1e-9, atol=1e-300)


def test_single_precision():
    t = np.linspace(0.0, 30.0, 500)
    found = t_k1(jnp.asarray(t, jnp.float32))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, np.where(t > 0, t * special.k1(np.maximum(t, 1e-300)), 1.0), rtol=3e-5)


def test_spectral_density_is_that_of_the_stochastic_equation():
    """∫ k(|s|) J₀(ω |s|) ds over the plane = σ² 4π κ² / (κ² + ω²)², with κ = √8 / range."""
    lengthscale, variance = 1.5, 0.6
    kernel, kappa = ag.Matern1(lengthscale, variance), np.sqrt(8.0) / (2 * lengthscale)

    nodes, weights = np.polynomial.legendre.leggauss(200)
    r = 20.0 * (nodes + 1)
    k = np.asarray(ag.cov(kernel, ag.Points([[0.0, 0.0]]), ag.Points(np.stack([r, 0 * r], 1))))[0]
    for omega in (0.0, 0.7, 2.0):
        found = np.sum(20.0 * weights * 2 * np.pi * r * k * special.j0(omega * r))
        assert found == pytest.approx(variance * 4 * np.pi * kappa**2 / (kappa**2 + omega**2) ** 2, rel=1e-6)
