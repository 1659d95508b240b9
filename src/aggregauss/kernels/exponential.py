"""Means over intervals of an exponential polynomial ρ(t) = Σ_j c_j t^j e^{-t}.

For intervals of widths p and q with a gap between them the exponential factorises: with m_i(p) = ∫_0^1 v^i e^{-pv} dv,

    D(p, q; gap) = e^{-gap} Σ_j c_j Σ_{a+b+e=j} j!/(a! b! e!) gap^a p^b m_b(p) q^e m_e(q),

and over an interval of width o with itself  S(o) = 2 Σ_j c_j o^j (m_j(o) - m_{j+1}(o)).  Overlapping intervals are cut
at each other's ends into pieces that are equal or disjoint. Where the c_j have one sign nothing ever cancels, at any
width. Derivatives are therefore not left to autodiff: in log(scale) it is the mean of -t ρ'(t), in the distance the
mean of ±ρ'(t), which are exponential polynomials again, and in a width it is a difference of means.
"""

import dataclasses
import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from aggregauss.kernels.profile import Profile, Rule

Coefficients = tuple[float, ...]
SERIES_BELOW = 0.5  # moments by series below, by recurrence above
SERIES_TERMS = 13


@dataclasses.dataclass(frozen=True)
class Exponential(Profile):
    """ρ(t) = Σ_j c_j (rate · t)^j e^{-rate · t}."""

    c: Coefficients
    rate: float

    def value(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """ρ(t)."""
        t = self.rate * t
        return sum((c * t**j for j, c in enumerate(self.c)), jnp.zeros((), t.dtype)) * jnp.exp(-t)

    def rules(self) -> tuple[Rule]:
        """The mean of ρ and of -t ρ'(t), from the same equal and disjoint pieces."""
        return (self._mean,)

    def push(self, primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Array:
        """In the distance the mean of ±ρ'; in a width, the mean at its ends less the mean, over the width."""
        (d, p, q, scale), (d_dot, p_dot, q_dot) = primals, tangents
        rate = self.rate / scale
        change = _odd(_slope(self.c), _cut(d, p, q, rate, len(self.c))) * (rate * d_dot)
        value = self._mean(d, p, q, scale)[0]
        for width, width_dot, other in ((p, p_dot, q), (q, q_dot, p)):
            near, far = jnp.abs(d - width / 2), d + width / 2
            ends = [self._mean(x, other, jnp.zeros_like(other), scale)[0] for x in (near, far)]
            change = change + ((ends[0] + ends[1]) / 2 - value) * (width_dot / jnp.where(width > 0, width, 1.0))
        return change

    def _mean(self, d: Array, p: Array, q: Array, scale: Array) -> tuple[Array, Array]:
        pieces = _cut(d, p, q, self.rate / scale, len(self.c) + 1)
        return _even(self.c, pieces), _even((0.0, *(-b for b in _slope(self.c))), pieces)


class Pieces(NamedTuple):
    """Two intervals cut at each other's ends, in units of 1/rate.

    Of the narrower interval the part o, a share of it, lies inside the wider one and an end e sticks out; of the wider
    one u and r are left over on the two sides of o. Not both e and r have width: x is whichever has. All are continuous
    in the intervals, so rounding at a shared end does no harm.
    """

    o: Array
    u: Array
    x: Array
    beyond: Array  # o + gap: what separates u from e
    share: Array  # o / q
    o_p: Array  # o / p
    u_p: Array
    r_p: Array
    mo: list[Array]
    mu: list[Array]
    mx: list[Array]


def _cut(d: Array, p: Array, q: Array, rate: Array, top: int) -> Pieces:
    # Scaled only after the cut: a product fused into these differences would leave slivers of rounding size.
    inside = (p - q) / 2 - d  # how far the end of the narrower interval lies inside the wider one
    e = jnp.clip(-inside, 0.0, q)
    o, r = q - e, jnp.maximum(inside, 0.0)
    u, gap = p - o - r, jnp.maximum(-inside - q, 0.0)
    share = jnp.where(q > 0, o / jnp.where(q > 0, q, 1.0), jnp.where(inside >= 0, 1.0, 0.0))
    over_p = jnp.where(p > 0, 1.0 / jnp.where(p > 0, p, 1.0), 0.0)
    u_p = jnp.where(p > 0, u * over_p, 1.0)
    o, u, x, beyond = (y * rate for y in (o, u, r + e, o + gap))
    return Pieces(o, u, x, beyond, share, (q - e) * over_p, u_p, r * over_p, *(_moments(y, top) for y in (o, u, x)))


def _even(c: Coefficients, z: Pieces) -> Array:
    """Mean of Σ_j c_j t^j e^{-t}."""
    equal = 2.0 * sum((c_j * z.o**j * (z.mo[j] - z.mo[j + 1]) for j, c_j in enumerate(c)), jnp.zeros((), z.o.dtype))
    left, right, across = _disjoint_means(c, z)
    inner = z.o_p * equal + z.u_p * left + z.r_p * right
    return z.share * inner + (1.0 - z.share) * (z.o_p * right + z.u_p * across)


def _odd(c: Coefficients, z: Pieces) -> Array:
    """Mean of ±Σ_j c_j t^j e^{-t}, positive where t points from the wider interval to the narrower one."""
    left, right, across = _disjoint_means(c, z)
    inner = z.u_p * left - z.r_p * right
    return z.share * inner + (1.0 - z.share) * (z.o_p * right + z.u_p * across)


def _disjoint_means(c: Coefficients, z: Pieces) -> tuple[Array, Array, Array]:
    """D(u, o), D(o, x) and D(u, x; beyond)."""
    o, u, x = ([w**b * m[b] for b in range(len(c))] for w, m in ((z.o, z.mo), (z.u, z.mu), (z.x, z.mx)))
    return _touching(c, u, o), _touching(c, o, x), _apart(c, z.beyond, u, x)


def _touching(c: Coefficients, left: list[Array], right: list[Array]) -> Array:
    return sum(
        (c_j * math.comb(j, b) * (left[b] * right[j - b]) for j, c_j in enumerate(c) for b in range(j + 1) if c_j),
        jnp.zeros((), left[0].dtype),
    )


def _apart(c: Coefficients, gap: Array, left: list[Array], right: list[Array]) -> Array:
    tail = [tuple(c[j] * math.comb(j, a) for j in range(a, len(c))) for a in range(len(c))]  # terms in gap^a
    return jnp.exp(-gap) * sum(
        (gap**a * _touching(t, left, right) for a, t in enumerate(tail)), jnp.zeros((), gap.dtype)
    )


def _moments(t: Array, top: int) -> list[Array]:
    """m_0, ..., m_top: an all-positive series for small t, a recurrence for large."""
    small, inverse, decay = jnp.minimum(t, SERIES_BELOW), 1.0 / jnp.maximum(t, SERIES_BELOW), jnp.exp(-t)
    series = jnp.ones_like(t)
    for k in range(SERIES_TERMS, 0, -1):
        series = 1.0 + series * small * (1.0 / (top + 1 + k))
    down = [decay * series * (1.0 / (top + 1))]
    for i in range(top, 0, -1):
        down.append((small * down[-1] + decay) * (1.0 / i))
    up = [(1.0 - decay) * inverse]
    for i in range(1, top + 1):
        up.append((i * up[-1] - decay) * inverse)
    return [jnp.where(t < SERIES_BELOW, d, u) for d, u in zip(reversed(down), up)]


def _slope(c: Coefficients) -> Coefficients:
    """Coefficients of ρ'."""
    return tuple((j + 1) * (c[j + 1] if j + 1 < len(c) else 0.0) - c[j] for j in range(len(c)))
