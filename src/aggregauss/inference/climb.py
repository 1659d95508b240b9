"""q to its best, each step a pass over the data.

Natural-gradient steps come first; one that loses ground is taken back and shortened. Where totals of bags are precise
the bound is a narrow valley that bends, and such steps get short: a covariance that fits the old mean holds the mean
back. From there the covariance follows the mean to its own best before the two are judged together. What is left is a
function of the mean, whose curvature is close to q's precision Λ; L-BFGS that begins from Λ learns the rest.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from aggregauss.inference import ascent
from aggregauss.inference.variational import mean_towards, towards, with_mean

Pass = Callable[[ascent.State], ascent.Slopes]
Top = tuple[ascent.State, ascent.Slopes]
EASY, MOST = 15, 100  # passes before the covariance follows the mean, and altogether
LEAST_SHARE, SHORTER, LONGER = 1e-4, 0.3, 1.5  # of a step
LOST = 10.0  # nats below the best at which the covariance need not follow
LENGTHS = (1.0, 0.3, 0.1)  # of steps of the covariance, the first that gains
MEMORY = 20  # steps that L-BFGS remembers
_natural_step, _mean_step, _with_mean = eqx.filter_jit(towards), eqx.filter_jit(mean_towards), eqx.filter_jit(with_mean)


def climb(look: Pass, state: ascent.State, tolerance: float, keep_covariance: bool = False, most: int = MOST) -> Top:
    """Steps of q until one gains less than `tolerance`, or for `most` passes; the best state and its slopes."""
    step = _mean_step if keep_covariance else _natural_step
    best, uphill, share = state, look(state), 1.0
    for _ in range(min(EASY, most)):
        q, taken = step(best.q, uphill.target, jnp.asarray(share))
        trial = best._replace(q=q)
        ahead = look(trial)
        gain, share = float(ahead.objective - uphill.objective), float(taken)
        if gain >= 0:
            best, uphill = trial, ahead
            if gain < tolerance * share:
                return best, uphill
            share = min(1.0, LONGER * share)
            continue
        share *= SHORTER
        if -gain < tolerance or share < LEAST_SHARE or not np.isfinite(float(uphill.objective)):
            return best, uphill
    return _along_valley(look, (best, uphill), tolerance, share, keep_covariance, most)


def _along_valley(look: Pass, top: Top, tolerance: float, share: float, keep_covariance: bool, most: int) -> Top:
    if most <= EASY:
        return top
    passes = EASY

    def follow(state: ascent.State, uphill: ascent.Slopes) -> Top:
        """The covariance at its best for the mean, or nearer to it: far from there a whole step goes too far."""
        nonlocal passes
        for length in () if keep_covariance else LENGTHS:
            passes += 1
            q, _ = _natural_step(state.q, uphill.target, jnp.asarray(length))
            trial = state._replace(q=_with_mean(q, state.q.mean))
            ahead = look(trial)
            if ahead.objective >= uphill.objective:
                return trial, ahead
        return state, uphill

    better = follow(*top)
    best, uphill = better if better[1].objective >= top[1].objective else top
    rise, remembered = _rise(best, uphill), []
    while passes < most and share >= LEAST_SHARE:
        step = _newton(np.asarray(best.q.covariance), remembered, rise)
        if not rise @ step > 0:
            remembered, step = [], np.asarray(best.q.covariance) @ rise
        trial = best._replace(q=_with_mean(best.q, best.q.mean + share * step))
        ahead = look(trial)
        passes += 1
        if ahead.objective > uphill.objective - LOST:
            trial, ahead = follow(trial, ahead)
        gain = float(ahead.objective - uphill.objective)
        if not gain >= 0:
            share *= SHORTER
            if -gain < tolerance:
                break
            continue
        fresh = _rise(trial, ahead)
        remembered = [*remembered, (share * step, rise - fresh)][-MEMORY:]
        best, uphill, rise = trial, ahead, fresh
        if gain < tolerance * share:
            break
        share = min(1.0, 2.0 * share)
    return best, uphill


def _rise(state: ascent.State, uphill: ascent.Slopes) -> np.ndarray:
    """The bound's gradient with respect to the mean."""
    mean = state.q.mean
    return np.asarray(uphill.target.gradient(mean).mean - mean)


def _newton(inverse: np.ndarray, remembered: list[tuple[np.ndarray, np.ndarray]], rise: np.ndarray) -> np.ndarray:
    """H⁻¹ rise, where H is what L-BFGS makes of the steps s and changes of gradient y, beginning from `inverse`⁻¹."""
    pairs = [(s, y, s @ y) for s, y in remembered if s @ y > 1e-8 * np.linalg.norm(s) * np.linalg.norm(y)]
    shares, rest = [], rise
    for s, y, sy in reversed(pairs):
        shares.append(s @ rest / sy)
        rest = rest - shares[-1] * y
    step = inverse @ rest
    for (s, y, sy), share in zip(pairs, reversed(shares)):
        step = step + (share - y @ step / sy) * s
    return step
