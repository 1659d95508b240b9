"""What each region has of its own: the effect v_a of y_a ~ Poisson(η_a e^{v_a}), v_a ~ N(0, s²), given its count.

With λ = η e^v and p(y | η) the probability of a count, v integrated out (Robbins 1956),

    E[λ | y, η] = (y + 1) p(y + 1 | η) / p(y | η),        E[λ² | y, η] = (y + 2) (y + 1) p(y + 2 | η) / p(y | η),

averaged over what the posterior leaves open of η. A map leaves the effects out, since nobody knows where in a region
they belong; a region's fitted total has its own in.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from aggregauss.inference.posterior import Posterior
from aggregauss.inference.prediction import Prediction
from aggregauss.likelihoods import Poisson
from aggregauss.supports.support import Support

if TYPE_CHECKING:
    import pandas as pd

NODES = 32  # quantiles of η


def region_effects(
    post: Posterior,
    level: float = 0.95,
    support: Support | None = None,
    y: np.ndarray | None = None,
    response: Prediction | None = None,
) -> "pd.DataFrame":
    """For each region: the total without its effect, the factor e^v, and the fitted total with it, with an interval.

    `support` and `y` are the regions and their counts; by default those of the fit, which a saved posterior lacks.
    `response` is what is known of their totals, by default what the posterior says.

    >>> import aggregauss as ag
    >>> bags = ag.Bags(np.arange(8.0), bag=np.arange(8) // 2, weights=np.full(8, 500.0))
    >>> model = ag.GP(ag.RBF(3.0), ag.Poisson(region_effect=True), mean=ag.Constant(), aggregation="response")
    >>> post = model.fit(bags, [900, 1500, 400, 1000], inference=ag.SVI(inducing=4, integrate=False), progress=False)
    >>> region_effects(post)["fitted"].round(-1).tolist()
    [900.0, 1500.0, 400.0, 1000.0]
    """
    import pandas as pd

    likelihood = post.model.likelihood
    support = post.observations.support if support is None else support
    y = post.observations.y if y is None else y
    if not (isinstance(likelihood, Poisson) and likelihood.region_effect):
        raise TypeError("region_effects: the model has no effects of regions. Use Poisson(region_effect=True).")
    response = post.predict(support, "response") if response is None else response
    eta = np.stack([response.quantile((k + 0.5) / NODES) for k in range(NODES)])
    first, second = (np.asarray(x) for x in jax.vmap(lambda e: _moments(likelihood, jnp.asarray(y), e))(eta))
    fitted = first.mean(axis=0)
    spread = np.sqrt(np.log(np.maximum(second.mean(axis=0) / fitted**2, 1.0)))  # of a log-normal with these moments
    far = float(ndtri(0.5 + level / 2)) * spread
    middle = fitted * np.exp(-0.5 * spread**2)
    columns = {
        "without": response.mean,
        "factor": (first / eta).mean(axis=0),
        "fitted": fitted,
        "lower": middle * np.exp(-far),
        "upper": middle * np.exp(far),
    }
    return pd.DataFrame(columns, index=support.labels)


def _moments(likelihood: Poisson, y: jax.Array, eta: jax.Array) -> tuple[jax.Array, jax.Array]:
    here, one, two = (likelihood.log_prob(y + k, eta) for k in (0.0, 1.0, 2.0))
    return (y + 1) * jnp.exp(one - here), (y + 2) * (y + 1) * jnp.exp(two - here)
