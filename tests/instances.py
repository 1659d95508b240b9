"""One instance of everything: a new part is tested by joining a list."""

import numpy as np
import shapely

import aggregauss as ag

RNG = np.random.default_rng(7)

# On two dimensions. The second entry is how well covariances over boxes are known: None for closed forms.
KERNELS = {
    "rbf": (ag.RBF(0.7, 1.3), None),
    "rbf-ard": (ag.RBF([0.5, 1.5], 0.8), None),
    "rbf-one-dim": (ag.RBF(0.6, active_dims=[1]), None),
    "matern12-product": (ag.Matern12(0.8, 1.1, form="product"), None),
    "matern32-product": (ag.Matern32([0.5, 2.0], form="product"), None),
    "matern52-product": (ag.Matern52(0.9, form="product"), None),
    "matern32-one-dim": (ag.Matern32(0.9, active_dims=[0]), None),
    "matern1": (ag.Matern1([1.0, 2.0]), 5e-3),
    "matern12-isotropic": (ag.Matern12(1.5), 2e-2),
    "matern32-isotropic": (ag.Matern32([1.0, 2.0]), 2e-3),
    "matern52-isotropic": (ag.Matern52(1.5), 1e-3),
    "rational-quadratic": (ag.RationalQuadratic(0.9, alpha=0.7), 1e-4),
    "periodic": (ag.Periodic(0.6, period=1.7), None),
    "cosine": (ag.Cosine([0.4, 0.9]), None),
    "linear": (ag.Linear([0.5, 2.0], center=[0.3, -0.2]), None),
    "polynomial": (ag.Polynomial(3, variance=0.4, offset=0.7), None),
    "constant": (ag.ConstantKernel(1.4), None),
    "white": (ag.White(0.9), None),
    "sum": (ag.RBF(0.7) + ag.Linear(0.3) + 0.5 * ag.Matern32(1.1, form="product"), None),
    "product": (2.0 * ag.RBF(0.8, active_dims=[0]) * ag.Matern12(0.5, active_dims=[1]), None),
    "product-of-sum": (
        (ag.RBF(0.8, active_dims=[0]) + ag.ConstantKernel(0.2)) * ag.Cosine(0.5, active_dims=[1]),
        None,
    ),
    "product-shared-dim": (ag.RBF(1.5) * ag.Cosine(0.8), 1e-4),
}

SQUARE_WITH_HOLE = shapely.box(0, 0, 2, 2) - shapely.box(0.5, 0.5, 1, 1.5)
TWO_PARTS = shapely.MultiPolygon([shapely.box(-1, 0, -0.4, 0.5), shapely.Polygon([(-1, 1), (-0.2, 1), (-0.6, 1.9)])])
BLOB = shapely.Point(1, -1).buffer(0.8)
TETRAHEDRA = np.array(
    [[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]], float
)


def _bags(sizes, measure="total"):
    owner = np.repeat(np.arange(len(sizes)), sizes)
    X = RNG.normal(size=(len(owner), 2)) * 0.3 + RNG.normal(size=(len(sizes), 2))[owner]
    return ag.Bags(X, owner, weights=RNG.uniform(0.5, 2.0, len(owner)), measure=measure)


_lo = RNG.uniform(-1.5, 1.0, (6, 2))
BOXES = ag.Boxes(_lo, _lo + RNG.uniform(0.1, 1.0, (6, 2)))
POINTS = ag.Points(RNG.uniform(-1.5, 1.5, (5, 2)))

SUPPORTS = {
    "points": POINTS,
    "boxes": BOXES,
    "box-means": BOXES.with_measure("mean"),
    "flat-boxes": ag.Boxes([[0.0, 0.3], [1.0, 0.3]], [[0.5, 0.3], [1.5, 0.3]]),
    "bags": _bags([3, 1, 5, 2]),
    "bag-means": _bags([2, 7, 4], "mean"),
    "many-atoms": _bags([700, 3, 1300, 40]),
    "polygons": ag.Polygons([SQUARE_WITH_HOLE, TWO_PARTS, BLOB], atoms=12),
    "polygon-points": ag.Polygons([SQUARE_WITH_HOLE, BLOB], method="sobol", atoms=9),
    "polygon-uniform": ag.Polygons([SQUARE_WITH_HOLE, BLOB], method="uniform", atoms=9),
    "polytopes": ag.Polytopes([TETRAHEDRA[:, :, :2][:1, :3], TETRAHEDRA[1:, :3, :2]], atoms=6),
    "product": ag.Product(
        ag.Intervals([0.0, 1.0], [1.0, 1.5], measure="mean"),
        ag.Bags([[0.1], [0.4], [0.9]], [0, 0, 1], measure="total"),
    ),
    "mixed": ag.concatenate([POINTS[:2], BOXES[:2], BOXES[2:4].with_measure("mean")]),
}

LIKELIHOODS = {
    "gaussian": ag.Gaussian(0.3),
    "gaussian-individual": ag.Gaussian(0.3, per="individual"),
    "laplace": ag.LaplaceNoise(0.7, 0.2),
    "poisson-exp": ag.Poisson(),
    "poisson-square": ag.Poisson("square"),
    "poisson-region": ag.Poisson(region_effect=True, region_sd=0.6),
    "negative-binomial": ag.NegativeBinomial(3.0),
    "binomial-logit": ag.Binomial(),
    "binomial-probit": ag.Binomial("probit"),
    "bernoulli": ag.Bernoulli(),
    "gamma": ag.GammaResponse(2.5),
    "exponential": ag.Exponential(),
}
