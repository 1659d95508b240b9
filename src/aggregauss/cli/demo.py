"""`aggregauss demo`: the age histogram of a census area."""

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import aggregauss as ag
from aggregauss.metrics import coverage, rmse


def run(out: Path, width: int) -> None:
    """Fit, compare with the truth, and write a picture and a table."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    import pandas as pd

    mpl.use("agg")
    console = Console()
    started = time.perf_counter()
    data = ag.datasets.ages(width)
    with console.status("fitting (the first run compiles for a few seconds)"):
        model = ag.GP(ag.RBF(lengthscale=5.0), ag.Gaussian(0.5), mean=ag.Constant())
        post = model.fit(data.bins, data.totals, inference=ag.Exact(restarts=0), progress=False)
        prediction = post.predict(ag.Points(data.ages), kind="observation")
    lower, upper = (np.maximum(end, 0.0) for end in prediction.interval(0.95))  # nobody counts below zero
    seconds = time.perf_counter() - started

    out.mkdir(parents=True, exist_ok=True)
    columns = {
        "age": data.ages.astype(int),
        "count": data.counts,
        "mean": prediction.mean,
        "lower": lower,
        "upper": upper,
    }
    table = pd.DataFrame(columns)
    table.to_csv(out / "ages.csv", index=False, float_format="%.4g")
    ax = ag.plots.plot_density(post, (data.ages, data.counts), kind="observation")
    ax.set(
        xlabel="age",
        ylabel="residents per year of age",
        title=f"Ages of a census area from {width}-year bins",
    )
    ax.set_ylim(bottom=0)
    plt.savefig(out / "ages.png", dpi=150)
    plt.close("all")

    read_off = np.repeat(post.observations.density, width)[: len(data.ages)]
    _report(console, width, data, prediction.mean, lower, upper, read_off)
    console.print(f"Fitted in {seconds:.1f} s. Wrote [bold]{out / 'ages.png'}[/] and [bold]{out / 'ages.csv'}[/].")


def _report(
    console: Console,
    width: int,
    data: ag.datasets.AgeHistogram,
    mean: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    read_off: np.ndarray,
) -> None:
    table = Table(title=f"Residents by age, from {width}-year totals", title_justify="left")
    for name in ("age", "true", "bin height", "fitted", "95% interval"):
        table.add_column(name, justify="right")
    for i in range(0, min(75, len(data.ages)), 5):
        table.add_row(
            f"{data.ages[i]:.0f}",
            f"{data.counts[i]:.0f}",
            f"{read_off[i]:.1f}",
            f"{mean[i]:.1f}",
            f"{lower[i]:.1f} to {upper[i]:.1f}",
        )
    console.print(table)
    before, after = rmse(data.counts, read_off), rmse(data.counts, mean)
    inside = coverage(data.counts, lower, upper)
    console.print(
        f"Error against the true counts (RMSE): {before:.2f} reading off the bins, [bold]{after:.2f}[/] fitted."
    )
    console.print(f"True counts inside their 95% interval: [bold]{inside:.0%}[/] of {len(data.ages)} ages.")
