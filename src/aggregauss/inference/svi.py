"""Stochastic variational inference: any likelihood, minibatches of supports, natural gradients."""

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm.auto import tqdm

from aggregauss.archive import load, storable, write
from aggregauss.checks import one_of, warn, whole_number
from aggregauss.inference import ascent
from aggregauss.inference.bounds import BOUNDS
from aggregauss.inference.conditional import sparse_conditional
from aggregauss.inference.data import Observations
from aggregauss.inference.groups import Shape, choose_shape, epoch_batches, groups
from aggregauss.inference.landmarks import landmarks
from aggregauss.inference.optimise import Run
from aggregauss.inference.posterior import Posterior
from aggregauss.inference.profile import Profile, climb, search
from aggregauss.inference.progress import Watch
from aggregauss.inference.sparse import Group
from aggregauss.inference.starts import starts
from aggregauss.likelihoods import Poisson
from aggregauss.parameters import pack, settled, unpack
from aggregauss.supports.points import Points

WHOLE = 30_000_000  # entries of k(atoms, Z) up to which a pass over all the data is one step
WARM_UP = 5  # steps of q before the hyper-parameters move
FAILURES = 8
SURELY, NOTICEABLE = 4.0, 1.3  # standard errors, and ratio, from which overdispersion is spoken of
QUIET = 30  # steps of q, at most, for one value of the hyper-parameters
BAD_START = (
    "SVI: the objective was not finite at the start. Give starting values near the data, or standardise the covariates."
)


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that a run needs to go on as if it had not stopped."""

    fingerprint: str
    history: tuple[float, ...]
    leaves: tuple[Any, ...]
    extra: tuple[Any, ...]  # the watch of a stochastic run, or the evaluations of a search


@dataclasses.dataclass(frozen=True)
class SVI:
    """A Gaussian q over inducing variables, by natural gradients; hyper-parameters by Adam.

    `inducing` is a number of points (spread by k-means++), the points themselves, or "bags" for one in each.
    `batch_size` supports make one step; by default all of them, if that is not too large. `bound` says how the expected
    log likelihood of a bag is found: "matched" (default), "taylor", "jensen" or "mc"; `probes` individuals of each bag
    stand for its within-bag covariances. The run stops when the objective no longer improves by `tolerance` per
    observation. With `checkpoint` a path, the state is written there after every few epochs, and a run that finds it
    goes on from there, to the same numbers.

    Where one step can take all the data, q is brought to its best for each value of the hyper-parameters, and these
    move by L-BFGS. On batches q takes natural-gradient steps of size `natural_rate` while the hyper-parameters move by
    Adam with `learning_rate`, both lowered when the objective stops rising.

    `gradients="adam"` moves q (whitened) by Adam as well; `optimise=False` keeps the hyper-parameters.

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
    bound: Literal["matched", "taylor", "jensen", "mc"] = "matched"
    learning_rate: float = 0.05
    natural_rate: float | None = None
    gradients: Literal["natural", "adam"] = "natural"
    optimise: bool = True
    optimise_inducing: bool = False
    max_epochs: int = 1000
    tolerance: float = 1e-3
    probes: int = 32
    dtype: Literal["float64", "float32"] = "float64"
    checkpoint: str | Path | None = None
    checkpoint_every: int = 10

    def fit(self, model: Any, observations: Observations, seed: int = 0, progress: bool = True) -> Posterior:
        """The posterior of `model` given `observations`."""
        self._check(model, observations)
        support = observations.support
        Z = landmarks(self.inducing, support, seed) if model.kernel is not None else np.zeros((0, support.dim))
        template = starts(model, observations, 0, seed)[0]
        run = _Fit(self, template, observations, Z, seed, progress)
        state, history, message = run.go()
        fitted = settled(unpack(template, state.free.vector))
        q = ascent.moments(state, self.gradients == "natural")
        inducing = Points(np.asarray(state.free.Z)) if len(Z) else None
        conditional = sparse_conditional(fitted, state.free.Z, q)
        record = Run(history[-1], len(history), len(history), message == "converged", message, tuple(history))
        post = Posterior(fitted, observations, None, conditional, history[-1], "SVI", (record,), inducing=inducing)
        if isinstance(fitted.likelihood, Poisson) and not fitted.likelihood.region_effect:
            warn_if_overdispersed(post)
        return post

    def _check(self, model: Any, observations: Observations) -> None:
        one_of(self.bound, BOUNDS, "SVI", "bound")
        one_of(self.gradients, ("natural", "adam"), "SVI", "gradients")
        one_of(self.dtype, ("float64", "float32"), "SVI", "dtype")
        for name in ("max_epochs", "probes", "checkpoint_every"):
            whole_number(getattr(self, name), "SVI", name)
        if self.batch_size is not None and whole_number(self.batch_size, "SVI", "batch_size") > len(observations.y):
            raise ValueError(
                f'SVI: "batch_size" must not exceed the {len(observations.y)} observations, but is {self.batch_size}.'
            )
        if model.constraint is not None:
            raise TypeError("SVI: a constraint is imposed by EP only. Use inference=EP(), or a link such as exp.")
        response = model.aggregation == "response" and model.likelihood.link != "identity"
        if response and any(observations.support.wide):
            raise TypeError(
                "SVI: the response can be aggregated over points only, but these supports have width. Use Bags, or "
                'Polygons(..., method="sobol"), or aggregation="latent".'
            )


def warn_if_overdispersed(post: Posterior) -> None:
    """Say so when counts scatter more than Poisson counts would, by far more than chance."""
    free = max(1.0, len(post.observations.y) - post.effective_parameters)
    ratio = post.dispersion()
    if ratio > 1.0 + SURELY * np.sqrt(2.0 / free) and ratio > NOTICEABLE:
        warn(
            f"SVI: the counts scatter {ratio:.1f} times as much as Poisson counts would around the fitted means, so "
            "intervals are too narrow. Use Poisson(region_effect=True) or NegativeBinomial()."
        )


class _Fit:
    """One run: the data in groups, and the way up."""

    def __init__(self, svi: SVI, template: Any, observations: Observations, Z: np.ndarray, seed: int, progress: bool):
        self.svi, self.template, self.observations, self.seed = svi, template, observations, seed
        self.n, self.m, self.progress = len(observations.y), len(Z) + template.mean.effects, progress
        counts = observations.support.atom_counts
        fits = counts.sum() * self.m <= WHOLE
        share = WHOLE / 4 / max(1.0, float(counts.mean()) * self.m)
        self.batch = svi.batch_size or (self.n if fits else int(np.clip(share, 16, self.n)))
        self.settings = ascent.Settings(svi.bound, svi.dtype, svi.gradients == "natural", svi.optimise_inducing)
        self.shape: Shape = choose_shape(counts, self.batch, self.m, svi.probes, np.dtype(svi.dtype))
        noisy = self.batch < self.n or svi.bound == "mc"
        rho = svi.natural_rate or (0.05 if noisy else 0.5)
        self.start = ascent.init(pack(template), jnp.asarray(Z), self.m, svi.learning_rate, rho)

    @property
    def whole(self) -> bool:
        """Whether the bound can be climbed by passes over all the data, with q at its best."""
        stochastic = self.svi.bound == "mc" or not self.settings.natural or self.svi.optimise_inducing
        return self.batch >= self.n and not stochastic

    def go(self) -> tuple[ascent.State, list[float], str]:
        """The state at the end, the objective along the way, and why it ended."""
        return self._climb() if self.whole else self._descend()

    def _climb(self) -> tuple[ascent.State, list[float], str]:
        rng = np.random.default_rng(self.seed)
        held = [group for _, group in groups(self.observations, np.arange(self.n), self.shape, rng)]
        saved = self._saved()
        bar = tqdm(desc="fit", unit="evaluation", delay=2.0, leave=False, disable=not self.progress)

        def report(value: float) -> None:
            bar.set_postfix(objective=f"{value:.3f}", refresh=False)
            bar.update()
            if len(profile.history) % self.svi.checkpoint_every == 0:
                save()

        def save() -> None:
            flat = tuple(x for value, slope in profile.known for x in (value, slope))
            self._save(profile.state, profile.history, flat)

        state, _, flat = saved or (self.start, [], ())
        known = [(float(flat[i]), np.asarray(flat[i + 1])) for i in range(0, len(flat), 2)]
        with bar:
            profile = Profile(
                lambda state: self._pass(state, held), state, 0.1 * self.tolerance, QUIET, report, known, []
            )
            fixed = not self.svi.optimise or self.start.free.vector.size == 0
            if not known:
                profile.state, _ = climb(profile.look, self.start, self.tolerance, QUIET)
            if fixed:
                profile(np.asarray(self.start.free.vector))
                end, done, message = np.asarray(self.start.free.vector), True, "converged"
            else:
                end, done, message = search(
                    profile, self.template, np.asarray(self.start.free.vector), self.svi.max_epochs, self.tolerance
                )
            if not np.isfinite(max(profile.history)):
                raise FloatingPointError(BAD_START)
            final = profile.state._replace(free=profile.state.free._replace(vector=jnp.asarray(end)))
            final, uphill = climb(profile.look, final, 0.1 * self.tolerance, 3 * QUIET)
            save()
        path = [*profile.history, float(uphill.objective)]
        return final, path, "converged" if done else message

    @property
    def tolerance(self) -> float:
        """In units of the objective."""
        return self.svi.tolerance * self.n

    def _pass(self, state: ascent.State, held: list[Group]) -> ascent.Slopes:
        total = self._sum(state, iter(held), jax.random.key(self.seed))
        return ascent.slopes(self.template, state, total, jnp.asarray(1.0), self.settings)

    def _sum(self, state: ascent.State, held: Iterator[Group], key: Array) -> ascent.Gradient:
        """The data term of some groups, with its derivatives."""
        now = ascent.prepared(self.template, state, self.settings)
        total = None
        for group in held:
            key, own = jax.random.split(key)
            part = ascent.data_gradient(self.template, state.free, now, group, own, self.settings)
            total = part if total is None else ascent.add(total, part)
        assert total is not None
        return total

    def _descend(self) -> tuple[ascent.State, list[float], str]:
        """Small steps on random batches until the objective stops rising."""
        watch = Watch(self.tolerance)
        state, history, kept = self._saved() or (self.start, [], ())
        watch = watch.restored(kept) if kept else watch
        per_epoch = -(-self.n // self.batch)
        failures, message = 0, "reached max_epochs"
        bar = tqdm(
            total=self.svi.max_epochs, initial=len(history), desc="fit", unit="epoch", delay=2.0, leave=False,
            disable=not self.progress,
        )  # fmt: skip
        with bar:
            while len(history) < self.svi.max_epochs:
                epoch = len(history)
                after, objective = self._epoch(state, epoch)
                if not np.isfinite(objective):
                    failures += 1
                    if failures > FAILURES or not history:
                        message = f"diverged in epoch {epoch}"
                        break
                    state = state._replace(rate=0.5 * state.rate, rho=0.5 * state.rho)
                    continue
                state = after
                history.append(objective)
                bar.set_postfix(objective=f"{objective:.2f}", refresh=False)
                bar.update()
                verdict = watch.look(history, per_epoch)
                if verdict == "stop":
                    message = "converged"
                    break
                if verdict == "slow":
                    state = state._replace(rate=0.3 * state.rate, rho=state.rho * (1.0 if per_epoch == 1 else 0.5))
                if len(history) % self.svi.checkpoint_every == 0:
                    self._save(state, history, watch.stored())
        self._save(state, history, watch.stored())
        if not history:
            raise FloatingPointError(BAD_START)
        if message.startswith("diverged"):
            warn(
                f"SVI: the objective was not finite in epoch {len(history)}, and smaller steps did not help. The last "
                "good state is returned. Standardise the covariates, or lower learning_rate."
            )
        return state, history, message

    def _epoch(self, state: ascent.State, epoch: int) -> tuple[ascent.State, float]:
        values = []
        for i, rows in enumerate(epoch_batches(self.n, self.batch, self.seed, epoch)):
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), epoch), i)
            rng = np.random.default_rng([self.seed, epoch, i])
            packed = (group for _, group in groups(self.observations, rows, self.shape, rng))
            total = self._sum(state, packed, key)
            uphill = ascent.slopes(self.template, state, total, jnp.asarray(self.n / len(rows)), self.settings)
            learn = float(self.svi.optimise and int(state.step) >= WARM_UP)
            values.append(float(uphill.objective))
            if not np.isfinite(values[-1]):
                break
            state = ascent.advance(state, uphill, jnp.asarray(learn), self.settings)
        return state, float(np.mean(values))

    def _saved(self) -> tuple[ascent.State, list[float], tuple[Any, ...]] | None:
        path = self.svi.checkpoint
        if path is None or not Path(path).exists():
            return None
        saved = load(path)
        if not isinstance(saved, Checkpoint) or saved.fingerprint != self._fingerprint():
            raise ValueError(
                f"SVI: {path} belongs to another model, other data or other settings. Delete it, or give another "
                '"checkpoint".'
            )
        state = jax.tree.unflatten(jax.tree.structure(self.start), [jnp.asarray(x) for x in saved.leaves])
        return state, list(saved.history), saved.extra

    def _save(self, state: ascent.State, history: list[float], extra: tuple[Any, ...]) -> None:
        if self.svi.checkpoint is not None and history:
            leaves = tuple(np.asarray(x) for x in jax.tree.leaves(state))
            write(self.svi.checkpoint, Checkpoint(self._fingerprint(), tuple(history), leaves, extra))

    def _fingerprint(self) -> str:
        """Of all that determines the run, save how long it may take."""
        settings = dataclasses.replace(self.svi, inducing=None, checkpoint=None, checkpoint_every=1, max_epochs=1)
        parts = [repr(settings), repr(jax.tree.structure(self.template)), str(self.seed)]
        arrays = [*jax.tree.leaves(self.template), self.start.free.Z, self.observations.y]
        digest = hashlib.sha256("|".join(parts).encode())
        for array in arrays:
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()
