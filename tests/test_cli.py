"""The command line, as a user types it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import aggregauss as ag
import country
from aggregauss.cli.app import app

RUN = CliRunner()


@pytest.fixture(scope="module")
def land(tmp_path_factory):
    return country.make(tmp_path_factory.mktemp("country"))


def _inputs(land):
    folder = land["folder"]
    rasters = ["--population", f"{folder}/people.tif", "--covariate", f"{folder}/rain.tif"]
    return [f"{folder}/districts.gpkg", "--response", "cases", *rasters, "--inducing", "16"]


@pytest.fixture(scope="module")
def results(land, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "results"
    done = RUN.invoke(app, ["disaggregate", *_inputs(land), "--out", str(out), "--title", "A country", "--json"])
    assert done.exit_code == 0, done.output
    return out, json.loads(done.stdout)


def test_disaggregate_writes_everything_and_says_so_to_machines(results, land):
    out, said = results
    assert (out / "report.html").is_file()
    assert said["regions"] == 9
    assert said["observed"] == land["districts"]["cases"].sum()
    assert set(said["files"]) == {"regions", "population", "covariate rain"}
    assert json.loads((out / "run.json").read_text())["settings"]["inducing"] == 16
    assert not (out.parent / ".results.fit").exists()


def test_predict_for_other_polygons(results, land, tmp_path):
    out, _ = results
    land["districts"].dissolve("province").reset_index()[["province", "geometry"]].to_file(tmp_path / "provinces.gpkg")
    done = RUN.invoke(app, ["predict", str(out), str(tmp_path / "provinces.gpkg"), "--out", str(tmp_path / "p")])
    assert done.exit_code == 0, done.output
    table, districts = pd.read_csv(tmp_path / "p" / "predicted.csv"), pd.read_csv(out / "regions.csv")
    np.testing.assert_allclose(table["mean"], districts["fitted"].to_numpy().reshape(3, 3).sum(axis=1), rtol=1e-5)
    assert (table["joint_upper"] > table["upper"]).all()


def test_predict_over_rasters_repeats_the_map(results, land, tmp_path):
    import rasterio

    out, _ = results
    rain = f"rain={land['folder']}/rain.tif"
    done = RUN.invoke(app, ["predict", str(out), "--covariate", rain, "--out", str(tmp_path / "again"), "--json"])
    assert done.exit_code == 0, done.output
    with rasterio.open(out / "mean.tif") as first, rasterio.open(tmp_path / "again" / "mean.tif") as again:
        np.testing.assert_allclose(again.read(1), first.read(1), rtol=1e-5)


def test_report_and_info(results, tmp_path):
    out, _ = results
    done = RUN.invoke(app, ["report", str(out), "--title", "Another title", "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert "Another title" in (tmp_path / "page.html").read_text()
    told = RUN.invoke(app, ["info", str(out)]).output
    assert "kernel.lengthscale" in told
    assert json.loads(RUN.invoke(app, ["info", str(out), "--json"]).stdout)["settings"]["model"] == "default"


def test_validate_from_coarse_to_fine(land, tmp_path):
    options = ["--groups", "province", "--out", str(tmp_path / "held_out.csv"), "--json"]
    done = RUN.invoke(app, ["validate", *_inputs(land), *options])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["scores"]) == {"this model", "constant rate"}
    assert len(pd.read_csv(tmp_path / "held_out.csv")) == 9


def test_an_interrupted_fit_goes_on_to_the_same_numbers(results, land, tmp_path, monkeypatch):
    import aggregauss.inference.profile as profile

    out, usual = tmp_path / "results", results[0]
    original, calls = profile.Profile.__call__, []

    def interrupted(self, vector):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, vector)

    command = ["disaggregate", *_inputs(land), "--out", str(out)]
    monkeypatch.setattr(profile.Profile, "__call__", interrupted)
    stopped = RUN.invoke(app, command)
    assert stopped.exit_code == 130
    assert "--resume" in stopped.output
    assert [p.name for p in tmp_path.iterdir()] == [".results.fit"]
    monkeypatch.setattr(profile.Profile, "__call__", original)
    done = RUN.invoke(app, [*command, "--resume"])
    assert done.exit_code == 0, done.output
    pd.testing.assert_frame_equal(pd.read_csv(out / "regions.csv"), pd.read_csv(usual / "regions.csv"))


def _without_crs(land, folder):
    shapes = land["districts"].set_crs(None, allow_override=True)
    shapes.to_parquet(folder / "nowhere.parquet")
    return [str(folder / "nowhere.parquet"), "--response", "cases"]


WRONG = {
    "column": (lambda land, _: [f"{land['folder']}/districts.gpkg", "--response", "cass"], 'Did you mean "cases"?'),
    "file": (lambda land, folder: [str(folder / "no.gpkg"), "--response", "cases"], "there is no file"),
    "crs": (_without_crs, "no coordinate reference system"),
    "resume": (lambda land, _: [*_inputs(land), "--resume"], "Leave out --resume"),
    "examined": (lambda land, _: [*_inputs(land), "--likelihood", "binomial"], "needs the numbers examined"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_one_sentence_and_a_code(land, tmp_path, name):
    arguments, sentence = WRONG[name]
    command = ["disaggregate", *arguments(land, tmp_path), "--out", str(tmp_path / "out")]
    done = RUN.invoke(app, command)
    assert done.exit_code == 1
    assert sentence in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_results_are_not_overwritten_unasked(results, land):
    done = RUN.invoke(app, ["disaggregate", *_inputs(land), "--out", str(results[0])])
    assert done.exit_code == 1
    assert "exists already" in done.output


def test_every_command_teaches():
    for name in ("disaggregate", "predict", "report", "validate", "info", "demo"):
        told = RUN.invoke(app, [name, "--help"])
        assert told.exit_code == 0
        assert f"aggregauss {name}" in told.output


def test_wrong_options_exit_with_two():
    assert RUN.invoke(app, ["disaggregate"]).exit_code == 2
    assert RUN.invoke(app, ["nonsense"]).exit_code == 2


def test_the_command_is_installed():
    done = subprocess.run(
        [sys.executable, "-c", "from aggregauss.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f"aggregauss {ag.__version__}"


def test_plots_refuse_what_they_cannot_draw():
    post = ag.GP(ag.RBF(1.0)).fit(ag.Points(np.eye(3)), [1.0, 2.0, 3.0], inference=ag.Exact(optimise=False))
    with pytest.raises(ValueError, match="one dimension, but this one has 3"):
        ag.plots.plot_density(post)
