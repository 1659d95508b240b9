"""What is observed, given the aggregate."""

from aggregauss.likelihoods.gaussian import Gaussian
from aggregauss.likelihoods.laplace_noise import LaplaceNoise
from aggregauss.likelihoods.likelihood import Likelihood

__all__ = ["Gaussian", "LaplaceNoise", "Likelihood"]
