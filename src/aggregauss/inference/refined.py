"""Draws from the posterior of the inducing variables itself, beginning with draws of its normal approximation q.

With whitened inducing variables ε and q(ε) = N(μ, C Cᵀ), ε = μ + C z, the total of a bag of pooled individuals is

    η_a(z) = Σ_i w_i exp(m_i + v_iᵀ (μ + C z) + r_ii / 2),        v_i = R k(T, x_i), r_ii = k_ii - |v_i|²,

(R of `conditional`), and log p(z, y) = Σ_a log p(y_a | η_a(z)) - |μ + C z|² / 2 + log |C|, where q has -|z|² / 2. Where
precise totals confine the function to a curved surface, q has the plane that touches it. The draws go from q to p,

    log p_β = (1 - β) log q + β log p,        β from 0 to 1,

side by side (Del Moral et al. 2006): β grows as far as the draws still stand for the next density (ESS), they are
drawn again with weights (p / q)^Δβ, and each makes a round of Hamiltonian Monte Carlo (Neal 2011) in z, in which q
is round. The product of the mean weights is the evidence. Each value of the mixture over hyper-parameters has its share
of the draws accordingly: all lie one standard deviation from their middle, so that their densities are their weights.
After a long path, along which draws may fall behind, the evidence is not believed, and the mixture's weights stay.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aggregauss.heap import kept
from aggregauss.inference.conditional import Conditional, _features, _solves
from aggregauss.inference.data import Observations
from aggregauss.inference.draws import parts_of, shares
from aggregauss.inference.hyperparameters import log_measure
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.totals import ATOMS, LEAST
from aggregauss.kernels.covariance import diagonal
from aggregauss.latent.effects import with_effects
from aggregauss.latent.means import Moments, moments
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.parameters import log_prior, pack
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.points import Points
from aggregauss.supports.pool import pool

ESS = 0.8  # part of the draws that stand for all
MOST_ROUNDS, BELIEVED, LATER = 60, 16, 4  # from q to p at most, such that the evidence is believed, and after them
FIRST, LONGEST, JITTER = 0.25, 0.8, 0.2  # steps, and by which part the draws' own differ
SHORT, LONG, FEWEST, MOST = 1.5, 5.0, 6, 64  # paths on the way and at its end, where they cross p; their steps
WANTED, LOW, PATIENCE = 0.8, 0.5, 12  # parts that are accepted: aimed at, and too few; halvings of the step
FAR = 3.0  # log weights of hyper-parameters: what the few values do not show is not believed


class Refined(NamedTuple):
    """z for each value of the hyper-parameters, (inducing variables, its draws), and all totals, (draws, bags)."""

    z: list[np.ndarray]
    totals: np.ndarray


class _Target(eqx.Module):
    """The bags as functions of z."""

    likelihood: Any
    level: Float[Array, " a"]  # m + vᵀ μ + r / 2
    slope: Float[Array, "a m"]  # vᵀ C
    mean: Float[Array, " m"]
    root: Float[Array, "m m"]
    weight: Float[Array, " a"]
    owner: Int[Array, " a"]
    seen: Seen

    def totals(self, z: Float[Array, "m n"]) -> Float[Array, "n b"]:
        """η."""
        rate = self.weight[:, None] * jnp.exp(self.level[:, None] + self.slope @ z)
        return jax.ops.segment_sum(rate, self.owner, len(self.seen.y), indices_are_sorted=True).T

    def ahead(self, z: Float[Array, "m n"]) -> Float[Array, " n"]:
        """log p - log q."""
        data = jax.vmap(lambda eta: jnp.sum(self.likelihood.log_density(self.seen, eta)))(self.totals(z))
        prior = -0.5 * jnp.sum((self.mean[:, None] + self.root @ z) ** 2, axis=0)
        return data + prior + jnp.sum(jnp.log(jnp.diagonal(self.root))) + 0.5 * jnp.sum(z**2, axis=0)

    def log_density(self, z: Float[Array, "m n"], beta: Array) -> Float[Array, " n"]:
        """log p_β."""
        return beta * self.ahead(z) - 0.5 * jnp.sum(z**2, axis=0)


def refined(post: Posterior, observations: Observations, n: int, seed: int = 0) -> Refined:
    """`n` draws of a posterior of totals of exponentials, given what was observed of them."""
    rows = np.flatnonzero(observations.support.mass > 0)
    known = observations[rows]
    few = pool(known.support, max(LEAST, ATOMS // len(rows)))
    points, seen = Points(few.center), Seen(*map(jnp.asarray, known.seen()))
    parts, weights = parts_of(post)
    own, found = -(-n // len(parts)), []
    for number, (model, state) in enumerate(parts):
        assert state.root is not None
        level, slope, mean = _pieces(model, post._training, state, layout(points), moments(points))
        weight, owner = jnp.asarray(few.weight), jnp.asarray(few.owner)
        target = _Target(model.likelihood, level, slope, mean, state.root, weight, owner, seen)
        found.append(_Walk(target, np.random.default_rng([seed, 2, number]), own))
    evidence = [kept(walk.arrive()) for walk in found]
    if len(parts) > 1 and max(walk.rounds for walk in found) <= BELIEVED:
        weights = _weights(post, [model for model, _ in parts], evidence)
    drawn = [walk.drawn(k) for walk, k in zip(found, shares(weights, n))]
    totals = np.zeros((n, len(observations.support)))
    totals[:, rows] = np.concatenate([eta for _, eta in drawn])
    return Refined([z for z, _ in drawn], totals)


def _weights(post: Posterior, models: list[Any], evidence: list[float]) -> np.ndarray:
    vectors = np.stack([np.asarray(part.vector) for part in post.mixture])
    density = np.array(evidence) + [float(log_prior(model)) for model in models]
    density = density + log_measure(post.model, vectors, np.asarray(pack(post.model)))
    return np.exp(np.clip(density - np.median(density), -FAR, FAR))


class _Walk:
    """Draws on their way from q to p."""

    def __init__(self, target: _Target, rng: np.random.Generator, n: int):
        self.target, self.rng, self.step, self.rounds = target, rng, FIRST, 0
        self.z = jnp.asarray(rng.standard_normal((target.slope.shape[1], n)))

    def arrive(self) -> float:
        """From q to p; the log evidence."""
        beta, evidence = 0.0, 0.0
        while beta < 1.0:
            self.rounds += 1
            ahead = np.asarray(_ahead(self.target, self.z))
            ahead = np.where(np.isnan(ahead), -np.inf, ahead)
            grow = 1.0 - beta if self.rounds == MOST_ROUNDS else _furthest(ahead, 1.0 - beta)
            weight = np.exp(grow * (ahead - ahead.max()))
            evidence += grow * float(ahead.max()) + float(np.log(weight.mean()))
            self.z = self.z[:, _systematic(weight, self.rng)]
            beta = 1.0 if grow == 1.0 - beta else beta + grow
            self.move(beta, SHORT)
        return evidence

    def drawn(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """`n` draws of z, and their totals."""
        z, totals, size = [], [], self.z.shape[1]
        for start in range(0, n, size):
            for _ in range(LATER):
                self.move(1.0, LONG)
            z.append(np.asarray(self.z)[:, : n - start])
            totals.append(np.asarray(_totals(self.target, self.z))[: n - start])
        if n == 0:
            return np.zeros((len(self.z), 0)), np.zeros((0, len(self.target.seen.y)))
        return np.concatenate(z, axis=1), np.concatenate(totals)

    def move(self, beta: float, length: float) -> None:
        """A round of Hamiltonian Monte Carlo, with steps that are short enough."""
        after, rate = self._tried(beta, length)
        for _ in range(PATIENCE):
            if rate >= LOW:
                break
            self.step *= 0.5
            after, rate = self._tried(beta, length)
        self.z = after
        self.step = min(LONGEST, self.step * float(np.exp(np.clip(rate - WANTED, -0.5, 0.2))))

    def _tried(self, beta: float, length: float) -> tuple[Array, float]:
        steps = int(np.clip(np.ceil(length / self.step), FEWEST, MOST))
        key = jax.random.key(int(self.rng.integers(2**31)))
        after, rate = _round(self.target, self.z, key, *map(jnp.asarray, (beta, self.step, steps)))
        return after, float(rate)


def _furthest(ahead: np.ndarray, most: float) -> float:
    """The largest growth of β under which the draws still stand for the next density."""

    def stand(grow: float) -> float:
        weight = np.exp(grow * (ahead - ahead.max()))
        return weight.sum() ** 2 / (weight**2).sum() / len(weight)

    low, high = 0.0, most
    if stand(high) >= ESS:
        return high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stand(middle) >= ESS else (low, middle)
    return max(low, 1e-9)


def _systematic(weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws again, each about as often as its weight says."""
    ends = np.cumsum(weight) / weight.sum()
    places = (np.arange(len(weight)) + rng.random()) / len(weight)
    return np.minimum(np.searchsorted(ends, places), len(weight) - 1)


@eqx.filter_jit
def _pieces(
    model: Any, train: Layout | None, state: Conditional, test: Layout, where: Moments
) -> tuple[Array, Array, Array]:
    """m + vᵀ μ + r / 2 and vᵀ C at the individuals, and μ."""
    K = _features(model, train, state, test, where)
    V, back = _solves(state, K)
    left = diagonal(with_effects(model.kernel, model.mean), test) - jnp.sum(V**2, axis=0)
    level = model.mean.integrate(where) + K @ state.alpha + 0.5 * jnp.maximum(left, 0.0)
    return level, back.T, state.factor.T @ state.alpha


_totals, _ahead = eqx.filter_jit(_Target.totals), eqx.filter_jit(_Target.ahead)


@eqx.filter_jit
def _round(
    target: _Target, z: Array, key: Array, beta: Array, step: Array, steps: Array
) -> tuple[Float[Array, "m n"], Float[Array, ""]]:
    """One leapfrog path of every draw, and which part of them arrived."""
    to_go, to_accept, to_vary = jax.random.split(key, 3)
    own = step * (1.0 + JITTER * jax.random.uniform(to_vary, (1, z.shape[1]), minval=-1.0, maxval=1.0))
    way = jax.random.normal(to_go, z.shape)
    rise = jax.grad(lambda z: jnp.sum(target.log_density(z, beta)))

    def leap(_: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        z, way = state
        z = z + own * way
        return z, way + own * rise(z)

    there, ahead = jax.lax.fori_loop(0, steps, leap, (z, way + 0.5 * own * rise(z)))
    ahead = ahead - 0.5 * own * rise(there)
    gain = target.log_density(there, beta) - target.log_density(z, beta)
    gain = gain - 0.5 * jnp.sum(ahead**2, axis=0) + 0.5 * jnp.sum(way**2, axis=0)
    chance = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(gain), -jnp.inf, gain), 0.0))
    taken = jax.random.uniform(to_accept, chance.shape) < chance
    return jnp.where(taken[None, :], there, z), jnp.mean(chance)
