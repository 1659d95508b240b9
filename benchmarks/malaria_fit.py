"""Training on the malaria-sized problem from a Parquet file: seconds for each epoch, peak memory, and what was learned.

    python benchmarks/malaria_fit.py [--pixels N] [--epochs E]

The pixels are written to a Parquet file by a process of its own, and stay there; the fit reads the row groups of a
batch of bags at a time. Memory is the peak of this process, libraries included.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from malaria import COVARIATES, log_rate
from step import LANDMARKS, model
from timing import show

import aggregauss as ag

SHOWN = 20_000  # pixels whose log rates are compared with the truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pixels", type=int, default=None, help="fewer pixels than 1,044,683")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64, help="bags in a step")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pixels.parquet"
        fewer = [] if options.pixels is None else ["--pixels", str(options.pixels)]
        subprocess.run([sys.executable, str(Path(__file__).with_name("malaria.py")), str(path), *fewer], check=True)
        counts = pd.read_parquet(path.with_stem("pixels-counts")).set_index("bag")["count"]
        columns = [f"x{j}" for j in range(COVARIATES + 2)]
        bags = ag.ParquetBags(path, columns=columns, bag="bag", weights="population")
        scheme = ag.SVI(
            inducing=LANDMARKS,
            batch_size=min(options.batch, len(bags)),
            max_epochs=options.epochs,
            dtype=options.dtype,
            learning_rate=0.02,
        )
        start = time.perf_counter()
        post = model().fit(bags, counts, inference=scheme)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        sample = pd.read_parquet(path, columns=columns).sample(SHOWN, random_state=0).to_numpy(float)
    found = post.predict(ag.Points(sample), "latent")
    truth = log_rate(sample.astype(np.float32)).astype(float)
    low, high = found.interval(0.9)
    explained = 1 - np.mean((found.mean - truth) ** 2) / np.var(truth)
    history = post.runs[0].path
    show(
        ["pixels", "bags", "epochs", "seconds, all", "of them an epoch", "peak memory, GB", "first and last objective"],
        [
            [
                f"{int(bags.atom_counts.sum()):,}", len(bags), len(history), f"{seconds:.0f}",
                f"{seconds / max(1, len(history)):.0f}", f"{peak:.2f}", f"{history[0]:.0f}, {history[-1]:.0f}",
            ]
        ],
    )  # fmt: skip
    inside = np.mean((truth > low) & (truth < high))
    print(f"variance of the log rate explained: {explained:.2f}; inside 90% intervals: {inside:.2f}")


if __name__ == "__main__":
    main()
