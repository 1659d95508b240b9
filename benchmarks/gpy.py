"""The same evaluation by GPy 1.15's integral kernel, in the same run.

GPy lives in an interpreter of its own (`--gpy /path/to/python`, default: this one); never a dependency. Its gradient is
a loop in Python, so it is timed once for each n, after an evaluation at n = 20.
"""

import argparse
import json
import subprocess
import sys

import numpy as np
from evidence import evaluation
from timing import interleaved, show

import aggregauss as ag

GPY = """
import json, sys, time
import GPy, numpy as np
result = []
for n in [20, *json.loads(sys.argv[1])]:
    edges = np.linspace(0.0, 100.0, n + 1)
    y = np.random.default_rng(0).normal(size=n)
    lengthscale = np.array([5.0 * np.sqrt(2)])
    kernel = GPy.kern.Multidimensional_Integral_Limits(input_dim=2, variances=1.0, lengthscale=lengthscale)
    X = np.c_[edges[1:], edges[:-1]]
    model = GPy.models.GPRegression(X, y[:, None], kernel, noise_var=1.0)
    start = time.perf_counter()
    model._trigger_params_changed()
    seconds = time.perf_counter() - start
    result.append([n, seconds, float(model.log_likelihood()), float(model.kern.lengthscale.gradient[0])])
print(json.dumps(result[1:]))
"""


def ours(n: int) -> tuple[float, float, float]:
    edges = np.linspace(0.0, 100.0, n + 1)
    y = np.random.default_rng(0).normal(size=n)
    task = evaluation(ag.RBF(5.0), ag.Intervals(edges[:-1], edges[1:]), y)
    value, gradient = task()
    return interleaved({"ours": task})["ours"], float(value), float(gradient[0]) / (5.0 * np.sqrt(2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpy", default=sys.executable, help="an interpreter with GPy 1.15 installed")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000])
    options = parser.parse_args()
    done = subprocess.run(
        [options.gpy, "-c", GPY, json.dumps(options.sizes)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"GPy did not run in {options.gpy}: {done.stderr.strip().splitlines()[-1]}")
    rows = []
    for n, seconds, value, gradient in json.loads(done.stdout):
        fast, same_value, same_gradient = ours(n)
        assert abs(value - same_value) < 1e-5 * abs(value), (value, same_value)
        assert abs(gradient - same_gradient) < 1e-5 * abs(gradient) + 1e-6, (gradient, same_gradient)
        rows.append([f"n = {n:,}", f"{seconds:.2f} s", f"{1e3 * fast:.2f} ms", f"{seconds / fast:,.0f}"])
    show(["value and gradient", "GPy 1.15", "aggregauss", "ratio"], rows)
