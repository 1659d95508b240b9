"""From a model and data to a posterior."""

from aggregauss.inference.collapsed import Collapsed
from aggregauss.inference.ep import EP
from aggregauss.inference.exact import Exact
from aggregauss.inference.granularity import Granularity
from aggregauss.inference.plan_grid import GridPlan, plan_grid
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.prediction import Prediction
from aggregauss.inference.svi import SVI

__all__ = ["EP", "SVI", "Collapsed", "Exact", "Granularity", "GridPlan", "Posterior", "Prediction", "plan_grid"]
