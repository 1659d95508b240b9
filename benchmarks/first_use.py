"""What a newcomer waits for: the import, the first fit with compilation, and a fit of the same shape after that."""

import subprocess
import sys

from timing import show

CODE = """
import time
start = time.perf_counter()
import aggregauss as ag
imported = time.perf_counter()
import numpy as np
def data(n):
    edges = np.linspace(0.0, 100.0, n + 1)
    x = (edges[1:] + edges[:-1]) / 2
    return ag.Intervals(edges[:-1], edges[1:]), 5 + 3 * np.sin(x / 9) + np.random.default_rng(0).normal(0, 0.3, n)
times = [imported - start]
for n in (10, 200, 200):
    bins, y = data(n)
    begin = time.perf_counter()
    post = ag.GP(ag.RBF(), mean=ag.Constant()).fit(bins, y, progress=False)
    times.append(time.perf_counter() - begin)
begin = time.perf_counter()
post.predict(ag.Points(np.linspace(0, 100, 1000))).interval(0.95)
times.append(time.perf_counter() - begin)
print(*times)
"""

if __name__ == "__main__":
    runs = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
        runs.append([float(x) for x in done.stdout.split()])
    names = [
        "import aggregauss",
        "first fit ever: 10 bins, default restarts, compilation included",
        "fit of 200 bins, default restarts, compilation included",
        "another fit of 200 bins",
        "first prediction: 1,000 points with intervals, compilation included",
    ]
    show(["", "seconds (median of 3)"], [[n, f"{sorted(t)[1]:.2f}"] for n, t in zip(names, zip(*runs))])
