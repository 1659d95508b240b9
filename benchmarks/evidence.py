"""One evaluation of the log marginal likelihood with its gradient, beside what it cannot avoid.

For n bins in one dimension the covariance has n² entries, each at least an error function, and has to be factorised:
the yardstick is filling one n x n matrix with erf plus one Cholesky factorisation, in the same process. The gradient
also needs the inverse, which costs twice the factorisation in operations.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from timing import interleaved, show

import aggregauss as ag
from aggregauss.inference.data import observe
from aggregauss.inference.exact import log_evidence
from aggregauss.inference.optimise import _value_and_grad
from aggregauss.parameters import pack


def evaluation(kernel, support, y):
    """A closure that evaluates value and gradient."""
    model = ag.GP(kernel, ag.Gaussian(1.0))
    data, vector = observe(support, y, None).on_device(), np.asarray(pack(model))
    return lambda: _value_and_grad(log_evidence, vector, model, data)


def rows_for(n: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    edges = np.linspace(0.0, 100.0, n + 1)
    partition = ag.Intervals(edges[:-1], edges[1:])
    low = rng.uniform(0, 95, n)
    overlapping = ag.Intervals(low, low + rng.uniform(0.5, 5.0, n))
    mixed = ag.Intervals(low, low + np.exp(rng.uniform(np.log(1e-3), np.log(5.0), n)))
    y = rng.normal(size=n)
    x = jnp.linspace(0.0, 4.0, n)
    A = jnp.asarray((lambda B: B @ B.T + n * np.eye(n))(rng.normal(size=(n, n))))
    fill, factor = jax.jit(lambda x: erf(x[:, None] - x[None, :])), jax.jit(jnp.linalg.cholesky)
    width = 100.0 / n
    cases = {
        "RBF, partition, wide bins (ℓ = 5 widths)": evaluation(ag.RBF(5 * width), partition, y),
        "RBF, partition, narrow bins (ℓ = 200 widths)": evaluation(ag.RBF(200 * width), partition, y),
        "RBF, overlapping bins of many widths": evaluation(ag.RBF(3.0), overlapping, y),
        "RBF, bins from far below to above ℓ (all three rules)": evaluation(ag.RBF(3.0), mixed, y),
        "Matern-3/2, overlapping bins": evaluation(ag.Matern32(3.0), overlapping, y),
        "Matern-5/2, partition": evaluation(ag.Matern52(5 * width), partition, y),
    }
    seconds = interleaved({"erf": lambda: fill(x), "cholesky": lambda: factor(A), **cases})
    unit = seconds["erf"] + seconds["cholesky"]
    head = f"n = {n:,}: erf {1e3 * seconds['erf']:.1f} ms + Cholesky {1e3 * seconds['cholesky']:.1f} ms"
    return [[f"**{head}**", "", ""]] + [[c, f"{1e3 * seconds[c]:.1f}", f"{seconds[c] / unit:.2f}"] for c in cases]


if __name__ == "__main__":
    show(["value and gradient", "ms", "ratio"], [row for n in (200, 1000, 2000) for row in rows_for(n)])
