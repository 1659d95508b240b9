"""A kernel machine on explicit Nyström features, fitted by maximum a posteriori.

    f(x) = level + spread · (φ(x)ᵀβ + c),   φ(x) = K_zz^(-1/2) k_z(x),
    k(x, z) = scale · exp(-|x - z|² / (2 bandwidth²))

at landmarks z, with level and spread read off the responses once. So φ(x)ᵀφ(x') = k_z(x)ᵀ K_zz⁻¹ k_z(x') is the
Nyström approximation of k.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from sklearn.cluster import kmeans_plusplus

from aggregauss.baselines.estimator import LatentRegressor
from aggregauss.baselines.laplacian import median_bandwidth
from aggregauss.baselines.objective import Latent
from aggregauss.baselines.training import Trained
from aggregauss.checks import whole_number
from aggregauss.supports.support import Support

SMALLEST_EIGENVALUE = 1e-8  # of the kernel matrix of landmarks, whose diagonal is one


@jax.custom_jvp
def inverse_root(K: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """K^(-1/2) of a positive semidefinite matrix, with its eigenvalues clipped from below.

    Its derivative is taken by divided differences of λ^(-1/2), which stay finite where eigenvalues are equal.
    """
    values, vectors = jnp.linalg.eigh(K)
    return (vectors / jnp.sqrt(jnp.maximum(values, SMALLEST_EIGENVALUE))[None, :]) @ vectors.T


@inverse_root.defjvp
def _inverse_root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(primals[0])
    clipped = jnp.maximum(values, SMALLEST_EIGENVALUE)
    root = jnp.sqrt(clipped)
    a, b = values[:, None], values[None, :]
    apart = jnp.abs(a - b) > 1e-12
    both_free = ((a > SMALLEST_EIGENVALUE) & (b > SMALLEST_EIGENVALUE)).astype(values.dtype)
    slope = jnp.where(apart, (clipped[:, None] - clipped[None, :]) / jnp.where(apart, a - b, 1.0), both_free)
    differences = -slope / (root[:, None] * root[None, :] * (root[:, None] + root[None, :]))
    change = vectors @ (differences * (vectors.T @ tangents[0] @ vectors)) @ vectors.T
    return (vectors / root[None, :]) @ vectors.T, change


def rbf(x: Float[Array, "N d"], z: Float[Array, "m d"]) -> Float[Array, "N m"]:
    """exp(-|x - z|² / 2)."""
    squared = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(z**2, axis=1)[None, :] - 2 * x @ z.T
    return jnp.exp(-0.5 * jnp.maximum(squared, 0.0))


class NystromFunction(Latent):
    """level + spread · (φ(x)ᵀβ + c); landmarks, level and spread are not learned."""

    weights: Float[Array, " m"]
    intercept: Float[Array, ""]
    log_bandwidth: Float[Array, "1 k"]
    log_scale: Float[Array, ""]
    landmarks: Float[Array, "m d"]
    level: Float[Array, ""]
    spread: Float[Array, ""]

    def features(self, x: Float[Array, "N d"]) -> Float[Array, "N m"]:
        """φ(x)."""
        kernel, root = self._factors(x)
        return kernel @ root

    def __call__(self, x: Float[Array, "N d"]) -> Float[Array, " N"]:
        """f at each row of `x`."""
        level, spread = lax.stop_gradient((self.level, self.spread))
        kernel, root = self._factors(x)
        return level + spread * (kernel @ (root @ self.weights) + self.intercept)

    def _factors(self, x: Float[Array, "N d"]) -> tuple[Float[Array, "N m"], Float[Array, "m m"]]:
        bandwidth = jnp.exp(self.log_bandwidth)
        z = lax.stop_gradient(self.landmarks) / bandwidth
        return rbf(x / bandwidth, z), jnp.exp(self.log_scale / 2) * inverse_root(rbf(z, z))

    def squared_norm(self) -> Float[Array, ""]:
        """|β|²."""
        return jnp.sum(self.weights**2)


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class NystromMAP(LatentRegressor):
    """Maximum a posteriori kernel regression of bags' responses on Nyström features, kernel parameters included.

    >>> import numpy as np
    >>> import aggregauss as ag
    >>> from aggregauss.baselines import NystromMAP
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> bags = ag.Bags(x, bag=np.arange(40) // 4, weights=np.full(40, 5.0))
    >>> fitted = NystromMAP(landmarks=5, epochs=300).fit(bags, bags.integrate(np.exp(2 * x)))
    >>> bool(np.all(np.diff(fitted.predict(ag.Points([0.2, 0.5, 0.8]))) > 0))
    True

    `landmarks` are placed by the seeding of k-means++. `ard=True` learns one bandwidth for each covariate. The prior
    β ~ Normal(0, γ² I) is `l2` = 1 / (2γ²), so that 0.5 gives the subset of regressors. After `fit`: `landmarks_`,
    `bandwidth_` (for each covariate, in its units), `scale_`, `coef_`, and `tau_` under the normal likelihood. The
    other parameters are those of `LatentRegressor`.
    """

    landmarks: int = 30
    ard: bool = False
    l2: float = 0.5

    def _check(self) -> None:
        super()._check()
        whole_number(self.landmarks, "NystromMAP", "landmarks")

    def _check_against(self, support: Support) -> None:
        count = len(support.owner)
        if self.landmarks > count:
            raise ValueError(
                f'NystromMAP: "landmarks" must be at most the number of individuals, {count}, but got {self.landmarks}.'
            )

    def _start(self, x: np.ndarray, level: float, spread: float, rng: np.random.Generator) -> NystromFunction:
        landmarks, _ = kmeans_plusplus(x, self.landmarks, random_state=self.seed)
        width = x.shape[1] if self.ard else 1
        return NystromFunction(
            weights=jnp.asarray(rng.normal(0.0, np.sqrt(2 / self.landmarks), self.landmarks)),
            intercept=jnp.zeros(()),
            log_bandwidth=jnp.full((1, width), np.log(median_bandwidth(x, rng))),
            log_scale=jnp.zeros(()),
            landmarks=jnp.asarray(landmarks),
            level=jnp.asarray(level, float),
            spread=jnp.asarray(spread, float),
        )

    def _keep(self, trained: Trained) -> None:
        super()._keep(trained)
        f = self.latent_
        assert isinstance(f, NystromFunction)
        self.landmarks_ = np.asarray(f.landmarks) * self.covariate_sd_ + self.covariate_mean_
        self.bandwidth_ = np.exp(np.asarray(f.log_bandwidth))[0] * self.covariate_sd_
        self.scale_ = float(jnp.exp(f.log_scale))
        self.coef_ = np.asarray(f.weights)
