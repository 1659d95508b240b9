"""Closed forms over boxes against quadrature, from 1e-9 to 1e+3 lengthscales."""

import functools
import itertools

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggregauss as ag
import oracles
from aggregauss.kernels.profile import interval_means

KERNELS = {
    "RBF": ag.RBF,
    "Matern12": ag.Matern12,
    "Matern32": ag.Matern32,
    "Matern52": ag.Matern52,
    "Cosine": ag.Cosine,
}
WIDTHS = 10.0 ** np.arange(-9, 3.01, 1.0)


def _mean(name, d, p, q, scale=1.0):
    """The closed form under test, for arrays of pairs."""
    dtype = d.dtype
    profile = KERNELS[name].profile
    extremes = jnp.stack([jnp.minimum(p, q), jnp.maximum(p, q)])
    zero = jnp.zeros((1,), dtype)
    return interval_means(profile, (d[None], p[None]), (zero, q[None]), extremes, jnp.asarray(scale, dtype))[0, 0]


@functools.cache
def _gradient(name):
    return jax.jit(jax.grad(lambda d, p, q: _mean(name, d, p, q), argnums=(0, 1, 2)))


def _cases():
    """Nested, overlapping, edge on edge, touching, and disjoint at several distances."""
    cases = []
    for p, q in itertools.product(WIDTHS, WIDTHS):
        s, delta = (p + q) / 2, abs(p - q) / 2
        cases += [(d, p, q) for d in (0.0, delta, s * 0.77, s, s + 0.1, s + 1.0, s + 6.0)]
    return np.array(cases).T


@pytest.mark.parametrize("name", KERNELS)
def test_value_and_lengthscale_gradient_agree_with_the_potential_in_120_digits(name):
    d, p, q = _cases()
    if name == "Cosine":
        keep = np.maximum(p, q) <= 1e1  # beyond, cos of a difference of large numbers loses digits in the input already
        d, p, q = d[keep], p[keep], q[keep]
    scale = jnp.ones(())
    both = jax.jit(jax.vmap(jax.value_and_grad(lambda d, p, q, s: _mean(name, d, p, q, s), argnums=3), (0, 0, 0, None)))
    value, gradient = (np.asarray(x) for x in both(d, p, q, scale))
    expected = np.array([oracles.potential_mean_and_gradient(name, *case) for case in zip(d, p, q)])
    size = np.abs(expected[:, 0]) if name != "Cosine" else 1e-3 + np.abs(expected[:, 0])
    assert np.max(np.abs(value - expected[:, 0]) / size) < 1e-9
    assert np.max(np.abs(gradient - expected[:, 1]) / (size + np.abs(expected[:, 1]))) < 1e-9


@pytest.mark.parametrize("name", KERNELS)
def test_potential_agrees_with_adaptive_quadrature(name):
    cases = [
        (0.0, 1.0, 1.0),
        (0.3, 2.0, 0.1),
        (1.5, 1.0, 2.0),
        (2.0, 0.01, 0.5),
        (4.0, 1e-3, 1e-4),
        (30.0, 50.0, 2.0),
    ]
    for case in cases:
        with mp.workdps(60):
            assert mp.almosteq(oracles.quadrature_mean(name, *case), oracles.potential_mean(name, *case), rel_eps=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@given(
    d=st.floats(-8.0, 8.0),
    p=st.floats(-9.0, 1.3).map(lambda e: 10.0**e),
    q=st.floats(-9.0, 1.3).map(lambda e: 10.0**e),
)
def test_derivatives_in_position_and_width_agree_with_finite_differences_in_120_digits(name, d, p, q):
    if min(abs(abs(d) - (p + q) / 2), abs(abs(d) - abs(p - q) / 2), abs(d)) < 1e-6:
        return  # the second derivative jumps where ends meet
    gradient = _gradient(name)(d, p, q)
    with mp.workdps(120):
        step = mp.mpf(10) ** -30
        value = float(oracles.potential_mean(name, d, p, q))
        point = [mp.mpf(d), mp.mpf(p), mp.mpf(q)]
        for axis, scale in ((0, 1.0), (1, p), (2, q)):
            up, down = ([x + sign * step * (i == axis) for i, x in enumerate(point)] for sign in (1, -1))
            exact = float((oracles.potential_mean(name, *up) - oracles.potential_mean(name, *down)) / (2 * step))
            assert abs(float(gradient[axis]) - exact) * scale <= 1e-9 * (abs(value) + abs(exact) * scale) + 1e-15


@pytest.mark.parametrize("name", ["RBF", "Matern12", "Matern32", "Matern52"])
def test_single_precision_is_as_good_as_it_can_be(name):
    d, p, q = (x.astype(np.float32) for x in _cases())
    value = np.asarray(jax.jit(jax.vmap(lambda d, p, q: _mean(name, d, p, q)))(d, p, q))
    assert value.dtype == np.float32
    expected = np.array([oracles.potential_mean_and_gradient(name, *map(float, case))[0] for case in zip(d, p, q)])
    conditioning = 1.0 + d + p + q  # what a relative change of the inputs by one rounding does
    assert np.max(np.abs(value - expected) / np.abs(expected) / conditioning) < 2e-6


@given(st.floats(0.0, 1e3))
def test_mills_ratio(t):
    from aggregauss.special import mills

    with mp.workdps(30):
        x = mp.mpf(t)
        if t < 50:
            exact = mp.sqrt(mp.pi / 2) * mp.erfc(x / mp.sqrt(2)) * mp.e ** (x * x / 2)
        else:
            exact = sum((-1) ** k * mp.fac2(2 * k - 1) / x ** (2 * k + 1) for k in range(8))
    assert abs(float(mills(jnp.array(t))) / float(exact) - 1.0) < 2e-15
