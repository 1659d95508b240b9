"""Passes in which only q moves give what whole passes give."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import aggregauss as ag
from aggregauss.inference import ascent
from aggregauss.inference.data import observe
from aggregauss.inference.groups import choose_shapes
from aggregauss.inference.inducing import on_device
from aggregauss.inference.passes import Passes
from aggregauss.inference.variational import Moments2, by_moments
from aggregauss.parameters import pack

RNG = np.random.default_rng(2)
X = RNG.uniform(0, 5, (90, 2))
BAGS = ag.Bags(X, np.repeat(np.arange(12), [1, 14] + [7] * 5 + [8] * 5), weights=RNG.uniform(5, 20, 90))
Z = RNG.uniform(0, 5, (9, 2))
LIKELIHOODS = {"effect": ag.Poisson(region_effect=True), "square": ag.Poisson("square")}


@pytest.mark.parametrize("bound", ["linearised", "matched"])
@pytest.mark.parametrize(("name", "dtype"), [("effect", "float64"), ("effect", "float32"), ("square", "float64")])
def test_with_hyper_parameters_kept_a_pass_is_the_whole_pass(name, bound, dtype):
    seen = observe(BAGS, RNG.poisson(20, 12).astype(float), None, None)
    model = ag.GP(
        ag.Matern32(1.5, 0.5),
        LIKELIHOODS[name],
        mean=ag.LinearEffects([0], value=ag.fixed(0.0)),
        aggregation="response",
    )
    passes = Passes(model, seen, ascent.Settings(bound, dtype, True, False), (), 0)
    passes = dataclasses.replace(passes, shapes=choose_shapes(seen, 12, 11, 8, np.dtype(dtype)))
    held = passes.hold()
    start = ascent.init(pack(model), on_device(ag.Points(Z)), 11, 0.1, 0.5)
    other = by_moments(Moments2(jnp.asarray(0.3 * RNG.standard_normal(11)), start.q.covariance))
    look, moved = passes.with_q(start, held, covariance_kept=bound == "matched"), start._replace(q=other)
    whole, quick = passes.over(moved, held), look(moved)
    rtol = 1e-9 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(quick.objective, whole.objective, rtol=rtol)
    mean = moved.q.mean
    np.testing.assert_allclose(
        quick.target.gradient(mean).mean, whole.target.gradient(mean).mean, rtol=rtol, atol=10 * rtol
    )
    if bound == "linearised":
        np.testing.assert_allclose(quick.target.precision, whole.target.precision, rtol=rtol, atol=10 * rtol)


def test_where_aggregation_is_linear_whole_passes_are_made():
    seen = observe(BAGS, RNG.normal(size=12), None, None)
    model = ag.GP(ag.RBF(1.0), ag.Gaussian(), mean=ag.Constant())
    passes = Passes(model, seen, ascent.Settings("linearised", "float64", True, False), (), 0)
    passes = dataclasses.replace(passes, shapes=choose_shapes(seen, 12, 9, 8, np.dtype(float)))
    start, held = ascent.init(pack(model), on_device(ag.Points(Z)), 9, 0.1, 0.5), passes.hold()
    quick, whole = passes.with_q(start, held)(start), passes.over(start, held)
    np.testing.assert_array_equal(quick.free.vector, whole.free.vector)
