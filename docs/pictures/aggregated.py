"""The picture of the page on aggregated counts; `python docs/pictures/aggregated.py` writes it beside this file.

A made-up country: the cases of 60 districts go in, the rate at every pixel and its uncertainty come out.
"""

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import aggregauss as ag
from aggregauss.metrics import coverage

EAST, NORTH, DISTRICTS, SEED = 64, 48, 60, 5
LEVEL, SPREAD, RANGE = 8.0, 0.7, 6.0  # cases per 1,000 people, sd of its logarithm, kilometres
TICKS = (1, 2, 5, 10, 20, 50)


class Country(NamedTuple):
    """Pixels of one square kilometre, and what is known of them."""

    X: np.ndarray  # east and north of each pixel
    district: np.ndarray
    thousands: np.ndarray  # of people
    rate: np.ndarray  # cases per 1,000 people: what nobody sees
    cases: np.ndarray  # of each district: all that the model sees


def country() -> Country:
    rng = np.random.default_rng(SEED)
    X = np.stack(np.meshgrid(np.arange(EAST) + 0.5, np.arange(NORTH) + 0.5), axis=-1).reshape(-1, 2)
    X = X[inside(X)]
    capitals = X[rng.choice(len(X), DISTRICTS, replace=False)]
    district = np.argmin(((X[:, None] - capitals) ** 2).sum(axis=2), axis=1)
    towns = capitals[rng.choice(DISTRICTS, 12, replace=False)]
    crowd = np.exp(-((X[:, None] - towns) ** 2).sum(axis=2) / (2 * 2.5**2)).sum(axis=1)
    thousands = rng.gamma(2.0, 0.5, len(X)) * (0.15 + 2.0 * crowd)
    K = np.asarray(ag.cov(ag.RBF(RANGE, SPREAD**2), ag.Points(X)))
    rate = LEVEL * np.exp(np.linalg.cholesky(K + 1e-8 * np.eye(len(X))) @ rng.standard_normal(len(X)))
    return Country(X, district, thousands, rate, rng.poisson(np.bincount(district, thousands * rate)))


def inside(X: np.ndarray) -> np.ndarray:
    """A coast with bays."""
    x, y = (X / [EAST, NORTH] - 0.5).T
    angle = np.arctan2(y, x)
    return np.hypot(x, y) < 0.42 + 0.05 * np.sin(3 * angle + 1) + 0.03 * np.sin(5 * angle) + 0.015 * np.cos(9 * angle)


def fit(land: Country) -> ag.Prediction:
    bags = ag.Bags(land.X, bag=land.district, weights=land.thousands)
    model = ag.GP(ag.Matern52(), likelihood=ag.Poisson(), aggregation="response", mean=ag.Constant())
    return model.fit(bags, land.cases, inference=ag.SVI(inducing=200)).predict(ag.Points(land.X))


def draw(land: Country, found: ag.Prediction) -> mpl.figure.Figure:
    seen = land.cases / np.bincount(land.district, land.thousands)
    panels = {
        "The truth: rate of each pixel": land.rate,
        "What goes in: rate of each district": seen[land.district],
        "What comes out: rate of each pixel (posterior mean)": found.mean,
        "and its uncertainty (posterior standard deviation)": found.std,
    }
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.9), layout="constrained", sharex=True, sharey=True)
    for axis, (title, value) in zip(axes.flat, panels.items()):
        rates = "uncertainty" not in title
        scale = mpl.colors.LogNorm(land.rate.min(), land.rate.max()) if rates else mpl.colors.Normalize(0, value.max())
        image = axis.imshow(
            raster(land, value),
            origin="lower",
            extent=(0, EAST, 0, NORTH),
            cmap="viridis" if rates else "magma",
            norm=scale,
        )
        borders(axis, land)
        axis.set(xlim=(2, EAST), ylim=(1, 45))
        axis.set_title(title, loc="left", fontsize=10.5)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        bar = figure.colorbar(image, ax=axis, shrink=0.8, ticks=TICKS if rates else None)
        bar.set_label("cases per 1,000 people")
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.minorticks_off()
    for axis in axes[1]:
        axis.set_xlabel("km east")
    for axis in axes[:, 0]:
        axis.set_ylabel("km north")
    return figure


def raster(land: Country, values: np.ndarray) -> np.ndarray:
    out = np.full((NORTH, EAST), np.nan)
    out[tuple(land.X[:, ::-1].astype(int).T)] = values
    return out


def borders(axis: mpl.axes.Axes, land: Country) -> None:
    """A line wherever two neighbouring pixels belong to different districts."""
    names = np.pad(np.nan_to_num(raster(land, land.district), nan=-1), 1, constant_values=-1)
    rows, columns = np.nonzero(names[1:, :] != names[:-1, :])
    across = [[(c - 1, r), (c, r)] for r, c in zip(rows, columns)]
    rows, columns = np.nonzero(names[:, 1:] != names[:, :-1])
    along = [[(c, r - 1), (c, r)] for r, c in zip(rows, columns)]
    axis.add_collection(mpl.collections.LineCollection(across + along, colors="white", linewidths=0.5, alpha=0.7))


if __name__ == "__main__":
    mpl.use("agg")
    land = country()
    found = fit(land)
    inside_intervals = coverage(land.rate, *found.interval(0.95))
    print(f"{land.cases.sum():,} cases, {len(land.X):,} pixels; 95% intervals hold {inside_intervals:.1%} of the rates")
    draw(land, found).savefig(Path(__file__).with_suffix(".png"), dpi=110)
