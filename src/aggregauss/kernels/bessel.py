"""t K₁(t) and t K₀(t) for t >= 0, to 1e-14 relative; the derivative of the first is minus the second.

Up to t = 2 with z = t²/4 and the power series of the modified Bessel functions (Abramowitz and Stegun 9.6.10-13),

    t K₁ = 1 + 2 z (log(t/2) Σ z^k / (k! (k+1)!) - ½ Σ (ψ(k+1) + ψ(k+2)) z^k / (k! (k+1)!)),
    K₀ = -log(t/2) Σ z^k / k!² + Σ ψ(k+1) z^k / k!²,

and beyond as √t e^{-t} times a polynomial in u = 4/t - 1, the Chebyshev interpolant of what is left.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.special import polynomial

SPLIT, TERMS, DEGREE = 2.0, 13, 18


@jax.custom_jvp
def t_k1(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """t K₁(t), one at zero.

    >>> print(f"{t_k1(jnp.asarray(1.0)):.12f}")
    0.601907230197
    """
    with_log, without = _series(1)

    def small(log: Array, z: Array) -> Array:
        return 1.0 + 2.0 * z * (log * polynomial(with_log, z) + polynomial(without, z))

    return _pieces(t, small, _tail(1))


@t_k1.defjvp
def _t_k1_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (t,), (t_dot,) = primals, tangents
    apart = jax.lax.optimization_barrier(t)  # the two in one loop take a CPU three times as long as in two
    return t_k1(t), -t_k0(apart) * t_dot


def t_k0(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """t K₀(t), zero at zero."""
    with_log, without = _series(0)

    def small(log: Array, z: Array) -> Array:
        return 2.0 * jnp.sqrt(z) * (log * polynomial(with_log, z) + polynomial(without, z))

    return _pieces(t, small, _tail(0))


def _pieces(t: Array, small: Callable[[Array, Array], Array], tail: tuple[float, ...]) -> Array:
    tiny = float(jnp.finfo(t.dtype).tiny) ** 0.5
    near, far = jnp.clip(t, tiny, SPLIT), jnp.maximum(t, SPLIT)
    beyond = jnp.sqrt(far) * jnp.exp(-far) * polynomial(tail, 2.0 * SPLIT / far - 1.0)
    return jnp.where(t <= SPLIT, small(jnp.log(0.5 * near), 0.25 * near**2), beyond)


@functools.cache
def _series(order: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coefficients in z of what multiplies log(t/2), and of the rest."""
    psi = [-np.euler_gamma + sum(1.0 / j for j in range(1, k)) for k in range(1, TERMS + 2)]  # ψ(1), ψ(2), ...
    if order == 1:
        c = [1.0 / (math.factorial(k) * math.factorial(k + 1)) for k in range(TERMS)]
        return tuple(c), tuple(-0.5 * (psi[k] + psi[k + 1]) * c[k] for k in range(TERMS))
    c = [1.0 / math.factorial(k) ** 2 for k in range(TERMS)]
    return tuple(-x for x in c), tuple(psi[k] * c[k] for k in range(TERMS))


@functools.cache
def _tail(order: int) -> tuple[float, ...]:
    """√t e^t K(t) for t >= SPLIT as a polynomial in u = 2 SPLIT / t - 1."""
    from numpy.polynomial import chebyshev
    from scipy.special import k0e, k1e

    def left(u: Any) -> Any:
        t = 2.0 * SPLIT / (1.0 + u)
        return np.sqrt(t) * (k1e if order == 1 else k0e)(t)

    return tuple(map(float, chebyshev.cheb2poly(chebyshev.chebinterpolate(left, DEGREE))))
