"""Data flows one way: each layer imports only from those before it."""

import ast
import subprocess
import sys
from pathlib import Path

import aggregauss

PACKAGE = Path(aggregauss.__file__).parent
LAYERS = [
    {"files", "heap"},
    {"archive", "checks", "linalg", "marginals", "metrics", "special"},
    {"priors"},
    {"parameters"},
    {"supports"},
    {"kernels"},
    {"latent"},
    {"likelihoods"},
    {"inference"},
    {"models"},
    {"baselines"},
    {"privacy", "datasets"},
    {"plots", "io", "report"},
    {"maps"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def _imports():
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{a.name}" for a in node.names]
            elif isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            for name in names:
                if name.startswith("aggregauss."):
                    yield path, parts[0], name.split(".")[1]


def test_every_module_has_a_layer():
    present = {p.relative_to(PACKAGE).with_suffix("").parts[0] for p in PACKAGE.rglob("*.py")} - {"__init__"}
    assert present <= set(RANK)


def test_no_import_points_up():
    upward = [
        (str(path), target)
        for path, layer, target in _imports()
        if target in RANK and layer != target and RANK[target] >= RANK[layer]
    ]
    assert upward == []


def test_import_is_light():
    heavy = (
        "geopandas",
        "shapely",
        "matplotlib",
        "pandas",
        "opendp",
        "typer",
        "scipy.stats",
        "sklearn",
        "numpyro",
    )
    code = f"import sys, aggregauss; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
