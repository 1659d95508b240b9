"""Covariances of supports with many atoms never hold a matrix of atoms by atoms."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys
import numpy as np
import aggregauss as ag

def peak():  # in bytes, of this process since it started
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

supports, atoms = int(sys.argv[1]), 500
rng = np.random.default_rng(0)
center, owner = rng.uniform(0, 10, (supports * atoms, 2)), np.repeat(np.arange(supports), atoms)
bags = ag.Bags(center, owner)
ag.cov(ag.RBF(1.0), bags[:2], bags[:2])  # what JAX itself takes
before = peak()
ag.cov(ag.RBF(1.0), bags, ag.Bags(center[::-1], owner)).block_until_ready()
print(peak() - before)
"""


@pytest.mark.parametrize(
    "supports", [40, pytest.param(400, marks=pytest.mark.slow)], ids=["3 GB of atom pairs", "320 GB of atom pairs"]
)
def test_memory_stays_bounded(supports):
    done = subprocess.run([sys.executable, "-c", CODE, str(supports)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.5e9
