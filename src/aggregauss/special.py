"""Special functions, each as one polynomial of a variable that maps the whole axis to [-1, 1].

The Mills ratio M(t) = e^{t²/2} ∫_t^∞ e^{-x²/2} dx, to 6e-16 relative for t >= 0: (t + 5) M(t) is a smooth function of
u = (t - 5)/(t + 5), and the polynomial below its Chebyshev interpolant of degree 23. One polynomial and one division:
with the e^{-t²/2} that the RBF kernel needs anyway, erfc comes for less than half of its own cost, and keeps its
relative accuracy however far out.

The expected logarithm L(x) = E log(x + Z)², Z ~ N(0, 1), to 1e-14: L(x) - log(x² + 25) is a smooth function R of
u = (x² - 25)/(x² + 25). R(-1) is known and R' follows from L'(x) = 2√2 D(x/√2), D the Dawson function, so that R is
the integral of an interpolant of degree 35. Derivatives are those of the polynomial: the first is right to 1e-13, the
second to 1e-12.
"""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

SHIFT = 5.0
SQUARED_SHIFT, DEGREE = 25.0, 35
COEFFICIENTS = (
    1.9280810471531575, -1.66786659518896, 1.241547061573877, -0.7859110755465453, 0.41364471573217226,
    -0.17325473408715042, 0.05212550242182693, -0.007503282820678759, -0.0019999620670556138, 0.0013658591609424361,
    -0.00014883252854029768, -0.00012473565818721082, 4.181269707272043e-05, 9.974780085542733e-06,
    -6.9405498481783575e-06, -8.360675980181407e-07, 1.0865648093633823e-06, 9.668428357216325e-08,
    -1.6898908396071304e-07, -1.7398124277679196e-08, 2.324918339616538e-08, 3.1868668438665133e-09,
    -1.968820796668673e-09, -3.336850487923168e-10,
)  # fmt: skip


def mills(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """M(t) for t >= 0."""
    inverse = 1.0 / (t + SHIFT)
    return polynomial(COEFFICIENTS, (t - SHIFT) * inverse) * inverse


def log_mills(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """log M(t) for any t; below zero M = √(2π) e^{t²/2} Φ(-t)."""
    positive, negative = jnp.maximum(t, 0.0), jnp.minimum(t, 0.0)
    below = log_ndtr(-negative) + 0.5 * negative**2 + 0.5 * jnp.log(2 * jnp.pi)
    return jnp.where(t >= 0, jnp.log(mills(positive)), below)


def expected_log_square(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """L(x) = E log(x + Z)², Z ~ N(0, 1); for v ~ N(m, S) then E log v² = log S + L(m / √S).

    >>> print(f"{expected_log_square(jnp.zeros(())):.6f}")  # -γ - log 2
    -1.270363
    """
    shifted = x**2 + SQUARED_SHIFT
    return jnp.log(shifted) + polynomial(_remainder(), 1.0 - 2.0 * SQUARED_SHIFT / shifted)


def polynomial(coefficients: tuple[float, ...], u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Σ c_k u^k."""
    total = jnp.full_like(u, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * u + coefficient
    return total


@functools.cache
def _remainder() -> tuple[float, ...]:
    """Coefficients of R(u) = L(x) - log(x² + c), from dR/du = (L'(x) - 2x / (x² + c)) (x² + c)² / (4 c x)."""
    from numpy.polynomial import chebyshev
    from scipy.special import dawsn

    def slope(u: Any) -> Any:
        x = np.sqrt(SQUARED_SHIFT * (1 + u) / (1 - u))
        shifted = x**2 + SQUARED_SHIFT
        difference = 2 * np.sqrt(2) * dawsn(x / np.sqrt(2)) - 2 * x / shifted
        return difference * shifted**2 / (4 * SQUARED_SHIFT * x)

    series = chebyshev.chebint(chebyshev.chebinterpolate(slope, DEGREE), lbnd=-1)
    series[0] += -np.euler_gamma - np.log(2) - np.log(SQUARED_SHIFT)
    return tuple(map(float, chebyshev.cheb2poly(series)))
