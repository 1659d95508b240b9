"""What the latent function is made of besides its kernel: means and constraints."""

from aggregauss.latent.constraints import NonNegative
from aggregauss.latent.effects import LinearEffects
from aggregauss.latent.means import Constant, LinearMean, Mean, Zero

__all__ = ["Constant", "LinearEffects", "LinearMean", "Mean", "NonNegative", "Zero"]
