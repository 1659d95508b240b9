"""Conformance of supports: masses, slicing, joining, constants; and brute force over atoms."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import aggregauss as ag
from aggregauss.kernels.covariance import variances
from aggregauss.supports import simplices as geometry
from aggregauss.supports.placement import uniform_points
from aggregauss.supports.support import halved
from instances import BLOB, BOXES, POINTS, SQUARE_WITH_HOLE, SUPPORTS, TETRAHEDRA, TWO_PARTS

KERNEL = ag.RBF([0.6, 0.9], 1.2)


@pytest.fixture(params=SUPPORTS)
def support(request):
    return SUPPORTS[request.param]


def _brute_force(A, B):
    """W_A k(atoms, atoms) W_Bᵀ for points, written out."""
    scaled = (A.center[:, None] - B.center[None]) / np.array([0.6, 0.9])
    k = 1.2 * np.exp(-0.5 * (scaled**2).sum(-1)) * A.effective_weight[:, None] * B.effective_weight[None]
    out = np.zeros((len(A), len(B)))
    np.add.at(out, (A.owner[:, None], B.owner[None, :]), k)
    return out


def test_a_constant_integrates_to_the_mass_or_to_one(support):
    ones = support.integrate(np.ones(len(support.owner)))
    np.testing.assert_allclose(ones, support.mass if support.measure == "total" else 1.0)
    K = ag.cov(ag.ConstantKernel(1.0), support, POINTS)
    np.testing.assert_allclose(K, np.repeat(ones[:, None], len(POINTS), 1))


def test_slicing_commutes_with_covariance(support):
    rows = np.random.default_rng(0).permutation(len(support))[: max(1, len(support) - 1)]
    np.testing.assert_allclose(ag.cov(KERNEL, support[rows], BOXES), ag.cov(KERNEL, support, BOXES)[rows], rtol=1e-12)
    assert len(support[0]) == 1
    assert len(support[-2:]) == min(2, len(support))
    assert sum(len(row) for row in support) == len(support)


def test_joining_commutes_with_covariance(support):
    both = ag.concatenate([support, BOXES])
    expected = np.vstack([ag.cov(KERNEL, support, POINTS), ag.cov(KERNEL, BOXES, POINTS)])
    np.testing.assert_allclose(ag.cov(KERNEL, both, POINTS), expected, rtol=1e-12)


def test_a_mean_is_a_total_over_the_mass(support):
    total, mean = support.with_measure("total"), support.with_measure("mean")
    np.testing.assert_allclose(
        ag.cov(KERNEL, mean, POINTS), ag.cov(KERNEL, total, POINTS) / support.mass[:, None], rtol=1e-12
    )


def test_halving_changes_nothing_but_the_atoms(support):
    finer = halved(support)
    np.testing.assert_allclose(finer.mass, support.mass)
    np.testing.assert_allclose(ag.cov(KERNEL, finer, POINTS), ag.cov(KERNEL, support, POINTS), rtol=1e-10)


@pytest.mark.parametrize("name", ["bags", "bag-means", "many-atoms", "polygon-points"])
def test_tiles_and_pieces_agree_with_brute_force(name):
    A, B = SUPPORTS[name], SUPPORTS["many-atoms"]
    np.testing.assert_allclose(ag.cov(KERNEL, A, B), _brute_force(A, B), rtol=1e-10)
    np.testing.assert_allclose(ag.cov(KERNEL, A), _brute_force(A, A), rtol=1e-10)
    np.testing.assert_allclose(variances(KERNEL, A), np.diag(_brute_force(A, A)), rtol=1e-10)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(0, 10))
def test_ragged_bags_of_any_sizes_keep_their_weights(sizes, seed):
    from aggregauss.supports.layout import layout

    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    bags = ag.Bags(rng.normal(size=(len(owner), 1)), owner, weights=rng.uniform(0.1, 1, len(owner)))
    tiles = layout(bags)
    weight = np.asarray(tiles.weight).reshape(-1, tiles.weight.shape[2])
    piece_of = np.arange(len(bags)) if tiles.owner is None else np.asarray(tiles.owner)
    np.testing.assert_allclose(np.bincount(piece_of, weight.sum(1)[: len(piece_of)]), bags.mass)
    assert weight.size <= 3 * len(owner) + 3 * tiles.weight.shape[2] * tiles.tiles


def test_many_points_run_in_tiles():
    rng = np.random.default_rng(0)
    A, B = ag.Points(rng.normal(size=(1500, 2))), ag.Points(rng.normal(size=(2600, 2)))
    np.testing.assert_allclose(ag.cov(KERNEL, A, B), _brute_force(A, B), rtol=1e-10)
    np.testing.assert_allclose(ag.cov(KERNEL, A), _brute_force(A, A), rtol=1e-10)


@pytest.mark.parametrize("method", ["boxes", "centroids", "uniform", "sobol"])
def test_polygons_have_their_exact_area(method):
    shapes = [SQUARE_WITH_HOLE, TWO_PARTS, BLOB]
    support = ag.Polygons(shapes, method=method, atoms=10)
    np.testing.assert_allclose(support.mass, shapely.area(shapes), rtol=1e-12)
    assert (support.atom_counts <= 20).all()


@pytest.mark.parametrize("method", ["boxes", "centroids"])
def test_tilings_integrate_linear_functions_exactly(method):
    shapes = [SQUARE_WITH_HOLE, TWO_PARTS, BLOB]
    support = ag.Polygons(shapes, method=method, atoms=7, measure="mean")
    centroids = np.array([(g.centroid.x, g.centroid.y) for g in shapes])
    np.testing.assert_allclose(support.integrate(support.center), centroids, atol=1e-12)


def test_box_tilings_integrate_squares_of_coordinates_exactly():
    triangle = shapely.Polygon([(0, 0), (1, 0), (0, 1)])
    support = ag.Polygons([triangle], atoms=5)
    np.testing.assert_allclose(support.integrate(support.center**2 + support.width**2 / 12), 1 / 12, atol=1e-13)


def test_rectangular_shapes_need_few_boxes():
    ell = shapely.box(0, 0, 3, 1) | shapely.box(0, 0, 1, 3)
    support = ag.Polygons([shapely.box(1, 2, 4, 3), ell], atoms=64)
    assert support.atom_counts[0] == 1
    np.testing.assert_allclose(support[0].width, [[3.0, 1.0]])


@pytest.mark.slow
def test_more_boxes_are_more_accurate():
    def covariance(atoms, method="boxes"):
        return np.asarray(ag.cov(KERNEL, ag.Polygons([BLOB, TWO_PARTS], method=method, atoms=atoms)))

    exact = covariance(300)
    errors = [np.abs(covariance(atoms) - exact).max() / exact.max() for atoms in (4, 16, 64)]
    assert errors[0] > 5 * errors[1] > 25 * errors[2]
    assert errors[2] < 1e-4
    for method in ("centroids", "sobol", "uniform"):  # a box is worth more than three points
        assert np.abs(covariance(48, method) - exact).max() / exact.max() > 3 * errors[1]


def test_polygons_agree_with_a_fine_grid_of_points():
    x = np.linspace(-1, 2, 1201)[:-1] + 1.5 / 1200
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    shapes = [SQUARE_WITH_HOLE, TWO_PARTS]
    inside = [grid[shapely.contains_xy(g, grid)] for g in shapes]
    density = [
        np.exp(-0.5 * (((p - [0.3, 0.4]) / [0.6, 0.9]) ** 2).sum(1)).mean() * g.area for p, g in zip(inside, shapes)
    ]
    got = np.asarray(ag.cov(ag.RBF([0.6, 0.9], 1.0), ag.Polygons(shapes, atoms=64), ag.Points([[0.3, 0.4]])))[:, 0]
    np.testing.assert_allclose(got, density, rtol=2e-3)


@given(st.integers(1, 5), st.integers(0, 1000))
def test_a_cut_keeps_volume_and_centroid_and_separates(dim, seed):
    rng = np.random.default_rng(seed)
    simplices, axis, at = rng.normal(size=(20, dim + 1, dim)), rng.integers(0, dim, 20), rng.normal(size=20)
    pieces, origin, upper = geometry.cut(simplices, axis, at)
    size = geometry.volume(pieces)
    np.testing.assert_allclose(np.bincount(origin, size, minlength=20), geometry.volume(simplices), atol=1e-12)
    mean = np.stack(
        [np.bincount(origin, size * geometry.moments(pieces)[0][:, k], minlength=20) for k in range(dim)], 1
    )
    np.testing.assert_allclose(mean, geometry.volume(simplices)[:, None] * geometry.moments(simplices)[0], atol=1e-11)
    height = np.take_along_axis(pieces, axis[origin][:, None, None], 2)[:, :, 0] - at[origin][:, None]
    assert np.where(upper[:, None], height, -height).min() > -1e-12


def test_random_points_in_a_simplex_are_uniform():
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(1, 4, 3))
    points = geometry.map_unit_cube(np.repeat(corners, 200_000, 0), rng.random((200_000, 3)))
    barycentric = np.linalg.solve(np.vstack([corners[0].T, np.ones(4)]), np.vstack([points.T, np.ones(200_000)]))
    assert barycentric.min() > -1e-12
    np.testing.assert_allclose(barycentric.mean(1), 0.25, atol=2e-3)  # Dirichlet(1, 1, 1, 1)
    np.testing.assert_allclose(barycentric.var(1), 3 / 80, atol=5e-4)


def test_random_points_are_dealt_to_simplices_by_volume():
    rng = np.random.default_rng(0)
    simplices, owner = rng.random((20, 3, 2)), np.repeat([0, 1, 2], [12, 1, 7])
    simplices[:, :, 0] += np.arange(20)[:, None]  # simplex i lies between i and i + 1
    size = geometry.volume(simplices)
    expected = 7 * size / np.bincount(owner, size)[owner]
    numbers = []
    for seed in range(2000):
        points, home = uniform_points(simplices, owner, 7, seed)
        np.testing.assert_array_equal(np.bincount(home), 7)
        numbers.append(np.bincount(points[:, 0].astype(int), minlength=20))
    assert (np.floor(expected + 1e-9) <= np.min(numbers, 0)).all()
    assert (np.max(numbers, 0) <= np.ceil(expected - 1e-9)).all()
    np.testing.assert_allclose(np.mean(numbers, 0), expected, atol=0.05)


def test_polytopes_in_three_dimensions():
    support = ag.Polytopes([TETRAHEDRA], atoms=200)
    np.testing.assert_allclose(support.mass, 1 / 6 + 1 / 3)
    uniform = ag.Polytopes([TETRAHEDRA], method="sobol", atoms=4096)
    kernel, at = ag.RBF(0.5), ag.Points([[0.2, 0.3, 0.4]])
    np.testing.assert_allclose(ag.cov(kernel, support, at), ag.cov(kernel, uniform, at), rtol=5e-3)


def test_product_pairs_every_place_with_every_time():
    space, time = SUPPORTS["bags"], ag.Intervals([0.0, 1.0, 2.0], [1.0, 2.0, 4.0], measure="mean")
    both = ag.Product(space, time)
    kernel = ag.RBF(0.7, active_dims=[0, 1]) * ag.Matern32(1.1, active_dims=[2])
    expected = np.kron(ag.cov(ag.RBF(0.7), space), ag.cov(ag.Matern32(1.1), time))
    np.testing.assert_allclose(ag.cov(kernel, both), expected, rtol=1e-10)


def test_bags_keep_their_names_and_accept_an_order():
    X, names = np.arange(4.0), np.array(["b", "a", "b", "c"])
    assert ag.Bags(X, names).labels.tolist() == ["a", "b", "c"]
    ordered = ag.Bags(X, names, labels=["c", "b", "a"])
    assert ordered.labels.tolist() == ["c", "b", "a"]
    np.testing.assert_allclose(ordered.integrate(ordered.center)[:, 0], [3.0, 2.0, 1.0])
    assert ordered[[1]].labels.tolist() == ["b"]


def test_geoseries_keep_their_index():
    import geopandas as gpd

    series = gpd.GeoSeries([BLOB, TWO_PARTS], index=["x", "y"], crs=27700)
    assert ag.Polygons(series).labels.tolist() == ["x", "y"]
    assert ag.Polygons(gpd.GeoDataFrame(geometry=series)).labels.tolist() == ["x", "y"]
