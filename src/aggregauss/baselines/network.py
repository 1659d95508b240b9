"""A neural network with one hidden layer, f(x) = level + spread · (vᵀ max(0, xW + b) + c)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from aggregauss.baselines.estimator import LatentRegressor
from aggregauss.baselines.objective import Latent
from aggregauss.checks import whole_number


class NetworkFunction(Latent):
    """level + spread · (vᵀ max(0, xW + b) + c); level and spread are not learned."""

    hidden_weights: Float[Array, "d h"]
    hidden_bias: Float[Array, "1 h"]
    weights: Float[Array, " h"]
    intercept: Float[Array, ""]
    level: Float[Array, ""]
    spread: Float[Array, ""]

    def __call__(self, x: Float[Array, "N d"]) -> Float[Array, " N"]:
        """f at each row of `x`."""
        level, spread = lax.stop_gradient((self.level, self.spread))
        hidden = jax.nn.relu(x @ self.hidden_weights + self.hidden_bias)
        return level + spread * (hidden @ self.weights + self.intercept)

    def squared_norm(self) -> Float[Array, ""]:
        """|W|² + |v|²."""
        return jnp.sum(self.hidden_weights**2) + jnp.sum(self.weights**2)


def he_normal(dim: int, hidden: int, level: float, spread: float, rng: np.random.Generator) -> NetworkFunction:
    """A network with weights of variance 2 / (inputs of their layer) and no biases."""
    return NetworkFunction(
        hidden_weights=jnp.asarray(rng.normal(0.0, np.sqrt(2 / dim), (dim, hidden))),
        hidden_bias=jnp.zeros((1, hidden)),
        weights=jnp.asarray(rng.normal(0.0, np.sqrt(2 / hidden), hidden)),
        intercept=jnp.zeros(()),
        level=jnp.asarray(level, float),
        spread=jnp.asarray(spread, float),
    )


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class NeuralNetwork(LatentRegressor):
    """One hidden layer of `hidden` rectified linear units, trained on the responses of bags.

    >>> import numpy as np
    >>> import aggregauss as ag
    >>> from aggregauss.baselines import NeuralNetwork
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> bags = ag.Bags(x, bag=np.arange(40) // 4)
    >>> fitted = NeuralNetwork(likelihood="normal", hidden=8, epochs=200).fit(bags, bags.integrate(np.sin(3 * x)))
    >>> fitted.predict(bags).shape
    (10,)

    After `fit`, `tau_` is the variance per unit weight under the normal likelihood. The other parameters are those of
    `LatentRegressor`.
    """

    hidden: int = 30

    def _check(self) -> None:
        super()._check()
        whole_number(self.hidden, "NeuralNetwork", "hidden")

    def _start(self, x: np.ndarray, level: float, spread: float, rng: np.random.Generator) -> NetworkFunction:
        return he_normal(x.shape[1], self.hidden, level, spread, rng)
