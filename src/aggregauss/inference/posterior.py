"""The posterior that every scheme ends in; prediction is written once, here.

Whatever the scheme, the latent values given the data are Gaussian with

    mean(s) = m(s) + k(s, T) α,        cov(s, s') = k(s, s') - (R k(T, s))ᵀ (R k(T, s')),        R = L⁻¹ diag(w),

for training supports T (virtual points included). Under Gaussian noise L is the Cholesky factor of K + Σ and w = 1;
with Gaussian sites of precision τ it is that of I + diag(√τ) K diag(√τ) and w = √τ.
"""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss import linalg
from aggregauss.archive import storable, write
from aggregauss.checks import one_of
from aggregauss.inference.data import Observations
from aggregauss.inference.optimise import Run
from aggregauss.inference.prediction import Prediction
from aggregauss.kernels.covariance import cross, diagonal, gram, symmetric
from aggregauss.kernels.kernel import Kernel
from aggregauss.latent.means import Mean, Moments, moments
from aggregauss.marginals import GaussianMarginals, LaplaceMarginals, Marginals, noisy, truncated
from aggregauss.parameters import parameters
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.support import Support, concatenate

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["latent", "response", "observation"]
KINDS = ("latent", "response", "observation")
BLOCK = 1 << 22  # entries of k(s, T) held at once


@storable
class Conditional(eqx.Module):
    """α, L and w of the formulas above."""

    alpha: Float[Array, " n"]
    factor: Float[Array, "n n"]
    weight: Float[Array, " n"]


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """A fitted model together with the data that fitted it."""

    model: Any
    observations: Observations
    virtual: Support | None  # points at which a constraint was imposed
    conditional: Conditional
    evidence: float  # log marginal likelihood at the fitted parameters, or its approximation
    scheme: str
    runs: tuple[Run, ...] = ()

    def predict(self, support: Support, kind: Kind | None = None) -> Prediction:
        """The function, or a new observation, over any supports.

        `kind="latent"` is the integral of the function itself; "response" takes its constraint into account (a
        non-negative function has no negative integral) and is the default; "observation" adds the noise.

        >>> import aggregauss as ag
        >>> bins = ag.Intervals([0, 10, 20], [10, 20, 30], measure="total")
        >>> post = ag.GP(ag.RBF(lengthscale=8.0)).fit(bins, [5.0, 20.0, 4.0])
        >>> post.predict(ag.Points([[15.0]])).interval(0.95)[0].shape  # the density underneath
        (1,)
        """
        wanted: Kind = one_of("response" if kind is None else kind, KINDS, "predict", "kind")
        if not isinstance(support, Support):
            raise TypeError(f'predict: "support" must be a batch of supports, but got {type(support).__name__}.')
        if support.dim != self.observations.support.dim:
            raise ValueError(
                f'predict: "support" must have {self.observations.support.dim} dimension(s) like the training data, '
                f"but has {support.dim}."
            )
        mean, variance = self._moments(support)
        joint = functools.cache(lambda: self._joint(support))
        return Prediction(self._marginals(mean, variance, wanted), support, joint, wanted)

    def leave_one_out(self) -> Prediction:
        """Each observation predicted from all the others, in closed form (Rasmussen and Williams 2006, eq. 5.12).

        >>> import aggregauss as ag
        >>> post = ag.GP(ag.RBF()).fit(ag.Points([0.0, 1.0, 2.0, 3.0]), [0.1, 0.9, 0.2, -0.8])
        >>> post.leave_one_out().log_density([0.1, 0.9, 0.2, -0.8]).shape
        (4,)
        """
        if self.scheme != "Exact":
            raise TypeError(
                f"leave_one_out: known in closed form for Exact inference, but this posterior is by {self.scheme}."
            )
        variance = 1.0 / np.asarray(linalg.inverse_diagonal(self.conditional.factor))
        mean = self.observations.y - variance * np.asarray(self.conditional.alpha)

        def joint() -> tuple[np.ndarray, np.ndarray]:
            raise TypeError("leave_one_out: the predictions come from different data and have no joint distribution.")

        return Prediction(GaussianMarginals(mean, variance), self.observations.support, joint, "observation")

    def summary(self) -> "pd.DataFrame":
        """The parameters: fitted value, whether learned, prior."""
        import pandas as pd

        rows = {
            p.path: {
                "value": np.asarray(p.value).tolist(),
                "learned": not p.mark.fixed,
                "prior": "" if p.mark.prior is None else str(p.mark.prior),
            }
            for p in parameters(self.model)
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def save(self, path: Any) -> None:
        """Write to one file that holds numbers and names only; read it with `aggregauss.load`."""
        write(path, self)

    def __repr__(self) -> str:
        values = ", ".join(f"{p.path}={np.asarray(p.value).round(4).tolist()}" for p in parameters(self.model))
        return f"Posterior({self.scheme}, {self.observations.support!r}, log evidence {self.evidence:.3f}, {values})"

    def _moments(self, support: Support) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance in blocks; each is filled up to a power of two, so that few shapes are compiled."""
        train = self._training
        rows = max(16, BLOCK // max(1, len(train.weight)))
        means, variances = [], []
        for start in range(0, len(support), rows):
            index = np.arange(start, min(start + rows, len(support)))
            size = 1 << max(4, (len(index) - 1).bit_length())
            block = support[np.concatenate([index, np.full(size - len(index), index[-1])])]
            mean, variance = _condition(
                self.model.kernel, self.model.mean, train, self.conditional, layout(block), moments(block)
            )
            means.append(np.asarray(mean)[: len(index)])
            variances.append(np.asarray(variance)[: len(index)])
        return np.concatenate(means), np.concatenate(variances)

    def _joint(self, support: Support) -> tuple[np.ndarray, np.ndarray]:
        train = self._training
        mean, covariance = _condition_jointly(
            self.model.kernel, self.model.mean, train, self.conditional, layout(support), moments(support)
        )
        return np.asarray(mean), np.asarray(covariance)

    @functools.cached_property
    def _training(self) -> Layout:
        observed = self.observations.support
        return layout(observed if self.virtual is None else concatenate([observed, self.virtual]))

    def _marginals(self, mean: np.ndarray, variance: np.ndarray, kind: Kind) -> Marginals:
        observed = self.model.likelihood.observation(mean, variance)
        if self.virtual is None or kind == "latent":
            return observed if kind == "observation" else GaussianMarginals(mean, variance)
        clean = truncated(mean, np.sqrt(np.maximum(variance, np.finfo(float).tiny)))
        if kind == "response":
            return clean
        if isinstance(observed, LaplaceMarginals):
            raise TypeError("predict: a new observation under a constraint is known for Gaussian noise only.")
        return noisy(clean, observed.variance - variance)


@eqx.filter_jit
def _condition(
    kernel: Kernel, mean: Mean, train: Layout, state: Conditional, test: Layout, test_moments: Moments
) -> tuple[Array, Array]:
    K = cross(kernel, test, train)
    V = linalg.lower_solve(state.factor, (K * state.weight[None, :]).T)
    variance = diagonal(kernel, test) - jnp.sum(V**2, axis=0)
    return mean.integrate(test_moments) + K @ state.alpha, jnp.maximum(variance, 0.0)


@eqx.filter_jit
def _condition_jointly(
    kernel: Kernel, mean: Mean, train: Layout, state: Conditional, test: Layout, test_moments: Moments
) -> tuple[Array, Array]:
    K = cross(kernel, test, train)
    V = linalg.lower_solve(state.factor, (K * state.weight[None, :]).T)
    return mean.integrate(test_moments) + K @ state.alpha, symmetric(gram(kernel, test)) - V.T @ V
