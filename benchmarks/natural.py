"""Passes over the data until the bound is at its best in q: natural gradients beside Adam.

The malaria problem with fewer pixels, hyper-parameters as they start. Natural gradients are the steps of
`inference.climb`; Adam moves the whitened mean and the Cholesky factor, at several learning rates.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from malaria import make
from step import Step, malaria_step
from timing import show

from aggregauss.inference import ascent
from aggregauss.inference.climb import climb

RATES = (0.3, 0.1, 0.03)


def natural(step: Step) -> list[float]:
    """The bound at each pass."""
    path = []

    def look(state: ascent.State) -> ascent.Slopes:
        step.state = state
        uphill = step.slopes()
        path.append(float(uphill.objective))
        return uphill

    climb(look, step.state, 1e-6)
    return path


def adam(step: Step, rate: float, most: int) -> list[float]:
    """The bound before each pass."""
    step.settings = ascent.Settings("linearised", "float64", False, False)
    step.state = step.state._replace(rate=jnp.asarray(rate))
    path = []
    for _ in range(most):
        uphill = step.slopes()
        path.append(float(uphill.objective))
        step.state = ascent.advance(step.state, uphill, jnp.asarray(0.0), step.settings)
    return path


def passes(path: list[float], best: float, within: float) -> str:
    """Until the bound stays within so many nats of the best."""
    away = best - np.maximum.accumulate(path)
    return str(int(np.argmax(away < within)) + 1) if away.min() < within else f"> {len(path)} ({away.min():.2g} away)"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pixels", type=int, default=10_000)
    parser.add_argument("--inducing", type=int, default=100)
    parser.add_argument("--most", type=int, default=2000, help="passes of Adam")
    options = parser.parse_args()
    data = make(options.pixels)
    paths = {"natural gradients": natural(malaria_step(data, "float64", 1 << 24, options.inducing))}
    for rate in RATES:
        paths[f"Adam, rate {rate}"] = adam(malaria_step(data, "float64", 1 << 24, options.inducing), rate, options.most)
        jax.clear_caches()
    best = max(np.nanmax(path) for path in paths.values())
    header = ["passes until within", "1 nat", "0.1 nat", "0.01 nat", "best bound reached"]
    show(
        header, [[n, *(passes(p, best, w) for w in (1.0, 0.1, 0.01)), f"{np.nanmax(p):.3f}"] for n, p in paths.items()]
    )
