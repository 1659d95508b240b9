"""Stochastic variational inference: any likelihood, minibatches of supports, natural gradients."""

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
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
from aggregauss.inference.progress import Watch
from aggregauss.inference.sparse import Group
from aggregauss.inference.starts import starts
from aggregauss.parameters import pack, settled, unpack
from aggregauss.supports.points import Points

WHOLE = 30_000_000  # entries of k(atoms, Z) up to which a pass over all the data is one step
WARM_UP = 5  # steps of q before the hyper-parameters move
FAILURES = 8


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that a run needs to go on as if it had not stopped."""

    fingerprint: str
    epoch: int
    history: tuple[float, ...]
    leaves: tuple[Any, ...]
    watch: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class SVI:
    """A Gaussian q over inducing variables, by natural gradients; hyper-parameters by Adam.

    `inducing` is a number of points (spread by k-means++), the points themselves, or "bags" for one in each.
    `batch_size` supports make one step; by default all of them, if that is not too large. `bound` says how the expected
    log likelihood of a bag is found: "matched" (default), "taylor", "jensen" or "mc"; `probes` individuals of each bag
    stand for its within-bag covariances. The run stops when the objective no longer improves by `tolerance` per
    observation. With `checkpoint` a path, the state is written there after every few epochs, and a run that finds it
    goes on from there, to the same numbers.

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
    tolerance: float = 1e-4
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
        run = _Fit(self, template, observations, Z, seed)
        state, history, message = run.go(progress)
        fitted = settled(unpack(template, state.free.vector))
        q = ascent.moments(state, self.gradients == "natural")
        inducing = Points(np.asarray(state.free.Z)) if len(Z) else None
        conditional = sparse_conditional(fitted, state.free.Z, q)
        record = Run(history[-1], len(history), len(history), message == "converged", message, tuple(history))
        return Posterior(fitted, observations, None, conditional, history[-1], "SVI", (record,), inducing=inducing)

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


class _Fit:
    """One run: the data in groups, and the loop over epochs."""

    def __init__(self, svi: SVI, template: Any, observations: Observations, Z: np.ndarray, seed: int):
        self.svi, self.template, self.observations, self.seed = svi, template, observations, seed
        self.n, self.m = len(observations.y), len(Z) + template.mean.effects
        counts = observations.support.atom_counts
        whole = counts.sum() * self.m <= WHOLE
        share = WHOLE / 4 / max(1.0, float(counts.mean()) * self.m)
        self.batch = svi.batch_size or (self.n if whole else int(np.clip(share, 16, self.n)))
        self.settings = ascent.Settings(svi.bound, svi.dtype, svi.gradients == "natural", svi.optimise_inducing)
        self.shape: Shape = choose_shape(counts, self.batch, self.m, svi.probes, np.dtype(svi.dtype))
        rho = svi.natural_rate or (0.5 if self.batch >= self.n else 0.1)
        self.start = ascent.init(pack(template), jnp.asarray(Z), self.m, svi.learning_rate, rho)

    def go(self, progress: bool) -> tuple[ascent.State, list[float], str]:
        state, history, watch = self._resume()
        per_epoch = -(-self.n // self.batch)
        failures, message = 0, "reached max_epochs"
        bar = tqdm(
            total=self.svi.max_epochs, initial=len(history), desc="fit", unit="epoch", delay=2.0, leave=False,
            disable=not progress,
        )  # fmt: skip
        with bar:
            epoch = len(history)
            while epoch < self.svi.max_epochs:
                after, objective = self._epoch(state, epoch)
                if not np.isfinite(objective):
                    failures += 1
                    if failures > FAILURES or not history:
                        message = f"diverged in epoch {epoch}"
                        warn(
                            f"SVI: the objective was not finite in epoch {epoch}, and smaller steps did not help. The "
                            "last good state is returned. Standardise the covariates, or lower learning_rate."
                        )
                        break
                    state = state._replace(rate=0.5 * state.rate, rho=0.5 * state.rho)
                    continue
                state = after
                history.append(objective)
                epoch += 1
                bar.set_postfix(objective=f"{objective:.2f}", refresh=False)
                bar.update()
                verdict = watch.look(history, per_epoch)
                if verdict == "stop":
                    message = "converged"
                    break
                if verdict == "slow":
                    state = state._replace(rate=0.3 * state.rate, rho=state.rho * (1.0 if per_epoch == 1 else 0.5))
                if epoch % self.svi.checkpoint_every == 0:
                    self._save(state, history, watch)
        self._save(state, history, watch)
        if not history:
            raise FloatingPointError(
                "SVI: the objective was not finite at the start. Give starting values near the data, or standardise "
                "the covariates."
            )
        return state, history, message

    def _epoch(self, state: ascent.State, epoch: int) -> tuple[ascent.State, float]:
        values = []
        for i, rows in enumerate(epoch_batches(self.n, self.batch, self.seed, epoch)):
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), epoch), i)
            rng = np.random.default_rng([self.seed, epoch, i])
            now = ascent.prepared(self.template, state, self.settings)
            total = None
            for group in self._groups(rows, rng):
                key, own = jax.random.split(key)
                part = ascent.data_gradient(self.template, state.free, now, group, own, self.settings)
                total = part if total is None else ascent.add(total, part)
            learn = float(self.svi.optimise and int(state.step) >= WARM_UP)
            scale = jnp.asarray(self.n / len(rows))
            state, objective = ascent.advance(self.template, state, total, scale, jnp.asarray(learn), self.settings)
            values.append(float(objective))
            if not np.isfinite(values[-1]):
                break
        return state, float(np.mean(values))

    def _groups(self, rows: np.ndarray, rng: np.random.Generator) -> Iterator[Group]:
        return groups(self.observations, rows, self.shape, rng)

    def _resume(self) -> tuple[ascent.State, list[float], Watch]:
        path = self.svi.checkpoint
        watch = Watch(self.svi.tolerance * self.n)
        if path is None or not Path(path).exists():
            return self.start, [], watch
        saved = load(path)
        if not isinstance(saved, Checkpoint) or saved.fingerprint != self._fingerprint():
            raise ValueError(
                f"SVI: {path} belongs to another model, other data or other settings. Delete it, or give another "
                '"checkpoint".'
            )
        structure = jax.tree.structure(self.start)
        state = jax.tree.unflatten(structure, [jnp.asarray(x) for x in saved.leaves])
        return state, list(saved.history), watch.restored(saved.watch)

    def _save(self, state: ascent.State, history: list[float], watch: Watch) -> None:
        if self.svi.checkpoint is not None and history:
            leaves = tuple(np.asarray(x) for x in jax.tree.leaves(state))
            write(
                self.svi.checkpoint,
                Checkpoint(self._fingerprint(), len(history), tuple(history), leaves, watch.stored()),
            )

    def _fingerprint(self) -> str:
        """Of all that determines the run, save how long it may take."""
        settings = dataclasses.replace(self.svi, inducing=None, checkpoint=None, checkpoint_every=1, max_epochs=1)
        parts = [repr(settings), repr(jax.tree.structure(self.template)), str(self.seed)]
        arrays = [*jax.tree.leaves(self.template), self.start.free.Z, self.observations.y]
        digest = hashlib.sha256("|".join(parts).encode())
        for array in arrays:
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()
