"""A Gaussian process observed over supports."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import as_seed, kind_of, one_of, warn
from aggregauss.inference.collapsed import Collapsed
from aggregauss.inference.data import Data, Observations, contradiction, observe
from aggregauss.inference.ep import EP
from aggregauss.inference.exact import Exact
from aggregauss.inference.landmarks import landmarks, with_places_scaled
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.svi import SVI
from aggregauss.kernels.kernel import Kernel
from aggregauss.kernels.scales import warn_of_scales
from aggregauss.latent.constraints import NonNegative
from aggregauss.latent.effects import LinearEffects
from aggregauss.latent.means import Mean, Zero
from aggregauss.likelihoods import Conjugate, Gaussian, LaplaceNoise, Likelihood, SampleQuasi
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.parameters import Parametric
from aggregauss.supports.standardise import Standardiser, standardiser
from aggregauss.supports.support import Support


class GP(Parametric):
    """f ~ GP(mean, kernel), observed through its integrals over supports.

    >>> import aggregauss as ag
    >>> bins = ag.Intervals(lo=[0, 10, 20], hi=[10, 20, 30], measure="total")
    >>> post = ag.GP(ag.RBF(lengthscale=5.0)).fit(bins, [50.0, 80.0, 30.0])
    >>> density = post.predict(ag.Points([[18.0], [25.0]])).mean
    >>> count = post.predict(ag.Intervals([18], [25], measure="total")).interval(0.95)

    `aggregation` says whether the latent function is aggregated and then put through the likelihood's link ("latent"),
    or put through the link at every place and then aggregated ("response": counts of a district are the sum of what its
    pixels expect). Without a link the two are the same. `kernel=None` leaves only the effects of a `LinearEffects`
    mean.

    >>> districts = ag.Bags([[0.0], [1.0], [5.0]], bag=["n", "n", "s"], weights=[100.0, 50.0, 300.0])
    >>> model = ag.GP(ag.RBF(2.0), likelihood=ag.Poisson(), aggregation="response", mean=ag.Constant())
    >>> rate = model.fit(districts, [4, 30], progress=False).predict(ag.Points([[0.5]])).mean
    """

    kernel: Kernel | None
    mean: Mean
    likelihood: Likelihood
    constraint: NonNegative | None = eqx.field(static=True)
    aggregation: str = eqx.field(static=True)

    def __init__(
        self,
        kernel: Kernel | None,
        likelihood: Likelihood | None = None,
        *,
        mean: Mean | None = None,
        constraint: NonNegative | None = None,
        aggregation: Literal["latent", "response"] = "latent",
    ):
        if kernel is None and not isinstance(mean, LinearEffects):
            raise TypeError('GP: "kernel" may be None only beside mean=LinearEffects(columns). Give a kernel.')
        self.kernel = None if kernel is None else _of_type(kernel, Kernel, "kernel", "a kernel such as RBF()")
        self.likelihood = _of_type(
            likelihood or Gaussian(), Likelihood, "likelihood", "a likelihood such as Gaussian()"
        )
        if self.likelihood.functions > 1:
            raise TypeError(
                f"GP: {type(self.likelihood).__name__} needs {self.likelihood.functions} functions. Use "
                'MultiTaskGP([RBF()], {"y": ...}).'
            )
        self.mean = _of_type(mean or Zero(), Mean, "mean", "a mean function such as Constant()")
        if constraint is not None:
            _of_type(constraint, NonNegative, "constraint", "one such as NonNegative()")
        self.constraint = constraint
        self.aggregation = one_of(aggregation, ("latent", "response"), "GP", "aggregation")
        self.marks = ()

    def fit(
        self,
        support: Support,
        y: Any,
        noise_variance: Any = None,
        *,
        counts: Any = None,
        variances: Any = None,
        inference: Exact | EP | SVI | Collapsed | None = None,
        standardise: bool | Sequence[int] = False,
        seed: Any = 0,
        progress: bool = True,
    ) -> Posterior:
        """The posterior given observations `y` of the supports; the model itself is left unchanged.

        `noise_variance`, one number or one for each observation, is known noise beside what a Gaussian likelihood
        learns. `counts` are the numbers of trials of binomial observations, or of the individuals that each `y`
        summarises under a `SampleQuasi` likelihood; `variances` are those within the summaries, with divisor n.

        `standardise=True` brings all covariates to mean zero and standard deviation one first (lengthscales are then in
        standard deviations), a list of columns only these; the posterior does the same to whatever is predicted.
        `inference` defaults to `Exact()` under Gaussian noise and for summaries, to `EP()` for a constraint or Laplace
        noise, and to `SVI()` otherwise. `seed` is a whole number or a JAX key.
        """
        observations, seed = observe(support, y, noise_variance, counts, variances), as_seed(seed)
        if self.kernel is not None:
            self.kernel.check_dim(support.dim)
        self.mean.check_dim(support.dim)
        observations = taken_by(self.likelihood, observations, self.aggregation)
        scaler = _scaler(support, standardise)
        scheme = a_scheme(inference) or self._default()
        if scaler is not None:
            observations = dataclasses.replace(observations, support=scaler(support))
            scheme = with_places_scaled(scheme, scaler)
        if self.kernel is not None:
            remedy = "Give" if scaler is not None else "Give fit(..., standardise=True), or"
            warn_of_scales(observations.support, [self.kernel], remedy)
        post = scheme.fit(self, observations, seed, progress)
        if isinstance(self.likelihood, SampleQuasi):
            warn_of_contradictions(post.model.likelihood, observations)
        if scaler is None:
            return post
        return dataclasses.replace(post, scaler=scaler, observations=dataclasses.replace(observations, support=support))

    def of_task(self, task: int) -> "GP":
        """The model of one task: there is no other."""
        return self

    @property
    def likelihoods(self) -> tuple[Likelihood, ...]:
        """Of all tasks: here there is one."""
        return (self.likelihood,)

    def noise(self, data: Data) -> Float[Array, " n"]:
        """Variance of each observation under Gaussian noise."""
        assert isinstance(self.likelihood, Conjugate)
        return self.likelihood.noise(data.seen)

    def within(self, data: Data) -> Float[Array, " n"]:
        """What the scatter within summaries adds to the log evidence."""
        assert isinstance(self.likelihood, Conjugate)
        return self.likelihood.within(data.seen)

    def inducing(self, wanted: Any, support: Support, seed: int) -> Support | None:
        """Supports of the inducing variables; none where there is no kernel."""
        return None if self.kernel is None else landmarks(wanted, support, seed)

    def _default(self) -> Exact | EP | SVI:
        as_it_is = self.aggregation == "latent" or self.likelihood.link == "identity"
        if isinstance(self.likelihood, Conjugate) and self.constraint is None and as_it_is:
            return Exact()
        return EP() if self.constraint is not None or isinstance(self.likelihood, LaplaceNoise) else SVI()


def _scaler(support: Support, standardise: bool | Sequence[int]) -> Standardiser | None:
    if isinstance(standardise, bool | np.bool_):
        return standardiser(support) if standardise else None
    columns = np.atleast_1d(standardise)
    if columns.size and not (columns.dtype.kind in "iu" and columns.min() >= 0 and columns.max() < support.dim):
        raise ValueError(
            f'fit: "standardise" must be True, False or columns in 0..{support.dim - 1}, but got {standardise!r}.'
        )
    return standardiser(support, columns.tolist()) if columns.size else None


def a_scheme(inference: Any) -> Any:
    """The scheme that was asked for, or None; a sentence if it is something else."""
    if inference is not None and (isinstance(inference, type) or not hasattr(inference, "fit")):
        got = f"the class {inference.__name__}" if isinstance(inference, type) else repr(inference)
        raise TypeError(f'fit: "inference" must be a scheme such as Exact() or SVI(), with brackets, but got {got}.')
    return inference


def taken_by(likelihood: Likelihood, observations: Observations, aggregation: str) -> Observations:
    """The observations as the likelihood works with them, or a sentence if it cannot have produced them."""
    support = observations.support
    is_mean = support.measure == "mean" or bool(np.allclose(support.mass, 1.0))
    y, counts = observations.y, observations.counts
    likelihood.check(y, counts, is_mean)
    likelihood.check_variances(y, counts, observations.variances)
    if likelihood.link != "identity" and aggregation == "latent" and not is_mean:
        raise ValueError(
            f'fit: with aggregation="latent" the {likelihood.link} link is put on the integral of the function, '
            'which for totals grows with their mass. Use aggregation="response", or supports with measure="mean".'
        )
    if not likelihood.takes_noise and observations.noise_variance.any():
        raise ValueError(
            f'fit: "noise_variance" is for Gaussian noise, but the likelihood is {type(likelihood).__name__}.'
        )
    variances = likelihood.usable_variances(y, observations.variances)
    return dataclasses.replace(observations, y=likelihood.statistic(y, counts), variances=variances)


def warn_of_contradictions(likelihood: SampleQuasi, observations: Observations, task: str = "") -> None:
    """Summaries of one place, or of one region, that differ by far more than their noise."""
    if not hasattr(observations.support, "center"):  # those of a file are not at hand
        return
    noise = likelihood.noise(Seen(*map(jnp.asarray, observations.seen())))
    found = contradiction(observations, np.asarray(noise))
    if found is not None:
        first, other, apart = found
        remedy = "a larger region_sd" if likelihood.region_effect else "SampleQuasi(..., region_effect=True)"
        warn(
            f"fit: rows {first} and {other}{task} are of the same place or region, but differ by {apart:.3g} standard "
            f"errors. If neither is a mistake, {remedy} lets regions differ."
        )


def _of_type(value: Any, kind: type, name: str, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f'GP: "{name}" must be {wanted}, but got {kind_of(value)}.')
    return value
