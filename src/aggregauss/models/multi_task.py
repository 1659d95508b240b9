"""Several tasks, each over its own supports, from a few shared functions."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import one_of, whole_number
from aggregauss.inference.collapsed import Collapsed
from aggregauss.inference.data import Data, Observations, observe
from aggregauss.inference.exact import Exact
from aggregauss.inference.landmarks import landmarks
from aggregauss.inference.svi import SVI
from aggregauss.kernels.kernel import Kernel
from aggregauss.latent.coregionalisation import Coregionalised, Levels, Mixing, with_channel, without_channel
from aggregauss.likelihoods import Gaussian, JointLikelihood, Likelihood
from aggregauss.models.gp import check_task
from aggregauss.models.multi_task_posterior import MultiTaskPosterior
from aggregauss.parameters import Parametric, fixed, parameters
from aggregauss.supports.support import Support, concatenate


class MultiTaskGP(Parametric):
    """f_t = level_t + Σ_q Σ_r W_q[t, r] u_qr: tasks that share Q independent functions (coregionalisation).

    `latents` are the kernels of the functions, `likelihoods` what is observed of each task, `rank` how many functions
    there are of each kernel (one number, or one for each kernel). Variances of the kernels are one unless they are
    given, because the mixing has the units. Every task has supports of its own, of any kind; `aggregation`, one for all
    or `{task: ...}`, is as in `GP`.

    >>> import aggregauss as ag, numpy as np
    >>> t = np.linspace(0.0, 6.0, 25)
    >>> coarse, fine = ag.Intervals([0, 2, 4], [2, 4, 6], measure="mean"), ag.Points(t)
    >>> model = ag.MultiTaskGP([ag.RBF(1.0)], {"filter": ag.Gaussian(), "sensor": ag.Gaussian()})
    >>> post = model.fit({"filter": (coarse, [1.4, -0.2, -1.2]), "sensor": (fine, 3 * np.sin(t))})
    >>> post.predict({"filter": ag.Points([1.0, 5.0])})["filter"].mean.shape
    (2,)
    """

    latents: tuple[Kernel, ...]
    mixing: tuple[Mixing, ...]
    mean: Levels
    likelihoods: tuple[Likelihood, ...]
    tasks: tuple[str, ...] = eqx.field(static=True)
    aggregation: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        latents: Any,
        likelihoods: Mapping[str, Likelihood],
        *,
        rank: Any = 1,
        aggregation: str | Mapping[str, str] = "latent",
    ):
        kernels = list(latents) if isinstance(latents, list | tuple) else [latents]
        if not kernels:
            raise ValueError('MultiTaskGP: "latents" is empty. Give at least one kernel, such as [RBF()].')
        for kernel in kernels:
            if not isinstance(kernel, Kernel):
                raise TypeError(f'MultiTaskGP: "latents" must be kernels, but got {type(kernel).__name__}.')
        if not isinstance(likelihoods, Mapping) or not likelihoods:
            raise TypeError('MultiTaskGP: "likelihoods" must be a dictionary with a likelihood for each task.')
        for task, likelihood in likelihoods.items():
            if not isinstance(likelihood, Likelihood):
                raise TypeError(
                    f'MultiTaskGP: the likelihood of task "{task}" must be one such as Gaussian(), '
                    f"but is {type(likelihood).__name__}."
                )
        ranks = [rank] * len(kernels) if np.ndim(rank) == 0 else list(rank)
        if len(ranks) != len(kernels):
            raise ValueError(
                f'MultiTaskGP: "rank" must be one number or {len(kernels)}, one for each kernel, but has {len(ranks)}.'
            )
        channels = sum(likelihood.functions for likelihood in likelihoods.values())
        ranks = [whole_number(r, "MultiTaskGP", "rank") for r in ranks]
        if max(ranks) > channels:
            raise ValueError(
                f'MultiTaskGP: "rank" must be at most {channels}, the number of functions that are mixed, but is '
                f"{max(ranks)}. Give more kernels instead."
            )
        self.latents = tuple(_unit_variance(kernel) for kernel in kernels)
        self.mixing = tuple(Mixing(channels, r) for r in ranks)
        self.mean = Levels(channels)
        self.likelihoods = tuple(likelihoods.values())
        self.tasks = tuple(str(task) for task in likelihoods)
        given = dict.fromkeys(self.tasks, aggregation) if isinstance(aggregation, str) else aggregation
        self._name_tasks(given, "aggregation")
        each = [given.get(task, "latent") for task in self.tasks]
        self.aggregation = tuple(one_of(a, ("latent", "response"), "MultiTaskGP", "aggregation") for a in each)
        for task, likelihood, how in zip(self.tasks, self.likelihoods, self.aggregation):
            if isinstance(likelihood, JointLikelihood) and how == "response":
                raise ValueError(
                    f'MultiTaskGP: the functions of task "{task}" are averaged themselves. '
                    'Use aggregation="latent" for it.'
                )
        self.marks = ()

    @property
    def kernel(self) -> Coregionalised:
        """The covariance of all tasks; inputs have the number of the task as their last column."""
        return Coregionalised(self.latents, self.mixing)

    @property
    def constraint(self) -> None:
        """None is known for several tasks."""
        return None

    @property
    def coregionalisation(self) -> tuple[np.ndarray, ...]:
        """B_q = W_q W_qᵀ of every kernel."""
        return tuple(np.asarray(m.matrix @ m.matrix.T) for m in self.mixing)

    @property
    def channels(self) -> dict[str, range]:
        """The functions of each task: one, or as many as its likelihood has."""
        ends = np.cumsum([likelihood.functions for likelihood in self.likelihoods]).tolist()
        return {t: range(end - g.functions, end) for t, g, end in zip(self.tasks, self.likelihoods, ends)}

    def parameter_sizes(self) -> dict[str, np.ndarray]:
        """Weights and levels are as large as their task's function varies."""
        W = np.concatenate([np.asarray(m.matrix) for m in self.mixing], axis=1)
        size = np.linalg.norm(W, axis=1)
        size = np.where(size > 0, size, 1.0)
        own = {f"mixing[{q}].weights": size[m.entries[0]] for q, m in enumerate(self.mixing)}
        return {"mean.values": size, **own}

    def of_task(self, task: int) -> "TaskView":
        """The model of one task."""
        return TaskView(self, task)

    def places(self, support: Support) -> Support:
        """The supports as inference needs them."""
        return support

    def noise(self, data: Data) -> Float[Array, " n"]:
        """Variance of each observation under Gaussian noise."""
        each = jnp.stack([g.noise(data.scale, data.noise_variance) for g in self.likelihoods])  # pyright: ignore
        return each[data.task, jnp.arange(len(data.task))]

    def inducing(self, wanted: Any, support: Support, seed: int) -> Support:
        """The same supports for every function u_qr, which is the channel in their last column."""
        places = landmarks(wanted, without_channel(support), seed)
        first, functions = self.kernel.channels, self.kernel.functions
        return concatenate([with_channel(places, first + j) for j in range(functions)])

    def fit(
        self,
        data: Mapping[str, Any],
        noise_variance: Mapping[str, Any] | None = None,
        *,
        counts: Mapping[str, Any] | None = None,
        inference: Exact | Collapsed | SVI | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> MultiTaskPosterior:
        """The posterior given `{task: (supports, y)}`; the model itself is left unchanged.

        `noise_variance`, for the tasks that it names, is known noise beside what a Gaussian likelihood learns; `counts`
        are numbers of trials. `inference` defaults to `Exact(integrate=True)` if all noise is Gaussian, else to
        `SVI()`.
        """
        observations = self._observe(data, noise_variance or {}, counts or {})
        gaussian = all(isinstance(g, Gaussian) for g in self.likelihoods)
        scheme = inference if inference is not None else Exact(integrate=True) if gaussian else SVI()
        return MultiTaskPosterior(scheme.fit(self, observations, seed, progress))

    def _observe(self, data: Mapping[str, Any], noise: Mapping[str, Any], counts: Mapping[str, Any]) -> Observations:
        for given, name in ((data, "data"), (noise, "noise_variance"), (counts, "counts")):
            self._name_tasks(given, name)
        if missing := [task for task in self.tasks if task not in data]:
            raise ValueError(f'fit: "data" must have every task of the model, but lacks "{missing[0]}".')
        parts = []
        for number, task in enumerate(self.tasks):
            if not isinstance(data[task], tuple | list) or len(data[task]) != 2:
                raise TypeError(f'fit: the data of task "{task}" must be a pair (supports, y).')
            support, y = data[task]
            one = observe(support, y, noise.get(task), counts.get(task))
            one = dataclasses.replace(one, support=self.places(one.support))
            check_task(one, self.likelihoods[number], self.aggregation[number])
            parts.append(one)
        dims = {task: part.support.dim for task, part in zip(self.tasks, parts)}
        if len(set(dims.values())) > 1:
            raise ValueError(
                f"fit: the supports of all tasks must have the same number of dimensions, but have {dims}."
            )
        for kernel in self.latents:
            kernel.check_dim(parts[0].support.dim)
        return Observations(
            concatenate([with_channel(part.support, self.channels[t][0]) for t, part in zip(self.tasks, parts)]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.noise_variance for part in parts]),
            np.concatenate([np.ones(len(part.y)) if part.counts is None else part.counts for part in parts]),
            np.repeat(np.arange(len(parts)), [len(part.y) for part in parts]),
        )

    def _name_tasks(self, given: Mapping[str, Any], name: str) -> None:
        unknown = [task for task in given if task not in self.tasks]
        if unknown:
            listed = ", ".join(f'"{task}"' for task in self.tasks)
            raise KeyError(f'"{name}" names the task "{unknown[0]}", but the tasks are {listed}.')


class TaskView(Parametric):
    """One task of a model, as what predicts it sees it."""

    joint: MultiTaskGP
    number: int = eqx.field(static=True)

    def __init__(self, joint: MultiTaskGP, number: int):
        self.joint, self.number, self.marks = joint, number, ()

    kernel = property(lambda self: self.joint.kernel)
    mean = property(lambda self: self.joint.mean)
    likelihood = property(lambda self: self.joint.likelihoods[self.number])
    aggregation = property(lambda self: self.joint.aggregation[self.number])
    constraint = None


def _unit_variance(kernel: Kernel) -> Kernel:
    """A variance that is left open is one: the mixing has the units."""
    open_ones = [p.path for p in parameters(kernel) if p.role == "variance" and p.mark.start_from_data]
    return kernel.replace({path: fixed(1.0) for path in open_ones}) if len(open_ones) == 1 else kernel
