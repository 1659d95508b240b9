"""How a bag's response depends on its individuals: Poisson or normal, through a link."""

import dataclasses
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from aggregauss.supports.support import Support

Likelihood = Literal["poisson", "normal"]
Link = Literal["exp", "square"]
LIKELIHOODS = ("poisson", "normal")
LINKS = ("exp", "square")
SMALLEST_MEAN = 1e-100  # below it, the logarithm of a Poisson mean is cut off


@dataclasses.dataclass(frozen=True)
class Observation:
    """y_a ~ Poisson(Σ w_i g(f_i)) with g = exp or square; or y_a ~ Normal(Σ w_i f_i, τ Σ w_i²), without a link."""

    likelihood: Likelihood
    link: Link

    def response(self, f: Float[Array, " N"]) -> Float[Array, " N"]:
        """g(f)."""
        if self.likelihood == "normal":
            return f
        return jnp.exp(f) if self.link == "exp" else f**2

    def unsigned(self, f: Float[Array, " N"]) -> Float[Array, " N"]:
        """f, or |f| where f and -f are the same rate."""
        return jnp.abs(f) if self.likelihood == "poisson" and self.link == "square" else f

    def nll(
        self,
        y: Float[Array, " n"],
        mean: Float[Array, " n"],
        squares: Float[Array, " n"],
        tau: Float[Array, ""],
    ) -> Float[Array, " n"]:
        """-log p(y_a), given the mean of each bag and the `squares` Σ w_i² of its weights."""
        if self.likelihood == "normal":
            variance = tau * squares
            return 0.5 * (jnp.log(2 * jnp.pi * variance) + (y - mean) ** 2 / variance)
        return mean - y * jnp.log(jnp.maximum(mean, SMALLEST_MEAN)) + gammaln(y + 1)

    def start(self, y: np.ndarray, mass: np.ndarray) -> tuple[float, float]:
        """The level of f at the global rate, and a spread: one unit of the log rate, or the deviation of bag means."""
        if self.likelihood == "normal":
            return float(y.sum() / mass.sum()), float(np.std(y / mass)) or 1.0
        rate = max(float(y.sum()), 0.5) / float(mass.sum())
        return (float(np.log(rate)), 1.0) if self.link == "exp" else (float(np.sqrt(rate)), float(np.sqrt(rate)) / 2)


def masses(support: Support) -> np.ndarray:
    """Σ w_i in each bag, one where the measure is a mean."""
    return support.integrate(np.ones(len(support.owner)))


def squares(support: Support) -> np.ndarray:
    """Σ w_i² in each bag."""
    return np.bincount(support.owner, support.effective_weight**2, minlength=support.size)


def constant_tau(y: np.ndarray, masses: np.ndarray, squares: np.ndarray) -> float:
    """The most likely τ when every individual has the global rate: the mean of (y_a - w_a Σy/Σw)² / Σ_i w_i²."""
    tau = np.mean((y - masses * y.sum() / masses.sum()) ** 2 / squares)
    return float(tau) or 1.0
