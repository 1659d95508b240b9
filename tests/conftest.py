"""Tests wait for the compiler far longer than for what it compiles, so it is told not to try too hard."""

import jax
import pytest

jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(scope="module", autouse=True)
def _programs_are_let_go():
    """Thousands of compiled programs exhaust the memory maps that a process may have, and the compiler dies of it."""
    yield
    jax.clear_caches()
