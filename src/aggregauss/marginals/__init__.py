"""One-dimensional predictive distributions, one for each row of a prediction."""

from aggregauss.marginals import conditionals
from aggregauss.marginals.chi_squared import SquaredMarginals, squared
from aggregauss.marginals.classes import ClassMarginals
from aggregauss.marginals.laplace import LaplaceMarginals
from aggregauss.marginals.lognormal import LogNormalMarginals, log_normal
from aggregauss.marginals.marginals import Marginals
from aggregauss.marginals.mixture import MixedMarginals, mixed, observed
from aggregauss.marginals.noise import NoisyMarginals, noisy
from aggregauss.marginals.normal import GaussianMarginals
from aggregauss.marginals.skew_lognormal import SkewLogNormalMarginals, skew_log_normal
from aggregauss.marginals.transformation import TransformedMarginals
from aggregauss.marginals.truncated_normal import TruncatedMarginals, truncated

__all__ = [
    "ClassMarginals",
    "GaussianMarginals",
    "LaplaceMarginals",
    "LogNormalMarginals",
    "Marginals",
    "MixedMarginals",
    "NoisyMarginals",
    "SkewLogNormalMarginals",
    "SquaredMarginals",
    "TransformedMarginals",
    "TruncatedMarginals",
    "conditionals",
    "log_normal",
    "mixed",
    "noisy",
    "observed",
    "skew_log_normal",
    "squared",
    "truncated",
]
