"""One SVI step of the malaria problem, value and all gradients, beside what it cannot avoid and beside plain autodiff.

The variance of N pixels under m inducing points needs an N x m x m product, and its gradient another: the yardstick is
the two bare products in the same run. 70,000 pixels are what a batch of 64 bags holds. Our step linearises the bags,
which needs covariances within them; the others have Jensen's bound, which does not, and so has a second row of ours.
PyTorch and GPyTorch take part where they are installed, as in `torch_step.py`.
"""

import argparse
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from malaria import Data, make
from step import malaria_step
from timing import interleaved, show
from torch_step import gpytorch_step, plain_jax, plain_pytorch, products

ENTRIES = 1 << 24  # of K = k(pixels, inducing points) that are held at once


def ours(data: Data, m: int, dtype: Any, bound: str = "linearised") -> Callable[[], Any]:
    """Our step over all the bags, one group of them after another."""
    step = malaria_step(data, np.dtype(dtype).name, ENTRIES, m)
    step.settings = dataclasses.replace(step.settings, bound=bound)
    return step.slopes


STEPS = {
    "two products": products,
    "aggregauss": ours,
    "aggregauss, Jensen's bound": functools.partial(ours, bound="jensen"),
    "plain JAX": plain_jax,
    "plain PyTorch": plain_pytorch,
    "GPyTorch": gpytorch_step,
}


def prepared(data: Data, m: int, dtype: Any) -> dict[str, Callable[[], Any]]:
    """The steps that can run here; the others are named."""
    ready = {}
    for name, build in STEPS.items():
        try:
            ready[name] = build(data, m, dtype)
        except ImportError as reason:
            print(f"Without {name}: {reason}\n")
    return ready


def rows_for(data: Data, m: int, dtype: Any, repeats: int) -> list[list[str]]:
    seconds = interleaved(prepared(data, m, dtype), repeats)
    unit, own, same = (seconds[name] for name in ("two products", "aggregauss", "aggregauss, Jensen's bound"))
    return [[f"**{np.dtype(dtype).name}, N = {len(data.X):,}, m = {m}**", "", "", "", ""]] + [
        [name, f"{s:.3f}", f"{s / unit:.2f}", f"{s / own:.2f}", f"{s / same:.2f}"] for name, s in seconds.items()
    ]


def scaling(pixels: list[int], m: int, dtype: Any, repeats: int) -> list[list[str]]:
    data = {n: make(n) for n in pixels}
    seconds = interleaved({str(n): ours(data[n], m, dtype) for n in pixels}, repeats)
    per_pixel = {n: seconds[str(n)] / n for n in pixels}
    return [
        [f"{n:,}", f"{len(data[n].y)}", f"{seconds[str(n)]:.3f}", f"{1e6 * s:.2f}", f"{s / per_pixel[pixels[-1]]:.2f}"]
        for n, s in per_pixel.items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--float32-only", action="store_true")
    parser.add_argument("--no-scaling", action="store_true", help="leave out the times against the number of pixels")
    parser.add_argument("--quick", action="store_true", help="a small problem, to see that all of it runs")
    options = parser.parse_args()
    n, m, repeats = (5_000, 64, 3) if options.quick else (70_000, 576, 7)
    pixels = [10_000, 30_000, 100_000, 300_000, 1_000_000][: 2 if options.quick else None]
    dtypes = [np.float32] if options.float32_only else [np.float32, np.float64]
    data = make(n)
    rows = [row for dtype in dtypes for row in rows_for(data, m, dtype, repeats)]
    show(["value and gradients", "seconds", "÷ two products", "÷ aggregauss", "÷ with Jensen's bound"], rows)
    if options.no_scaling:
        raise SystemExit
    for dtype in dtypes:
        rows = scaling(pixels, m, dtype, min(repeats, 3))
        show([f"pixels, {np.dtype(dtype).name}, m = {m}", "bags", "seconds", "µs per pixel", "÷ last"], rows)
