"""What a fit of several tasks says about each of them, and about how they go together."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from aggregauss.archive import storable, write
from aggregauss.checks import one_of, probability
from aggregauss.inference.conditional import several_moments
from aggregauss.inference.granularity import Granularity, granularity, represented
from aggregauss.inference.optimise import Run
from aggregauss.inference.posterior import KINDS, Kind, Posterior
from aggregauss.inference.prediction import Prediction
from aggregauss.latent.coregionalisation import with_channel, without_channel
from aggregauss.likelihoods import JointLikelihood, SampleQuasi
from aggregauss.parameters import pack, unpack
from aggregauss.supports.points import Points
from aggregauss.supports.support import Support

if TYPE_CHECKING:
    import pandas as pd

    from aggregauss.models.several_tasks import SeveralTasks


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class MultiTaskPosterior:
    """A fitted model of several tasks."""

    joint: Posterior

    @property
    def model(self) -> "SeveralTasks":
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
        trials = counts or {}
        for given, name in ((supports, "supports"), (trials, "counts")):
            self.model._name_tasks(given, "predict", name)
        return {task: self._predict(task, support, kind, trials.get(task)) for task, support in supports.items()}

    def functions(self, supports: Mapping[str, Support]) -> dict[str, tuple[Prediction, ...]]:
        """Every latent function of the tasks that are named, such as a mean and a log variance."""
        self.model._name_tasks(supports, "functions", "supports")
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

        level = probability(level, "correlations", "level")
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

    def granularity(self, task: str, X: Any = None, *, widths: Any = None) -> Granularity:
        """Are the summaries of one task fine enough for its function? As `Posterior.granularity`.

        >>> import aggregauss as ag
        >>> model = ag.MultiTaskGP([ag.RBF(ag.fixed(9.0))], {"a": ag.SampleQuasi()})
        >>> data = {"a": (ag.Points([0.5, 1.5, 2.5]), [0.1, 0.3, 0.6])}
        >>> post = model.fit(data, counts={"a": [9, 9, 9]}, inference=ag.Exact(optimise=False))
        >>> post.granularity("a", widths=1.0).level
        'fine'
        """
        self.model._name_tasks({task: None}, "granularity", "task")
        number = self.model.tasks.index(task)
        if self.model.of_task(number).varies:
            raise TypeError("granularity: known where the mixing is the same everywhere, as in MultiTaskGP.")
        if len(self.joint.observations.support) == 0:
            raise TypeError("granularity: a saved posterior does not hold its data. Ask before saving.")
        own = np.flatnonzero(self.joint.observations.task == number)
        observed, channel = self.joint.observations[own], self.model.channels[task][0]
        rows, Z, regions = represented(without_channel(observed.support), X, widths)
        by_place = X is not None and not isinstance(X, Support)
        summaries = isinstance(self.model.likelihoods[number], SampleQuasi)
        counts = regions.mass if by_place else observed.counts if summaries else None
        noise = self.joint.noise_of_means()
        return granularity(
            self.model.kernel.continuous,
            with_channel(Points(Z), channel).center,
            with_channel(regions, channel),
            counts,
            None if noise is None else noise[own][rows],
        )

    def summary(self) -> "pd.DataFrame":
        """The parameters, as in `Posterior.summary`."""
        return self.joint.summary()

    def save(self, path: Any) -> None:
        """Write to one file; read it with `aggregauss.load`."""
        write(path, self)


def _correlation(model: "SeveralTasks") -> np.ndarray:
    total = sum(model.coregionalisation)
    sd = np.sqrt(np.diag(total))
    with np.errstate(invalid="ignore"):  # a task that takes no part has none
        return total / np.outer(sd, sd)
