"""Aggregauss: Gaussian processes for data that arrive aggregated.

Counts by district, means by age band, integrals by sensor window go in; the fine-scale function underneath comes out,
with its uncertainty.
"""

import importlib
from typing import TYPE_CHECKING

import jax

jax.config.update("jax_enable_x64", True)  # covariance matrices are not to be factorised in single precision

from aggregauss.archive import load  # noqa: E402
from aggregauss.inference import EP, Exact, Posterior, Prediction  # noqa: E402
from aggregauss.kernels import (  # noqa: E402
    RBF,
    ConstantKernel,
    Cosine,
    Linear,
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
from aggregauss.latent import Constant, LinearMean, NonNegative, Zero  # noqa: E402
from aggregauss.likelihoods import Gaussian, LaplaceNoise  # noqa: E402
from aggregauss.models import GP  # noqa: E402
from aggregauss.parameters import fixed, param, parameters  # noqa: E402
from aggregauss.priors import Gamma, HalfNormal, InverseGamma, LogNormal, Normal  # noqa: E402
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
)

if TYPE_CHECKING:
    from aggregauss import datasets, metrics, plots, privacy

__version__ = "0.1.0"

__all__ = [
    "EP",
    "GP",
    "RBF",
    "Bags",
    "Boxes",
    "Constant",
    "ConstantKernel",
    "Cosine",
    "Exact",
    "Gamma",
    "Gaussian",
    "HalfNormal",
    "Intervals",
    "InverseGamma",
    "LaplaceNoise",
    "Linear",
    "LinearMean",
    "LogNormal",
    "Matern12",
    "Matern32",
    "Matern52",
    "NonNegative",
    "Normal",
    "Periodic",
    "Points",
    "Polygons",
    "Polynomial",
    "Polytopes",
    "Posterior",
    "Prediction",
    "Product",
    "RationalQuadratic",
    "Support",
    "White",
    "Zero",
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
    "privacy",
]

_LATE = ("datasets", "metrics", "plots", "privacy")  # modules that `import aggregauss` does not pay for


def __getattr__(name: str) -> object:
    if name in _LATE:
        return importlib.import_module(f"aggregauss.{name}")
    raise AttributeError(f"module 'aggregauss' has no attribute {name!r}")
