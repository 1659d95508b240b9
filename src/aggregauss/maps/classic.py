"""The model of R `disaggregation` (Nandi et al. 2023), with the same default priors:

    y_a ~ Poisson(Σ_i w_i exp(β₀ + Σ_j β_j x_ij + u(s_i) + v_a)),        v_a ~ N(0, τ²).

u is the Matern field of order one that its SPDE mesh approximates. Its range ρ and standard deviation σ have
penalised-complexity priors, P(ρ < a third of the map's diagonal) = 0.1 and P(σ > 1) = 0.1; β₀ ~ N(0, 10²) and
β_j ~ N(0, 0.5²) for covariates of standard deviation one. The effects of regions have P(τ > 1) = 0.1: the prior that
the R package asks for there never reaches its fit.
"""

from typing import Any, Literal

import numpy as np

from aggregauss.checks import as_matrix, whole_number
from aggregauss.inference.svi import SVI
from aggregauss.kernels import Matern1
from aggregauss.latent import Constant, LinearEffects
from aggregauss.likelihoods import Likelihood, Poisson
from aggregauss.models.gp import GP
from aggregauss.parameters import fixed, param
from aggregauss.priors import HalfNormal, RangePrior, SdPrior

NODES = 450  # of the field; the mesh of the R package's own example has 427
POOLED = 32  # individuals of a region while hyper-parameters are searched for
RARELY = 0.1
NEAR = 0.75  # every pixel has a node of a square grid within 0.71 spacings
NORMAL_TENTH = 1.6448536269514722  # |z| of a standard normal exceeds this with probability RARELY


def classic(
    names: Any,
    coordinates: Any,
    likelihood: Likelihood | None = None,
    *,
    slope_sd: float = 0.5,
    intercept_sd: float = 10.0,
    range_below: float | None = None,
    sd_above: float = 1.0,
    region_sd_above: float = 1.0,
) -> GP:
    """The model of inputs (covariates..., coordinates...), its priors in the units of those.

    `names` are those of the covariates; `coordinates`, shape (n, 2), show how large the map is. Fit it with the
    covariates standardised. `likelihood` defaults to Poisson counts with an effect of each region.

    >>> km = np.random.default_rng(0).uniform(0, 600, (60, 2))
    >>> model = classic(["rain", "altitude"], km)
    >>> model.kernel.active_dims, model.mean.names
    ((2, 3), ('rain', 'altitude'))
    """
    names = tuple(names)
    c, where = len(names), _where(coordinates)
    if range_below is None:
        range_below = float(np.linalg.norm(np.ptp(where, axis=0))) / 3 or 1.0
    field = Matern1(
        param(range_below / 4, prior=RangePrior(range_below, RARELY, dim=where.shape[1])),
        param(0.5 * sd_above**2, prior=SdPrior(sd_above, RARELY)),
        active_dims=range(c, c + where.shape[1]),
    )
    if likelihood is None:
        sd = param(0.3 * region_sd_above, prior=HalfNormal(region_sd_above / NORMAL_TENTH))
        likelihood = Poisson(region_effect=True, region_sd=sd)
    mean = Constant()
    if c:
        mean = LinearEffects(range(c), slope_sd, intercept_sd=intercept_sd, value=fixed(0.0), names=names)
    return GP(field, likelihood, mean=mean, aggregation="response")


def classic_inference(
    covariates: Any,
    coordinates: Any,
    *,
    nodes: int = NODES,
    pool: int | None = POOLED,
    search: Literal["bound", "totals"] = "totals",
) -> SVI:
    """Inducing points of the field on a regular grid over the map, and hyper-parameters from totals (under exp)."""
    grid = field_grid(coordinates, nodes)
    others = np.tile(np.mean(covariates, axis=0), (len(grid), 1))  # which the field does not see
    return SVI(inducing=np.column_stack([others, grid]), pool=pool, search=search)


def field_grid(coordinates: Any, nodes: int = NODES) -> np.ndarray:
    """At least `nodes` points of a square grid, those nearest to some pixel.

    >>> len(field_grid(np.random.default_rng(0).uniform(size=(500, 2)), nodes=40))
    40
    """
    from scipy.spatial import KDTree  # slow to import

    where = np.unique(_where(coordinates), axis=0)
    wanted = min(whole_number(nodes, "classic", "nodes"), len(where))
    tree, low, high = KDTree(where), where.min(axis=0), where.max(axis=0)
    spacing = 2.0 * float(np.prod(np.where(high > low, high - low, 1.0)) / wanted) ** (1 / where.shape[1])
    while True:
        axes = [np.arange(a - spacing / 2, b + spacing, spacing) for a, b in zip(low, high)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, where.shape[1])
        near = tree.query(grid)[0] < NEAR * spacing
        if near.sum() >= wanted:
            return grid[near]
        spacing *= 0.98


def _where(coordinates: Any) -> np.ndarray:
    where = as_matrix(coordinates, "classic", "coordinates")
    if len(np.unique(where[:1000], axis=0)) < 2:
        raise ValueError('classic: "coordinates" must have at least two different places: a field needs a map.')
    return where
