"""What a Gaussian process over supports has to beat: the baselines of Law et al. (2018), as scikit-learn estimators.

Individuals x_i with weights w_i form a bag a, and only the bag's response is seen,

    y_a ~ Poisson(Σ_i w_i g(f(x_i))),   g = exp or square,      or      y_a ~ Normal(Σ_i w_i f(x_i), τ Σ_i w_i²).

| estimator         | the rate of an individual                                        |
|-------------------|------------------------------------------------------------------|
| `ConstantRate`    | the same all over a bag                                          |
| `BagAsIndividual` | a network that has seen one averaged individual for each bag     |
| `NystromMAP`      | a kernel machine on Nyström features                             |
| `NeuralNetwork`   | one hidden layer                                                 |

`tuned` picks settings by the likelihood of validation bags. Reference: Law, Sejdinovic, Cameron, Lucas, Flaxman,
Battle and Fukumizu, "Variational learning on aggregate outputs with Gaussian processes", NeurIPS 2018, appendices B-D.
"""

from aggregauss.baselines.bag_as_individual import BagAsIndividual
from aggregauss.baselines.constant import ConstantRate
from aggregauss.baselines.network import NeuralNetwork
from aggregauss.baselines.nystrom import NystromMAP
from aggregauss.baselines.tuning import tuned

__all__ = ["BagAsIndividual", "ConstantRate", "NeuralNetwork", "NystromMAP", "tuned"]
