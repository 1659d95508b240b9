"""Examples in docstrings run, and every public name has one or a page that uses it."""

import doctest
import importlib
import pkgutil

import pytest

import aggregauss

MODULES = [m.name for m in pkgutil.walk_packages(aggregauss.__path__, "aggregauss.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_every_public_name_has_a_docstring():
    public = [getattr(aggregauss, name) for name in dir(aggregauss) if not name.startswith("_")]
    assert [x for x in public if callable(x) and not (x.__doc__ or "").strip()] == []
