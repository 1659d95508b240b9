"""The command line, as a user types it."""

import csv
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import aggregauss as ag
from aggregauss.cli.app import app

RUN = CliRunner()


def test_demo_writes_a_picture_and_a_table_and_compares_with_the_truth(tmp_path):
    result = RUN.invoke(app, ["demo", "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0, result.output
    assert "1.93 reading off the bins, 1.60 fitted" in result.output
    assert "93% of 101 ages" in result.output.replace("\n", " ")
    with (tmp_path / "new" / "folder" / "ages.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 101
    assert all(float(r["lower"]) <= float(r["mean"]) <= float(r["upper"]) or float(r["mean"]) < 0 for r in rows)
    assert (tmp_path / "new" / "folder" / "ages.png").read_bytes().startswith(b"\x89PNG")


def test_help_teaches():
    text = RUN.invoke(app, ["demo", "--help"]).output
    assert "census area" in text
    assert "--width" in text
    assert RUN.invoke(app, ["--version"]).output.strip() == f"aggregauss {ag.__version__}"


def test_wrong_options_exit_with_a_code():
    assert RUN.invoke(app, ["demo", "--width", "1"]).exit_code == 2
    assert RUN.invoke(app, ["nonsense"]).exit_code == 2


def test_the_command_is_installed():
    done = subprocess.run(
        [sys.executable, "-c", "from aggregauss.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f"aggregauss {ag.__version__}"


def test_plots_refuse_what_they_cannot_draw():
    import numpy as np

    post = ag.GP(ag.RBF(1.0)).fit(ag.Points(np.eye(3)), [1.0, 2.0, 3.0], inference=ag.Exact(optimise=False))
    with pytest.raises(ValueError, match="one dimension, but this one has 3"):
        ag.plots.plot_density(post)
