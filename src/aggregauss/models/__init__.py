"""Models: what people fit."""

from aggregauss.models.gp import GP

__all__ = ["GP"]
