"""The model that is fitted when nobody says otherwise.

The latent function (the log of a rate, the logit of a probability, or the average itself) is

    f(x, s) = β₀ + Σ_j β_j x_j + u(s)        [ + h(x), model="smooth" ]:

linear effects of the standardised covariates and a field over space, and on request a smooth function of the
covariates. What regions differ by beyond that belongs to the field, not to an effect of each region: parts of a region
inherit it, and the map adds up to what was reported. Counts are still not taken more literally than reports deserve:
each may be off by about 20%. A map that must agree with the reports exactly is benchmarked afterwards.

Priors are wide but not flat. They are log-normal because the search looks for the top of a density: that of a prior
which is highest at a variance of zero has no field in it.
"""

import functools
import operator

import numpy as np

from aggregauss.kernels import RBF, Matern32
from aggregauss.kernels.kernel import Kernel
from aggregauss.latent import Constant, LinearEffects
from aggregauss.likelihoods import Likelihood
from aggregauss.models.gp import GP
from aggregauss.parameters import Param, fixed, param
from aggregauss.priors import LogNormal, RangePrior

SHORTEST = 1 / 3  # of a region's diameter: the field's range is rarely shorter
REPORTS = 0.2  # relative error of a reported count


def default_model(
    names: tuple[str, ...],
    dimensions: int,
    likelihood: Likelihood,
    level: float,
    unit: float,
    diameter: float,
    smooth: bool = False,
) -> GP:
    """A model of inputs (standardised covariates..., x, y); f is about `level`, and varies by some `unit`s.

    `diameter` is that of a typical region: what varies over shorter distances is what the map is asked for.
    """
    c, d = len(names), dimensions
    parts = []
    if d:
        parts.append(_field(range(c, c + d), unit, diameter))
    if c and (smooth or not d):
        bends = param(np.full(c, 2.0), prior=LogNormal(2.0, 0.7))  # in standard deviations of the covariates
        parts.append(RBF(bends, _variance(0.3, unit), active_dims=range(c)))
    kernel = functools.reduce(operator.add, parts)
    if not c:
        return GP(kernel, likelihood, mean=Constant(level), aggregation="response")
    mean = LinearEffects(range(c), sd=unit, intercept_sd=2.0 * unit, value=fixed(level), names=names)
    return GP(kernel, likelihood, mean=mean, aggregation="response")


def _field(columns: range, unit: float, diameter: float) -> Kernel:
    prior = RangePrior(below=SHORTEST * diameter, probability=0.05, dim=len(columns))
    lengthscale = param(0.7 * diameter, prior=prior)
    return Matern32(lengthscale, _variance(1.0, unit), active_dims=columns)


def _variance(median: float, unit: float) -> Param:
    return param(median * unit**2, prior=LogNormal(median * unit**2, 1.0))
