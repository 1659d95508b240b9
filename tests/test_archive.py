"""Saved posteriors: complete, without executable content, and safe to open."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import shapely

import aggregauss as ag
from aggregauss.maps import Settings

BINS = ag.Intervals([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
MODELS = {
    "exact": ag.GP(
        ag.RBF(ag.param(1.0, prior=ag.LogNormal(1.0, 0.5))) + 2.0 * ag.Matern32(), mean=ag.LinearMean([0.0])
    ),
    "ep": ag.GP(ag.RBF(1.0), ag.LaplaceNoise(0.5, ag.fixed(0.1)), constraint=ag.NonNegative(6)),
}


@pytest.fixture(params=MODELS)
def post(request):
    return MODELS[request.param].fit(BINS, [1.0, 2.0, 0.5], 0.1)


def test_a_posterior_comes_back_whole(post, tmp_path):
    post.save(tmp_path / "fit.agz")
    again = ag.load(tmp_path / "fit.agz")
    x = ag.concatenate([ag.Points([0.5, 1.5]), BINS])
    np.testing.assert_array_equal(again.predict(x).mean, post.predict(x).mean)
    np.testing.assert_array_equal(again.predict(x).interval()[0], post.predict(x).interval()[0])
    assert (again.evidence, again.scheme, len(again.runs)) == (post.evidence, post.scheme, len(post.runs))
    refitted = again.model.fit(BINS, [1.0, 2.0, 0.5], 0.1)  # the model is usable, marks and all
    assert refitted.evidence >= post.evidence - 1e-6


def test_names_and_polygons_survive_without_their_outlines(tmp_path):
    import geopandas as gpd

    shapes = gpd.GeoSeries([shapely.box(0, 0, 1, 1), shapely.Point(3, 3).buffer(1)], index=["left", "right"])
    post = ag.GP(ag.RBF(1.0)).fit(ag.Polygons(shapes), [1.0, 2.0], inference=ag.Exact(optimise=False))
    post.save(tmp_path / "fit.agz")
    again = ag.load(tmp_path / "fit.agz")
    assert again.observations.support.labels.tolist() == ["left", "right"]
    np.testing.assert_array_equal(again.observations.support.mass, post.observations.support.mass)


def test_the_file_holds_arrays_and_names_only(post, tmp_path):
    post.save(tmp_path / "fit.agz")
    with zipfile.ZipFile(tmp_path / "fit.agz") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        members = [name for name in archive.namelist() if name != "manifest.json"]
        assert all(name.endswith(".npy") for name in members)
        for name in members:
            with archive.open(name) as stream:
                np.lib.format.read_array(stream, allow_pickle=False)
    assert manifest["version"] == 1


def _tampered(path, change):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    change(content)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def _manifest(edit):
    def change(content):
        manifest = json.loads(content["manifest.json"])
        edit(manifest)
        content["manifest.json"] = json.dumps(manifest)

    return change


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def _plant_pickle(content):
    import io

    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    content["array0.npy"] = buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_plant_pickle, "allow_pickle"),
        (_manifest(lambda m: m["object"].update({"class": "os.system"})), "needs the class"),
        (_manifest(lambda m: m["object"]["fields"].update({"__class__": 1})), "no field"),
        (_manifest(lambda m: m.update(version=99)), "Upgrade aggregauss"),
        (_manifest(lambda m: m.update(format="other")), "not a complete aggregauss file"),
        (lambda content: content.pop("array0.npy"), "not a complete aggregauss file"),
        (lambda content: content.update({"manifest.json": b"{"}), "not a complete aggregauss file"),
        (_manifest(lambda m: m["object"].update(fields=[])), "not a complete aggregauss file"),
        (_manifest(lambda m: m["object"]["fields"].pop("evidence")), r"not a complete .*Posterior\.evidence"),
        (_manifest(lambda m: m.update(version="one")), "not a complete aggregauss file"),
        (lambda content: content.update({"array0.npy": b""}), "not a complete aggregauss file"),
    ],
)
def test_a_stranger_s_file_executes_nothing(change, message, tmp_path):
    post = MODELS["exact"].fit(BINS, [1.0, 2.0, 0.5], 0.1, inference=ag.Exact(optimise=False))
    post.save(tmp_path / "fit.agz")
    _tampered(tmp_path / "fit.agz", change)
    with pytest.raises(ValueError, match=message):
        ag.load(tmp_path / "fit.agz")
    assert not os.path.exists("exploded")


def test_whatever_byte_is_damaged_the_file_is_named(tmp_path):
    post = MODELS["exact"].fit(BINS, [1.0, 2.0, 0.5], 0.1, inference=ag.Exact(optimise=False))
    path = tmp_path / "fit.agz"
    post.save(path)
    whole, said = path.read_bytes(), []
    for place in range(0, len(whole), 1 + len(whole) // 100):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            ag.load(path)
        except ValueError as problem:
            said.append(str(problem))
    assert len(said) > 50  # the rest is padding and dates
    assert all(words.startswith(f"load: {path} is not a complete aggregauss file") for words in said)


def test_what_an_older_file_lacks_has_its_default(tmp_path):
    ag.archive.write(tmp_path / "s.agz", Settings(seed=5))
    _tampered(tmp_path / "s.agz", _manifest(lambda m: m["object"]["fields"].pop("benchmark")))
    assert ag.load(tmp_path / "s.agz") == Settings(seed=5)


def test_a_pickle_is_not_an_archive(tmp_path):
    (tmp_path / "x").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="not a complete aggregauss file"):
        ag.load(tmp_path / "x")


def test_a_failed_save_leaves_the_old_file_alone(tmp_path, monkeypatch):
    post = MODELS["exact"].fit(BINS, [1.0, 2.0, 0.5], 0.1, inference=ag.Exact(optimise=False))
    path = tmp_path / "fit.agz"
    post.save(path)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="No space left"):
        post.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.agz"]
