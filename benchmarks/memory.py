"""Covariance of two batches of supports with many atoms each: time for each pair of atoms, and peak memory.

The full problem, 2,000 supports of 500 atoms on either side, has 10^12 pairs of atoms; no matrix of atoms by atoms is
ever whole.
"""

import argparse
import resource
import time

import jax
import numpy as np
from timing import show

import aggregauss as ag

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--supports", type=int, default=200)
    parser.add_argument("--atoms", type=int, default=500)
    parser.add_argument("--single", action="store_true", help="single precision")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    count = options.supports * options.atoms
    owner = np.repeat(np.arange(options.supports), options.atoms)
    A, B = (ag.Bags(rng.uniform(0, 10, (count, 2)), owner, rng.uniform(0.5, 1.5, count)) for _ in range(2))
    dtype = np.float32 if options.single else np.float64
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    K = jax.block_until_ready(ag.cov(ag.RBF(1.0), A, B, dtype=dtype))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pairs = float(count) ** 2
    show(
        ["supports x atoms", "precision", "pairs", "seconds", "ns per pair", "peak memory, GB", "before, GB"],
        [
            [
                f"{options.supports:,} x {options.atoms}",
                dtype.__name__,
                f"{pairs:.0e}",
                f"{seconds:.1f}",
                f"{1e9 * seconds / pairs:.2f}",
                f"{peak:.2f}",
                f"{before:.2f}",
            ]
        ],
    )
