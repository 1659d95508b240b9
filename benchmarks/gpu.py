"""One step over all pixels of the malaria-sized problem on an accelerator, and its agreement with the CPU.

    PYTHONPATH=src python benchmarks/gpu.py [--pixels N]

A step is what `SVI` does on a batch that holds all the data: K(X, Z), means and variances of all pixels, the bags'
terms, derivatives with respect to q and all hyper-parameters, and the update of both. The data lie on the device.
"""

import argparse
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from malaria import make
from step import LANDMARKS, Step, malaria_step
from timing import show


def seconds(task: Any, repeats: int = 10) -> tuple[float, float]:
    """Of the first call, compilation included, and the median of the others."""
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(task())
        taken.append(time.perf_counter() - start)
    return taken[0], statistics.median(taken[1:])


def products(pixels: int, dtype: str) -> float:
    """The two products of pixels x m x m that no step avoids."""
    K = jax.random.normal(jax.random.key(0), (pixels, LANDMARKS), dtype)
    Q, g = jnp.eye(LANDMARKS, dtype=dtype), K[:, 0]

    @jax.jit
    def both(K: jax.Array, Q: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
        with jax.default_matmul_precision("highest"):
            return K @ Q, K.T @ (g[:, None] * K)

    return seconds(lambda: both(K, Q, g))[1]


def found(step: Step) -> list[np.ndarray]:
    """The bound, the gradient of the hyper-parameters, and the next mean of q."""
    slopes = step.slopes()
    return [np.asarray(x) for x in (slopes.objective, slopes.free.vector, step().q.mean)]


def apart(a: list[np.ndarray], b: list[np.ndarray]) -> list[str]:
    """Largest differences, relative to the largest entry."""
    return [f"{np.abs(x - y).max() / np.abs(y).max():.1e}" for x, y in zip(a, b)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pixels", type=int, default=None, help="fewer pixels than 1,044,683")
    parser.add_argument("--compare", type=int, default=50_000, help="pixels of the comparison with the CPU")
    options = parser.parse_args()
    print(jax.__version__, jax.devices(), flush=True)
    data, small = make(options.pixels), make(options.compare)

    rows = []
    for dtype in ("float32", "float64"):
        step = malaria_step(data, dtype, 1 << 30)
        first, later = seconds(step)
        bare = products(len(data.X), dtype)
        rows.append([dtype, f"{len(data.X):,}", f"{later:.3f}", f"{bare:.3f}", f"{later / bare:.2f}", f"{first:.1f}"])
        del step
    show(["precision", "pixels", "seconds for a step", "two bare products", "ratio", "first step"], rows)

    cpu = jax.devices("cpu")[0]
    rows = []
    with jax.default_device(cpu):
        truth = found(malaria_step(small, "float64", 1 << 24))
    for dtype in ("float32", "float64"):
        rows.append([f"accelerator, {dtype}", *apart(found(malaria_step(small, dtype, 1 << 24)), truth)])
    with jax.default_device(cpu):
        rows.append(["CPU, float32", *apart(found(malaria_step(small, "float32", 1 << 24)), truth)])
    show(["against the CPU in float64", "bound", "hyper-parameter gradient", "next mean of q"], rows)


if __name__ == "__main__":
    main()
