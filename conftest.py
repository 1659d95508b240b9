"""Strict settings for the whole suite: no silent broadcasting, no silent promotion, no warnings."""

import os

os.environ.setdefault("MPLBACKEND", "agg")

import hypothesis
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

hypothesis.settings.register_profile("suite", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
