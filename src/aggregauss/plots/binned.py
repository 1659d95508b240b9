"""A one-dimensional fit to binned data: what was given, and what lies underneath."""

from typing import TYPE_CHECKING, Any

import numpy as np

from aggregauss.inference import Posterior
from aggregauss.supports import Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIT, BINS, TRUTH = "#c0392b", "#5d6d7e", "#cfd6da"


def plot_density(
    post: Posterior,
    truth: tuple[Any, Any] | None = None,
    *,
    kind: Any = None,
    level: float = 0.95,
    points: int = 400,
    ax: "Axes | None" = None,
) -> "Axes":
    """The bins as the steps they report, the fitted function with its interval, and `truth` (x, values) as bars.

    >>> import aggregauss as ag
    >>> data = ag.datasets.ages()
    >>> post = ag.GP(ag.RBF(5.0), mean=ag.Constant()).fit(data.bins, data.totals, progress=False)
    >>> axes = ag.plots.plot_density(post, truth=(data.ages, data.counts))
    """
    import matplotlib.pyplot as plt

    if post.observations.support.dim != 1:
        raise ValueError(
            f"plot_density: draws functions of one dimension, but this one has {post.observations.support.dim}."
        )
    if ax is None:
        ax = plt.subplots(figsize=(8, 4.5), layout="constrained")[1]
    support = post.observations.support
    low, high = support.bounding_box()
    grid = np.linspace(low[0], high[0], points)
    prediction = post.predict(Points(grid), kind)
    lower, upper = prediction.interval(level)
    if truth is not None:
        ax.bar(*truth, width=0.9, color=TRUTH, label="truth (not used)", zorder=1)
    ends = support.center[:, 0][:, None] + support.width[:, 0][:, None] * np.array([-0.5, 0.5])
    density = np.repeat(post.observations.density[:, None], 2, axis=1)[support.owner]
    ax.plot(ends.T, density.T, color=BINS, lw=2.5, zorder=2, solid_capstyle="butt")
    ax.plot([], [], color=BINS, lw=2.5, label="observed bins")
    ax.fill_between(grid, lower, upper, color=FIT, alpha=0.18, lw=0, zorder=3, label=f"{level:.0%} interval")
    ax.plot(grid, prediction.mean, color=FIT, lw=2, zorder=4, label="fitted function")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlim(low[0], high[0])
    ax.legend(frameon=False)
    return ax
