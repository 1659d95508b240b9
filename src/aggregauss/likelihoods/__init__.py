"""What is observed, given the aggregate."""

from aggregauss.likelihoods.beta import Beta
from aggregauss.likelihoods.binomial import Bernoulli, Binomial
from aggregauss.likelihoods.categorical import Categorical
from aggregauss.likelihoods.conjugate import Conjugate
from aggregauss.likelihoods.gamma import Exponential, GammaResponse
from aggregauss.likelihoods.gaussian import Gaussian
from aggregauss.likelihoods.heteroscedastic import HeteroscedasticGaussian
from aggregauss.likelihoods.joint import JointLikelihood
from aggregauss.likelihoods.laplace_noise import LaplaceNoise
from aggregauss.likelihoods.likelihood import Likelihood
from aggregauss.likelihoods.negative_binomial import NegativeBinomial
from aggregauss.likelihoods.poisson import Poisson
from aggregauss.likelihoods.sample_quasi import SampleQuasi
from aggregauss.likelihoods.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Conjugate",
    "Exponential",
    "GammaResponse",
    "Gaussian",
    "HeteroscedasticGaussian",
    "JointLikelihood",
    "LaplaceNoise",
    "Likelihood",
    "NegativeBinomial",
    "Poisson",
    "SampleQuasi",
    "StudentT",
]
