"""Linear effects of covariates with Gaussian priors: m(x) = value + Σ_j β_j x_j,  β_j ~ N(0, sd_j²).

Unlike the slopes of `LinearMean`, the coefficients are not optimised but integrated out with the rest of the latent
function: they have a posterior with intervals. The effects are a Gaussian process h(x)ᵀ β, h = (1, x), of covariance
Σ_j sd_j² h_j(x) h_j(y), so every scheme can treat them as one more kernel; schemes with inducing variables take the
whitened coefficients β_j / sd_j themselves as inducing variables, which is exact.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import as_numbers, as_vector, first_bad, positive_number
from aggregauss.kernels.algebra import Sum
from aggregauss.kernels.constant import ConstantKernel
from aggregauss.kernels.kernel import Kernel, column_numbers
from aggregauss.kernels.linear import Linear
from aggregauss.latent.means import Mean, Moments
from aggregauss.parameters import fixed, parameter


class LinearEffects(Mean):
    """Effects of the covariates in `columns`; `sd` is the prior standard deviation of each slope, per unit of it.

    The unit is that of the covariate as the model sees it: after `fit(..., standardise=True)`, one standard deviation.
    `intercept_sd` is that of the level around `value`, which itself is learned. `names` label the effects in
    `post.effects()`.

    >>> import aggregauss as ag
    >>> effects = ag.LinearEffects(columns=[0, 1], sd=[0.5, 2.0], names=["rain", "altitude"])
    >>> effects.features(jnp.array([[1.0, 10.0]])).tolist()  # intercept, then slopes, in prior standard deviations
    [[3.0, 0.5, 20.0]]
    """

    value: Float[Array, ""] = parameter(constraint="real", role="level")
    columns: tuple[int, ...] = eqx.field(static=True, kw_only=True)
    sd: tuple[float, ...] = eqx.field(static=True, kw_only=True)
    intercept_sd: float = eqx.field(static=True, kw_only=True)
    names: tuple[str, ...] = eqx.field(static=True, kw_only=True)

    def __init__(self, columns: Any, sd: Any = 1.0, *, intercept_sd: float = 3.0, value: Any = None, names: Any = None):
        self._declare(value=value)
        self.columns = column_numbers(columns, "LinearEffects", "columns")
        spread = as_numbers(sd, "LinearEffects", "sd")
        given = as_vector(np.full(len(self.columns), spread) if spread.ndim == 0 else spread, "LinearEffects", "sd")
        if len(given) != len(self.columns):
            raise ValueError(
                f'LinearEffects: "sd" must be one number or {len(self.columns)}, one for each column, but has '
                f"{len(given)}."
            )
        if (given <= 0).any():
            raise ValueError(
                'LinearEffects: "sd" and "intercept_sd" must be positive standard deviations, but the "sd" of column '
                f"{self.columns[first_bad(given <= 0)[0]]} is {given[given <= 0][0]}."
            )
        self.sd = tuple(float(s) for s in given)
        self.intercept_sd = positive_number(intercept_sd, "LinearEffects", "intercept_sd")
        self.names = tuple(str(n) for n in names) if names is not None else tuple(f"x{j}" for j in self.columns)
        if len(self.names) != len(self.columns):
            raise ValueError(f'LinearEffects: "names" must have {len(self.columns)} names, but has {len(self.names)}.')

    @property
    def effects(self) -> int:
        """Number of coefficients."""
        return 1 + len(self.columns)

    @property
    def scales(self) -> np.ndarray:
        """Prior standard deviations, the intercept's first."""
        return np.array([self.intercept_sd, *self.sd])

    def integrate(self, moments: Moments) -> Float[Array, " n"]:
        """value · ∫ 1 dμ: the coefficients have mean zero."""
        return self.value * moments.one

    def features(self, X: Float[Array, "*n d"]) -> Float[Array, "*n p"]:
        """sd_j h_j(x)."""
        chosen = X[..., np.array(self.columns)]
        H = jnp.concatenate([jnp.ones_like(chosen[..., :1]), chosen], axis=-1)
        return H * jnp.asarray(self.scales, X.dtype).reshape((1,) * (X.ndim - 1) + (-1,))

    def integrate_features(self, moments: Moments) -> Float[Array, "n p"]:
        """sd_j ∫ h_j dμ."""
        H = jnp.concatenate([moments.one[:, None], moments.x[:, np.array(self.columns)]], axis=1)
        return H * jnp.asarray(self.scales, H.dtype)[None, :]

    def kernel(self) -> Kernel:
        """The covariance function of the effects."""
        variances = np.array(self.sd) ** 2
        slopes = Linear(fixed(variances), center=fixed(np.zeros(len(variances))), active_dims=self.columns)
        return Sum(ConstantKernel(fixed(self.intercept_sd**2)), slopes)

    def check_dim(self, dim: int) -> None:
        """Columns that exist."""
        if max(self.columns) >= dim:
            raise ValueError(
                f'LinearEffects: "columns" must lie in 0..{dim - 1} for inputs of {dim} dimension(s), '
                f"but is {self.columns}."
            )


def with_effects(kernel: Kernel | None, mean: Mean) -> Kernel:
    """The covariance function of the whole latent function: the kernel's, and that of random effects in the mean."""
    if not isinstance(mean, LinearEffects):
        assert kernel is not None
        return kernel
    return mean.kernel() if kernel is None else Sum(kernel, mean.kernel())
