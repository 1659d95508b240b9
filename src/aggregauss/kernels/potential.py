"""Means of a smooth correlation function over intervals, from its potential.

Let R be the *decaying potential* of ρ on t >= 0: R'' = ρ, R(∞) = 0. With c = -R'(0) = ∫_0^∞ ρ, the even function
F(t) = R(|t|) + c|t| has F'' = ρ, and for intervals of widths p and q whose centres are d apart, with s = (p + q)/2 and
δ = (p - q)/2,

    p q · mean = F(d + s) - F(d + δ) - F(d - δ) + F(d - s)
               = 2 c · overlap + R(|d + s|) - R(|d + δ|) - R(|d - δ|) + R(|d - s|).

The second line never subtracts large numbers: it keeps its relative accuracy for wide and for distant intervals. For
narrow ones the differences cancel (error eps/(p q)), so below `NARROW` lengthscales the mean over the narrow interval
is taken of the slope (one narrow) or of the value (both narrow), by a Gauss rule or a profile's own series.
"""

import abc
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aggregauss.kernels.profile import Profile, Rule, stretched

NARROW = {"float64": 0.02, "float32": 0.4}  # where series and differences are equally accurate
GAUSS = tuple(zip(*(v.tolist() for v in np.polynomial.legendre.leggauss(3))))  # (node, weight) on [-1, 1]


class Smooth(Profile):
    """A profile given by three scalar formulas: value, slope and decaying potential."""

    @abc.abstractmethod
    def tail(self, t: Float[Array, "..."]) -> tuple[Array, Array, Array]:
        """(R, R', ρ) at t >= 0, sharing what they have in common."""

    def value(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """ρ(t)."""
        return self.tail(t)[2]

    def slope_mean(self, t: Array, q: Array) -> Array:
        """Mean of R' over a narrow interval of width q about t >= 0, continued smoothly below zero."""
        c = self._half_mass(t)

        def slope(t: Array) -> Array:
            inner = self.tail(jnp.abs(t))[1]
            return jnp.where(t >= 0, inner, -2.0 * c - inner)  # F' = c + R' is odd

        return sum((w / 2 * slope(t + q * (x / 2)) for x, w in GAUSS), jnp.zeros((), t.dtype))

    def value_mean(self, d: Array, p: Array, q: Array) -> Array:
        """Mean of ρ over two narrow intervals of widths p and q whose centres are d apart."""
        terms = (v * w / 4 * self.value(jnp.abs(d + p * (x / 2) + q * (y / 2))) for x, v in GAUSS for y, w in GAUSS)
        return sum(terms, jnp.zeros((), d.dtype))

    def rules(self) -> tuple[Rule, Rule, Rule]:
        """For wide intervals only, for narrow intervals only, and for any."""
        return _in_units(self._wide), _in_units(self._narrow), _in_units(self._any)

    def choose(self, extremes: Float[Array, " 2"], scale: Float[Array, ""]) -> Int[Array, ""]:
        """The rule for any widths is the slowest; equal widths that differ by rounding must not need it."""
        narrowest, widest = extremes
        limit = NARROW[str(scale.dtype)] * scale
        return jnp.where(narrowest >= 0.999 * limit, 0, jnp.where(widest <= limit, 1, 2))

    def _narrow(self, d: Array, p: Array, q: Array) -> tuple[Array, Array]:
        return stretched(self.value_mean, d, p, q)

    def _any(self, d: Array, p: Array, q: Array) -> tuple[Array, Array]:
        narrow = NARROW[str(d.dtype)]
        wide = self._wide(d, jnp.maximum(p, narrow), jnp.maximum(q, narrow))
        one = stretched(self._one_wide, d, jnp.maximum(p, narrow), jnp.minimum(q, narrow))
        none = stretched(self.value_mean, d, jnp.minimum(p, narrow), jnp.minimum(q, narrow))

        def pick(wide: Array, one: Array, none: Array) -> Array:
            return jnp.where(q >= narrow, wide, jnp.where(p >= narrow, one, none))

        return pick(wide[0], one[0], none[0]), pick(wide[1], one[1], none[1])

    def _wide(self, d: Array, p: Array, q: Array) -> tuple[Array, Array]:
        """The mean, and its derivative 2 · mean - Σ± t F'(t) / (p q) in log scale."""
        s, delta = (p + q) / 2, (p - q) / 2
        apart, crossing = d >= s, d >= delta
        overlap = jnp.where(apart, 0.0, jnp.where(crossing, s - d, q))
        ends = (d + s, jnp.where(apart, d - s, s - d), d + delta, jnp.where(crossing, d - delta, delta - d))
        (r1, f1, _), (r2, f2, _), (r3, f3, _), (r4, f4, _) = (self.tail(t) for t in ends)
        inverse = 1.0 / (p * q)
        common = 2.0 * self._half_mass(d) * overlap
        mean = (common + ((r1 + r2) - (r3 + r4))) * inverse
        moment = common + ((ends[0] * f1 + ends[1] * f2) - (ends[2] * f3 + ends[3] * f4))
        return mean, 2.0 * mean - moment * inverse

    def _one_wide(self, d: Array, p: Array, q: Array) -> Array:
        """(F'(d + p/2) - F'(d - p/2)) / p, each averaged over the narrow q; F' = sign · (c + R')."""
        outside = d >= p / 2
        far = self.slope_mean(d + p / 2, q)
        edge = self.slope_mean(jnp.where(outside, d - p / 2, p / 2 - d), q)
        return jnp.where(outside, far - edge, 2.0 * self._half_mass(d) + far + edge) / p

    def _half_mass(self, like: Array) -> Array:
        return -self.tail(jnp.zeros((), like.dtype))[1]


def _in_units(rule: Callable) -> Rule:
    """A rule for lengths in units of the scale; they are multiplied, because XLA does not fuse repeated divisions."""

    def scaled(d: Array, p: Array, q: Array, scale: Array) -> tuple[Array, Array]:
        inverse = 1.0 / scale
        return rule(d * inverse, p * inverse, q * inverse)

    return scaled
