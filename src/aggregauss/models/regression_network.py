"""Several tasks whose mixing varies from place to place (Wilson et al. 2012, over supports)."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import kind_of
from aggregauss.inference.svi import SVI
from aggregauss.kernels.kernel import Kernel
from aggregauss.latent.coregionalisation import Coregionalised, Mixing
from aggregauss.likelihoods import JointLikelihood, Likelihood
from aggregauss.models.gp import a_scheme
from aggregauss.models.multi_task_posterior import MultiTaskPosterior
from aggregauss.models.several_tasks import SeveralTasks, TaskView
from aggregauss.parameters import param, parameters
from aggregauss.supports.nodes import at_nodes
from aggregauss.supports.support import Support

START = 0.2  # variance of the variation, relative to the weights


class RegressionNetwork(SeveralTasks):
    """f_t(x) = level_t + Σ_r W_tr(x) u_r(x): tasks that share functions in shares that vary (a GP regression network).

    W_tr(x) = w_tr + ‖w_t‖ g_tr(x), where every g_tr is a function with the kernel `varying`, whose variance is thus
    relative to the weights. Products are integrated over supports at the points of a quadrature rule. All else is as in
    `MultiTaskGP` with aggregation="latent"; inference is by `SVI`, with moments of f that are exact.

    >>> import aggregauss as ag, numpy as np
    >>> t = np.linspace(0.0, 6.0, 25)
    >>> model = ag.RegressionNetwork([ag.RBF(1.0)], {"a": ag.Gaussian(), "b": ag.Gaussian()}, varying=ag.RBF(5.0))
    >>> data = {"a": (ag.Points(t), np.sin(3 * t)), "b": (ag.Points(t), t * np.sin(3 * t))}
    >>> post = model.fit(data, inference=ag.SVI(inducing=6, optimise=False))
    >>> post.predict({"b": ag.Points([1.0, 5.0])})["b"].mean.shape
    (2,)
    """

    varying: Kernel

    def __init__(self, latents: Any, likelihoods: Mapping[str, Likelihood], *, varying: Any, rank: Any = 1):
        self._set(latents, likelihoods, rank, "latent")
        if not isinstance(varying, Kernel):
            raise TypeError(f'RegressionNetwork: "varying" must be a kernel, but got {kind_of(varying)}.')
        for task, likelihood in likelihoods.items():
            if isinstance(likelihood, JointLikelihood):
                raise TypeError(
                    f'RegressionNetwork: the likelihood of task "{task}" needs {likelihood.functions} functions. '
                    "Use MultiTaskGP for it."
                )
        open_ones = [p.path for p in parameters(varying) if p.role == "variance" and p.mark.start_from_data]
        self.varying = varying.replace({path: param(START) for path in open_ones})

    @property
    def kernel(self) -> Coregionalised:
        """The variation g_tr of every weight and the functions u_r are channels of their own, after those of tasks."""
        tasks, ranks = len(self.tasks), [m.rank for m in self.mixing]
        none = [Mixing(tasks, size) for size in (tasks * sum(ranks), *ranks)]
        empty = tuple(Mixing(m.channels, m.rank, np.zeros(m.weights.shape)) for m in none)
        return Coregionalised((self.varying, *self.latents), empty)

    @property
    def weights(self) -> Float[Array, "tasks functions"]:
        """w_tr."""
        return jnp.concatenate([m.matrix for m in self.mixing], axis=1)

    def of_task(self, task: int) -> "NetworkView":
        """The model of one task."""
        return NetworkView(self, task)

    def places(self, support: Support) -> Support:
        """Products of functions are evaluated at points."""
        return at_nodes(support)

    def fit(
        self,
        data: Mapping[str, Any],
        noise_variance: Mapping[str, Any] | None = None,
        *,
        counts: Mapping[str, Any] | None = None,
        variances: Mapping[str, Any] | None = None,
        inference: Any = None,
        seed: Any = 0,
        progress: bool = True,
    ) -> MultiTaskPosterior:
        """The posterior given `{task: (supports, y)}`, as in `MultiTaskGP.fit`."""
        scheme = a_scheme(inference) or SVI()
        if not isinstance(scheme, SVI):
            raise TypeError("RegressionNetwork: products of functions are not Gaussian. Use inference=SVI().")
        return self._fit(data, noise_variance, counts, variances, scheme, seed, progress)


class NetworkView(TaskView):
    """One task of a network, as inference and predictions see it."""

    def __init__(self, joint: SeveralTasks, number: int):
        self.joint, self.number, self.marks = joint, number, ()

    @property
    def varies(self) -> bool:
        """It does."""
        return True

    @property
    def weights(self) -> Float[Array, " functions"]:
        """w_t1, w_t2, ..."""
        return self.joint.weights[self.number]  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def level(self) -> Float[Array, ""]:
        """Of the task."""
        return self.joint.mean.values[self.number]

    @property
    def steps(self) -> list[int]:
        """From the task's own channel to those of its g_t1, g_t2, ... and of u_1, u_2, ..."""
        tasks, R = len(self.joint.tasks), len(self.weights)
        own = [tasks + self.number * R + r for r in range(R)]
        shared = [tasks + tasks * R + r for r in range(R)]
        return [channel - self.number for channel in own + shared]
