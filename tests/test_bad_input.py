"""Bad input gives one sentence: the argument, the row, what was expected, what to do. Nothing is computed first."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pandas as pd
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


def _fit(support=BINS, y=(1.0, 2.0, 3.0), noise=None, model=MODEL, **others):
    return model.fit(support, y, noise, inference=Exploding(), **others)


BAGS = ag.Bags([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "c"], measure="mean")


def _respond(likelihood, y=(1.0, 2.0, 3.0), support=BAGS, **others):
    return _fit(support, y, model=ag.GP(ag.RBF(1.0), likelihood, aggregation="response"), **others)


def _sparse(support=BAGS, likelihood=None, **settings):
    model = ag.GP(ag.RBF(1.0), likelihood or ag.Poisson(), aggregation="response")
    return model.fit(support, [1.0, 2.0, 3.0], inference=ag.SVI(**settings), progress=False)


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
    "ragged noise": (lambda: _fit(noise=[[0.1], [0.1, 0.2]]), TypeError, ['"noise_variance" must hold numbers', "equal length"]),
    "ragged spread": (lambda: ag.LinearEffects([0, 1], sd=[[1], [2, 3]]), TypeError, ['"sd" must hold numbers', "equal length"]),
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
    "negative count": (lambda: _respond(ag.Poisson(), [1, -2, 3]), ValueError, ["Poisson needs", "row 1 is -2.0", "counts 0, 1, 2"]),
    "fraction of a count": (lambda: _respond(ag.NegativeBinomial(), [1, 2, 0.5]), ValueError, ["NegativeBinomial needs", "row 2 is 0.5", "not rates"]),
    "no trials": (lambda: _respond(ag.Binomial()), ValueError, ["numbers of trials", "counts=n"]),
    "more successes than trials": (lambda: _respond(ag.Binomial(), counts=[2, 2, 2]), ValueError, ["row 2 is 3.0", 'from 0 to "counts"']),
    "no trial": (lambda: _respond(ag.Binomial(), [0, 0, 0], counts=[2, 0, 2]), ValueError, ['"counts" must be whole numbers', "row 1 is 0.0"]),
    "trials of a Poisson count": (lambda: _respond(ag.Poisson(), counts=[5, 5, 5]), ValueError, ['"counts" is for binomial', "Poisson"]),
    "total of probabilities": (
        lambda: _respond(ag.Binomial(), counts=[5, 5, 5], support=BAGS.with_measure("total")), ValueError, ["averages probabilities", 'measure="mean"'],
    ),
    "neither yes nor no": (lambda: _respond(ag.Bernoulli(), [0, 1, 2]), ValueError, ["0 or 1", "row 2 is 2.0", "Binomial"]),
    "amount of zero": (lambda: _respond(ag.GammaResponse(), [1, 0, 3]), ValueError, ["GammaResponse needs", "row 1 is 0.0"]),
    "exponential of a square": (lambda: ag.Exponential(link="square"), ValueError, ['"link" must be "exp"', "E[1/v²]", "diverges"]),
    "unknown link": (lambda: ag.Poisson("log"), ValueError, ['Poisson: "link" must be "exp" or "square"', "'log'"]),
    "noise of a count": (lambda: _respond(ag.Poisson(), noise=[0.1, 0.1, 0.1]), ValueError, ['"noise_variance" is for Gaussian noise', "Poisson"]),
    "no population": (lambda: ag.Bags([[0.0], [1.0]], ["a", "b"], weights=[0, 0]), ValueError, ['bag "a" has none']),
    "negative population": (lambda: ag.Bags([[0.0], [1.0]], ["a", "a"], weights=[5, -5]), ValueError, ["row 1 is -5.0"]),
    "population not a number": (lambda: ag.Bags([[0.0], [1.0]], ["a", "a"], weights=[NAN, 1]), ValueError, ['"weights" must be finite', "row 0 is nan"]),
    "population of the wrong length": (lambda: ag.Bags([[0.0], [1.0]], ["a", "a"], weights=[1.0]), ValueError, ['"weights" must have one value per row']),
    "a bag without a count": (lambda: _respond(ag.Poisson(), pd.Series({"a": 1, "b": 2})), ValueError, ['"c" is only in the supports']),
    "a count without a bag": (lambda: _respond(ag.Poisson(), pd.Series({"a": 1, "b": 2, "c": 3, "d": 4})), ValueError, ['"d" is only in the "y"']),
    "batch larger than the data": (lambda: _sparse(batch_size=4), ValueError, ['"batch_size" must not exceed the 3 observations', "is 4"]),
    "no batch": (lambda: _sparse(batch_size=0), ValueError, ['"batch_size" must be a whole number of at least 1']),
    "too many landmarks": (lambda: _sparse(inducing=5), ValueError, ["5 were asked for", "there are 4", "Ask for fewer"]),
    "landmarks with another column": (lambda: _sparse(inducing=np.zeros((3, 2))), ValueError, ['"inducing" must have 1 column', "has 2"]),
    "landmarks by an unknown rule": (lambda: _sparse(inducing="grid"), ValueError, ['a number, points, supports or "bags"', "'grid'"]),
    "one probe": (lambda: _sparse(probes=1), ValueError, ['"probes" must be a whole number of at least 2']),
    "a link of totals": (
        lambda: _fit(BAGS.with_measure("total"), model=ag.GP(ag.RBF(), ag.Poisson())), ValueError, ["grows with their mass", 'aggregation="response"'],
    ),
    "unknown bound": (lambda: _sparse(bound="elbo"), ValueError, ['"bound" must be "linearised"', "'elbo'"]),
    "unknown precision": (lambda: _sparse(dtype="float16"), ValueError, ['"dtype" must be "float64" or "float32"']),
    "unknown gradients": (lambda: _sparse(gradients="sgd"), ValueError, ['"gradients" must be "natural" or "adam"']),
    "response over boxes": (lambda: _sparse(BINS), TypeError, ["over points only", "Use Bags"]),
    "jensen for a region effect": (lambda: _sparse(likelihood=ag.Poisson(region_effect=True), bound="jensen"), TypeError, ['bound="jensen" is not known']),
    "constraint under svi": (
        lambda: ag.GP(ag.RBF(1.0), constraint=ag.NonNegative(5)).fit(BINS, [1, 2, 3], inference=ag.SVI()), TypeError, ["EP()"],
    ),
    "collapsed counts": (
        lambda: ag.GP(ag.RBF(1.0), ag.Poisson()).fit(BAGS, [1, 2, 3], inference=ag.Collapsed()), TypeError, ["Gaussian noise", "SVI()"],
    ),
    "unknown aggregation": (lambda: ag.GP(ag.RBF(), aggregation="sum"), ValueError, ['"aggregation" must be "latent" or "response"']),
    "neither kernel nor effects": (lambda: ag.GP(None), TypeError, ['"kernel" may be None only beside', "LinearEffects"]),
    "effect of a missing column": (
        lambda: _fit(model=ag.GP(ag.RBF(), mean=ag.LinearEffects([0, 2]))), ValueError, ['"columns" must lie in 0..0', "(0, 2)"],
    ),
    "effect without spread": (lambda: ag.LinearEffects([0], sd=0.0), ValueError, ['"sd" and "intercept_sd" must be positive']),
    "names of effects": (lambda: ag.LinearEffects([0, 1], names=["x"]), ValueError, ['"names" must have 2 names', "has 1"]),
    "unknown owner of the noise": (lambda: ag.Gaussian(per="bag"), ValueError, ['"observation" or "individual"']),
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
        (lambda p: p.predict(BINS).quantile([0.1, 1.0]), ValueError, ["strictly between 0 and 1", "1.0"]),
        (lambda p: p.predict(BINS).interval("wide"), ValueError, ["strictly between 0 and 1", "'wide'"]),
        (lambda p: p.predict(BINS).log_density([1.0, 2.0]), ValueError, ['"y" must have one value', "2 values for 3"]),
        (lambda p: p.predict(BINS).exceedance([1.0, 2.0]), ValueError, ['"threshold"', "2 values for 3 rows"]),
        (
            lambda p: p.predict(BINS).exceedance(NAN),
            ValueError,
            ['"threshold" must be numbers, but row 0 is nan', "the 1 such"],
        ),
        (
            lambda p: p.predict(BINS).exceedance([[1], [2, 3]]),
            TypeError,
            ['"threshold" must hold numbers', "equal length"],
        ),
        (lambda p: p.predict(BINS).quantile([[0.1], [0.2, 0.3]]), TypeError, ['"p" must hold numbers', "equal length"]),
        (
            lambda p: p.predict(BINS).joint_interval(key=0.5),
            TypeError,
            ['joint_interval: "key" must be a whole', "0.5"],
        ),
        (
            lambda p: p.predict(BINS).sample(jax.random.split(jax.random.key(0), 3)),
            TypeError,
            ['"key" must be', "shape (3,)"],
        ),
        (lambda p: p.predict(BINS).sample(0.5), TypeError, ['"key" must be a whole number or a JAX key', "0.5"]),
        (lambda p: p.predict(BINS).sample(0, -1), ValueError, ['"n" must be a whole number of at least 0', "-1"]),
        (lambda p: p.leave_one_out().sample(), TypeError, ["no joint distribution"]),
    ],
)
def test_questions_a_posterior_cannot_answer(post, ask, kind, words):
    with pytest.raises(kind) as caught:
        ask(post)
    assert all(word in str(caught.value) for word in words)


def test_a_number_in_an_array_without_dimensions_is_that_number(post):
    found = post.predict(BINS)
    for array in (np.array, jnp.asarray):
        np.testing.assert_array_equal(found.quantile(array(0.3)), found.quantile(0.3))
        np.testing.assert_array_equal(found.sample(array(3), array(2)), found.sample(3, 2))
        assert ag.LogNormal(array(1.0), array(0.5)) == ag.LogNormal(1.0, 0.5)
        assert ag.Exact(tolerance=array(1e-3), restarts=array(0)).fit(MODEL, post.observations, progress=False)


def test_leave_one_out_needs_exact_inference():
    model = ag.GP(ag.RBF(1.0), ag.Gaussian(0.1), constraint=ag.NonNegative(5))
    fitted = model.fit(BINS, [1.0, 2.0, 3.0], inference=ag.EP(optimise=False))
    with pytest.raises(TypeError, match="known in closed form for Exact"):
        fitted.leave_one_out()


ONE_CONSTANT = np.column_stack([np.arange(3.0), np.full(3, 7.0)])
UNEQUAL = np.column_stack([np.arange(3.0), 1e6 * np.arange(3.0)])


def test_degrees_used_as_metres_are_called_out():
    import geopandas as gpd

    shapes = gpd.GeoSeries([shapely.box(-1.5, 53.3, -1.4, 53.4)], crs=4326)
    with pytest.warns(UserWarning, match="coordinates are degrees") as caught:
        ag.Polygons(shapes)
    assert caught[0].filename == __file__  # the user's line, not ours


def test_a_series_with_other_names_is_refused():
    bags = ag.Bags([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match='"b" is only in the supports'):
        MODEL.fit(bags, pd.Series({"a": 1.0, "c": 2.0}), inference=Exploding())


@pytest.mark.parametrize(
    ("X", "lengthscale", "words", "remedy"),
    [
        (ONE_CONSTANT, [1.0, 1.0], r"column\(s\) 1 of the data are constant.*active_dims", {}),
        (np.ones((3, 2)), 1.0, r"column\(s\) 0, 1 of the data are constant", {}),
        (UNEQUAL, 1.0, r"range from 0.816 to 8.16e\+05.*standardise=True", {"standardise": True}),
        (UNEQUAL, [1.0, 1.0], r"column 1 starts at 1, but .* is 8.16e\+05.*standardise", {"standardise": [1]}),
    ],
    ids=["constant covariate", "nothing varies", "unequal scales", "a start far away"],
)
def test_covariates_a_kernel_cannot_make_sense_of_are_called_out(X, lengthscale, words, remedy):
    model, points, scheme = ag.GP(ag.RBF(lengthscale), ag.Gaussian(0.1)), ag.Points(X), ag.Exact(optimise=False)
    with pytest.warns(UserWarning, match=words) as caught:
        model.fit(points, [1.0, 2.0, 3.0], inference=scheme)
    assert caught[0].filename == __file__
    if remedy:
        model.fit(points, [1.0, 2.0, 3.0], inference=scheme, **remedy)
        return
    with pytest.warns(UserWarning, match=words):  # standard deviations of one change nothing
        model.fit(points, [1.0, 2.0, 3.0], inference=scheme, standardise=True)


def test_standardising_is_no_remedy_for_what_was_standardised():
    model, points = ag.GP(ag.RBF([1e-4, 1.0]), ag.Gaussian(0.1)), ag.Points(UNEQUAL)
    with pytest.warns(UserWarning, match=r"column's standard deviation is 1\. Give a start near that\.$"):
        model.fit(points, [1.0, 2.0, 3.0], inference=ag.Exact(optimise=False), standardise=True)


def test_what_only_other_models_have(post):
    with pytest.raises(TypeError, match="LinearEffects"):
        post.effects()
    with pytest.raises(TypeError, match=r"Poisson.*SVI\(\)"):
        ag.GP(ag.RBF(1.0), ag.Poisson()).fit(ag.Points([0.0, 1.0]), [1, 2], inference=ag.Exact())
