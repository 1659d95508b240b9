"""The honest check of a map: regions that the fit does not see.

By folds, each region is predicted from a fit to the regions of the other folds. From coarse to fine, the map is fitted
to the sums over groups of regions, as if only these had been reported, and scored on the regions that they hide. Beside
the model stands the constant rate: that of the training regions by folds, that of the own group from coarse to fine.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from aggregauss.checks import whole_number
from aggregauss.inference.svi import SVI
from aggregauss.io.pixel_record import Pixels
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.fit import fit_pixels
from aggregauss.maps.overlay import own_pieces
from aggregauss.maps.record import run_record
from aggregauss.maps.regroup import regrouped
from aggregauss.maps.settings import Settings
from aggregauss.metrics import coverage, rmse

if TYPE_CHECKING:
    import pandas as pd

LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)


@dataclasses.dataclass(frozen=True, eq=False)
class Validation:
    """Each region as it was predicted without having been seen."""

    table: "pd.DataFrame"  # label, observed, fitted, lower, upper, rate, fitted_rate, constant_rate, log_score, ...
    how: str

    @property
    def calibration(self) -> "pd.DataFrame":
        """The share of regions inside the intervals of each level."""
        import pandas as pd

        t = self.table
        inside = [coverage(t["observed"], t[f"lower{level:.0%}"], t[f"upper{level:.0%}"]) for level in LEVELS]
        return pd.DataFrame({"level": LEVELS, "inside": inside, "kind": "held out"})

    @property
    def scores(self) -> "pd.DataFrame":
        """Errors of rates and of log rates, log score and coverage, beside those of a constant rate."""
        import pandas as pd

        t = self.table
        rates = {"this model": t["fitted_rate"].to_numpy(), "constant rate": t["constant_rate"].to_numpy()}
        truth = t["rate"].to_numpy()
        some = truth > 0
        found = pd.DataFrame(index=list(rates))
        found["RMSE of rates"] = [rmse(truth, rate) for rate in rates.values()]
        if some.any() and all((rate > 0).all() for rate in rates.values()):
            found["RMSE of log rates"] = [rmse(np.log(truth[some]), np.log(rate[some])) for rate in rates.values()]
        found["mean log score"] = [t["log_score"].mean(), np.nan]
        found["inside 95%"] = [coverage(t["observed"], t["lower95%"], t["upper95%"]), np.nan]
        return found

    def __repr__(self) -> str:
        return f"Validation {self.how}\n{self.scores.round(4).to_string()}"


def validate(
    pixels: Pixels,
    settings: Settings,
    *,
    folds: int = 5,
    groups: Any = None,
    inference: SVI | None = None,
    progress: bool = True,
) -> Validation:
    """Fits without the regions that are then predicted: by `folds`, or from `groups` (a name for each region)."""
    import pandas as pd

    n = len(pixels.regions)
    if groups is None:
        rounds, how = _by_folds(n, whole_number(folds, "validate", "folds", 2), settings.seed), f"by {folds} folds"
    else:
        names = _names(groups, n)
        rounds, how = [(np.arange(n), names, np.arange(n))], f"from {len(set(names))} groups to {n} regions"
    parts = []
    for rows, names, held in tqdm(rounds, desc="validate", unit="fit", disable=not progress):
        seen = regrouped(pixels, rows, names, settings.measure)
        found = fit_pixels(seen, settings, run_record({}), inference=inference, progress=progress)
        own = None if groups is None else np.searchsorted(seen.regions["label"].to_numpy(str), names.astype(str))
        parts.append(_predicted(found, pixels, held, own))
    return Validation(pd.concat(parts).sort_index().reset_index(drop=True), how)


def _by_folds(n: int, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    if folds > n:
        raise ValueError(f'validate: "folds" must not exceed the {n} regions, but is {folds}.')
    parts = np.array_split(np.random.default_rng(seed).permutation(n), folds)
    rest = [np.setdiff1d(np.arange(n), part) for part in parts]
    return [(rows, rows, np.sort(part)) for rows, part in zip(rest, parts)]


def _names(groups: Any, n: int) -> np.ndarray:
    import pandas as pd

    names = np.asarray(groups, dtype=object)
    missing = pd.isna(names)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f'validate: "groups" has no name for region {row}. Give one, or leave the region out.')
    names = names.astype(str)
    if names.shape != (n,):
        raise ValueError(f'validate: "groups" must name the group of each of the {n} regions, but has {names.shape}.')
    if len(set(names)) < 2:
        raise ValueError('validate: "groups" must form at least two groups, but all regions have the same name.')
    return names


def _predicted(found: Disaggregation, pixels: Pixels, held: np.ndarray, own: np.ndarray | None) -> "pd.DataFrame":
    """The held-out regions under a fit that did not see them; `own` numbers the group of each, if it was seen."""
    import pandas as pd

    settings, target = found.settings, own_pieces(pixels).rows(held)
    y, examined = settings.numbers(pixels, [])
    y, examined = y[held], None if examined is None else examined[held]
    fitted, new = found.predict(target), found.predict(target, kind="observation", counts=examined)
    people = np.bincount(target.owner, target.weight, minlength=len(held))
    scale = 1.0 if examined is None else examined
    mass = people if settings.measure == "total" else scale
    seen = found.table()
    constant = found.rate if own is None else seen["rate"].to_numpy()[own[held]]
    columns = {
        "label": target.labels,
        "observed": y,
        "fitted": fitted.mean * scale,
        "rate": y / mass,
        "fitted_rate": fitted.mean * scale / mass,
        "constant_rate": np.broadcast_to(constant, len(held)),
        "log_score": new.log_density(y),
    }
    for level in LEVELS:
        columns[f"lower{level:.0%}"], columns[f"upper{level:.0%}"] = new.interval(level)
    return pd.DataFrame(columns, index=held)
