"""The same pixels with fewer or larger regions: what a fit may see when the rest is held out."""

import dataclasses

import numpy as np

from aggregauss.io.pixel_record import Pixels
from aggregauss.supports.support import Measure


def regrouped(pixels: Pixels, rows: np.ndarray, names: np.ndarray, measure: Measure) -> Pixels:
    """Regions made of the regions `rows`, those of one name as one; totals add up, means are averaged."""
    import pandas as pd

    labels, owner = np.unique(names, return_inverse=True)
    new = np.full(len(pixels.regions), -1)
    new[rows] = owner
    kept = np.flatnonzero(new[pixels.region] >= 0)
    kept = kept[np.argsort(new[pixels.region[kept]], kind="stable")]
    mine = pixels.regions.iloc[rows]
    people = pixels.totals()[rows]
    counted = [name for name in ("observed", "examined") if name in mine]
    share = people / np.bincount(owner, people)[owner] if measure == "mean" and "examined" not in mine else 1.0
    sums = {name: np.bincount(owner, mine[name].to_numpy(float) * share) for name in counted}
    return dataclasses.replace(
        pixels,
        region=new[pixels.region[kept]],
        pixel=pixels.pixel[kept],
        share=pixels.share[kept],
        regions=pd.DataFrame({"label": labels.astype(str), **sums}),
    )
