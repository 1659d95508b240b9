"""A Gaussian process observed over supports."""

from typing import Any, Literal

import equinox as eqx

from aggregauss.checks import one_of
from aggregauss.inference.data import observe
from aggregauss.inference.ep import EP
from aggregauss.inference.exact import Exact
from aggregauss.inference.posterior import Posterior
from aggregauss.kernels.kernel import Kernel
from aggregauss.latent.constraints import NonNegative
from aggregauss.latent.means import Mean, Zero
from aggregauss.likelihoods import Gaussian, Likelihood
from aggregauss.parameters import Parametric
from aggregauss.supports.support import Support


class GP(Parametric):
    """f ~ GP(mean, kernel), observed through its integrals over supports.

    >>> import aggregauss as ag
    >>> bins = ag.Intervals(lo=[0, 10, 20], hi=[10, 20, 30], measure="total")
    >>> post = ag.GP(ag.RBF(lengthscale=5.0)).fit(bins, [50.0, 80.0, 30.0])
    >>> density = post.predict(ag.Points([[18.0], [25.0]])).mean
    >>> count = post.predict(ag.Intervals([18], [25], measure="total")).interval(0.95)

    `aggregation` says whether the latent function is aggregated ("latent") or its response under the likelihood's link
    ("response"). The likelihoods here have no link, so the two are the same.
    """

    kernel: Kernel
    mean: Mean
    likelihood: Likelihood
    constraint: NonNegative | None = eqx.field(static=True)
    aggregation: str = eqx.field(static=True)

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood | None = None,
        *,
        mean: Mean | None = None,
        constraint: NonNegative | None = None,
        aggregation: Literal["latent", "response"] = "latent",
    ):
        self.kernel = _of_type(kernel, Kernel, "kernel", "a kernel such as RBF()")
        self.likelihood = _of_type(
            likelihood or Gaussian(), Likelihood, "likelihood", "a likelihood such as Gaussian()"
        )
        self.mean = _of_type(mean or Zero(), Mean, "mean", "a mean function such as Constant()")
        self.constraint = constraint
        self.aggregation = one_of(aggregation, ("latent", "response"), "GP", "aggregation")
        self.marks = ()

    def fit(
        self,
        support: Support,
        y: Any,
        noise_variance: Any = None,
        *,
        inference: Exact | EP | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> Posterior:
        """The posterior given observations `y` of the supports; the model itself is left unchanged.

        `noise_variance`, one number or one for each observation, is known noise beside what the likelihood learns.
        `inference` defaults to `Exact()` under Gaussian noise and to `EP()` otherwise.
        """
        observations = observe(support, y, noise_variance)
        self.kernel.check_dim(support.dim)
        self.mean.check_dim(support.dim)
        conjugate = isinstance(self.likelihood, Gaussian) and self.constraint is None
        scheme = inference if inference is not None else (Exact() if conjugate else EP())
        return scheme.fit(self, observations, seed, progress)


def _of_type(value: Any, kind: type, name: str, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f'GP: "{name}" must be {wanted}, but got {type(value).__name__}.')
    return value
