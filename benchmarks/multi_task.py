"""One variational step over four tasks, value and all gradients, beside the products that it cannot avoid.

100,000 observations at points: two tasks Gaussian, one of counts, one of yes and no; two latent functions with 100
inducing points each, so that q is over m = 200. The variances under q need an N x m x m product, and their gradient
another; these two, bare, are the unit.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from step import Step
from timing import interleaved, show

import aggregauss as ag

TASKS, FUNCTIONS = 4, 2


def problem(n: int) -> tuple[ag.MultiTaskGP, dict[str, Any]]:
    rng = np.random.default_rng(0)
    likelihoods = {"a": ag.Gaussian(), "b": ag.Gaussian(), "counts": ag.Poisson(), "yes": ag.Bernoulli()}
    model = ag.MultiTaskGP([ag.RBF(0.1), ag.RBF(0.3)], likelihoods)
    data = {}
    for k, task in enumerate(likelihoods):
        X = rng.uniform(size=(n // TASKS, 2))
        f = np.sin(8 * X[:, 0] + k) * np.cos(5 * X[:, 1])
        y = {"counts": rng.poisson(np.exp(f)), "yes": rng.uniform(size=len(f)) < 1 / (1 + np.exp(-f))}
        data[task] = (ag.Points(X), np.asarray(y.get(task, f + rng.normal(0, 0.2, len(f))), float))
    return model, data


def products(n: int, m: int, dtype: str) -> Callable[[], Any]:
    """K Q and Kᵀ (g K), on their own."""
    rng = np.random.default_rng(1)
    K, Q, g = (jnp.asarray(rng.standard_normal(shape), dtype) for shape in ((n, m), (m, m), (n,)))
    both = jax.jit(lambda K, Q, g: (K @ Q, K.T @ (g[:, None] * K)))
    return lambda: both(K, Q, g)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, default=100_000)
    parser.add_argument("--inducing", type=int, default=200, help="over all functions")
    options = parser.parse_args()
    n, m = options.observations, options.inducing
    model, data = problem(n)
    observations = model._observe(data, {known: {} for known in ("noise_variance", "counts", "variances")})
    inducing = model.inducing(m // FUNCTIONS, observations.support, 0)
    rows = []
    for dtype in ("float32", "float64"):
        step = Step(model, observations, inducing, dtype, 1 << 24)
        seconds = interleaved({"two products": products(n, m, dtype), "step": step.slopes}, 9)
        unit = seconds["two products"]
        rows += [[dtype, name, f"{1e3 * s:.0f}", f"{s / unit:.2f}"] for name, s in seconds.items()]
    show([f"N = {n:,}, m = {m}", "", "ms", "÷ two products"], rows)


if __name__ == "__main__":
    main()
