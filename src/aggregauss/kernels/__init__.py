"""Covariance functions, and covariances of supports."""

from aggregauss.kernels.algebra import Product, Sum
from aggregauss.kernels.constant import ConstantKernel
from aggregauss.kernels.cosine import Cosine
from aggregauss.kernels.covariance import cov, explain, variances
from aggregauss.kernels.kernel import Kernel
from aggregauss.kernels.linear import Linear
from aggregauss.kernels.matern import Matern12, Matern32, Matern52
from aggregauss.kernels.matern_one import Matern1
from aggregauss.kernels.periodic import Periodic
from aggregauss.kernels.polynomial import Polynomial
from aggregauss.kernels.potential import Smooth
from aggregauss.kernels.rational_quadratic import RationalQuadratic
from aggregauss.kernels.rbf import RBF
from aggregauss.kernels.separable import Separable
from aggregauss.kernels.white import White

__all__ = [
    "RBF",
    "ConstantKernel",
    "Cosine",
    "Kernel",
    "Linear",
    "Matern1",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Separable",
    "Smooth",
    "Sum",
    "White",
    "cov",
    "explain",
    "variances",
]
