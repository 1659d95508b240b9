"""Medians of repeated runs, side by side in one process: machines are noisy, ratios less so."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax


def interleaved(tasks: dict[str, Callable[[], Any]], repeats: int = 15) -> dict[str, float]:
    """Median seconds of each task after one warm-up, taking turns so that all see the same noise."""
    for task in tasks.values():
        jax.block_until_ready(task())
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.perf_counter()
            jax.block_until_ready(task())
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def show(header: list[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|---|" + "--:|" * (len(header) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)
