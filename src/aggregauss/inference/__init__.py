"""From a model and data to a posterior."""

from aggregauss.inference.ep import EP
from aggregauss.inference.exact import Exact
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.prediction import Prediction

__all__ = ["EP", "Exact", "Posterior", "Prediction"]
