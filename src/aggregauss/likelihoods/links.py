"""Links: from the latent function v to the response g(v), and what Gaussian v make of it.

For v ~ N(m, S) everything that inference asks of a link is a moment of g(v). The covariance of two responses follows
from an expansion in Hermite polynomials, with z = (v - m)/s:

    Cov(g(v_i), g(v_j)) = Σ_{k >= 1} E[g⁽ᵏ⁾(v_i)] E[g⁽ᵏ⁾(v_j)] S_ij^k / k!,
    E[g⁽ᵏ⁾(v)] = E[g'(v) He_{k-1}(z)] / s^{k-1},

which is a closed form for exp and square. `match` finds the one Gaussian whose response has a given mean and variance:
a whole bag is then handled as if it were a single individual.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, ndtri
from jaxtyping import Array, Float

from aggregauss.marginals import GaussianMarginals, Marginals, TransformedMarginals, log_normal, squared
from aggregauss.special import expected_log_square

Values = Float[Array, "..."]
NODES, WEIGHTS = (x.astype(float) for x in np.polynomial.hermite_e.hermegauss(24))
WEIGHTS = WEIGHTS / WEIGHTS.sum()
FINE, FINE_WEIGHTS = np.polynomial.hermite_e.hermegauss(64)  # for one response in a bag, however uncertain
FINE_WEIGHTS = FINE_WEIGHTS / FINE_WEIGHTS.sum()
ORDER = 9  # terms of the expansion where it does not end by itself
NEWTON_STEPS = 16


def expectation(h: Callable[[Values], Values], m: Values, S: Values) -> Values:
    """E h(v), v ~ N(m, S), by Gauss-Hermite quadrature."""
    sd = jnp.sqrt(jnp.maximum(S, jnp.finfo(S.dtype).tiny))
    total = jnp.zeros_like(m)
    for node, weight in zip(NODES, WEIGHTS):
        total = total + float(weight) * h(m + float(node) * sd)
    return total


def expectation_at_once(h: Callable[[Values], Values], m: Values, S: Values) -> Values:
    """The same with all nodes in one array: more memory, and for a complicated h far less to compile."""
    sd = jnp.sqrt(jnp.maximum(S, jnp.finfo(S.dtype).tiny))
    values = jax.vmap(lambda node: h(m + node * sd))(jnp.asarray(NODES, m.dtype))
    return jnp.tensordot(jnp.asarray(WEIGHTS, m.dtype), values, 1)


class Link(abc.ABC):
    """g, with its Gaussian moments by quadrature; links with closed forms override them."""

    low: ClassVar[float] = 0.0  # responses lie above
    high: ClassVar[float] = math.inf  # and below
    flattening: ClassVar[float] = 0.0  # E g(v) is about g(m / √(1 + S flattening))
    symmetric: ClassVar[bool] = False  # 1 - g(v) = g(-v)

    @abc.abstractmethod
    def forward(self, v: Values) -> Values:
        """g(v)."""

    @abc.abstractmethod
    def inverse(self, eta: Values) -> Values:
        """v with g(v) = eta."""

    @abc.abstractmethod
    def marginals(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:
        """The distribution of g(v)."""

    def mean(self, m: Values, S: Values) -> Values:
        """E g(v)."""
        return expectation(self.forward, m, S)

    def covariance(self, m: Float[Array, "*b n"], s: Float[Array, "*b n"], S: Float[Array, "*b n n"]) -> Values:
        """Cov(g(v_i), g(v_j)) for all pairs, given means, variances and covariances of v."""
        sd = jnp.sqrt(jnp.maximum(s, jnp.finfo(s.dtype).tiny))
        slopes = [_derivative(self.forward, m + float(z) * sd) for z in NODES]
        correlation = jnp.clip(S / (sd[..., :, None] * sd[..., None, :]), -1.0, 1.0)
        total, power = jnp.zeros_like(S), S
        for k in range(ORDER):
            row = WEIGHTS * np.polynomial.hermite_e.hermeval(NODES, np.eye(ORDER)[k]) / math.sqrt(math.factorial(k + 1))
            d = sum((float(w) * slope for w, slope in zip(row, slopes)), jnp.zeros_like(m))
            total, power = total + d[..., :, None] * d[..., None, :] * power, power * correlation
        return total

    def match(self, mean: Values, variance: Values) -> tuple[Values, Values]:
        """(a, b²) such that g(a + b Z), which must be positive, has this mean and variance.

        Newton's method, differentiated implicitly, in g⁻¹(mean) and log log(1 + variance / mean²): where g is nearly
        exp, as for rare outcomes, these are a + b²/2 and 2 log b. What is likelier than not is matched as the rarer
        complement.
        """
        eps = float(jnp.finfo(mean.dtype).eps)
        likely = (mean > 0.5) & self.symmetric
        mean = jnp.maximum(jnp.where(likely, 1.0 - mean, mean), eps**2)
        target = self._coordinates(mean, jnp.maximum(variance, 0.01 * eps * mean**2))
        fixed = jax.lax.stop_gradient(target)
        slope = _derivative(self.forward, fixed[0])
        t = 0.5 * fixed[1] + jnp.log(self.forward(fixed[0]) / slope)
        a = fixed[0] * jnp.sqrt(1.0 + jnp.exp(2 * t) * self.flattening)

        def step(_: Any, at: tuple[Values, Values]) -> tuple[Values, Values]:
            da, dt = self._newton(*at, *fixed)
            return at[0] - jnp.clip(da, -2.0, 2.0), at[1] - jnp.clip(dt, -0.7, 0.7)

        a, t = jax.lax.stop_gradient(jax.lax.fori_loop(0, NEWTON_STEPS, step, (a, t)))
        da, dt = self._newton(a, t, *target)  # carries the derivative
        return jnp.where(likely, da - a, a - da), jnp.exp(2 * (t - dt))

    def _coordinates(self, mean: Values, variance: Values) -> tuple[Values, Values]:
        return self.inverse(mean), jnp.log(jnp.log1p(variance / mean**2))

    def _newton(self, a: Values, t: Values, first: Values, second: Values) -> tuple[Values, Values]:
        """How far (a, log b) is from the response with these coordinates, to first order."""

        def coordinates(a: Values, t: Values) -> tuple[Values, Values]:
            nodes = jnp.asarray(FINE, a.dtype).reshape((1,) * a.ndim + (-1,))
            g = self.forward(a[..., None] + jnp.exp(t)[..., None] * nodes)
            weights = jnp.asarray(FINE_WEIGHTS, a.dtype)
            mean = g @ weights
            return self._coordinates(mean, (g - mean[..., None]) ** 2 @ weights)

        one, none = jnp.ones_like(a), jnp.zeros_like(a)
        (f, h), (f_a, h_a) = jax.jvp(coordinates, (a, t), (one, none))
        _, (f_t, h_t) = jax.jvp(coordinates, (a, t), (none, one))
        f_a, h_a, f_t, h_t, f, h = jax.lax.stop_gradient((f_a, h_a, f_t, h_t, f, h))
        det = f_a * h_t - f_t * h_a
        return (h_t * (f - first) - f_t * (h - second)) / det, (f_a * (h - second) - h_a * (f - first)) / det

    def log_mean(self, m: Values, S: Values) -> Values:
        """E log g(v)."""
        return expectation(lambda v: jnp.log(self.forward(v)), m, S)

    def log_complement(self, m: Values, S: Values) -> Values:
        """E log(1 - g(v)), for probabilities."""
        return expectation(lambda v: jnp.log1p(-self.forward(v)), m, S)


class Identity(Link):
    """g(v) = v."""

    low = -math.inf

    def forward(self, v: Values) -> Values:  # noqa: D102
        return v

    def inverse(self, eta: Values) -> Values:  # noqa: D102
        return eta

    def mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return m

    def covariance(self, m: Values, s: Values, S: Values) -> Values:  # noqa: D102
        return S

    def match(self, mean: Values, variance: Values) -> tuple[Values, Values]:  # noqa: D102
        return mean, variance

    def marginals(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:  # noqa: D102
        return GaussianMarginals(mean, variance)


class Exp(Link):
    """g(v) = e^v: log-normal responses with mean e^{m + S/2} and covariance E_i E_j (e^{S_ij} - 1)."""

    def forward(self, v: Values) -> Values:  # noqa: D102
        return jnp.exp(v)

    def inverse(self, eta: Values) -> Values:  # noqa: D102
        return jnp.log(eta)

    def mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return jnp.exp(m + 0.5 * S)

    def covariance(self, m: Values, s: Values, S: Values) -> Values:  # noqa: D102
        E = self.mean(m, s)
        return E[..., :, None] * E[..., None, :] * jnp.expm1(S)

    def match(self, mean: Values, variance: Values) -> tuple[Values, Values]:
        """b² = log(1 + variance / mean²), a = log mean - b² / 2."""
        b = jnp.log1p(variance / mean**2)
        return jnp.log(mean) - 0.5 * b, b

    def log_mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return m

    def marginals(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:  # noqa: D102
        return log_normal(mean, variance)


class Square(Link):
    """g(v) = v²: non-central chi-squared responses with mean m² + S and covariance 4 m_i m_j S_ij + 2 S_ij²."""

    def forward(self, v: Values) -> Values:  # noqa: D102
        return v**2

    def inverse(self, eta: Values) -> Values:  # noqa: D102
        return jnp.sqrt(eta)

    def mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return m**2 + S

    def covariance(self, m: Values, s: Values, S: Values) -> Values:  # noqa: D102
        return 4.0 * m[..., :, None] * m[..., None, :] * S + 2.0 * S**2

    def match(self, mean: Values, variance: Values) -> tuple[Values, Values]:
        """With c = variance / mean², at most 2 for any sum of squares: b² = mean (1 - √(1 - c/2)), a² = mean - b²."""
        c = jnp.minimum(variance / mean**2, 2.0 - 1e-6)
        b = mean * (0.5 * c) / (1.0 + jnp.sqrt(1.0 - 0.5 * c))
        return jnp.sqrt(mean - b), b

    def log_mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        S = jnp.maximum(S, jnp.finfo(S.dtype).eps ** 2 * m**2 + jnp.finfo(S.dtype).tiny)  # so that m² / S is finite
        return jnp.log(S) + expected_log_square(m / jnp.sqrt(S))

    def marginals(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:  # noqa: D102
        return squared(mean, variance)


class Logit(Link):
    """g(v) = 1 / (1 + e^{-v})."""

    high = 1.0
    flattening = math.pi / 8
    symmetric = True

    def forward(self, v: Values) -> Values:  # noqa: D102
        return jax.nn.sigmoid(v)

    def inverse(self, eta: Values) -> Values:  # noqa: D102
        return jnp.log(eta) - jnp.log1p(-eta)

    def log_mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return expectation(jax.nn.log_sigmoid, m, S)

    def log_complement(self, m: Values, S: Values) -> Values:  # noqa: D102
        return self.log_mean(-m, S)

    def marginals(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:  # noqa: D102
        from scipy.special import expit, logit

        return TransformedMarginals.of(mean, variance, expit, logit)


class Probit(Link):
    """g(v) = Φ(v), with mean Φ(m / √(1 + S))."""

    high = 1.0
    flattening = 1.0
    symmetric = True

    def forward(self, v: Values) -> Values:  # noqa: D102
        return jax.scipy.special.ndtr(v)

    def inverse(self, eta: Values) -> Values:  # noqa: D102
        return ndtri(eta)

    def mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return jax.scipy.special.ndtr(m / jnp.sqrt(1.0 + S))

    def log_mean(self, m: Values, S: Values) -> Values:  # noqa: D102
        return expectation(log_ndtr, m, S)

    def log_complement(self, m: Values, S: Values) -> Values:  # noqa: D102
        return self.log_mean(-m, S)

    def marginals(self, mean: np.ndarray, variance: np.ndarray) -> Marginals:  # noqa: D102
        from scipy.special import ndtr
        from scipy.special import ndtri as inverse

        return TransformedMarginals.of(mean, variance, ndtr, inverse)


LINKS: dict[str, Link] = {
    "identity": Identity(),
    "exp": Exp(),
    "square": Square(),
    "logit": Logit(),
    "probit": Probit(),
}


def _derivative(h: Callable[[Values], Values], x: Values) -> Values:
    return jax.jvp(h, (x,), (jnp.ones_like(x),))[1]
