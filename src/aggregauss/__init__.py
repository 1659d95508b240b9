"""Aggregauss: Gaussian processes for data that arrive aggregated.

Counts by district, means by age band, integrals by sensor window go in; the fine-scale function underneath comes out,
with its uncertainty.
"""

import importlib
from typing import TYPE_CHECKING

import jax

jax.config.update("jax_enable_x64", True)  # covariance matrices are not to be factorised in single precision

from aggregauss.archive import load  # noqa: E402
from aggregauss.inference import EP, SVI, Collapsed, Exact, Posterior, Prediction, plan_grid  # noqa: E402
from aggregauss.kernels import (  # noqa: E402
    RBF,
    ConstantKernel,
    Cosine,
    Linear,
    Matern1,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    White,
    cov,
    explain,
)
from aggregauss.latent import Constant, LinearEffects, LinearMean, NonNegative, Zero  # noqa: E402
from aggregauss.likelihoods import (  # noqa: E402
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Exponential,
    GammaResponse,
    Gaussian,
    HeteroscedasticGaussian,
    LaplaceNoise,
    NegativeBinomial,
    Poisson,
    SampleQuasi,
    StudentT,
)
from aggregauss.models import GP, MultiTaskGP, RegressionNetwork  # noqa: E402
from aggregauss.parameters import fixed, param, parameters  # noqa: E402
from aggregauss.priors import Gamma, HalfNormal, InverseGamma, LogNormal, Normal, RangePrior, SdPrior  # noqa: E402
from aggregauss.supports import (  # noqa: E402
    Bags,
    Boxes,
    Intervals,
    Points,
    Polygons,
    Polytopes,
    Product,
    Summaries,
    Support,
    concatenate,
    pool,
    summarise,
)

if TYPE_CHECKING:
    from aggregauss import baselines, datasets, maps, metrics, plots, privacy
    from aggregauss.io import ParquetBags
    from aggregauss.maps import disaggregate

__version__ = "0.1.0"

__all__ = [
    "EP",
    "GP",
    "RBF",
    "SVI",
    "Bags",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Boxes",
    "Categorical",
    "Collapsed",
    "Constant",
    "ConstantKernel",
    "Cosine",
    "Exact",
    "Exponential",
    "Gamma",
    "GammaResponse",
    "Gaussian",
    "HalfNormal",
    "HeteroscedasticGaussian",
    "Intervals",
    "InverseGamma",
    "LaplaceNoise",
    "Linear",
    "LinearEffects",
    "LinearMean",
    "LogNormal",
    "Matern1",
    "Matern12",
    "Matern32",
    "Matern52",
    "MultiTaskGP",
    "NegativeBinomial",
    "NonNegative",
    "Normal",
    "ParquetBags",
    "Periodic",
    "Points",
    "Poisson",
    "Polygons",
    "Polynomial",
    "Polytopes",
    "Posterior",
    "Prediction",
    "Product",
    "RangePrior",
    "RationalQuadratic",
    "RegressionNetwork",
    "SampleQuasi",
    "SdPrior",
    "StudentT",
    "Summaries",
    "Support",
    "White",
    "Zero",
    "baselines",
    "concatenate",
    "cov",
    "datasets",
    "disaggregate",
    "explain",
    "fixed",
    "load",
    "maps",
    "metrics",
    "param",
    "parameters",
    "plan_grid",
    "plots",
    "pool",
    "privacy",
    "summarise",
]

_LATE = (
    "baselines",
    "datasets",
    "maps",
    "metrics",
    "plots",
    "privacy",
)  # modules that `import aggregauss` does not pay for

_HOMES = {"ParquetBags": "aggregauss.io", "disaggregate": "aggregauss.maps"}  # names that load a module when first used


def __getattr__(name: str) -> object:
    if name in _LATE:
        return importlib.import_module(f"aggregauss.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'aggregauss' has no attribute {name!r}")
