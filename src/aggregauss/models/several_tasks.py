"""What models of several tasks share: shared functions and their mixing, data by task, and inducing variables."""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.checks import as_seed, kind_of, of_task, one_of, whole_number
from aggregauss.inference.data import Data, Observations, observe
from aggregauss.inference.landmarks import landmarks
from aggregauss.kernels.kernel import Kernel
from aggregauss.kernels.scales import warn_of_scales
from aggregauss.latent.coregionalisation import Coregionalised, Levels, Mixing, with_channel, without_channel
from aggregauss.likelihoods import JointLikelihood, Likelihood, SampleQuasi
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.models.gp import taken_by, warn_of_contradictions
from aggregauss.models.multi_task_posterior import MultiTaskPosterior
from aggregauss.parameters import Parametric, fixed, parameters
from aggregauss.supports.support import Support, concatenate


class SeveralTasks(Parametric):
    """Tasks whose functions are mixed from functions u_qr, each with supports and a likelihood of its own."""

    latents: tuple[Kernel, ...]
    mixing: tuple[Mixing, ...]
    mean: Levels
    likelihoods: tuple[Likelihood, ...]
    tasks: tuple[str, ...] = eqx.field(static=True)
    aggregation: tuple[str, ...] = eqx.field(static=True)

    def _set(self, latents: Any, likelihoods: Any, rank: Any, aggregation: str | Mapping[str, str]) -> None:
        kernels = _kernels(latents, type(self).__name__)
        given = _likelihoods(likelihoods, type(self).__name__)
        channels = sum(likelihood.functions for likelihood in given.values())
        self.latents = tuple(_unit_variance(kernel) for kernel in kernels)
        self.mixing = tuple(Mixing(channels, r) for r in _ranks(rank, len(kernels), channels, type(self).__name__))
        self.mean = Levels(channels)
        self.likelihoods, self.tasks = tuple(given.values()), tuple(given)
        self.aggregation = self._aggregation(aggregation)
        self.marks = ()

    def _aggregation(self, given: str | Mapping[str, str]) -> tuple[str, ...]:
        who = type(self).__name__
        each = dict.fromkeys(self.tasks, given) if isinstance(given, str) else given
        self._name_tasks(each, who, "aggregation")
        ways = [one_of(each.get(t, "latent"), ("latent", "response"), who, "aggregation") for t in self.tasks]
        for task, likelihood, how in zip(self.tasks, self.likelihoods, ways):
            if isinstance(likelihood, JointLikelihood) and how == "response":
                raise ValueError(
                    f'{who}: the functions of task "{task}" are averaged themselves. Use aggregation="latent" for it.'
                )
        return tuple(ways)

    @property
    @abc.abstractmethod
    def kernel(self) -> Coregionalised:
        """The covariance of all functions; inputs have the number of the function as their last column."""

    @abc.abstractmethod
    def of_task(self, task: int) -> "TaskView":
        """The model of one task."""

    @abc.abstractmethod
    def places(self, support: Support) -> Support:
        """The supports as inference needs them."""

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

    def noise(self, data: Data) -> Float[Array, " n"]:
        """Variance of each observation under Gaussian noise."""
        return self._by_task(data, [g.noise for g in self.likelihoods])  # pyright: ignore

    def within(self, data: Data) -> Float[Array, " n"]:
        """What the scatter within summaries adds to the log evidence."""
        return self._by_task(data, [g.within for g in self.likelihoods])  # pyright: ignore

    def _by_task(self, data: Data, rules: list[Callable[[Seen], Array]]) -> Float[Array, " n"]:
        """Each task's rule on its own rows; it sees a harmless zero in place of what others observe."""
        own = [data.task == t for t in range(len(rules))]
        each = [rule(data.seen._replace(y=jnp.where(rows, data.seen.y, 0.0))) for rule, rows in zip(rules, own)]
        return sum((jnp.where(rows, x, 0.0) for rows, x in zip(own, each)), jnp.zeros_like(data.seen.y))

    def inducing(self, wanted: Any, support: Support, seed: int) -> Support:
        """The same supports for every function u_qr, which is the channel in their last column."""
        places = landmarks(wanted, without_channel(support), seed)
        first, functions = self.kernel.channels, self.kernel.functions
        return concatenate([with_channel(places, first + j) for j in range(functions)])

    def _fit(
        self,
        data: Mapping[str, Any],
        noise_variance: Mapping[str, Any] | None,
        counts: Mapping[str, Any] | None,
        variances: Mapping[str, Any] | None,
        scheme: Any,
        seed: Any,
        progress: bool,
    ) -> MultiTaskPosterior:
        known = {"noise_variance": noise_variance or {}, "counts": counts or {}, "variances": variances or {}}
        observations = self._observe(data, known)
        post = scheme.fit(self, observations, as_seed(seed), progress)
        for number, (task, likelihood) in enumerate(zip(self.tasks, post.model.likelihoods)):
            if isinstance(likelihood, SampleQuasi):
                own = observations[observations.task == number]
                warn_of_contradictions(likelihood, own, f' of task "{task}"')
        return MultiTaskPosterior(post)

    def _observe(self, data: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> Observations:
        for name, given in {"data": data, **known}.items():
            self._name_tasks(given, "fit", name)
        if missing := [task for task in self.tasks if task not in data]:
            raise ValueError(
                f'fit: "data" must have every task of the model, but lacks "{missing[0]}". Give its observations, or '
                "leave its likelihood out."
            )
        parts = [self._of_one(t, data[t], [given.get(t) for given in known.values()]) for t in self.tasks]
        dims = {task: part.support.dim for task, part in zip(self.tasks, parts)}
        if len(set(dims.values())) > 1:
            raise ValueError(
                f"fit: the supports of all tasks must have the same number of dimensions, but have {dims}."
            )
        everywhere = concatenate([part.support for part in parts])
        for kernel in self.latents:
            kernel.check_dim(everywhere.dim)
        warn_of_scales(everywhere, self.latents, "Bring the columns to one scale, or give")
        return Observations(
            concatenate([with_channel(part.support, self.channels[t][0]) for t, part in zip(self.tasks, parts)]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.noise_variance for part in parts]),
            np.concatenate([np.ones(len(part.y)) if part.counts is None else part.counts for part in parts]),
            np.repeat(np.arange(len(parts)), [len(part.y) for part in parts]),
            np.concatenate(
                [np.full(len(part.y), np.nan) if part.variances is None else part.variances for part in parts]
            ),
        )

    def _of_one(self, task: str, data: Any, known: list[Any]) -> Observations:
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise TypeError(f'fit: the data of task "{task}" must be a pair (supports, y).')
        number, (support, y) = self.tasks.index(task), data
        with of_task(task):
            one = observe(support, y, *known)
            one = dataclasses.replace(one, support=self.places(one.support))
            return taken_by(self.likelihoods[number], one, self.aggregation[number])

    def _name_tasks(self, given: Mapping[str, Any], who: str, name: str) -> None:
        if not isinstance(given, Mapping):
            raise TypeError(f'{who}: "{name}" must be a dictionary by task, but is {type(given).__name__}.')
        if unknown := [task for task in given if task not in self.tasks]:
            listed = ", ".join(f'"{task}"' for task in self.tasks)
            raise KeyError(f'{who}: "{name}" names the task "{unknown[0]}", but the tasks are {listed}.')


class TaskView(Parametric):
    """One task of a model, as what infers and predicts sees it."""

    joint: SeveralTasks
    number: int = eqx.field(static=True)

    @property
    @abc.abstractmethod
    def varies(self) -> bool:
        """Whether the mixing does."""

    kernel = property(lambda self: self.joint.kernel)
    mean = property(lambda self: self.joint.mean)
    likelihood = property(lambda self: self.joint.likelihoods[self.number])
    aggregation = property(lambda self: self.joint.aggregation[self.number])
    constraint = None


def _kernels(latents: Any, who: str) -> list[Kernel]:
    kernels = list(latents) if isinstance(latents, list | tuple) else [latents]
    if not kernels:
        raise ValueError(f'{who}: "latents" is empty. Give at least one kernel, such as [RBF()].')
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            raise TypeError(f'{who}: "latents" must be kernels such as RBF(), but got {kind_of(kernel)}.')
    return kernels


def _likelihoods(given: Any, who: str) -> dict[str, Likelihood]:
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f'{who}: "likelihoods" must be a dictionary with a likelihood for each task.')
    for task, likelihood in given.items():
        if not isinstance(task, str):
            raise TypeError(f'{who}: the names of tasks in "likelihoods" must be strings, but one is {task!r}.')
        if not isinstance(likelihood, Likelihood):
            raise TypeError(
                f'{who}: the likelihood of task "{task}" must be one such as Gaussian(), but is {kind_of(likelihood)}.'
            )
    return dict(given)


def _ranks(rank: Any, kernels: int, channels: int, who: str) -> list[int]:
    ranks = [rank] * kernels if np.ndim(rank) == 0 else list(rank)
    if len(ranks) != kernels:
        raise ValueError(f'{who}: "rank" must be one number or {kernels}, one for each kernel, but has {len(ranks)}.')
    ranks = [whole_number(r, who, "rank") for r in ranks]
    if max(ranks) > channels:
        raise ValueError(
            f'{who}: "rank" must be at most {channels}, the number of functions that are mixed, but is '
            f"{max(ranks)}. Give more kernels instead."
        )
    return ranks


def _unit_variance(kernel: Kernel) -> Kernel:
    """A variance that is left open is one: the mixing has the units. Of a sum's variances, the first."""
    open_ones = [p.path for p in parameters(kernel) if p.role == "variance" and p.mark.start_from_data]
    return kernel.replace({open_ones[0]: fixed(1.0)}) if open_ones else kernel
