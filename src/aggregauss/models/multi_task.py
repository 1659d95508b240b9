"""Several tasks, each over its own supports, from a few shared functions."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from aggregauss.archive import storable, write
from aggregauss.checks import one_of, whole_number
from aggregauss.inference.collapsed import Collapsed
from aggregauss.inference.conditional import several_moments
from aggregauss.inference.data import Data, Observations, observe
from aggregauss.inference.exact import Exact
from aggregauss.inference.landmarks import landmarks
from aggregauss.inference.optimise import Run
from aggregauss.inference.posterior import KINDS, Kind, Posterior
from aggregauss.inference.prediction import Prediction
from aggregauss.inference.svi import SVI
from aggregauss.kernels.kernel import Kernel
from aggregauss.latent.coregionalisation import Coregionalised, Levels, Mixing, with_channel, without_channel
from aggregauss.likelihoods import Gaussian, JointLikelihood, Likelihood
from aggregauss.models.gp import check_task
from aggregauss.parameters import Parametric, fixed, pack, parameters, unpack
from aggregauss.supports.support import Support, concatenate

if TYPE_CHECKING:
    import pandas as pd


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

    def inducing_points(self, wanted: Any, support: Support, seed: int) -> np.ndarray:
        """The same places for every function u_qr, which is the channel in their last column."""
        Z = landmarks(wanted, without_channel(support), seed)
        first, functions = self.kernel.channels, self.kernel.functions
        return np.concatenate([np.column_stack([Z, np.full(len(Z), first + j)]) for j in range(functions)])

    def fit(
        self,
        data: Mapping[str, Any],
        noise_variance: Mapping[str, Any] | None = None,
        *,
        counts: Mapping[str, Any] | None = None,
        inference: Exact | Collapsed | SVI | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> "MultiTaskPosterior":
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


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class MultiTaskPosterior:
    """A fitted model of several tasks."""

    joint: Posterior

    @property
    def model(self) -> MultiTaskGP:
        """The fitted model."""
        return self.joint.model

    @property
    def evidence(self) -> float:
        """Log marginal likelihood at the fitted parameters, or its approximation."""
        return self.joint.evidence

    @property
    def runs(self) -> tuple[Run, ...]:
        """A record of every search for parameters."""
        return self.joint.runs

    def predict(
        self, supports: Mapping[str, Support], kind: Kind | None = None, *, counts: Mapping[str, Any] | None = None
    ) -> dict[str, Prediction]:
        """Predictions for each task that is named, over any supports; `kind` and `counts` as in `Posterior.predict`."""
        if not isinstance(supports, Mapping):
            raise TypeError("predict: give a dictionary {task: supports}.")
        self.model._name_tasks(supports, "predict")
        trials = counts or {}
        return {task: self._predict(task, support, kind, trials.get(task)) for task, support in supports.items()}

    def functions(self, supports: Mapping[str, Support]) -> dict[str, tuple[Prediction, ...]]:
        """Every latent function of the tasks that are named, such as the mean and the log variance of a heteroscedastic
        one."""
        self.model._name_tasks(supports, "functions")
        return {
            task: tuple(self._of_channel(task, c, support, "latent", None) for c in self.model.channels[task])
            for task, support in supports.items()
        }

    def _predict(self, task: str, support: Support, kind: Kind | None, counts: Any) -> Prediction:
        channels = self.model.channels[task]
        likelihood = self.model.likelihoods[self.model.tasks.index(task)]
        first = self._of_channel(task, channels[0], support, "latent" if len(channels) > 1 else kind, counts)
        if not isinstance(likelihood, JointLikelihood) or kind == "latent":
            return first
        wanted: Kind = one_of("response" if kind is None else kind, KINDS, "predict", "kind")
        moments = self._jointly([with_channel(support, c) for c in channels])
        make = likelihood.response_jointly if wanted == "response" else likelihood.observation_jointly
        return dataclasses.replace(first, marginals=make(*moments), kind=wanted)

    def _of_channel(self, task: str, channel: int, support: Support, kind: Kind | None, counts: Any) -> Prediction:
        if not isinstance(support, Support):
            raise TypeError(f'predict: task "{task}" must have supports, but has {type(support).__name__}.')
        if support.dim + 1 != self.joint.observations.support.dim:
            raise ValueError(
                f'predict: the supports of task "{task}" must have {self.joint.observations.support.dim - 1} '
                f"dimension(s) like the training data, but have {support.dim}."
            )
        view = dataclasses.replace(self.joint, model=self.model.of_task(self.model.tasks.index(task)))
        prediction = view.predict(with_channel(self.model.places(support), channel), kind, counts=counts)
        return dataclasses.replace(prediction, support=support)

    def _jointly(self, channels: list[Support]) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances of several functions over the same supports, hyper-parameters integrated out."""
        post = self.joint
        known = [(part.weight, unpack(post.model, jnp.asarray(part.vector)), part.conditional) for part in post.mixture]
        parts = known or [(1.0, post.model, post.conditional)]
        weights = np.array([weight for weight, _, _ in parts])
        each = [several_moments(model, post._training, state, channels) for _, model, state in parts]
        means, covariances = (np.stack(x) for x in zip(*each))
        mean = np.tensordot(weights, means, 1)
        away = means - mean
        between = np.einsum("w,wnj,wnk->njk", weights, away, away)
        return mean, np.tensordot(weights, covariances, 1) + between

    def correlations(self, level: float = 0.95) -> "pd.DataFrame":
        """Correlations of every two tasks at one place, with intervals of the given probability.

        They are correlations of the functions, Σ_q B_q over its diagonal. Intervals come from draws of the parameters
        around their fitted values, where the scheme integrates over them: all but fits by minibatches do by default.
        """
        import pandas as pd

        names = [t if j == 0 else f"{t}[{j}]" for t, own in self.model.channels.items() for j in range(len(own))]
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        draws = np.stack([_correlation(unpack(self.model, jnp.asarray(v))) for v in self._plausible()])
        ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        fitted = _correlation(self.model)
        rows = [[fitted[p], ends[0][p], ends[1][p]] for p in pairs]
        index = pd.MultiIndex.from_tuples([(names[i], names[j]) for i, j in pairs], names=["task", "other"])
        return pd.DataFrame(rows, index=index, columns=["correlation", "lower", "upper"])

    def _plausible(self, draws: int = 400) -> np.ndarray:
        """Draws of the packed parameters."""
        post, vector = self.joint, np.asarray(pack(self.model))
        covariance = post.parameter_covariance
        if covariance is None:
            return np.full((1, len(vector)), np.nan)
        values, vectors = np.linalg.eigh(covariance)
        z = np.random.default_rng(0).standard_normal((draws, len(vector)))
        return vector + z @ (vectors * np.sqrt(np.maximum(values, 0.0))).T

    def summary(self) -> "pd.DataFrame":
        """The parameters, as in `Posterior.summary`."""
        return self.joint.summary()

    def save(self, path: Any) -> None:
        """Write to one file; read it with `aggregauss.load`."""
        write(path, self)


def _correlation(model: MultiTaskGP) -> np.ndarray:
    total = sum(model.coregionalisation)
    sd = np.sqrt(np.diag(total))
    return total / np.outer(sd, sd)


def _unit_variance(kernel: Kernel) -> Kernel:
    """A variance that is left open is one: the mixing has the units."""
    open_ones = [p.path for p in parameters(kernel) if p.role == "variance" and p.mark.start_from_data]
    return kernel.replace({path: fixed(1.0) for path in open_ones}) if len(open_ones) == 1 else kernel
