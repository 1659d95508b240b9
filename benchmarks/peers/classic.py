"""The classic preset on malaria in Madagascar: 109 districts, 28,877 pixels, a field of at least 450 nodes.

    python benchmarks/peers/classic.py --data FOLDER

One process does the whole job (reading, fitting, the map of all pixels, fitted totals) and says how long each part took
and how much memory it had at most; then it fits again, compiled. R `disaggregation` 0.4 on the same data and two cores
took 29-37 s to fit and 17 s to predict, and 1.1 GiB, with its mesh of 427 nodes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COVARIATES, WHERE = ["elevation_z", "evi_z", "lst_mean_z"], ["lon", "lat"]


def job(data: Path) -> dict[str, float]:
    """The whole job, and a second fit."""
    began = time.perf_counter()
    import geopandas as gpd
    import numpy as np
    import pandas as pd

    import aggregauss as ag
    from aggregauss.maps.classic import classic, classic_inference
    from aggregauss.maps.region_effects import region_effects

    pixels = pd.read_parquet(data / "madagascar_pixels.parquet")
    pixels = pixels.fillna({"population": 0.0, "lst_mean_z": pixels["lst_mean_z"].median()})
    districts = gpd.read_file(data / "madagascar_districts.gpkg").sort_values("polygon_index")
    X, y = pixels[COVARIATES + WHERE].to_numpy(float), districts["cases"].round().to_numpy()
    bags = ag.Bags(X, pixels["polygon_index"], weights=pixels["population"].to_numpy(float))
    model = classic(COVARIATES, X[:, 3:], range_below=5.16, sd_above=1.04)
    inference = classic_inference(X[:, :3], X[:, 3:])
    read = time.perf_counter()
    post = model.fit(bags, y, inference=inference, progress=False)
    fitted = time.perf_counter()
    surface = post.predict(ag.Points(X))
    surface.interval(0.95)
    table = region_effects(post)
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    again, work = time.perf_counter(), time.process_time()
    model.fit(bags, y, inference=inference, progress=False)
    off = np.abs(table["fitted"] / y - 1)
    return {
        "nodes": len(inference.inducing),
        "read, s": read - began,
        "fit with compilation, s": fitted - read,
        "map and totals, s": ended - fitted,
        "whole job, s": ended - began,
        "peak memory, GiB": peak,
        "fit once compiled, s": time.perf_counter() - again,
        "the same in CPU seconds": time.process_time() - work,
        "largest error of a fitted total, %": 100 * float(off.max()),
        "error of their sum, %": 100 * abs(float(table["fitted"].sum() / y.sum()) - 1),
        "runnable processes at the end": os.getloadavg()[0],
    }


def main() -> None:
    """Run the job in a process of its own, without programs compiled before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("AGGREGAUSS_DATA", "."), help="folder with the data sets")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    data = Path(options.data) / "malaria_madagascar"
    if options.inside:
        print(json.dumps(job(data)))
        return
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--data", options.data, "--inside"]
        done = subprocess.run(
            command, env={**os.environ, "JAX_COMPILATION_CACHE_DIR": cache}, capture_output=True, text=True, check=True
        )
    for name, value in json.loads(done.stdout.splitlines()[-1]).items():
        print(f"{name:40s} {value:10.2f}")


if __name__ == "__main__":
    main()
