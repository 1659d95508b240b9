"""Several tasks, each over its own supports, from a few shared functions."""

from collections.abc import Mapping
from typing import Any

from aggregauss.inference.collapsed import Collapsed
from aggregauss.inference.exact import Exact
from aggregauss.inference.svi import SVI
from aggregauss.latent.coregionalisation import Coregionalised
from aggregauss.likelihoods import Conjugate, Likelihood
from aggregauss.models.gp import a_scheme
from aggregauss.models.multi_task_posterior import MultiTaskPosterior
from aggregauss.models.several_tasks import SeveralTasks, TaskView
from aggregauss.supports.support import Support


class MultiTaskGP(SeveralTasks):
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

    def __init__(
        self,
        latents: Any,
        likelihoods: Mapping[str, Likelihood],
        *,
        rank: Any = 1,
        aggregation: str | Mapping[str, str] = "latent",
    ):
        self._set(latents, likelihoods, rank, aggregation)

    @property
    def kernel(self) -> Coregionalised:
        """The covariance of all tasks; inputs have the number of the task's function as their last column."""
        return Coregionalised(self.latents, self.mixing)

    def of_task(self, task: int) -> "MixedView":
        """The model of one task."""
        return MixedView(self, task)

    def places(self, support: Support) -> Support:
        """As they are."""
        return support

    def fit(
        self,
        data: Mapping[str, Any],
        noise_variance: Mapping[str, Any] | None = None,
        *,
        counts: Mapping[str, Any] | None = None,
        variances: Mapping[str, Any] | None = None,
        inference: Exact | Collapsed | SVI | None = None,
        seed: Any = 0,
        progress: bool = True,
    ) -> MultiTaskPosterior:
        """The posterior given `{task: (supports, y)}`; the model itself is left unchanged.

        `noise_variance`, for the tasks that it names, is known noise beside what a Gaussian likelihood learns; `counts`
        and `variances` are as in `GP.fit`. `inference` defaults to `Exact(integrate=True)` if all noise is Gaussian,
        else to `SVI()`.
        """
        gaussian = all(
            isinstance(g, Conjugate) and (g.link == "identity" or how == "latent")
            for g, how in zip(self.likelihoods, self.aggregation)
        )
        scheme = a_scheme(inference) or (Exact(integrate=True) if gaussian else SVI())
        return self._fit(data, noise_variance, counts, variances, scheme, seed, progress)


class MixedView(TaskView):
    """One task of a `MultiTaskGP`."""

    def __init__(self, joint: SeveralTasks, number: int):
        self.joint, self.number, self.marks = joint, number, ()

    @property
    def varies(self) -> bool:
        """The mixing is the same everywhere."""
        return False
