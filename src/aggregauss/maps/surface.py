"""What is known of the rate of every pixel."""

import dataclasses
from collections.abc import Callable

import numpy as np

from aggregauss.inference.posterior import Posterior
from aggregauss.maps.raked import Raked
from aggregauss.marginals import skew_log_normal
from aggregauss.supports.support import Support

BLOCK = 1 << 15  # pixels at a time
LEVELS = {"lower": 0.025, "median": 0.5, "upper": 0.975}


ABOUT = {
    "mean": "expected rate",
    "sd": "standard deviation of the rate",
    "lower": "2.5% quantile of the rate",
    "median": "median of the rate",
    "upper": "97.5% quantile of the rate",
    "exceedance": "probability that the rate exceeds {threshold:.6g}",
}


def described(threshold: float) -> dict[str, str]:
    """What each layer shows, in words."""
    return {name: words.format(threshold=threshold) for name, words in ABOUT.items()}


@dataclasses.dataclass(frozen=True, eq=False)
class Surface:
    """Mean, standard deviation, quantiles (2.5%, 50%, 97.5%) and the probability to exceed a threshold, by pixel."""

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    median: np.ndarray
    upper: np.ndarray
    exceedance: np.ndarray
    threshold: float

    def layers(self) -> dict[str, np.ndarray]:
        """Everything by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "threshold"}


def predict_points(post: Posterior, threshold: float) -> Callable[[Support], dict[str, np.ndarray]]:
    """What a posterior says about the rates of any points."""

    def predict(points: Support) -> dict[str, np.ndarray]:
        found = post.predict(points)
        quantiles = {name: found.quantile(p) for name, p in LEVELS.items()}
        return {"mean": found.mean, "sd": found.std, **quantiles, "exceedance": found.exceedance(threshold)}

    return predict


def surface(post: Posterior, points: Support, threshold: float) -> Surface:
    """The rates of all points, in blocks."""
    predict = predict_points(post, threshold)
    parts = [predict(points[start : start + BLOCK]) for start in range(0, len(points), BLOCK)]
    return Surface(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, threshold=threshold)


def raked_surface(draws: Raked, threshold: float) -> Surface:
    """The same from draws that agree with the totals of regions."""
    found = {name: np.empty(len(draws.pixels)) for name in ABOUT}
    for rows, rates in draws.rates():
        law = skew_log_normal(rates)
        exceedance = 1.0 - law.cdf(np.full(len(rows), threshold))
        known = {"mean": law.mean, "sd": np.sqrt(law.variance), "exceedance": exceedance}
        for name, values in {**known, **{name: law.quantile(p) for name, p in LEVELS.items()}}.items():
            found[name][rows] = values
    return Surface(**found, threshold=threshold)
