"""Tests wait for the compiler far longer than for what it compiles, so it is told not to try too hard."""

import jax

jax.config.update("jax_disable_most_optimizations", True)
