"""Where the inducing points of a map lie: at centres of clusters of its pixels.

Half of what a pixel weighs in the clusters is its share of the map, and half the part of its regions' people that it
holds. What the points leave open of the field is not learned, so they have to be close where a region's people are, or
its total stays less certain than its count makes it; and near enough to everywhere that they do not show in the map.
"""

from collections.abc import Iterable

import numpy as np

from aggregauss.io.pixel_record import Pixels

FEWEST, EACH, MOST = 250, 4, 1000  # points: in all, for each region, in all
SAMPLE = 20_000  # pixels that are clustered
DIGITS = 6  # of the spread of the map: sums of several threads differ in their last digits


def usual_number(regions: int) -> int:
    """How many inducing points, unless somebody says otherwise."""
    return int(np.clip(EACH * regions, FEWEST, MOST))


def places(pixels: Pixels, columns: Iterable[int], m: int, seed: int = 0) -> np.ndarray:
    """At most m points of the inputs, spread over some columns; in the others they have the mean of the pixels."""
    from sklearn.cluster import KMeans  # slow to import

    seen, share = np.array(sorted(columns)), _share(pixels)
    rows = np.arange(len(pixels))
    if len(rows) > SAMPLE:
        drawn = np.random.default_rng(seed).choice(len(rows), SAMPLE, p=share)
        rows, share = np.unique(drawn, return_counts=True)
    X = (pixels.columns / _units(pixels))[np.ix_(rows, seen)]
    some = min(m, len(np.unique(X, axis=0)))
    found = KMeans(some, n_init="auto", max_iter=30, random_state=seed).fit(X, sample_weight=share).cluster_centers_
    Z = np.tile(pixels.columns.mean(axis=0), (len(found), 1))
    Z[:, seen] = np.round(found, DIGITS) * _units(pixels)[seen]
    return Z


def _share(pixels: Pixels) -> np.ndarray:
    """What each pixel weighs in the clusters, one in all."""
    n, total = len(pixels), pixels.totals()
    held = pixels.weight / np.where(total > 0, total, 1.0)[pixels.region]
    people = np.bincount(pixels.pixel, held, minlength=n)
    return 0.5 / n + 0.5 * people / people.sum()


def _units(pixels: Pixels) -> np.ndarray:
    """Standard deviations of the columns; one for both coordinates, so that distances are those of the map."""
    sd = np.append(pixels.covariates.std(axis=0), np.zeros(pixels.coordinates.shape[1]))
    sd[len(pixels.names) :] = np.sqrt(pixels.coordinates.var(axis=0).sum())
    return np.where(sd > 0, sd, 1.0)
