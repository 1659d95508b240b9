"""Conformance of kernels: every instance obeys the laws of covariance over supports."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import aggregauss as ag
from aggregauss.archive import load, write
from aggregauss.kernels.covariance import variances
from aggregauss.kernels.distance import squared
from aggregauss.kernels.kernel import Kernel
from aggregauss.parameters import pack, unpack
from aggregauss.supports.support import halved
from instances import BOXES, KERNELS, POINTS, SUPPORTS

THIN = ag.Boxes(POINTS.center - 1e-9, POINTS.center + 1e-9, measure="mean")
PARTS = {
    "points": POINTS,
    "boxes": BOXES,
    "bags": SUPPORTS["bags"],
    "means": SUPPORTS["box-means"][:3],
    "thin": THIN,
    "halves": halved(BOXES),
}
EVERYTHING = ag.concatenate(list(PARTS.values()))
_ENDS = np.cumsum([0, *(len(part) for part in PARTS.values())])
ROWS = {name: slice(start, stop) for name, start, stop in zip(PARTS, _ENDS, _ENDS[1:])}
DISTINCT = np.arange(_ENDS[4])  # without what is there a second time, thin or in halves


@pytest.fixture(params=KERNELS, scope="module")
def name(request):
    return request.param


@pytest.fixture(scope="module")
def kernel(name):
    return KERNELS[name][0]


@pytest.fixture(scope="module")
def K(kernel):
    """The covariance of everything, from which most laws can be read: one compiled program instead of many."""
    return np.asarray(ag.cov(kernel, EVERYTHING))


def test_no_kernel_is_missed():
    def leaves(cls):
        return [cls] if not cls.__subclasses__() else [x for c in cls.__subclasses__() for x in leaves(c)]

    used = {type(part) for k, _ in KERNELS.values() for part in _parts(k)}
    built_in = {c for c in leaves(Kernel) if c.__module__.startswith("aggregauss.kernels.")}
    assert built_in <= used


def _parts(kernel):
    yield kernel
    for part in getattr(kernel, "parts", ()):
        yield from _parts(part)


def test_swapping_the_supports_transposes_the_covariance(kernel):
    left, right = np.asarray(ag.cov(kernel, BOXES, POINTS)), np.asarray(ag.cov(kernel, POINTS, BOXES))
    np.testing.assert_allclose(left, right.T, rtol=1e-12, atol=1e-14)


def test_covariance_is_positive_semidefinite_over_mixed_supports(K):
    np.testing.assert_array_equal(K, K.T)
    values = np.linalg.eigvalsh(K[np.ix_(DISTINCT, DISTINCT)])
    assert values.min() > -1e-11 * values.max()


def test_self_covariance_is_cross_covariance_with_itself(kernel, K):
    again = EVERYTHING[np.arange(len(EVERYTHING))]
    np.testing.assert_allclose(K, ag.cov(kernel, EVERYTHING, again), rtol=1e-12, atol=1e-13)


def test_variances_are_the_diagonal(kernel, K):
    np.testing.assert_allclose(variances(kernel, EVERYTHING), np.diag(K), rtol=1e-12, atol=1e-14)


def test_halves_of_a_box_add_up_to_the_box(name, K):
    _, error = KERNELS[name]
    others = np.r_[ROWS["boxes"], ROWS["points"]]
    whole, parts = K[ROWS["boxes"]][:, others], K[ROWS["halves"]][:, others]
    np.testing.assert_allclose(whole, parts, rtol=0, atol=(error or 1e-12) * max(1.0, np.abs(parts).max()))


def test_a_thin_box_is_a_point(name, kernel, K):
    if name == "white":
        pytest.skip("a point has noise of its own, a box has none")
    thin, boxes = ROWS["thin"], ROWS["boxes"]
    np.testing.assert_allclose(K[thin, boxes], ag.cov(kernel, POINTS, BOXES), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(K[thin, thin], ag.cov(kernel, POINTS), rtol=1e-7, atol=1e-8)


def test_boxes_agree_with_a_fine_cloud_of_points(name, kernel):
    _, error = KERNELS[name]
    x, w = np.polynomial.legendre.leggauss(24)
    grid, weight = (
        np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2) / 2,
        np.outer(w, w).ravel() / 4,
    )
    cloud = ag.Bags(
        (BOXES.center[:, None] + BOXES.width[:, None] * grid).reshape(-1, 2),
        np.repeat(np.arange(len(BOXES)), len(grid)),
        weights=(BOXES.mass[:, None] * weight).ravel(),
    )
    expected = np.asarray(ag.cov(kernel, cloud, POINTS))
    tolerance = {"matern12-product": 2e-3, "product": 2e-3, "white": 1e-12}.get(name, 2e-5)  # kinks limit the cloud
    np.testing.assert_allclose(ag.cov(kernel, BOXES, POINTS), expected, rtol=0, atol=max(tolerance, error or 0.0))


def test_gradients_agree_with_finite_differences(kernel):
    vector = pack(kernel)
    others = EVERYTHING[DISTINCT]
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(len(BOXES), len(others))))

    def total(vector):
        return jnp.sum(weights * ag.cov(unpack(kernel, vector), BOXES, others))

    gradient = np.asarray(jax.grad(total)(vector))
    assert np.isfinite(gradient).all()
    step = 1e-5
    for i in range(len(vector)):
        numeric = (total(vector.at[i].add(step)) - total(vector.at[i].add(-step))) / (2 * step)
        np.testing.assert_allclose(gradient[i], numeric, rtol=2e-6, atol=2e-7)


def test_single_precision_follows_double(kernel):
    double = np.asarray(ag.cov(kernel, BOXES, POINTS))
    single = ag.cov(kernel, BOXES, POINTS, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=3e-6 * max(1.0, np.abs(double).max()))


def test_other_parameters_do_not_retrace(kernel):
    traces = []

    @eqx.filter_jit
    def covariance(kernel, A):
        traces.append(None)
        return kernel.block(A, A)

    from aggregauss.supports.layout import layout

    atoms, _ = layout(BOXES).take(np.arange(1))
    covariance(kernel, atoms)
    covariance(unpack(kernel, pack(kernel) + 0.1), atoms)
    assert len(traces) == 1


def test_saved_kernels_come_back(kernel, tmp_path):
    write(tmp_path / "kernel", kernel)
    again = load(tmp_path / "kernel")
    assert eqx.tree_equal(kernel, again)
    np.testing.assert_array_equal(ag.cov(kernel, POINTS), ag.cov(again, POINTS))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ag.RBF([0.5, 1.5], 0.8), 0.8 * sk.RBF([0.5, 1.5])),
        (ag.Matern12(0.7), sk.Matern(0.7, nu=0.5)),
        (ag.Matern32([0.7, 2.0]), sk.Matern([0.7, 2.0], nu=1.5)),
        (ag.Matern52(0.7), sk.Matern(0.7, nu=2.5)),
        (ag.RationalQuadratic(0.9, alpha=0.7), sk.RationalQuadratic(0.9, alpha=0.7)),
        (ag.Polynomial(2, variance=1.0, offset=0.49), sk.DotProduct(sigma_0=0.7) ** 2),
        (ag.White(0.3) + ag.ConstantKernel(0.2), sk.WhiteKernel(0.3) + sk.ConstantKernel(0.2)),
    ],
)
def test_values_at_points_agree_with_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ag.cov(ours, POINTS), theirs(POINTS.center), rtol=1e-12)


def test_periodic_agrees_with_scikit_learn_in_one_dimension():
    X = np.linspace(0, 3, 7)[:, None]
    theirs = sk.ExpSineSquared(length_scale=0.6, periodicity=1.7)(X)
    np.testing.assert_allclose(ag.cov(ag.Periodic(0.6, period=1.7), ag.Points(X)), theirs, rtol=1e-12)


def test_values_at_points_agree_with_tinygp():
    from tinygp import kernels as tk

    X = POINTS.center[:, 0]
    for ours, theirs in (
        (ag.RBF(0.7), tk.ExpSquared(0.7)),
        (ag.Matern32(0.7), tk.Matern32(0.7)),
        (ag.Cosine(0.7), tk.Cosine(0.7 * 2 * np.pi)),
    ):
        np.testing.assert_allclose(ag.cov(ours, ag.Points(X)), theirs(X, X), rtol=1e-12)


def test_many_dimensions_use_the_matrix_product_and_agree_with_differences():
    X, Y = np.random.default_rng(0).normal(size=(2, 30, 9)) + 100.0
    scale = np.linspace(1.0, 3.0, 9)
    square = (((X[:, None] - Y[None]) / scale) ** 2).sum(-1)
    np.testing.assert_allclose(ag.cov(ag.RBF(scale), ag.Points(X), ag.Points(Y)), np.exp(-square / 2), rtol=1e-10)
    np.testing.assert_allclose(ag.cov(ag.Matern12(scale), ag.Points(X)).diagonal(), 1.0, rtol=1e-6)


def test_slope_of_the_lengthscale_in_single_precision_is_that_in_double_over_many_lengthscales():
    """∂L/∂s_k = -2 Σ_ij G_ij (x_ik - y_jk)² / s_k³, of terms a thousand times smaller than Σ_ij G_ij x_ik²."""
    rng = np.random.default_rng(0)
    single = [jnp.asarray(rng.uniform(0.0, 100.0, (n, 2)), "float32") for n in (20_000, 300)]

    def loss(scale, X, Y):
        return jnp.sum(jnp.exp(-0.5 * squared(X, Y, scale)))

    found = jax.grad(loss)(jnp.ones(2, "float32"), *single)
    expected = jax.grad(loss)(jnp.ones(2), *(x.astype(float) for x in single))
    np.testing.assert_allclose(found, expected, rtol=1.5e-5)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [ag.RBF, ag.Matern32])
def test_boxes_in_several_dimensions_are_products_of_intervals(dim, kind):
    import oracles

    rng = np.random.default_rng(dim)
    width = 10.0 ** rng.uniform(-9, 3, (2, 3, dim))
    low = rng.uniform(-1, 1, (2, 3, dim)) - width / 2
    scale = rng.uniform(0.5, 2.0, dim)
    A, B = (ag.Boxes(low[i], low[i] + width[i], measure="mean") for i in range(2))
    extra = {} if kind is ag.RBF else {"form": "product"}
    got = np.asarray(ag.cov(kind(scale, **extra), A, B))
    for i in range(3):
        for j in range(3):
            parts = (
                oracles.potential_mean_and_gradient(
                    kind.__name__,
                    abs(A.center[i, k] - B.center[j, k]) / scale[k],
                    A.width[i, k] / scale[k],
                    B.width[j, k] / scale[k],
                )[0]
                for k in range(dim)
            )
            assert got[i, j] == pytest.approx(np.prod(list(parts)), rel=1e-9)


def test_explain_names_the_rule():
    text = ag.explain(ag.RBF() + ag.Matern32(), BOXES, POINTS)
    assert text.splitlines() == [
        "Boxes x Points: width in dimension 0, 1",
        "  RBF: closed form over boxes",
        "  Matern32: Gauss-Legendre quadrature, 8 nodes in each of 2 dimension(s) with width",
    ]
    assert "closed form" in ag.explain(ag.Matern32(form="product"), BOXES)
    assert ag.explain(ag.RBF(), POINTS).splitlines() == [
        "Points x Points: points only",
        "  RBF: value at points",
    ]


def test_wide_boxes_with_quadrature_are_called_out():
    bins = ag.Intervals([0.0, 60.0], [50.0, 90.0])
    with pytest.warns(UserWarning, match="integrated by quadrature, with an error of about"):
        ag.GP(ag.RationalQuadratic(ag.fixed(0.5), ag.fixed(1.0), ag.fixed(1.0))).fit(bins, [1.0, 2.0])
