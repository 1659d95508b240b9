"""What is observed, given the aggregate."""

from aggregauss.likelihoods.binomial import Bernoulli, Binomial
from aggregauss.likelihoods.gamma import Exponential, GammaResponse
from aggregauss.likelihoods.gaussian import Gaussian
from aggregauss.likelihoods.laplace_noise import LaplaceNoise
from aggregauss.likelihoods.likelihood import Likelihood
from aggregauss.likelihoods.negative_binomial import NegativeBinomial
from aggregauss.likelihoods.poisson import Poisson

__all__ = [
    "Bernoulli",
    "Binomial",
    "Exponential",
    "GammaResponse",
    "Gaussian",
    "LaplaceNoise",
    "Likelihood",
    "NegativeBinomial",
    "Poisson",
]
