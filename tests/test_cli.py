"""The command line, as a user types it."""

import hashlib
import io
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rasterio
from rich.console import Console
from typer.testing import CliRunner

import aggregauss as ag
import country
from aggregauss.cli.app import app
from aggregauss.cli.options import named
from aggregauss.cli.tables import as_table
from aggregauss.maps.record import run_record

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


def test_predict_over_rasters_has_the_rates_of_the_model(results, land, tmp_path):
    import rasterio

    out, _ = results
    rain = f"rain={land['folder']}/rain.tif"
    done = RUN.invoke(app, ["predict", str(out), "--covariate", rain, "--out", str(tmp_path / "again"), "--json"])
    assert done.exit_code == 0, done.output
    found = ag.maps.load_map(out)
    with rasterio.open(tmp_path / "again" / "mean.tif") as again:
        rate = again.read(1).ravel()[found.pixels.cell]
    np.testing.assert_allclose(rate, found.posterior.predict(found.pixels.points()).mean, rtol=1e-5)


def test_a_layer_of_polygons_is_named_and_the_run_recorded(results, land, tmp_path):
    path, out = tmp_path / "two.gpkg", tmp_path / "p"
    for name, rows in (("north", slice(0, 3)), ("south", slice(6, 9))):
        land["districts"].iloc[rows].to_file(path, layer=name)
    command = ["predict", str(results[0]), str(path), "--out", str(out), "--level", "0.8", "--threshold", "0.03"]
    refused = RUN.invoke(app, command)
    assert refused.exit_code == 1
    assert 'two.gpkg has 2 layers ("north", "south"). Name one' in refused.output
    done = RUN.invoke(app, [*command, "--layer", "south"])
    assert done.exit_code == 0, done.output
    assert pd.read_csv(out / "predicted.csv")["name"].tolist() == land["districts"]["name"].tolist()[6:]
    record, fit = (json.loads((folder / "run.json").read_text()) for folder in (out, results[0]))
    assert record["arguments"] == {"layer": "south", "measure": "total", "level": 0.8, "threshold": 0.03}
    assert record["files"]["polygons"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["map"]["sha256"] == hashlib.sha256((results[0] / "map.agz").read_bytes()).hexdigest()
    assert record["fit"]["files"] == fit["files"]
    assert record["fit"]["settings"] == fit["settings"]


def test_options_that_would_do_nothing_are_refused(results, land, tmp_path):
    commands = {
        "for polygons": ["predict", str(results[0]), "--covariate", f"{land['folder']}/rain.tif", "--layer", "a"],
        '"total" is for numbers': ["disaggregate", *_inputs(land), "--total"],
        '"region" has no meaning without': ["disaggregate", *_inputs(land), "--region", "name"],
        '"coordinates" has no meaning without': ["validate", *_inputs(land), "--coordinate", "east"],
    }
    for sentence, command in commands.items():
        done = RUN.invoke(app, [*command, "--out", str(tmp_path / "out")])
        assert done.exit_code == 1
        assert sentence in done.output
        assert len(done.output.strip().splitlines()) == 1


def test_a_record_that_is_none_is_named(results, tmp_path):
    shutil.copytree(results[0], tmp_path / "map")
    for text in ("[]", '{"files": 3}', (results[0] / "run.json").read_text()[:100]):
        (tmp_path / "map" / "run.json").write_text(text)
        done = RUN.invoke(app, ["info", str(tmp_path / "map")])
        assert done.exit_code == 1
        assert "run.json is not the record of a run" in done.output
        assert len(done.output.strip().splitlines()) == 1


def test_report_and_info(results, tmp_path):
    out, _ = results
    done = RUN.invoke(app, ["report", str(out), "--title", "Another title", "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert "Another title" in (tmp_path / "page.html").read_text()
    told = RUN.invoke(app, ["info", str(out)]).output
    assert "kernel.lengthscale" in told
    assert json.loads(RUN.invoke(app, ["info", str(out), "--json"]).stdout)["settings"]["model"] == "default"


def test_info_tells_model_data_versions_and_times(results):
    told = " ".join(RUN.invoke(app, ["info", str(results[0])]).output.split())
    record = json.loads((results[0] / "run.json").read_text())
    digest = hashlib.sha256(Path(record["files"]["covariate rain"]["path"]).read_bytes()).hexdigest()
    assert record["files"]["covariate rain"]["sha256"] == digest
    for words in (
        "model: default",
        "rain.tif " + digest[:12],
        f"aggregauss {record['versions']['aggregauss']}",
        "fit ",
        "seed: 0",
        "response: cases",
    ):
        assert words in told


def test_a_page_made_again_keeps_title_threshold_and_check(results, land, tmp_path):
    found = ag.maps.load_map(results[0])
    table = found.table().assign(constant_rate=found.rate, log_score=-1.0)
    for level in (50, 70, 80, 90, 95):
        table[f"lower{level}%"], table[f"upper{level}%"] = table["lower"], table["upper"]
    checked = ag.maps.Validation(table, "by 3 folds")
    found.save(tmp_path / "again", title="Kept", threshold=0.0123, validation=checked)
    done = RUN.invoke(app, ["report", str(tmp_path / "again"), "--out", str(tmp_path / "page.html"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"out": str(tmp_path / "page.html")}
    page = (tmp_path / "page.html").read_text()
    for words in ("Kept", "above 1.23 per 100 persons", "by 3 folds", "held out"):
        assert words in page


def _people(land):
    """The pixels as a table of individuals."""
    step, (rows, columns) = 5000.0, land["rain"].shape
    row, column = (part.ravel() for part in np.mgrid[:rows, :columns])
    district = [f"district {i}{j}" for i, j in zip(row // (rows // 3), column // (columns // 3))]
    where = {"east": (500_000 + (column + 0.5) * step) / 1000, "north": (8_000_000 - (row + 0.5) * step) / 1000}
    return pd.DataFrame({"name": district, "n": land["people"].ravel(), "rain": land["rain"].ravel(), **where})


def test_a_table_of_individuals_makes_a_map_and_is_validated(results, land, tmp_path):
    _people(land).to_parquet(tmp_path / "people.parquet")
    land["districts"].drop(columns="geometry").to_csv(tmp_path / "cases.csv", index=False)
    table = ["--individuals", str(tmp_path / "people.parquet"), "--region", "name", "--population", "n"]
    columns = ["--covariate", "rain", "--coordinate", "east", "--coordinate", "north", "--inducing", "16"]
    command = [str(tmp_path / "cases.csv"), "--response", "cases", *table, *columns]
    done = RUN.invoke(app, ["disaggregate", *command, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    files = {"regions.csv", "map.agz", "run.json", "report.html"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == files
    assert set(json.loads(done.stdout)["files"]) == {"regions", "individuals"}
    assert "per 100 persons" in (tmp_path / "out" / "report.html").read_text()
    mine, rasters = pd.read_csv(tmp_path / "out" / "regions.csv"), pd.read_csv(results[0] / "regions.csv")
    np.testing.assert_allclose(mine["population"], rasters["population"], rtol=1e-5)
    np.testing.assert_allclose(mine["fitted"], rasters["fitted"], rtol=0.02)  # distances in UTM, not in a plane nearby
    refused = RUN.invoke(app, ["predict", str(tmp_path / "out"), f"{land['folder']}/districts.gpkg"])
    assert refused.exit_code == 1
    assert "has no grid to lay polygons on" in refused.output
    checked = RUN.invoke(app, ["validate", *command, "--groups", "province", "--json"])
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["how"] == "from 3 groups to 9 regions"


def test_layers_of_a_stack_are_named_after_themselves(land, tmp_path):
    profile = {"driver": "GTiff", "count": 2, "dtype": "float64", "height": 12, "width": 12}
    with rasterio.open(tmp_path / "st=ack.tif", "w", crs=country.CRS, transform=land["transform"], **profile) as out:
        out.write(np.stack([land["rain"], -land["rain"]]))
        out.descriptions = ("rain", "sun")
    stack = f"{tmp_path}/st=ack.tif"
    assert named([f"{stack}#rain", f"{stack}#sun"]) == {"rain": f"{stack}#rain", "sun": f"{stack}#sun"}
    assert named([f"wet={stack}#rain"]) == {"wet": f"{stack}#rain"}
    record = run_record({}, named([f"{stack}#rain"]))
    assert record.files["covariate rain"]["sha256"] == hashlib.sha256(Path(stack).read_bytes()).hexdigest()
    with pytest.raises(ValueError, match="two covariates have the same name"):
        named([f"{stack}#rain", "rain.tif"])


def test_the_record_of_a_run_holds_all_that_was_asked(results):
    record = json.loads((results[0] / "run.json").read_text())
    asked = {name: value for name, value in record["arguments"].items() if value}
    assert asked == {"response": "cases"}
    assert {"examined", "label", "layer", "resolution", "categorical", "region"} <= set(record["arguments"])
    assert set(record["seconds"]) == {"read", "fit", "predict", "write"}


def test_what_is_hashed_is_all_of_a_source(land, tmp_path):
    land["districts"].to_file(tmp_path / "d.shp")
    before = run_record({"regions": tmp_path / "d.shp"}).files["regions"]
    land["districts"].assign(cases=1).to_file(tmp_path / "d.shp")
    after = run_record({"regions": tmp_path / "d.shp"}).files["regions"]
    assert before["sha256"] != after["sha256"]
    assert int(after["files"]) >= 4


def test_a_folder_that_does_not_exist_is_made_and_only_for_results(land, tmp_path):
    out = tmp_path / "a" / "b" / "results"
    wrong = RUN.invoke(app, ["disaggregate", *_inputs(land), "--resolution", "-1", "--out", str(out)])
    assert wrong.exit_code == 1
    assert list(tmp_path.iterdir()) == []
    done = RUN.invoke(app, ["disaggregate", *_inputs(land), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert [p.name for p in out.parent.iterdir()] == ["results"]


def test_validate_says_at_once_that_there_is_no_folder(land, tmp_path):
    done = RUN.invoke(app, ["validate", *_inputs(land), "--out", str(tmp_path / "no" / "t.csv")])
    assert done.exit_code == 1
    assert "there is no folder" in done.output


@pytest.fixture
def _small_disk():
    """No file may grow beyond 4 kB: writing fails as on a full disk, whoever writes."""
    limit, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limit[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("_small_disk")
@pytest.mark.parametrize("command", ["disaggregate", "predict", "report"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(command, results, land, tmp_path):
    out, folder = ["--out", str(tmp_path / "out")], str(results[0])
    arguments = {
        "disaggregate": _inputs(land),
        "predict": [folder, f"{land['folder']}/districts.gpkg"],
        "report": [folder],
    }
    done = RUN.invoke(app, [command, *arguments[command], *out])
    assert done.exit_code == 1, done.output
    assert "no room for" in done.output
    assert {p.name for p in tmp_path.iterdir()} <= {".out.fit"}  # what --resume needs


START = "from aggregauss.cli import main; main()"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 130)])
def test_a_run_that_is_killed_leaves_its_checkpoint_and_goes_on(number, code, results, land, tmp_path):
    out = tmp_path / "results"
    command = ["disaggregate", *_inputs(land), "--out", str(out)]
    running = subprocess.Popen([sys.executable, "-c", START, *command], stderr=subprocess.DEVNULL)
    while not (tmp_path / ".results.fit").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    assert running.wait() == code
    assert not out.exists()
    done = RUN.invoke(app, [*command, "--resume"])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / ".results.fit").exists()
    again, usual = pd.read_csv(out / "regions.csv"), pd.read_csv(results[0] / "regions.csv")
    np.testing.assert_allclose(again["fitted"], usual["fitted"], rtol=1e-3)


def test_validate_from_coarse_to_fine(land, tmp_path):
    options = ["--groups", "province", "--out", str(tmp_path / "held_out.csv"), "--json"]
    done = RUN.invoke(app, ["validate", *_inputs(land), *options])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["scores"]) == {"this model", "constant rate"}
    assert len(pd.read_csv(tmp_path / "held_out.csv")) == 9
    again = RUN.invoke(app, ["validate", *_inputs(land), *options])
    assert again.exit_code == 1
    assert "exists already" in again.output
    assert len(pd.read_csv(tmp_path / "held_out.csv")) == 9


def test_scores_are_told_before_they_are_written(land, tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no room")

    monkeypatch.setattr("aggregauss.cli.maps.write_csv", full)
    options = ["--groups", "province", "--out", str(tmp_path / "held_out.csv"), "--json"]
    done = RUN.invoke(app, ["validate", *_inputs(land), *options])
    assert done.exit_code == 1
    assert "this model" in json.loads(done.stdout)["scores"]


def test_an_interrupted_fit_goes_on_to_the_same_numbers(results, land, tmp_path, monkeypatch):
    from aggregauss.inference import by_totals

    out, usual = tmp_path / "results", results[0]
    original, calls = by_totals.Profile.at, []

    def interrupted(self, vector):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, vector)

    command = ["disaggregate", *_inputs(land), "--out", str(out)]
    monkeypatch.setattr(by_totals.Profile, "at", interrupted)
    stopped = RUN.invoke(app, command)
    assert stopped.exit_code == 130
    assert "--resume" in stopped.output
    assert [p.name for p in tmp_path.iterdir()] == [".results.fit"]
    monkeypatch.setattr(by_totals.Profile, "at", original)
    done = RUN.invoke(app, [*command, "--resume"])
    assert done.exit_code == 0, done.output
    pd.testing.assert_frame_equal(pd.read_csv(out / "regions.csv"), pd.read_csv(usual / "regions.csv"))


def test_what_goes_on_is_kept_until_the_input_is_read(land, tmp_path):
    (tmp_path / ".out.fit").write_text("of an interrupted run")
    arguments = [f"{land['folder']}/distrits.gpkg", "--response", "cases", "--out", str(tmp_path / "out")]
    assert RUN.invoke(app, ["disaggregate", *arguments]).exit_code == 1
    assert [p.name for p in tmp_path.iterdir()] == [".out.fit"]
    done = RUN.invoke(app, ["disaggregate", *_inputs(land), "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


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


def test_names_are_no_markup():
    console = Console(file=io.StringIO(), width=80)
    console.print(as_table(pd.DataFrame({"[b]": ["[/red] [x]"], "n": [1.5]}), "[/bold]"))
    for text in ("[b]", "[/red] [x]", "[/bold]"):
        assert text in console.file.getvalue()


def test_results_are_not_overwritten_unasked(results, land):
    done = RUN.invoke(app, ["disaggregate", *_inputs(land), "--out", str(results[0])])
    assert done.exit_code == 1
    assert "exists already" in done.output


def test_overwriting_takes_nothing_that_is_not_a_result(results, land, tmp_path, monkeypatch):
    folder, rain = tmp_path / "work", f"{land['folder']}/rain.tif"
    shutil.copytree(results[0], folder / "map")
    shutil.copy(f"{land['folder']}/districts.gpkg", folder)
    shutil.copy(f"{land['folder']}/rain.tif", folder / "map" / "mean.tif")
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    inputs = _inputs(land)
    commands = {
        "map.agz in it is no file of such results": ["predict", "map", "districts.gpkg", "--out", "map"],
        "districts.gpkg in it is an input": ["predict", "map", "districts.gpkg", "--out", "."],
        "districts.gpkg in it is no file": ["predict", "map", "--covariate", f"rain={rain}", "--out", "."],
        "map/mean.tif in it is an input": ["disaggregate", *inputs, "--covariate", "map/mean.tif", "--out", "map"],
        "work cannot be overwritten": ["demo", "--out", "."],
    }
    for sentence, command in commands.items():
        done = RUN.invoke(app, [*command, "--overwrite"])
        assert done.exit_code == 1, done.output
        assert sentence in " ".join(done.output.split())
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    for _ in range(2):
        done = RUN.invoke(app, ["predict", "map", "districts.gpkg", "--out", "p", "--overwrite"])
        assert done.exit_code == 0, done.output


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
