"""Malaria in Madagascar: reported rates of districts, the rate of every pixel, and its uncertainty.

    python docs/pictures/madagascar.py [FOLDER]

FOLDER is what `aggregauss demo` wrote; without it the map is fitted first.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import aggregauss as ag


def main(folder: str | None) -> None:
    files = ag.datasets.madagascar()
    if folder is None:
        found = ag.disaggregate(files.districts, "cases", files.population, files.covariates)
    else:
        found = ag.maps.load_map(folder)
    table, known, pixels = found.table(), found.surface(), found.pixels
    shapes = pixels.regions.assign(rate=1000 * table["rate"].to_numpy())
    west, south, east, north = pixels.grid.bounds
    norm = LogNorm(1, 400)
    figure, axes = plt.subplots(1, 3, figsize=(10, 6), layout="constrained")
    shapes.plot("rate", ax=axes[0], norm=norm, cmap="magma_r", edgecolor="white", linewidth=0.2)
    for ax, values, style in (
        (axes[1], 1000 * known.mean, {"norm": norm, "cmap": "magma_r"}),
        (axes[2], known.sd / known.mean, {"vmin": 0, "vmax": 1.6, "cmap": "cividis"}),
    ):
        image = np.full(pixels.grid.size, np.nan)
        image[pixels.cell] = values
        shown = ax.imshow(image.reshape(pixels.grid.shape), extent=(west, east, south, north), **style)
        label = "cases per 1,000" if "norm" in style else "standard deviation / mean"
        figure.colorbar(shown, ax=ax if "norm" not in style else axes[:2], shrink=0.5, label=label)
        shapes.boundary.plot(ax=ax, color="white", linewidth=0.15)
    for ax, title in zip(axes, ("reported by district", "the rate underneath", "how uncertain it is")):
        ax.set(title=title, xlim=(west, east), ylim=(south, north), aspect=1 / np.cos(np.radians(19)))
        ax.axis("off")
    figure.savefig(Path(__file__).with_name("madagascar.png"), dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
