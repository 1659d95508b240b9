"""Sums over the individuals of each bag, in the forms to which Jensen's inequality leads.

For v_i ~ q and η = Σ_i w_i g(v_i), weights α_i that add up to one give by concavity (Law et al. 2018, Lemma 1)

    E log η  >=  log Σ_i w_i exp(E log g(v_i)),        E[-1/η]  >=  -1 / Σ_i (w_i / E[1/g(v_i)]),

each at its best α. In the other direction E log(r + η) <= log(r + E η).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from aggregauss.likelihoods.links import LINKS, Link


class Sums(eqx.Module):
    """The individuals of a batch of bags: moments of the latent values, weights, and which bag owns them."""

    mean: Float[Array, " atoms"]
    variance: Float[Array, " atoms"]
    weight: Float[Array, " atoms"]
    owner: Int[Array, " atoms"]
    size: int = eqx.field(static=True)
    link: str = eqx.field(static=True)

    @property
    def g(self) -> Link:
        """The link."""
        return LINKS[self.link]

    def total(self, values: Float[Array, " atoms"]) -> Float[Array, " bags"]:
        """Σ_i w_i values_i."""
        return jax.ops.segment_sum(self.weight * values, self.owner, self.size, indices_are_sorted=True)

    def expected(self) -> Float[Array, " bags"]:
        """E η."""
        return self.total(self.g.mean(self.mean, self.variance))

    def log_below(self) -> Float[Array, " bags"]:
        """A lower bound of E log η."""
        return self._log_sum(self.g.log_mean(self.mean, self.variance))

    def log_complement_below(self) -> Float[Array, " bags"]:
        """A lower bound of E log(1 - η) when the weights of each bag add up to one."""
        return self._log_sum(self.g.log_complement(self.mean, self.variance))

    def reciprocal_above(self) -> Float[Array, " bags"]:
        """An upper bound of E[1/η] under the exp link, where E[1/g] = e^{-m + S/2}."""
        return jnp.exp(-self._log_sum(self.mean - 0.5 * self.variance))

    def _log_sum(self, exponent: Float[Array, " atoms"]) -> Float[Array, " bags"]:
        used = jnp.where(self.weight > 0, exponent, -jnp.inf)
        top = jax.ops.segment_max(used, self.owner, self.size, indices_are_sorted=True)
        top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
        return top + jnp.log(jnp.maximum(self.total(jnp.exp(exponent - top[self.owner])), jnp.finfo(top.dtype).tiny))
