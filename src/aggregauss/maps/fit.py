"""The fit of a map once its pixels are known."""

import dataclasses
import warnings
from pathlib import Path

from aggregauss.inference.posterior import Posterior
from aggregauss.inference.svi import SVI
from aggregauss.io.pixel_record import Pixels
from aggregauss.maps.disaggregation import Disaggregation
from aggregauss.maps.record import RunRecord
from aggregauss.maps.settings import Settings
from aggregauss.supports.support import Support


def fit_pixels(
    pixels: Pixels,
    settings: Settings,
    record: RunRecord,
    *,
    inference: SVI | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Disaggregation:
    """The map of these pixels; warnings of the fit are kept for the report."""
    notes = list(pixels.notes)
    y, examined = settings.numbers(pixels, notes)
    with record.timed("fit"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        post = fit_bags(
            pixels,
            settings,
            pixels.bags(settings.measure),
            y,
            examined,
            inference=inference,
            checkpoint=checkpoint,
            progress=progress,
        )
    said = tuple(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    return Disaggregation(dataclasses.replace(pixels, notes=tuple(notes)), post, settings, record, said)


def fit_bags(
    pixels: Pixels,
    settings: Settings,
    bags: Support,
    y: object,
    examined: object,
    *,
    inference: SVI | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Posterior:
    """The posterior given the numbers of any bags of the pixels."""
    model, usual = settings.build(pixels)
    scheme = inference or usual
    if checkpoint is not None:
        scheme = dataclasses.replace(scheme, checkpoint=checkpoint, checkpoint_every=1)
    return model.fit(
        bags,
        y,
        counts=examined,
        inference=scheme,
        standardise=tuple(range(len(pixels.names))),
        seed=settings.seed,
        progress=progress,
    )
