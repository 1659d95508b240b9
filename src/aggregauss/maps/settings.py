"""What was asked of a map: the kind of response, the model, how it is fitted."""

import dataclasses
from typing import Any

import numpy as np

from aggregauss.archive import storable
from aggregauss.checks import one_of, whole_number
from aggregauss.inference.svi import SVI
from aggregauss.io.pixel_record import Pixels
from aggregauss.likelihoods import Binomial, Gaussian, Likelihood, NegativeBinomial, Poisson
from aggregauss.maps.classic import NODES, POOLED, classic, classic_inference
from aggregauss.maps.defaults import REPORTS, default_model
from aggregauss.maps.places import places, usual_number
from aggregauss.models.gp import GP
from aggregauss.parameters import fixed
from aggregauss.supports.support import Measure

LIKELIHOODS = ("poisson", "negative_binomial", "binomial", "gaussian")
COUNTS = ("poisson", "negative_binomial")
MODELS = ("default", "smooth", "classic")


@storable
@dataclasses.dataclass(frozen=True)
class Settings:
    """The choices of a job; everything else is read off the data."""

    likelihood: str = "poisson"
    total: bool = False  # whether Gaussian numbers add up rather than average
    model: str | GP = "default"
    benchmark: bool = False
    seed: int = 0
    inducing: int | None = None  # how many inducing points; more are finer and slower

    def __post_init__(self) -> None:
        one_of(self.likelihood, LIKELIHOODS, "disaggregate", "likelihood")
        if not isinstance(self.model, GP):
            one_of(self.model, MODELS, "disaggregate", "model")
        if self.benchmark and self.likelihood not in COUNTS:
            raise ValueError(
                'disaggregate: "benchmark" is for counts, whose totals are to match, but the likelihood is '
                f'"{self.likelihood}". Leave it out.'
            )
        if self.total and self.likelihood != "gaussian":
            raise ValueError(
                'disaggregate: "total" is for numbers that may be sums or averages, but the likelihood is '
                f'"{self.likelihood}". Leave it out, or give likelihood="gaussian".'
            )
        if self.inducing is not None:
            whole_number(self.inducing, "disaggregate", "inducing", 2)

    @property
    def measure(self) -> Measure:
        """Whether the numbers of regions are totals or means over their people."""
        return "total" if self.likelihood in COUNTS or (self.likelihood == "gaussian" and self.total) else "mean"

    @property
    def exponential(self) -> bool:
        """Whether the numbers of regions are sums or means of exponentials of one function."""
        if isinstance(self.model, GP):
            return (self.model.likelihood.link, self.model.aggregation) == ("exp", "response")
        return self._likelihood().link == "exp"

    def build(self, pixels: Pixels) -> tuple[GP, SVI]:
        """The model, and how it is fitted unless the user says otherwise."""
        likelihood = self.model.likelihood if isinstance(self.model, GP) else self._likelihood()
        search = "totals" if self.exponential else "bound"
        if self.model == "classic":
            model = classic(pixels.names, pixels.coordinates, None if self.likelihood == "poisson" else likelihood)
            nodes = self.inducing or NODES
            return model, classic_inference(pixels.covariates, pixels.coordinates, nodes=nodes, search=search)
        model = self.model if isinstance(self.model, GP) else self._default(pixels, likelihood)
        return model, SVI(inducing=self._places(pixels, model), pool=POOLED, search=search)

    def numbers(self, pixels: Pixels, notes: list[str]) -> tuple[np.ndarray, np.ndarray | None]:
        """What was reported, and out of how many; counts that are estimates are rounded, and it is said."""
        observed = pixels.regions["observed"].to_numpy(float)
        examined = pixels.regions["examined"].to_numpy(float) if "examined" in pixels.regions else None
        if self.likelihood == "gaussian":
            return observed, None
        if self.likelihood == "binomial" and examined is None:
            raise ValueError(
                'disaggregate: "binomial" needs the numbers examined. Name their column with examined="...".'
            )
        return _whole(observed, "counts", notes), None if examined is None else _whole(examined, "examined", notes)

    def _default(self, pixels: Pixels, likelihood: Likelihood) -> GP:
        level, unit = self._typical(pixels)
        dimensions, smooth = pixels.coordinates.shape[1], self.model == "smooth"
        return default_model(pixels.names, dimensions, likelihood, level, unit, _diameter(pixels), smooth)

    def _places(self, pixels: Pixels, model: GP) -> np.ndarray | None:
        """Inducing points, spread over what the function depends on."""
        size = pixels.columns.shape[1]
        seen = set() if model.kernel is None else {j for j in model.kernel.touches(size) if j < size}
        return places(pixels, seen, self.inducing or usual_number(len(pixels.regions)), self.seed) if seen else None

    def _likelihood(self) -> Likelihood:
        match self.likelihood:
            case "poisson":
                return Poisson(region_effect=True, region_sd=fixed(REPORTS))
            case "negative_binomial":
                return NegativeBinomial()
            case "binomial":
                return Binomial()
            case _:
                return Gaussian()

    def _typical(self, pixels: Pixels) -> tuple[float, float]:
        """Level and natural unit of the latent function."""
        y, examined = self.numbers(pixels, [])
        if self.likelihood == "gaussian":
            rate = y / pixels.totals() if self.total else y
            return float(rate.mean()), float(rate.std()) or 1.0
        share = float((y.sum() + 0.5) / ((pixels.totals() if examined is None else examined).sum() + 1.0))
        return float(np.log(share) if examined is None else np.log(share / (1 - share))), 1.0

    def words(self) -> dict[str, Any]:
        """For a run record."""
        chosen = dataclasses.asdict(self) if not isinstance(self.model, GP) else {**vars(self), "model": "own"}
        return {**chosen, "measure": self.measure}


def _diameter(pixels: Pixels) -> float:
    """Of a typical region: that of a disc whose points are as far from its centre as the region's pixels are."""
    where, n = pixels.coordinates[pixels.pixel], len(pixels.regions)
    size = np.bincount(pixels.region, pixels.share, minlength=n)
    spread = np.zeros(n)
    for x in where.T:
        mean = np.bincount(pixels.region, pixels.share * x, minlength=n) / size
        spread += np.bincount(pixels.region, pixels.share * (x - mean[pixels.region]) ** 2, minlength=n) / size
    return float(2 * np.sqrt(2 * np.median(spread))) or 1.0


def _whole(values: np.ndarray, what: str, notes: list[str]) -> np.ndarray:
    rounded = np.round(values)
    if not np.array_equal(rounded, values):
        change = float(np.abs(rounded - values).sum() / max(1.0, np.abs(values).sum()))
        notes.append(f"The {what} are not whole numbers; they were rounded, which moves them by {change:.2%} in all.")
    return rounded
