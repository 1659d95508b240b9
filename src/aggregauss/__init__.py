"""Aggregauss: Gaussian processes for data that arrive aggregated.

Counts by district, means by age band, integrals by sensor window go in; the fine-scale function underneath comes out,
with its uncertainty.
"""

import importlib
from typing import TYPE_CHECKING

import jax

jax.config.update("jax_enable_x64", True)  # covariance matrices are not to be factorised in single precision

from aggregauss.archive import load  # noqa: E402
from aggregauss.inference import EP, SVI, Collapsed, Exact, Posterior, Prediction  # noqa: E402
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
    Support,
    concatenate,
    pool,
)

if TYPE_CHECKING:
    from aggregauss import baselines, datasets, metrics, plots, privacy
    from aggregauss.io import ParquetBags

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
    "SdPrior",
    "StudentT",
    "Support",
    "White",
    "Zero",
    "baselines",
    "concatenate",
    "cov",
    "datasets",
    "explain",
    "fixed",
    "load",
    "metrics",
    "param",
    "parameters",
    "plots",
    "pool",
    "privacy",
]

_LATE = ("baselines", "datasets", "metrics", "plots", "privacy")  # modules that `import aggregauss` does not pay for


def __getattr__(name: str) -> object:
    if name in _LATE:
        return importlib.import_module(f"aggregauss.{name}")
    if name == "ParquetBags":
        return importlib.import_module("aggregauss.io").ParquetBags
    raise AttributeError(f"module 'aggregauss' has no attribute {name!r}")
