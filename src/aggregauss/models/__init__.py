"""Models: what people fit."""

from aggregauss.models.gp import GP
from aggregauss.models.multi_task import MultiTaskGP
from aggregauss.models.regression_network import RegressionNetwork

__all__ = ["GP", "MultiTaskGP", "RegressionNetwork"]
