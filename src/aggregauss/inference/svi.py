"""Stochastic variational inference: any likelihood, minibatches of supports, natural gradients."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from aggregauss.checks import one_of, positive_number, warn, whole_number
from aggregauss.inference import ascent
from aggregauss.inference.batches import random_batches
from aggregauss.inference.best_mean import with_best_mean
from aggregauss.inference.bounds import BOUNDS
from aggregauss.inference.by_totals import by_totals, searched
from aggregauss.inference.checkpoint import Checkpoint, check_path, fingerprint
from aggregauss.inference.climb import EASY, MOST, climb
from aggregauss.inference.conditional import Conditional, sparse_conditional
from aggregauss.inference.data import Observations
from aggregauss.inference.groups import choose_shapes
from aggregauss.inference.hyperparameters import Around
from aggregauss.inference.inducing import JITTER, entries, on_device
from aggregauss.inference.optimise import Run
from aggregauss.inference.passes import Passes
from aggregauss.inference.posterior import Posterior, pearson
from aggregauss.inference.profile import FINER, whole_passes
from aggregauss.inference.sparse import Group
from aggregauss.inference.starts import level_function, shorter, starts
from aggregauss.inference.totals import Totals, totals
from aggregauss.inference.variational import by_moments
from aggregauss.likelihoods import Poisson
from aggregauss.parameters import pack, settled, unpack
from aggregauss.supports.pool import pool
from aggregauss.supports.support import Support

WHOLE = 30_000_000  # entries of k(atoms, Z) up to which a pass over all the data is one step
SURELY, NOTICEABLE = 4.0, 1.3  # standard errors, and ratio, from which overdispersion is spoken of


@dataclasses.dataclass(frozen=True)
class SVI:
    """A Gaussian q over inducing variables by natural gradients; hyper-parameters by L-BFGS, or on batches by Adam.

    `inducing` is a number of points (spread by k-means++), the points themselves, "bags" for one in each, or supports
    of any kind, whose integrals are then the inducing variables.
    `batch_size` supports make one step; by default all of them, if that is not too large. `bound` says how the expected
    log likelihood of a bag is found: "linearised" (default), "matched", "taylor", "jensen" or "mc"; `probes`
    individuals of each bag stand for its within-bag covariances. The run stops when the objective no longer improves by
    `tolerance` per observation. With `checkpoint` a path, the state is written there after every few epochs, and a run
    that finds it goes on from there, to the same numbers.

    Where one step can take all the data, q is brought to its best for each value of the hyper-parameters, and these
    move by L-BFGS; at its end shorter lengthscales are tried in place of those that were left open. On batches q takes
    natural-gradient steps of size `natural_rate` while the hyper-parameters move by Adam with `learning_rate`, both
    lowered when the objective stops rising.

    `gradients="adam"` moves q (whitened) by Adam as well; `optimise=False` keeps the hyper-parameters. Whole passes
    also find how uncertain these are, and the posterior is a mixture over them unless `integrate=False`.

    `search="totals"`, for bags under the link exp, looks for the hyper-parameters by the evidence of the bags' totals,
    each of which is taken to be log-normal with the moments that the prior gives it; q plays no part in it. Where
    totals are precise and the function varies much within a bag, the bound leans towards smooth functions and this
    does not.

    `pool=32` looks for the hyper-parameters with the individuals of each bag pooled into so many (`ag.pool`), and only
    then brings q to its best with all of them: bags of hundreds fit many times faster. The last two objectives in
    `post.runs[0].path` are those with pooled individuals and with all.

    >>> import aggregauss as ag, numpy as np
    >>> x = np.linspace(0, 10, 200)
    >>> bags = ag.Bags(x, bag=np.arange(200) // 10)
    >>> model = ag.GP(ag.RBF(2.0), likelihood=ag.Poisson(), aggregation="response", mean=ag.Constant())
    >>> post = model.fit(bags, np.arange(20) % 7, inference=ag.SVI(inducing=15, max_epochs=20), progress=False)
    >>> post.predict(ag.Points([5.0])).mean.shape
    (1,)
    """

    inducing: Any = None
    batch_size: int | None = None
    bound: Literal["linearised", "matched", "taylor", "jensen", "mc"] = "linearised"
    learning_rate: float = 0.05
    natural_rate: float | None = None
    gradients: Literal["natural", "adam"] = "natural"
    optimise: bool = True
    optimise_inducing: bool = False
    integrate: bool = True
    search: Literal["bound", "totals"] = "bound"
    pool: int | None = None
    max_epochs: int = 1000
    tolerance: float = 1e-3
    probes: int = 32
    dtype: Literal["float64", "float32"] = "float64"
    checkpoint: str | Path | None = None
    checkpoint_every: int = 10

    def fit(self, model: Any, observations: Observations, seed: int = 0, progress: bool = True) -> Posterior:
        """The posterior of `model` given `observations`."""
        self._check(model, observations)
        support, n = observations.support, len(observations.y)
        inducing = model.inducing(self.inducing, support, seed)
        self._check_moving(inducing)
        Z, template = on_device(inducing), starts(model, observations, 0, seed)[0]
        width = entries(Z, template.mean.effects)
        everyone = self._passes(template, observations, width, seed)
        passes, batch = everyone, self._batch(support.atom_counts, width)
        if self.pool is not None:
            pooled = dataclasses.replace(observations, support=pool(support, self.pool))
            passes, batch = self._passes(template, pooled, width, seed), self._batch(pooled.support.atom_counts, width)
        rho = self.natural_rate or (0.05 if batch < n or self.bound == "mc" else 0.5)
        m = (0 if Z is None else Z.size) + template.mean.effects
        start = ascent.init(pack(template), Z, m, self.learning_rate, rho)
        if observations.task is None and model.likelihood.link == "square":
            # f and -f fit equally well: between them nothing has a slope
            start = ascent.begin_at(start, level_function(template, start.free.Z, observations))
        others = shorter(model, template) if self.optimise else []
        by = totals(observations, seed) if self.search == "totals" and self.optimise else None
        state, history, message, mixture = self._climb(passes, start, others, by, batch, progress)
        if not history:
            raise FloatingPointError(
                "SVI: the objective was not finite at the start. Give starting values near the data, or standardise "
                "the covariates."
            )
        if message.startswith("diverged"):
            warn(
                f"SVI: the run {message}, and smaller steps did not help. The last good state is returned. Standardise "
                "the covariates, or lower learning_rate."
            )
        if self.pool is not None:
            state, uphill = climb(everyone.with_q(state, everyone.hold()), state, FINER * self.tolerance * n)
            if by is None:
                history.append(float(uphill.objective))
        return self._posterior(everyone, passes, inducing, state, history, message, mixture, progress)

    def _passes(self, template: Any, observations: Observations, width: int, seed: int) -> Passes:
        batch = self._batch(observations.support.atom_counts, width)
        return Passes(
            template,
            observations,
            ascent.Settings(self.bound, self.dtype, self.gradients == "natural", self.optimise_inducing),
            choose_shapes(observations, batch, width, self.probes, np.dtype(self.dtype)),
            seed,
        )

    def _batch(self, counts: np.ndarray, width: int) -> int:
        """How many supports make one step, where each of their atoms takes a row of so many numbers."""
        if self.batch_size is not None:
            return self.batch_size
        if counts.sum() * width <= WHOLE:
            return len(counts)
        return int(np.clip(WHOLE / 4 / (float(counts.mean()) * width), min(16, len(counts)), len(counts)))

    def _climb(
        self,
        passes: Passes,
        start: ascent.State,
        others: list[np.ndarray],
        by: Totals | None,
        batch: int,
        progress: bool,
    ) -> tuple[ascent.State, list[float], str, Around | None]:
        n = len(passes.observations.y)
        stochastic = self.bound == "mc" or self.gradients == "adam" or self.optimise_inducing
        whole = batch >= n and not stochastic
        mark = "" if self.checkpoint is None else self._fingerprint(passes, start)
        checkpoint = Checkpoint(self.checkpoint, mark, self.checkpoint_every)
        unit, total = ("evaluation", None) if whole else ("epoch", self.max_epochs)
        with tqdm(total=total, desc="fit", unit=unit, delay=2.0, leave=False, disable=not progress) as bar:
            tolerance = self.tolerance * n
            learn = self.optimise and by is None
            if by is not None and whole:
                return by_totals(passes, by, start, checkpoint, tolerance, self.max_epochs, bar, self.integrate, others)
            if by is not None:
                nowhere = Checkpoint(None, "", 1)
                vector, *_ = searched(passes.template, by, start, nowhere, tolerance, self.max_epochs, bar, others)
                start = start._replace(free=start.free._replace(vector=jnp.asarray(vector)))
            if whole:
                return whole_passes(
                    passes, start, checkpoint, tolerance, self.max_epochs, learn, bar, self.integrate, others
                )
            if self.bound == "mc" and batch >= n:  # draws from a q as wide as the prior are too noisy to follow
                settings = dataclasses.replace(passes.settings, bound="matched")
                near, *_ = whole_passes(
                    dataclasses.replace(passes, settings=settings),
                    start,
                    Checkpoint(None, "", 1),
                    tolerance,
                    1,
                    False,
                    bar,
                )
                start = start._replace(q=near.q)
            on_batches = random_batches(passes, start, checkpoint, tolerance, batch, self.max_epochs, learn, bar)
            return *on_batches, None

    def _posterior(
        self,
        passes: Passes,
        searched: Passes,
        inducing: Support | None,
        state: ascent.State,
        history: list[float],
        message: str,
        mixture: Around | None,
        progress: bool,
    ) -> Posterior:
        fitted = settled(unpack(passes.template, state.free.vector))
        if inducing is not None and self.optimise_inducing:
            assert state.free.Z is not None
            inducing = dataclasses.replace(inducing, center=np.asarray(state.free.Z.all_pieces()[0].center))
        record = Run(history[-1], len(history), len(history), message == "converged", message, tuple(history))
        n = len(passes.observations.y)
        diverged = message.startswith("diverged")
        held = None if diverged else self._held(passes, entries(state.free.Z, fitted.mean.effects))
        most = MOST if isinstance(held, list) else EASY  # passes over data that are packed again each time are dear
        close = FINER * self.tolerance * n
        first = searched.hold() if self.pool is not None and held is not None else None

        def conditional(model: Any, state: ascent.State, progress: bool = False) -> Conditional:
            q = ascent.moments(state, passes.settings.natural)
            if first is not None:  # pooled individuals lead near at little cost
                q = with_best_mean(searched, first, state, close, most, progress)
                state = state._replace(q=by_moments(q))
            if held is not None:
                q = with_best_mean(passes, held, state, close, most, progress)
            return sparse_conditional(model, state.free.Z, q, JITTER[self.dtype])

        post = Posterior(
            fitted,
            passes.observations,
            None,
            conditional(fitted, state, progress),
            history[-1],
            "SVI",
            (record,),
            inducing=inducing,
        )
        if mixture is not None:
            post = post.mixed_over(mixture, conditional, progress)
        for task, (view, rows) in enumerate(by_task(fitted, passes.observations)):
            if isinstance(view.likelihood, Poisson) and not view.likelihood.region_effect:
                warn_if_overdispersed(post, view, rows, task)
        return post

    def _held(self, passes: Passes, width: int) -> Iterable[Group] | None:
        """The data, where bags were linearised: several individuals, and a response that is not linear in them."""
        seen = passes.observations
        counts = seen.support.atom_counts
        linearised = self.bound == "linearised" and any(
            view.aggregation == "response" and view.likelihood.link != "identity" and int(counts[rows].max()) > 1
            for view, rows in by_task(passes.template, seen)
        )
        if not linearised:
            return None
        return passes.hold() if self._batch(counts, width) >= len(counts) else passes.again()

    def _fingerprint(self, passes: Passes, start: ascent.State) -> str:
        settings = dataclasses.replace(self, inducing=None, checkpoint=None, checkpoint_every=1, max_epochs=1)
        words = [repr(settings), repr(jax.tree.structure(passes.template)), str(passes.seed)]
        seen = passes.observations
        data = [*seen.seen(), *seen.support.digest()]
        return fingerprint(words, [*jax.tree.leaves((passes.template, start.free.Z)), *data])

    def _check(self, model: Any, observations: Observations) -> None:
        one_of(self.bound, BOUNDS, "SVI", "bound")
        one_of(self.gradients, ("natural", "adam"), "SVI", "gradients")
        one_of(self.dtype, ("float64", "float32"), "SVI", "dtype")
        one_of(self.search, ("bound", "totals"), "SVI", "search")
        for name, least in (("max_epochs", 1), ("probes", 2), ("checkpoint_every", 1)):
            whole_number(getattr(self, name), "SVI", name, least)
        for name in ("learning_rate", "tolerance"):
            positive_number(getattr(self, name), "SVI", name)
        if self.natural_rate is not None:
            positive_number(self.natural_rate, "SVI", "natural_rate", most=1.0)
        if self.checkpoint is not None:
            check_path(self.checkpoint)
        if self.batch_size is not None and whole_number(self.batch_size, "SVI", "batch_size") > len(observations.y):
            raise ValueError(
                f'SVI: "batch_size" must not exceed the {len(observations.y)} observations, but is {self.batch_size}.'
            )
        if model.constraint is not None:
            raise TypeError("SVI: a constraint is imposed by EP only. Use inference=EP(), or a link such as exp.")
        for view, rows in by_task(model, observations):
            self._check_task(view, observations, rows)
        if self.search == "totals":
            _check_totals(model, observations)

    def _check_moving(self, inducing: Support | None) -> None:
        if self.optimise_inducing and inducing is not None and inducing.kind != "Points":
            raise TypeError(
                f"SVI: optimise_inducing moves points, but {inducing!r} were given. Give points, or keep their places."
            )

    def _check_task(self, model: Any, observations: Observations, rows: np.ndarray) -> None:
        if self.bound == "taylor" and not (model.likelihood.concave or model.likelihood.link == "identity"):
            raise TypeError(
                f'SVI: bound="taylor" grows without limit for {type(model.likelihood).__name__}: its log density is '
                "not concave in its mean. Use the default."
            )
        response = model.aggregation == "response" and model.likelihood.link != "identity"
        support = observations.support if observations.task is None else observations.support[rows]
        if response and any(support.wide):
            raise TypeError(
                "SVI: the response can be aggregated over points only, but these supports have width. Use Bags, or "
                'Polygons(..., method="sobol"), or aggregation="latent".'
            )


def _check_totals(model: Any, observations: Observations) -> None:
    """A sentence if totals of the responses are not sums of exponentials of one function."""
    wrong = None
    if observations.task is not None:
        wrong = "there are several tasks"
    elif model.likelihood.link != "exp":
        wrong = f'the link is "{model.likelihood.link}"'
    elif model.aggregation == "latent" and int(observations.support.atom_counts.max()) > 1:
        wrong = 'they are aggregated before the link (aggregation="latent")'
    if wrong is not None:
        raise TypeError(
            'SVI: search="totals" is for responses of one function under the link exp, aggregated after it, but '
            f'{wrong}. Leave it out, or give search="bound".'
        )


def by_task(model: Any, observations: Observations) -> list[tuple[Any, np.ndarray]]:
    """Each task of a model with the rows that observe it."""
    if observations.task is None:
        return [(model, np.arange(len(observations.y)))]
    return [(model.of_task(t), np.flatnonzero(observations.task == t)) for t in range(len(model.likelihoods))]


def warn_if_overdispersed(post: Posterior, view: Any, rows: np.ndarray, task: int) -> None:
    """Say so when counts of a task scatter more than Poisson counts would, by far more than chance."""
    several = post.observations.task is not None
    own = dataclasses.replace(post, model=view, observations=post.observations[rows]) if several else post
    ratio, free = pearson(own)
    if ratio > 1.0 + SURELY * np.sqrt(2.0 / free) and ratio > NOTICEABLE:
        times = f"{ratio:.1f}" if ratio < 1000 else f"{ratio:.0e}"
        whose = f' of task "{post.model.tasks[task]}"' if several else ""
        warn(
            f"SVI: the counts{whose} scatter {times} times as much as Poisson counts would around the fitted "
            "means, so intervals are too narrow. Use Poisson(region_effect=True) or NegativeBinomial()."
        )
