"""A summary for each cell: is its centre enough, or does it take the cell, or the places of the individuals?

Individuals live on a square of six lengthscales, evenly or in towns; y = f(x) + N(0, 0.5²) with f ~ GP(0, RBF(1)).
Each cell publishes its mean and its count. The same model is fitted to the means three times: at the centres
(`Points`), over the cells (`Boxes`), and over the individuals' places (`Bags`).
"""

import functools

import numpy as np
from common import arguments, resumable

import aggregauss as ag
from aggregauss.inference.granularity import granularity

SIDE, INDIVIDUALS, NOISE = 6.0, 1000, 0.5
REPETITIONS = {"known": 10}
WIDTHS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
DESIGNS = ("evenly", "in towns")
SUPPORTS = ("centres", "cells", "places")
TRUTH = ag.RBF(1.0, 1.0)
COLUMNS = [
    "parameters",
    "design",
    "width",
    "seed",
    "support",
    "rmse",
    "coverage",
    "width95",
    "lengthscale",
    "eta",
    "summary_error",
    "noise",
]


class Town:
    """Places, the function there and at 500 more, and what the individuals report."""

    def __init__(self, design: str, seed: int):
        rng = np.random.default_rng([seed, DESIGNS.index(design)])
        places = rng.uniform(0, SIDE, (INDIVIDUALS + 500, 2))
        if design == "in towns":
            centres = rng.uniform(0, SIDE, (40, 2))
            near = centres[rng.integers(40, size=len(places))] + 0.2 * rng.standard_normal(places.shape)
            places = np.where(rng.random(len(places))[:, None] < 0.8, SIDE - np.abs(SIDE - np.abs(near)), places)
        K = np.asarray(ag.cov(TRUTH, ag.Points(places)))
        values, vectors = np.linalg.eigh(K)
        f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
        self.X, self.test = places[:INDIVIDUALS], places[INDIVIDUALS:]
        self.y, self.f_test = f[:INDIVIDUALS] + NOISE * rng.standard_normal(INDIVIDUALS), f[INDIVIDUALS:]


@functools.lru_cache(2)
def town(design: str, seed: int) -> Town:
    return Town(design, seed)


def supports(X: np.ndarray, width: float) -> tuple[dict[str, ag.Support], np.ndarray]:
    """The three supports of the occupied cells, and the cell of each individual."""
    found, cell = np.unique(np.floor(X / width).astype(int), axis=0, return_inverse=True)
    cell = cell.ravel()
    low = found * width
    return {
        "centres": ag.Points(low + width / 2),
        "cells": ag.Boxes(low, low + width, measure="mean"),
        "places": ag.Bags(X, cell, measure="mean"),
    }, cell


def fit(parameters: str, support: ag.Support, mean: np.ndarray, count: np.ndarray) -> ag.Posterior:
    model = ag.GP(ag.RBF(1.0, 1.0), ag.Gaussian(ag.fixed(0.0)))
    inference = ag.Exact(restarts=0, optimise=parameters == "learned")
    return model.fit(support, mean, NOISE**2 / count, inference=inference, progress=False)


def compute(parameters: str, design: str, width: float, seed: int) -> list[dict]:
    data = town(design, seed)
    made, cell = supports(data.X, width)
    count = np.bincount(cell)
    mean = np.bincount(cell, data.y) / count
    judged = granularity(TRUTH, made["centres"].center, made["places"], count, NOISE**2 / count)
    rows = []
    for name, support in made.items():
        post = fit(parameters, support, mean, count)
        found = post.predict(ag.Points(data.test))
        low, high = found.interval(0.95)
        figures = {
            "rmse": np.sqrt(np.mean((found.mean - data.f_test) ** 2)),
            "coverage": np.mean((low <= data.f_test) & (data.f_test <= high)),
            "width95": np.mean(high - low),
            "lengthscale": float(post.model.kernel.lengthscale),
            "eta": judged.eta,
            "summary_error": judged.summary_error,
            "noise": judged.noise,
        }
        rows.append({"support": name, **{key: f"{float(x):.5g}" for key, x in figures.items()}})
    return rows


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    keys = [(q, d, w, s) for q, n in REPETITIONS.items() for s in range(n) for d in DESIGNS for w in WIDTHS]
    resumable("points_or_regions", keys, COLUMNS, compute, options.fresh)
