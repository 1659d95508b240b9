"""A fitted map."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.inference.posterior import Kind, Posterior
from aggregauss.inference.prediction import Prediction
from aggregauss.inference.svi import SVI
from aggregauss.io.pixel_record import Pixels
from aggregauss.maps.overlay import Pieces, overlay, own_pieces
from aggregauss.maps.raked import Raked, as_known, benchmarked
from aggregauss.maps.record import RunRecord
from aggregauss.maps.region_effects import region_effects
from aggregauss.maps.settings import Settings
from aggregauss.maps.surface import Surface, raked_surface, surface
from aggregauss.marginals import skew_log_normal
from aggregauss.supports.support import Measure

if TYPE_CHECKING:
    import pandas as pd

    from aggregauss.maps.validate import Validation

USUAL = 0.95


@dataclasses.dataclass(frozen=True, eq=False)
class Disaggregation:
    """Pixels, the posterior of the rate over them, and how both came about; made by `aggregauss.disaggregate`."""

    pixels: Pixels
    posterior: Posterior
    settings: Settings
    record: RunRecord
    warnings: tuple[str, ...] = ()  #: of the fit, in sentences

    @property
    def rate(self) -> float:
        """The rate of the whole map, as reported."""
        observed = self.pixels.regions["observed"].to_numpy(float)
        if self.settings.measure == "total":
            return float(observed.sum() / self.pixels.weight.sum())
        if self.settings.likelihood == "binomial":
            return float(observed.sum() / self.pixels.regions["examined"].sum())
        return float(np.average(observed, weights=self.pixels.totals()))

    def predict(
        self, target: Any = None, *, measure: Measure | None = None, kind: Kind = "response", counts: Any = None
    ) -> Prediction:
        """Expected totals (or rates, with `measure="mean"`) of any polygons; by default of the map's own regions.

        The prediction has intervals, `joint_interval` for all polygons at once, `exceedance`, `sample` and
        `covariance`. `kind="observation"` is a new count there. A total is the sum over the pixels that a polygon
        covers, by the share of each that it covers.
        """
        pieces = (
            target if isinstance(target, Pieces) else overlay(self.pixels, target) if target is not None else self._own
        )
        bags = pieces.bags(self.pixels, measure or self.settings.measure)
        if self._draws is None or kind == "latent":
            return self.posterior.predict(bags, kind, counts=counts)
        drawn = self._draws.reached if pieces is self._own else self._draws.totals(pieces)
        return _from_draws(self.posterior, drawn / (1.0 if bags.measure == "total" else bags.mass), bags, kind)

    def surface(self, threshold: float | None = None) -> Surface:
        """The rate of every pixel: mean, sd, quantiles, and P(rate > threshold), by default the rate of the map."""
        limit = self.rate if threshold is None else float(threshold)
        if self._draws is not None:
            return raked_surface(self._draws, limit)
        return surface(self.posterior, self.pixels.points(), limit)

    def table(self, level: float = USUAL) -> "pd.DataFrame":
        """One row for each region: what was reported, and what the pixels of the region add up to.

        `fitted` is the expected number, `lower` and `upper` hold a newly reported one with probability `level`,
        `rate` is the reported number over the population. Where the model has effects of regions, which a map leaves
        out, `with_own_effect` is the expected number with the region's own in.
        """
        return self._usual_table.copy() if level == USUAL else self._table(level)

    def _table(self, level: float) -> "pd.DataFrame":
        import pandas as pd

        regions = self.pixels.regions
        fitted, new = self.predict(), self.predict(kind="observation", counts=regions.get("examined"))
        lower, upper = new.interval(level)
        scale = regions["examined"].to_numpy(float) if self.settings.likelihood == "binomial" else 1.0
        population = self.pixels.totals()
        observed = regions["observed"].to_numpy(float)
        mass = population if self.settings.measure == "total" else scale
        columns = {
            "label": regions["label"].to_numpy(),
            "observed": observed,
            "fitted": fitted.mean * scale,
            "lower": lower,
            "upper": upper,
            "population": population,
            "rate": observed / mass,
            "fitted_rate": fitted.mean * scale / mass,
        }
        if getattr(self.posterior.model.likelihood, "region_effect", False) and not self.settings.benchmark:
            y, _ = self.settings.numbers(self.pixels, [])
            own = region_effects(self.posterior, level, self._own.bags(self.pixels, "total"), y, fitted)
            columns["with_own_effect"] = own["fitted"].to_numpy()
        if "examined" in regions:
            columns["examined"] = regions["examined"].to_numpy(float)
        return pd.DataFrame(columns)

    def validate(
        self, *, folds: int = 5, groups: Any = None, inference: SVI | None = None, progress: bool = True
    ) -> "Validation":
        """How well the same model predicts regions that it does not see: by folds, or from `groups` of regions."""
        from aggregauss.maps.validate import validate

        return validate(self.pixels, self.settings, folds=folds, groups=groups, inference=inference, progress=progress)

    def save(
        self,
        folder: str | Path,
        *,
        threshold: float | None = None,
        validation: "Validation | None" = None,
        title: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """GeoTIFFs, tables, the fitted model, a record of the run and `report.html`, in a new folder."""
        from aggregauss.maps.saving import save

        return save(self, folder, threshold=threshold, validation=validation, title=title, overwrite=overwrite)

    def report(
        self,
        path: str | Path,
        *,
        threshold: float | None = None,
        title: str | None = None,
        validation: "Validation | None" = None,
    ) -> Path:
        """The page alone; title and threshold are by default those it was saved with."""
        from aggregauss.maps.reporting import report_data
        from aggregauss.report.page import write_page

        known = self.surface(self.record.shown.get("threshold") if threshold is None else threshold)
        write_page(report_data(self, known, self.table(), validation, title), path)
        return Path(path)

    def words(self) -> dict[str, Any]:
        """What a machine may want to know of the run."""
        table = self.table()
        return {
            "regions": len(table),
            "pixels": len(self.pixels.population),
            "observed": float(table["observed"].to_numpy().sum()),
            "fitted": float(table["fitted"].to_numpy().sum()),
            "log_evidence": self.posterior.evidence,
            "settings": self.settings.words(),
            "arguments": self.record.arguments,
            "seconds": self.record.seconds,
            "files": self.record.files,
            "versions": self.record.versions,
            "warnings": list(self.warnings),
            "notes": list(self.pixels.notes),
        }

    @functools.cached_property
    def _usual_table(self) -> "pd.DataFrame":
        return self._table(USUAL)

    @functools.cached_property
    def _own(self) -> Pieces:
        return own_pieces(self.pixels)

    @functools.cached_property
    def _draws(self) -> Raked | None:
        """Of maps whose regions' totals are known better than the normal posterior can say."""
        settings = self.settings
        sums = settings.exponential and settings.measure == "total"
        y = settings.numbers(self.pixels, [])[0] if sums else None
        if settings.benchmark:
            reported = self.pixels.regions["observed"].to_numpy(float)
            return benchmarked(self.posterior, self.pixels, y, reported, settings.seed)
        return None if y is None else as_known(self.posterior, self.pixels, y, settings.seed)

    def __repr__(self) -> str:
        p = self.pixels
        return f"Disaggregation({len(p.regions):,} regions, {len(p.population):,} pixels, rate {self.rate:.4g})"


def _from_draws(post: Posterior, drawn: np.ndarray, bags: Any, kind: Kind) -> Prediction:
    """A prediction whose joint distribution is that of draws; a new observation scatters about them."""
    rate = skew_log_normal(drawn)
    marginals = rate
    if kind == "observation":
        marginals = post.model.likelihood.observation(rate, bags.square_weight, np.ones(len(bags)))
    return Prediction(marginals, bags, lambda: (rate.mean, np.cov(drawn, rowvar=False, ddof=0)), kind)
