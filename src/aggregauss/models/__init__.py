"""Models: what people fit."""

from aggregauss.models.gp import GP
from aggregauss.models.multi_task import MultiTaskGP

__all__ = ["GP", "MultiTaskGP"]
