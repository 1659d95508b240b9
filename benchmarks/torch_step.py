"""One SVI step, value and gradients, written the way one would without further thought: the opponents of `svi.py`.

    f ~ GP(c, k)      k(x, z) = σ² exp(-½ Σ_{j<18} (x_j - z_j)² / ℓ_j²) + τ² (1 + √3 r) e^{-√3 r}      r² = Σ_{j≥18} …
    q(f_i) = N(m_i, S_i)      from q(v) = N(mean, cholesky choleskyᵀ), with f(Z) = c + L v and L Lᵀ = k(Z, Z) + jitter

    bound = Σ_b y_b log Σ_{i in b} p_i e^{m_i} - Σ_i p_i e^{m_i + S_i / 2} - Σ_b log y_b! - KL(q(v) || N(0, I))

The first term is Jensen's, the cheapest there is: log Σ p e^f is convex in f, so its mean is at least its value at m.
`whitened=False` has q over f(Z) - c instead, which costs another triangular solve of all pixels. Differentiated are
mean, cholesky, the lengthscales (ARD), the variances and c, and with `inducing=True` the inducing points.

Every function of (data, m, dtype) returns a closure that runs one step; those of a model return (value, gradients). Run
as a script it compares them. PyTorch and GPyTorch are imported when asked for, and are never dependencies.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from malaria import COVARIATES, Data, make
from scipy.special import gammaln
from timing import show

jax.config.update("jax_enable_x64", True)

JITTER = {"float32": 1e-4, "float64": 1e-6}  # GPyTorch's
TINY = 1e-30  # squared distances stop here, and their gradient with them: that of the square root at zero is infinite
Step = Callable[[], tuple[Any, dict[str, Any]]]


def start(data: Data, m: int, dtype: Any = np.float64, seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters in natural units, away from any special value: what all steps are evaluated at."""
    rng = np.random.default_rng(seed)
    parameters = {
        "mean": 0.3 * rng.normal(size=m),
        "cholesky": 0.5 * np.eye(m) + 0.1 * np.tril(rng.normal(size=(m, m))) / math.sqrt(m),
        "lengthscale": rng.uniform(3.0, 6.0, COVARIATES),
        "variance": 0.5,
        "lengthscale_xy": np.array([1.2, 1.8]),
        "variance_xy": 0.7,
        "constant": -5.0,
        "inducing": data.X[np.sort(rng.choice(len(data.X), m, replace=False))],
    }
    return {name: np.asarray(value, dtype) for name, value in parameters.items()}


def plain_jax(data: Data, m: int, dtype: Any, *, whitened: bool = True, inducing: bool = False) -> Step:
    """Compiled JAX, differentiated through the triangular solves."""
    parameters = {name: jnp.asarray(value) for name, value in start(data, m, dtype).items()}
    Z = {} if inducing else {"inducing": parameters.pop("inducing")}
    X, population, y = (jnp.asarray(a, dtype) for a in (data.X, data.population, data.y))
    bag, bags = jnp.asarray(data.bag), len(data.y)
    jitter, constant = JITTER[np.dtype(dtype).name], gammaln(data.y + 1).sum()

    def squared(X, Z):
        centre = jnp.mean(Z, axis=0)
        X, Z = X - centre, Z - centre
        distances = jnp.sum(X**2, axis=1)[:, None] + jnp.sum(Z**2, axis=1) - 2.0 * X @ Z.T
        return jnp.maximum(distances, TINY)

    def covariance(p, X, Z):
        d = squared(X[:, :COVARIATES] / p["lengthscale"], Z[:, :COVARIATES] / p["lengthscale"])
        r = jnp.sqrt(3.0 * squared(X[:, COVARIATES:] / p["lengthscale_xy"], Z[:, COVARIATES:] / p["lengthscale_xy"]))
        return p["variance"] * jnp.exp(-0.5 * d) + p["variance_xy"] * (1.0 + r) * jnp.exp(-r)

    def bound(learned, fixed, X, population, bag, y):
        p = {**learned, **fixed}
        Z, C = p["inducing"], jnp.tril(p["cholesky"])
        Kzz = covariance(p, Z, Z).astype(float) + jitter * jnp.eye(m)
        L = jnp.linalg.cholesky(Kzz).astype(dtype)
        A = solve_triangular(L, covariance(p, X, Z).T, lower=True)
        variance = p["variance"] + p["variance_xy"] - jnp.sum(A**2, axis=0)
        if whitened:
            whitened_mean, whitened_C = p["mean"], C
        else:
            A = solve_triangular(L, A, lower=True, trans=1)
            whitened_mean, whitened_C = (solve_triangular(L, a, lower=True) for a in (p["mean"], C))
        mean = p["constant"] + A.T @ p["mean"]
        variance = variance + jnp.sum((C.T @ A) ** 2, axis=0)
        kl = 0.5 * (jnp.sum(whitened_C**2) + jnp.sum(whitened_mean**2) - m)
        kl = kl - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(whitened_C))))
        total = jax.ops.segment_sum(population * jnp.exp(mean), bag, bags, indices_are_sorted=True)
        return jnp.sum(y * jnp.log(total)) - jnp.sum(population * jnp.exp(mean + variance / 2)) - constant - kl

    step = jax.jit(jax.value_and_grad(bound))
    return lambda: step(parameters, Z, X, population, bag, y)


def plain_pytorch(data: Data, m: int, dtype: Any, *, whitened: bool = True, inducing: bool = False) -> Step:
    """PyTorch, differentiated through the triangular solves."""
    import torch

    p, learned, X, population, bag, y = _tensors(data, m, dtype, inducing)
    jitter, constant = JITTER[np.dtype(dtype).name], gammaln(data.y + 1).sum()
    solve = torch.linalg.solve_triangular

    def squared(X, Z):
        centre = Z.mean(0)
        X, Z = X - centre, Z - centre
        return ((X**2).sum(1)[:, None] + (Z**2).sum(1) - 2.0 * X @ Z.T).clamp_min(TINY)

    def covariance(X, Z):
        d = squared(X[:, :COVARIATES] / p["lengthscale"], Z[:, :COVARIATES] / p["lengthscale"])
        r = torch.sqrt(3.0 * squared(X[:, COVARIATES:] / p["lengthscale_xy"], Z[:, COVARIATES:] / p["lengthscale_xy"]))
        return p["variance"] * torch.exp(-0.5 * d) + p["variance_xy"] * (1.0 + r) * torch.exp(-r)

    def step():
        Z, C = p["inducing"], p["cholesky"].tril()
        Kzz = covariance(Z, Z).double() + jitter * torch.eye(m, dtype=torch.float64)
        L = torch.linalg.cholesky(Kzz).to(X.dtype)
        A = solve(L, covariance(X, Z).T, upper=False)
        variance = p["variance"] + p["variance_xy"] - (A**2).sum(0)
        if whitened:
            whitened_mean, whitened_C = p["mean"], C
        else:
            A = solve(L.T, A, upper=True)
            whitened_mean, whitened_C = solve(L, p["mean"][:, None], upper=False), solve(L, C, upper=False)
        mean = p["constant"] + A.T @ p["mean"]
        variance = variance + ((C.T @ A) ** 2).sum(0)
        kl = 0.5 * ((whitened_C**2).sum() + (whitened_mean**2).sum() - m)
        kl = kl - whitened_C.diagonal().abs().log().sum()
        value = _bags(mean, variance, population, bag, y) - constant - kl
        return value.detach(), dict(zip(learned, torch.autograd.grad(value, [p[name] for name in learned])))

    return step


def gpytorch_step(data: Data, m: int, dtype: Any, *, inducing: bool = False) -> Step:
    """GPyTorch's ApproximateGP with VariationalStrategy and its usual settings; q is whitened.

    It puts Z and X in one matrix whose covariance is lazy and evaluates the two blocks and the diagonal that it needs;
    factorises k(Z, Z) in double precision whatever the data; keeps that factor only until the next call in training;
    adds the jitter to the variances of the pixels too (taken off here, so that all have one objective). Since 1.15 the
    marginals have a derivative of their own, with two products of N x m x m: this is not plain autodiff any more.
    """
    import gpytorch
    import torch
    from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

    tensors, learned, X, population, bag, y = _tensors(data, m, dtype, inducing)
    jitter, constant = JITTER[np.dtype(dtype).name], gammaln(data.y + 1).sum()

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self):
            q = gpytorch.variational.CholeskyVariationalDistribution(m)
            Z = tensors["inducing"].detach()
            strategy = gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=inducing)
            super().__init__(strategy)
            self.mean = gpytorch.means.ConstantMean()
            covariates, xy = range(COVARIATES), range(COVARIATES, X.shape[1])
            self.rbf = ScaleKernel(RBFKernel(ard_num_dims=len(covariates), active_dims=tuple(covariates)))
            self.matern = ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=len(xy), active_dims=tuple(xy)))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), (self.rbf + self.matern)(x))

    model = Model().to(X.dtype).train()
    strategy = model.variational_strategy
    strategy.variational_params_initialized.fill_(1)  # or the first call draws q afresh
    q = strategy._variational_distribution
    q.variational_mean.data, q.chol_variational_covar.data = tensors["mean"].data, tensors["cholesky"].data
    model.mean.constant.data = tensors["constant"].data
    model.rbf.outputscale, model.matern.outputscale = tensors["variance"].detach(), tensors["variance_xy"].detach()
    model.rbf.base_kernel.lengthscale = tensors["lengthscale"].detach()
    model.matern.base_kernel.lengthscale = tensors["lengthscale_xy"].detach()
    positive = {  # GPyTorch learns the inverse softplus of these
        "lengthscale": model.rbf.base_kernel.raw_lengthscale,
        "variance": model.rbf.raw_outputscale,
        "lengthscale_xy": model.matern.base_kernel.raw_lengthscale,
        "variance_xy": model.matern.raw_outputscale,
    }
    raw = {
        "mean": q.variational_mean,
        "cholesky": q.chol_variational_covar,
        "constant": model.mean.constant,
        **positive,
    }
    if inducing:
        raw["inducing"] = strategy.inducing_points

    def step():
        marginals = model(X)
        value = (
            _bags(marginals.mean, marginals.variance - jitter, population, bag, y) - constant - strategy.kl_divergence()
        )
        gradients = dict(zip(learned, torch.autograd.grad(value, [raw[name] for name in learned])))
        for name, parameter in positive.items():
            gradients[name] = (gradients[name] / torch.sigmoid(parameter.detach())).reshape(tensors[name].shape)
        return value.detach(), gradients

    return step


def products(data: Data, m: int, dtype: Any) -> Callable[[], Any]:
    """What no step can avoid: K Q for the variances, and Kᵀ diag(g) K for their gradient."""
    rng = np.random.default_rng(0)
    K, Q, g = (
        jnp.asarray(rng.standard_normal(shape, np.float32), dtype)
        for shape in ((len(data.X), m), (m, m), (len(data.X), 1))
    )
    both = jax.jit(lambda K, Q, g: (K @ Q, K.T @ (g * K)))
    return lambda: both(K, Q, g)


def _tensors(data: Data, m: int, dtype: Any, inducing: bool) -> tuple:
    """Parameters, the names of those that are learned, and the data, as PyTorch tensors."""
    import torch

    parameters = start(data, m, dtype)
    learned = [name for name in parameters if inducing or name != "inducing"]
    tensors = {name: torch.tensor(value, requires_grad=name in learned) for name, value in parameters.items()}
    X, population, y = (torch.tensor(a.astype(dtype)) for a in (data.X, data.population, data.y))
    return tensors, learned, X, population, torch.tensor(data.bag.astype(np.int64)), y


def _bags(mean: Any, variance: Any, population: Any, bag: Any, y: Any) -> Any:
    """The expected log likelihood of all bags (its lower bound), without log y!."""
    total = mean.new_zeros(len(y)).index_add(0, bag, population * mean.exp())
    return (y * total.log()).sum() - (population * (mean + variance / 2).exp()).sum()


def compare(data: Data, m: int, dtype: Any, inducing: bool = True) -> list[list[str]]:
    """Rows of value and largest relative difference of a gradient from plain JAX's."""
    rows = []
    for whitened, steps in {
        True: {"plain JAX": plain_jax, "plain PyTorch": plain_pytorch, "GPyTorch": gpytorch_step},
        False: {"plain JAX, unwhitened": plain_jax, "plain PyTorch, unwhitened": plain_pytorch},
    }.items():
        reference = None
        for name, step in steps.items():
            kind = {} if step is gpytorch_step else {"whitened": whitened}
            value, gradients = step(data, m, dtype, inducing=inducing, **kind)()
            gradients = {key: np.asarray(gradient) for key, gradient in gradients.items()}
            reference = reference or (float(value), gradients)
            apart = {key: np.abs(gradients[key] - a).max() / np.abs(a).max() for key, a in reference[1].items()}
            worst = max(apart, key=apart.__getitem__)
            relative = abs(float(value) / reference[0] - 1)
            rows.append([name, f"{float(value):.9g}", f"{relative:.0e}", f"{apart[worst]:.0e} ({worst})"])
    return rows


if __name__ == "__main__":
    data = make(5_000)
    for dtype in (np.float64, np.float32):
        show([f"{dtype.__name__}, N = 5,000, m = 64", "bound", "apart", "gradients apart"], compare(data, 64, dtype))
