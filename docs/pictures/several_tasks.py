"""The picture of the page on several tasks; `python docs/pictures/several_tasks.py` writes it beside this file.

A reference instrument gives means over six hours; a cheap sensor nearby gives a value every half hour, with a scale and
a drift of its own. The concentration at every moment is wanted.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import aggregauss as ag

HOURS, WINDOW, SEED = 96.0, 6.0, 4
INK, RED, GREY = "#222222", "#b5332e", "#9a9a9a"


def main() -> None:
    rng = np.random.default_rng(SEED)
    t = np.arange(0.0, HOURS, 0.25) + 0.125
    K = np.asarray(ag.cov(ag.Matern32(5.0, 1.0), ag.Points(t)))
    root = np.linalg.cholesky(K + 1e-8 * np.eye(len(t)))
    truth = 40.0 + 12.0 * (root @ rng.standard_normal(len(t)))
    other = root @ rng.standard_normal(len(t))
    start = np.arange(0.0, HOURS, WINDOW)
    windows = ag.Intervals(start, start + WINDOW, measure="mean")
    filters = truth.reshape(len(start), -1).mean(axis=1) + rng.normal(0.0, 0.5, len(start))
    cheap, when = 15.0 + 0.5 * truth[::2] + 2.0 * other[::2] + rng.normal(0.0, 1.0, len(t) // 2), ag.Points(t[::2])

    alone = ag.GP(ag.Matern32(), mean=ag.Constant()).fit(windows, filters, inference=ag.Exact(integrate=True))
    model = ag.MultiTaskGP([ag.Matern32()], {"filter": ag.Gaussian(), "sensor": ag.Gaussian()}, rank=2)
    post = model.fit({"filter": (windows, filters), "sensor": (when, cheap)})

    figure, axes = plt.subplots(2, 1, figsize=(9, 5.2), sharex=True, sharey=True, layout="constrained")
    moments = ag.Points(t)
    for ax, found, title in (
        (axes[0], alone.predict(moments), "from the six-hour means alone"),
        (axes[1], post.predict({"filter": moments})["filter"], "with the cheap sensor as a second task"),
    ):
        low, high = found.interval(0.9)
        ax.fill_between(t, low, high, color=RED, alpha=0.18, lw=0, label="90% interval")
        ax.plot(t, truth, color=INK, lw=0.8, label="truth, which nobody sees")
        ax.plot(t, found.mean, color=RED, lw=1.4, label="found")
        ax.stairs(filters, np.append(start, HOURS), color=GREY, lw=1.6, baseline=None, label="six-hour means")
        inside = np.mean((truth > low) & (truth < high))
        rmse = np.sqrt(np.mean((found.mean - truth) ** 2))
        ax.set_title(f"{title}: error {rmse:.1f}, {100 * inside:.0f}% inside", loc="left", fontsize=10)
        ax.set_ylabel("µg/m³")
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].scatter(t[::2], cheap, s=3, color="#4a7ba6", label="cheap sensor, as it reads")
    axes[1].set_xlabel("hours")
    axes[1].legend(ncols=5, fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.25))
    figure.savefig(Path(__file__).with_name("several_tasks.png"), dpi=110)
    print(post.correlations())


if __name__ == "__main__":
    main()
