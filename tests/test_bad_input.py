"""Bad input gives one sentence: the argument, the row, what was expected, what to do. Nothing is computed first."""

import jaxtyping
import numpy as np
import pytest
import shapely

import aggregauss as ag

NAN, INF = float("nan"), float("inf")
BINS = ag.Intervals([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
MODEL = ag.GP(ag.RBF(1.0))
BOWTIE = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
TRIANGLE = np.array([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])


@pytest.fixture(autouse=True)
def _as_users_run_it():
    """Without the run-time type checks of the suite, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class Exploding:
    """Stands for an inference scheme that must not be reached."""

    def fit(self, *_):
        raise AssertionError("work was started before the input was checked")


def _fit(support=BINS, y=(1.0, 2.0, 3.0), noise=None, model=MODEL):
    return model.fit(support, y, noise, inference=Exploding())


CASES = {
    "reversed bounds": (lambda: ag.Boxes([[0, 5.0]], [[1, 2.0]]), ValueError, ['"hi" must exceed "lo"', "row 0", "dimension 1"]),
    "empty interval": (lambda: ag.Intervals([0, 1, 2], [1, 1, 3]), ValueError, ["row 1 is empty", "Points"]),
    "nan bound": (lambda: ag.Intervals([0, NAN], [1, 2]), ValueError, ['"lo" must be finite', "row 1", "nan"]),
    "infinite bound": (lambda: ag.Intervals([0, 85], [85, INF]), ValueError, ['"hi" must be finite', "row 1", "close open-ended"]),
    "unequal bounds": (lambda: ag.Intervals([0, 1], [1, 2, 3]), ValueError, ["same shape", "(2, 1) and (3, 1)"]),
    "intervals with columns": (lambda: ag.Intervals([[0, 0]], [[1, 1]]), ValueError, ["Use Boxes"]),
    "unknown measure": (lambda: ag.Intervals([0], [1], measure="sum"), ValueError, ['"total" or "mean"', "'sum'"]),
    "text": (lambda: ag.Points([["a"]]), TypeError, ['"X" must hold numbers only']),
    "no points": (lambda: ag.Points(np.zeros((0, 2))), ValueError, ['"X" is empty']),
    "nan point": (lambda: ag.Points([[0.0, 1.0], [NAN, 2.0]]), ValueError, ["row 1, dimension 0 is nan"]),
    "bag names missing": (lambda: ag.Bags([[0.0], [1.0]], ["a"]), ValueError, ["each of the 2 rows"]),
    "negative weight": (lambda: ag.Bags([[0.0], [1.0]], [0, 0], weights=[1, -1]), ValueError, ['"weights" must not be negative', "row 1"]),
    "nan weight": (lambda: ag.Bags([[0.0]], [0], weights=[NAN]), ValueError, ['"weights" must be finite', "row 0"]),
    "weightless bag": (lambda: ag.Bags([[0.0], [1.0]], ["a", "b"], weights=[1, 0]), ValueError, ['bag "b" has none']),
    "bag without label": (lambda: ag.Bags([[0.0], [1.0]], ["a", "b"], labels=["a"]), ValueError, ['"b" has no place']),
    "label without bag": (lambda: ag.Bags([[0.0]], ["a"], labels=["a", "z"]), ValueError, ['"z" has no points']),
    "self-intersecting": (lambda: ag.Polygons([shapely.box(0, 0, 1, 1), BOWTIE]), ValueError, ["row 1", "Self-intersection", "make_valid"]),
    "empty polygon": (lambda: ag.Polygons([shapely.Polygon()]), ValueError, ["row 0 is empty"]),
    "not a polygon": (lambda: ag.Polygons([shapely.Point(0, 0)]), TypeError, ["row 0 is Point", "Use Points"]),
    "missing geometry": (lambda: ag.Polygons([shapely.box(0, 0, 1, 1), None]), TypeError, ["row 1 is NoneType"]),
    "no polygons": (lambda: ag.Polygons([]), ValueError, ['"geometries" is empty']),
    "no atoms": (lambda: ag.Polygons([shapely.box(0, 0, 1, 1)], atoms=0), ValueError, ['"atoms" must be a whole number']),
    "unknown method": (lambda: ag.Polygons([shapely.box(0, 0, 1, 1)], method="grid"), ValueError, ['"boxes" or "centroids"']),
    "wrong simplices": (lambda: ag.Polytopes([np.zeros((2, 2, 2))]), ValueError, ["(k, d + 1, d)", "row 0"]),
    "flat simplex": (lambda: ag.Polytopes([TRIANGLE, TRIANGLE * 0.0]), ValueError, ["must have volume", "row 1"]),
    "mixed dimensions": (lambda: ag.concatenate([ag.Points([0.0]), ag.Points([[0.0, 1.0]])]), ValueError, ["[1, 2]"]),
    "y too short": (lambda: _fit(y=[1.0, 2.0]), ValueError, ['"y" must have one value per row', "2 values for 3 rows"]),
    "y not finite": (lambda: _fit(y=[1.0, INF, 2.0]), ValueError, ['"y" must be finite', "row 1 is inf"]),
    "y is text": (lambda: _fit(y=["1", "b", "2"]), TypeError, ['"y" must hold numbers only']),
    "negative noise": (lambda: _fit(noise=[0.1, -0.1, 0.1]), ValueError, ['"noise_variance" must not be negative', "row 1"]),
    "nan noise": (lambda: _fit(noise=[0.1, NAN, 0.1]), ValueError, ['"noise_variance" must be finite', "row 1"]),
    "noise too short": (lambda: _fit(noise=[0.1]), ValueError, ["1 values for 3 rows"]),
    "raw array as support": (lambda: _fit(support=np.zeros((3, 1))), TypeError, ['"support" must be', "Points(X)"]),
    "lengthscales too many": (lambda: _fit(model=ag.GP(ag.RBF([1.0, 2.0]))), ValueError, ['"lengthscale" must be one number or 1']),
    "active dim too large": (lambda: _fit(model=ag.GP(ag.RBF(active_dims=[1]))), ValueError, ['"active_dims" must lie in 0..0']),
    "slopes too many": (lambda: _fit(model=ag.GP(ag.RBF(), mean=ag.LinearMean([0.0, 0.0]))), ValueError, ['"slope" must have 1 value']),
    "negative lengthscale": (lambda: ag.RBF(-1.0), ValueError, ['RBF: "lengthscale" must be positive and finite', "-1.0"]),
    "nan variance": (lambda: ag.Matern32(1.0, NAN), ValueError, ['Matern32: "variance" must be positive']),
    "zero learned noise": (lambda: ag.Gaussian(0.0), ValueError, ['Gaussian: "variance" must be positive']),
    "start outside bounds": (lambda: ag.RBF(ag.param(3.0, bounds=(0.1, 1.0))), ValueError, ["inside its bounds (0.1, 1.0)"]),
    "reversed param bounds": (lambda: ag.param(1.0, bounds=(2.0, 1.0)), ValueError, ["low < high"]),
    "repeated active dim": (lambda: ag.RBF(active_dims=[0, 0]), ValueError, ["must not repeat"]),
    "text active dim": (lambda: ag.RBF(active_dims="x"), ValueError, ["list of column numbers"]),
    "unknown form": (lambda: ag.Matern32(form="round"), ValueError, ['"isotropic" or "product"']),
    "degree zero": (lambda: ag.Polynomial(0), ValueError, ['"degree" must be a whole number of at least 1']),
    "mean used as kernel": (lambda: ag.RBF() + ag.Constant(), TypeError, ["ConstantKernel"]),
    "mean first": (lambda: ag.Constant() + ag.RBF(), TypeError, ["mean function", "ConstantKernel"]),
    "kernel used as mean": (lambda: ag.GP(ag.RBF(), mean=ag.RBF()), TypeError, ['"mean" must be a mean function']),
    "class instead of kernel": (lambda: ag.GP(ag.RBF), TypeError, ['"kernel" must be a kernel such as RBF()']),
    "unknown parameter": (lambda: MODEL.replace({"kernel.scale": 1.0}), KeyError, ['no parameter "kernel.scale"', "kernel.lengthscale"]),
    "constraint without points": (lambda: ag.NonNegative(0), ValueError, ['"points" must be a whole number']),
    "constraint scale": (lambda: ag.NonNegative(5, scale=0.0), ValueError, ['"scale" must be positive']),
    "exact with Laplace noise": (
        lambda: ag.GP(ag.RBF(), ag.LaplaceNoise(1.0)).fit(BINS, [1, 2, 3], inference=ag.Exact()), TypeError, ["LaplaceNoise", "EP()"],
    ),
    "exact with a constraint": (
        lambda: ag.GP(ag.RBF(), constraint=ag.NonNegative(5)).fit(BINS, [1, 2, 3], inference=ag.Exact()), TypeError, ["EP()"],
    ),
    "duplicates without noise": (
        lambda: ag.GP(ag.RBF(), ag.Gaussian(ag.fixed(0.0))).fit(BINS[[0, 1, 0]], [1, 2, 3]), ValueError, ["rows 0 and 2", "noise_variance"],
    ),
    "epsilon": (lambda: ag.privacy.release([1, 2], epsilon=0.0), ValueError, ['"epsilon" must be positive']),
    "not a scheme's data": (lambda: ag.cov(ag.RBF(), BINS, ag.Points([[0.0, 1.0]])), ValueError, ["same dimensions", "1 and 2"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_clear_sentence(name):
    build, kind, words = CASES[name]
    with pytest.raises(kind) as caught:
        build()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


@pytest.fixture(scope="module")
def post():
    return MODEL.fit(BINS, [1.0, 2.0, 3.0], inference=ag.Exact(optimise=False))


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda p: p.predict(ag.Points([[0.0, 1.0]])), ValueError, ["must have 1 dimension"]),
        (lambda p: p.predict([[0.5]]), TypeError, ['"support" must be a batch of supports']),
        (lambda p: p.predict(BINS, kind="noisy"), ValueError, ['"latent" or "response" or "observation"']),
        (lambda p: p.predict(BINS).interval(1.5), ValueError, ["strictly between 0 and 1"]),
        (lambda p: p.predict(BINS).quantile(0.0), ValueError, ["strictly between 0 and 1"]),
        (lambda p: p.leave_one_out().sample(), TypeError, ["no joint distribution"]),
    ],
)
def test_questions_a_posterior_cannot_answer(post, ask, kind, words):
    with pytest.raises(kind) as caught:
        ask(post)
    assert all(word in str(caught.value) for word in words)


def test_leave_one_out_needs_exact_inference():
    model = ag.GP(ag.RBF(1.0), ag.Gaussian(0.1), constraint=ag.NonNegative(5))
    fitted = model.fit(BINS, [1.0, 2.0, 3.0], inference=ag.EP(optimise=False))
    with pytest.raises(TypeError, match="known in closed form for Exact"):
        fitted.leave_one_out()


def test_degrees_used_as_metres_are_called_out():
    import geopandas as gpd

    shapes = gpd.GeoSeries([shapely.box(-1.5, 53.3, -1.4, 53.4)], crs=4326)
    with pytest.warns(UserWarning, match="coordinates are degrees") as caught:
        ag.Polygons(shapes)
    assert caught[0].filename == __file__  # the user's line, not ours


def test_a_series_with_other_names_is_refused():
    import pandas as pd

    bags = ag.Bags([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match='"b" is only in the supports'):
        MODEL.fit(bags, pd.Series({"a": 1.0, "c": 2.0}), inference=Exploding())
