"""One-dimensional correlation functions ρ, and their means over pairs of intervals.

Gradients in the lengthscale are wanted with nearly every value and share its exponentials, so both are computed in one
pass, as the real and imaginary parts of one complex array: XLA would fill two real arrays in two loops. The pass sits
inside a `switch` over the profile's rules, whose result the compiler cannot take apart again.
"""

import abc
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Rule = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
Intervals = tuple[Float[Array, "..."], Float[Array, "..."]]  # centres and widths along one dimension


class Profile(abc.ABC):
    """ρ and its means over intervals. Members are frozen dataclasses: values that can be compared and hashed."""

    @abc.abstractmethod
    def value(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """ρ(t) for t >= 0."""

    @abc.abstractmethod
    def rules(self) -> tuple[Rule, ...]:
        """Formulas for the mean of ρ over intervals of widths p >= q >= 0 with centres d >= 0 apart.

        Each takes (d, p, q, scale) and returns the mean and its derivative in the logarithm of the scale.
        """

    def choose(self, extremes: Float[Array, " 2"], scale: Float[Array, ""]) -> Int[Array, ""]:
        """Which rule to use, given the smallest and the largest width that occur."""
        return jnp.zeros((), jnp.int32)

    def push(self, primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Array:
        """The derivative of the mean along a change of d, p and q; `primals` ends with the scale."""
        *lengths, scale = primals
        rule = self.rules()[-1]
        return jax.jvp(lambda d, p, q: rule(d, p, q, scale)[0], tuple(lengths), tangents)[1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def interval_means(
    profile: Profile, a: Intervals, b: Intervals, extremes: Float[Array, " 2"], scale: Float[Array, ""]
) -> Float[Array, "*b n m"]:
    """Mean of ρ(|x - y| / scale) over every pair of intervals."""
    return _evaluate(profile, lambda value, stretch: value, a, b, extremes, scale)


@functools.partial(interval_means.defjvp, symbolic_zeros=True)
def _interval_means_jvp(profile: Profile, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    a, b, extremes, scale = primals
    a_dot, b_dot, _, scale_dot = tangents
    if _is_zero(scale_dot):
        value = interval_means(profile, a, b, extremes, scale)
        change = jnp.zeros_like(value)
    else:
        dual = _evaluate(profile, jax.lax.complex, a, b, extremes, scale)
        value, change = dual.real, dual.imag * (scale_dot / scale)
    if not all(_is_zero(x) for x in (*a_dot, *b_dot)):
        moves = (_filled(a, a_dot), _filled(b, b_dot))
        lengths, lengths_dot = jax.jvp(_lengths, (a, b), moves)
        change = change + profile.push((*lengths, scale), lengths_dot)
    return value, change


def stretched(mean: Callable[..., Array], d: Array, p: Array, q: Array) -> tuple[Array, Array]:
    """A function of lengths in units of the scale, and its derivative in the logarithm of the scale."""
    return jax.jvp(mean, (d, p, q), (-d, -p, -q))


def _evaluate(profile: Profile, join: Callable, a: Intervals, b: Intervals, extremes: Array, scale: Array) -> Array:
    def branch(rule: Rule) -> Callable:
        return lambda a, b: join(*rule(*_lengths(a, b), scale))

    def invalid(a: Intervals, b: Intervals) -> Array:
        return join(*(jnp.full((*a[0].shape, b[0].shape[-1]), jnp.nan, a[0].dtype),) * 2)

    index = jnp.where(scale > 0, 1 + profile.choose(extremes, scale), 0)
    return jax.lax.switch(index, (invalid, *(branch(rule) for rule in profile.rules())), a, b)


def _lengths(a: Intervals, b: Intervals) -> tuple[Array, Array, Array]:
    """Distances of centres, and the larger and the smaller width of each pair."""
    p, q = a[1][..., :, None], b[1][..., None, :]
    return jnp.abs(a[0][..., :, None] - b[0][..., None, :]), jnp.maximum(p, q), jnp.minimum(p, q)


def _is_zero(tangent: object) -> bool:
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def _filled(values: Intervals, tangents: tuple) -> Intervals:
    left, right = (jnp.zeros_like(x) if _is_zero(x_dot) else x_dot for x, x_dot in zip(values, tangents))
    return left, right
