"""Synthetic data of the size and shape of the malaria problem: 1,044,683 pixels in 957 bags of 13 to 6,667.

    log λ(x) = -5 + 0.6 sin x₀ + 0.4 x₁ - 0.2 x₂² + Σ_k a_k cos(ω_kᵀ s + b_k)      y_b ~ Poisson(Σ_{i in b} p_i λ(x_i))

with s the two coordinates in a box of side 10, x₀ to x₁₇ covariates that vary smoothly over it, and p the population.
Run as a script it writes the pixels and the counts as Parquet files.
"""

import argparse
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PIXELS, BAGS = 1_044_683, 957
SMALLEST, LARGEST = 13, 6_667
COVARIATES = 18
SIDE = 10.0
CHUNK = 65_536


class Data(NamedTuple):
    """Pixels sorted by bag, and a count for each bag."""

    X: np.ndarray
    bag: np.ndarray
    population: np.ndarray
    y: np.ndarray


def sizes(seed: int = 0, pixels: int | None = None) -> np.ndarray:
    """Log-normal bag sizes that sum to `pixels` exactly; at full size the smallest and the largest bag are attained."""
    total = PIXELS if pixels is None else int(pixels)
    count = max(1, round(BAGS * total / PIXELS))
    if not count * SMALLEST <= total <= count * LARGEST:
        raise ValueError(
            f"sizes: {total:,} pixels do not fill {count} bags of {SMALLEST} to {LARGEST:,}. Ask for more."
        )
    z = np.random.default_rng(seed).normal(size=count)

    def rounded(location: float) -> np.ndarray:
        result = np.clip(np.exp(np.clip(location + 1.1 * z, 0.0, 20.0)), SMALLEST, LARGEST).astype(int)
        if total == PIXELS:
            result[z.argmin()], result[z.argmax()] = SMALLEST, LARGEST
        return result

    low, high = -5.0, 20.0  # far enough out that all bags are smallest, all largest
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rounded(middle).sum() <= total else (low, middle)
    result = rounded(low)
    room = np.flatnonzero((result < LARGEST) & ((total != PIXELS) | (z > z.min())))  # that the smallest stays so
    result[room[: total - result.sum()]] += 1
    return result


def make(pixels: int | None = None, seed: int = 0) -> Data:
    """All pixels, or fewer with fewer bags in proportion. X has 18 covariates, then the two coordinates; float32."""
    rng = np.random.default_rng([seed, 1])
    size = sizes(seed, pixels)
    bag = np.repeat(np.arange(len(size), dtype=np.int32), size)
    X = np.empty((len(bag), COVARIATES + 2), np.float32)
    cells = _cells(size, np.array([0.0, 0.0]), np.array([SIDE, SIDE]))
    corner, extent = (np.array(side, np.float32) for side in zip(*cells))
    mix = rng.normal(size=(64, COVARIATES)).astype(np.float32) / np.sqrt(32)
    frequency, phase = _waves(rng, 64)
    for start in range(0, len(bag), CHUNK):
        rows = slice(start, start + CHUNK)
        owner = bag[rows]
        place = corner[owner] + extent[owner] * rng.random((len(owner), 2), np.float32)
        noise = rng.standard_normal((len(owner), COVARIATES), np.float32)
        X[rows, :COVARIATES] = np.cos(place @ frequency + phase) @ mix + 0.3 * noise
        X[rows, COVARIATES:] = place
    covariates = X[:, :COVARIATES]
    covariates -= covariates.mean(axis=0, dtype=float).astype(np.float32)
    covariates /= np.sqrt(np.einsum("ij,ij->j", covariates, covariates) / len(X))
    population = 100.0 * np.exp(rng.standard_normal(len(bag), np.float32))
    expected = np.bincount(bag, population * np.exp(log_rate(X)))
    return Data(X, bag, population, rng.poisson(expected).astype(np.float64))


def log_rate(X: np.ndarray) -> np.ndarray:
    """log λ at each row: the truth that a fit is after."""
    rng = np.random.default_rng(957)
    frequency, phase = _waves(rng, 16)
    amplitude = (0.5 * rng.normal(size=16) / np.sqrt(8)).astype(np.float32)
    result = -5.0 + 0.6 * np.sin(X[:, 0]) + 0.4 * X[:, 1] - 0.2 * X[:, 2] ** 2
    for start in range(0, len(X), CHUNK):
        rows = slice(start, start + CHUNK)
        result[rows] += np.cos(X[rows, COVARIATES:] @ frequency + phase) @ amplitude
    return result


def write_parquet(path: str | Path, data: Data, rows: int = CHUNK) -> tuple[Path, Path]:
    """Pixels (x0 to x19, bag, population) in row groups of so many rows, and beside them `<stem>-counts` (bag, count).

    The pixels are sorted by bag, but row groups end where they end: a bag may straddle two.
    """
    import pyarrow as pa
    from pyarrow import parquet

    path = Path(path)
    counts = path.with_stem(path.stem + "-counts")
    fields = [(f"x{j}", pa.float32()) for j in range(data.X.shape[1])]
    schema = pa.schema([*fields, ("bag", pa.int32()), ("population", pa.float32())])
    options: Any = {"use_dictionary": ["bag"]}
    with parquet.ParquetWriter(path, schema, **options) as writer:
        for start in range(0, len(data.X), rows):
            part = slice(start, start + rows)
            columns = [*np.ascontiguousarray(data.X[part].T), data.bag[part], data.population[part]]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema), row_group_size=rows)
    parquet.write_table(pa.table({"bag": np.arange(len(data.y), dtype=np.int32), "count": data.y}), counts)
    return path, counts


def _waves(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies (2, count) and phases of cosines with lengthscales between 0.7 and 3."""
    frequency = rng.normal(size=(2, count)) / rng.uniform(0.7, 3.0, count)
    return frequency.astype(np.float32), rng.uniform(0.0, 2 * np.pi, count).astype(np.float32)


def _cells(size: np.ndarray, corner: np.ndarray, extent: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """A rectangle for each bag, of area proportional to its size: halve the longer side, and again within."""
    if len(size) == 1:
        return [(corner, extent)]
    share = np.cumsum(size) / size.sum()
    cut = int(np.abs(share[:-1] - 0.5).argmin())
    step = np.where(np.arange(2) == extent.argmax(), share[cut], 1.0)
    across = extent * (step < 1.0)
    rest = np.where(step < 1.0, 1.0 - step, 1.0)
    return _cells(size[: cut + 1], corner, extent * step) + _cells(
        size[cut + 1 :], corner + across * step, extent * rest
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="where the pixels go, such as malaria.parquet")
    parser.add_argument("--pixels", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.perf_counter()
    data = make(options.pixels, options.seed)
    made = time.perf_counter()
    files = write_parquet(options.path, data)
    written = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(data.X):,} pixels in {len(data.y):,} bags, {data.y.sum():,.0f} cases")
    print(f"made in {made - begin:.1f} s, written in {written - made:.1f} s, peak memory {peak:.2f} GB")
    print(*(f"{file}: {file.stat().st_size / 2**20:.1f} MB" for file in files), sep="\n")
