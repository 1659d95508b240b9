"""The posterior that every scheme ends in: prediction, summaries and saving are written once, here."""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import ndtri
from tqdm.auto import tqdm

from aggregauss import linalg
from aggregauss.archive import storable, write
from aggregauss.checks import as_rows, one_of, probability
from aggregauss.inference.conditional import (
    Conditional,
    aggregate_moments,
    effect_moments,
    latent_joint,
    latent_moments,
)
from aggregauss.inference.data import Observations
from aggregauss.inference.granularity import Granularity, granularity, represented
from aggregauss.inference.hyperparameters import Around
from aggregauss.inference.inducing import Inducing, on_device
from aggregauss.inference.optimise import Run
from aggregauss.inference.prediction import Prediction
from aggregauss.inference.products import product_moments
from aggregauss.likelihoods.conjugate import Conjugate
from aggregauss.likelihoods.links import Link
from aggregauss.marginals import GaussianMarginals, Marginals, truncated
from aggregauss.parameters import pack, parameters, unpack
from aggregauss.supports.layout import Layout, layout
from aggregauss.supports.points import Points
from aggregauss.supports.standardise import Standardiser
from aggregauss.supports.support import Support, concatenate

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["latent", "response", "observation"]
KINDS = ("latent", "response", "observation")
LEAST = 1e-9  # variance of a count, below which its mean has vanished in rounding
ROWS = 4096  # responses that are matched at once


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Component:
    """One value of the packed hyper-parameters, how likely it is, and what is known of the function given it."""

    weight: float
    vector: np.ndarray
    conditional: Conditional


@storable
@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """A fitted model together with the data that fitted it."""

    model: Any
    observations: Observations
    virtual: Support | None  # points at which a constraint was imposed
    conditional: Conditional
    evidence: float  # log marginal likelihood at the fitted parameters, or its approximation
    scheme: str
    runs: tuple[Run, ...] = ()  #: of the search for hyper-parameters, one for each start
    inducing: Support | None = None  #: where a sparse scheme keeps what it learned
    scaler: Standardiser | None = None  # what was done to the covariates before they were used
    mixture: tuple[Component, ...] = ()  #: over hyper-parameters; empty: they are taken to be known
    parameter_covariance: np.ndarray | None = None  # of the packed hyper-parameters

    def predict(self, support: Support, kind: Kind | None = None, *, counts: Any = None) -> Prediction:
        """The function, or a new observation, over any supports.

        `kind="latent"` is the integral of the function itself. "response", the default, is what the likelihood's link
        makes of it (a rate, a probability; aggregated over the support as the model says), or what a constraint makes
        of it. "observation" is a new observation: with noise, or a count; a binomial one out of `counts`.

        >>> import aggregauss as ag
        >>> bins = ag.Intervals([0, 10, 20], [10, 20, 30], measure="total")
        >>> post = ag.GP(ag.RBF(lengthscale=8.0)).fit(bins, [5.0, 20.0, 4.0])
        >>> post.predict(ag.Points([[15.0]])).interval(0.95)[0].shape  # the density underneath
        (1,)
        """
        wanted: Kind = one_of("response" if kind is None else kind, KINDS, "predict", "kind")
        if not isinstance(support, Support):
            raise TypeError(f'predict: "support" must be a batch of supports, but got {type(support).__name__}.')
        if support.dim != self.observations.support.dim:
            raise ValueError(
                f'predict: "support" must have {self.observations.support.dim} dimension(s) like the training data, '
                f"but has {support.dim}."
            )
        scaled = support if self.scaler is None else self.scaler(support)
        if wanted == "latent":
            return Prediction(GaussianMarginals(*self._moments(scaled)), support, self._joint(lambda: scaled), wanted)
        response, moving = self._response(scaled)
        joint = self._joint(moving)
        if wanted == "response":
            return Prediction(response, support, joint, wanted)
        if counts is None and self.model.likelihood.counts_trials:
            raise ValueError("predict: a new binomial observation needs numbers of trials. Give counts=n.")
        trials = as_rows(1.0 if counts is None else counts, "predict", "counts", len(support))
        observed = self.model.likelihood.observation(response, scaled.square_weight, trials)
        return Prediction(observed, support, joint, wanted)

    def mixed_over(
        self, near: Around, conditional: Callable[[Any, Any], Conditional], progress: bool = False
    ) -> "Posterior":
        """The same as a mixture over hyper-parameters, from the model and what else is known at each of them."""
        values = list(zip(near.weights, near.vectors, near.known))
        bar = tqdm(values, desc="covariances", unit="value", delay=2.0, leave=False, disable=not progress)
        parts = [Component(float(w), v, conditional(unpack(self.model, jnp.asarray(v)), own)) for w, v, own in bar]
        return dataclasses.replace(self, mixture=tuple(parts), parameter_covariance=near.covariance)

    def leave_one_out(self) -> Prediction:
        """Each observation predicted from all the others, in closed form (Rasmussen and Williams 2006, eq. 5.12).

        >>> import aggregauss as ag
        >>> post = ag.GP(ag.RBF()).fit(ag.Points([0.0, 1.0, 2.0, 3.0]), [0.1, 0.9, 0.2, -0.8])
        >>> post.leave_one_out().log_density([0.1, 0.9, 0.2, -0.8]).shape
        (4,)
        """
        if self.scheme != "Exact":
            raise TypeError(
                f"leave_one_out: known in closed form for Exact inference, but this posterior is by {self.scheme}."
            )
        variance = 1.0 / np.asarray(linalg.inverse_diagonal(self.conditional.factor))
        mean = self.observations.y - variance * np.asarray(self.conditional.alpha)

        def joint() -> tuple[np.ndarray, np.ndarray]:
            raise TypeError("leave_one_out: the predictions come from different data and have no joint distribution.")

        return Prediction(GaussianMarginals(mean, variance), self.observations.support, joint, "observation")

    def effects(self, level: float = 0.95) -> "pd.DataFrame":
        """Linear effects with their intervals, for each unit of the covariate as the user gave it.

        >>> import aggregauss as ag, numpy as np
        >>> x = np.linspace(0.0, 1.0, 30)
        >>> post = ag.GP(ag.RBF(0.2), mean=ag.LinearEffects([0], names=["time"])).fit(ag.Points(x), 2 * x)
        >>> list(post.effects().index)
        ['intercept', 'time']
        """
        import pandas as pd

        if not self.model.mean.effects:
            raise TypeError("effects: the model has none. Give GP(..., mean=LinearEffects(columns)).")
        level = probability(level, "effects", "level")
        value, covariance = self._mixed(self._effects)
        sd = np.sqrt(np.diag(covariance))
        reach, names = ndtri((1 + level) / 2) * sd, ("intercept", *self.model.mean.names)
        return pd.DataFrame({"mean": value, "std": sd, "lower": value - reach, "upper": value + reach}, index=names)

    def _effects(self, model: Any, conditional: Conditional) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = effect_moments(model, self._training_support, conditional)
        to_units = np.diag(model.mean.scales)
        if self.scaler is not None:  # the slope of (x - c) / s is a slope of x over s, and moves the intercept
            columns = np.array(model.mean.columns)
            center, scale = self.scaler.center[columns], self.scaler.scale[columns]
            to_units[0, 1:] = -model.mean.scales[1:] * center / scale
            to_units[1:, 1:] /= scale[:, None]
        level = np.array([float(model.mean.value), *np.zeros(len(mean) - 1)])
        return to_units @ mean + level, to_units @ covariance @ to_units.T

    def dispersion(self) -> float:
        """Pearson's Σ (y - η̂)² / Var(y | η̂), over the observations less the effective number of parameters.

        About one when the likelihood's scatter is right; well above one, counts are overdispersed.
        """
        return pearson(self)[0]

    def granularity(self, X: Any = None, *, widths: Any = None) -> Granularity:
        """Is this summary fine enough for this kernel, or should the regions themselves be fitted?

        Asks how far the function at the places that were summarised is from its value at the representative points.
        Regions that were fitted (Boxes, Polygons, Bags) are known, and judged as if their centres had stood for them.
        Points stand for the places `X` nearest to them, for supports `X`, one for each, or for boxes of these `widths`.

        >>> import aggregauss as ag
        >>> at = ag.Points([0.5, 1.5, 2.5, 3.5])
        >>> post = ag.GP(ag.RBF(ag.fixed(9.0), 1.0)).fit(at, [0.1, 0.3, 0.6, 0.8], noise_variance=0.01)
        >>> post.granularity(widths=1.0).level
        'fine'
        """
        observed = self.observations
        if len(observed.support) == 0:
            raise TypeError("granularity: a saved posterior does not hold its data. Ask before saving.")
        if not hasattr(observed.support, "center"):
            raise TypeError(
                "granularity: the individuals are in a file. Fit Bags of some of them, and ask that posterior."
            )
        if self.model.kernel is None:
            raise TypeError("granularity: the model has no kernel, so there is no lengthscale to compare with.")
        rows, Z, regions = represented(observed.support, X, widths)
        if self.scaler is not None:
            Z, regions = self.scaler(Points(Z)).center, self.scaler(regions)
        by_place = X is not None and not isinstance(X, Support)
        counts = regions.mass if by_place else observed.counts
        noise = self.noise_of_means()
        return granularity(self.model.kernel, Z, regions, counts, None if noise is None else noise[rows])

    def noise_of_means(self) -> np.ndarray | None:
        """Noise variances of observations as means, where noise is Gaussian."""
        if not all(isinstance(likelihood, Conjugate) for likelihood in self.model.likelihoods):
            return None
        noise = np.asarray(self.model.noise(self.observations.on_device()))
        return noise / self.observations.support.effective_mass**2

    @property
    def effective_parameters(self) -> float:
        """How many parameters the data pin down: the sum of 1 - Σ_jj over whitened inducing variables."""
        if self.conditional.root is None:
            raise TypeError(f"effective_parameters: known for sparse schemes, but this posterior is by {self.scheme}.")
        return float(len(self.conditional.alpha) - jnp.sum(self.conditional.root**2))

    def summary(self) -> "pd.DataFrame":
        """The parameters: fitted value, its 95% interval where that is known, whether learned, prior."""
        import pandas as pd

        ends = (unpack(self.model, vector) for vector in self._parameter_interval())
        lower, upper = ({p.path: np.asarray(p.value).tolist() for p in parameters(end)} for end in ends)
        known = self.parameter_covariance is not None
        rows = {
            p.path: {
                "value": np.asarray(p.value).tolist(),
                "lower": lower[p.path] if known and not p.mark.fixed else np.nan,
                "upper": upper[p.path] if known and not p.mark.fixed else np.nan,
                "learned": not p.mark.fixed,
                "prior": "" if p.mark.prior is None else str(p.mark.prior),
            }
            for p in parameters(self.model)
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def _parameter_interval(self) -> tuple[Any, Any]:
        """Ends of the 95% intervals of the packed parameters."""
        vector = pack(self.model)
        covariance = self.parameter_covariance
        reach = 0.0 if covariance is None else ndtri(0.975) * np.sqrt(np.diag(covariance))
        return vector - reach, vector + reach

    def save(self, path: Any) -> None:
        """Write to one file that holds numbers and names only; read it with `aggregauss.load`."""
        if self.inducing is None and self.conditional.root is None:
            return write(path, self)
        light = dataclasses.replace(self.observations, support=self.observations.support[:0])  # not needed to predict
        return write(path, dataclasses.replace(self, observations=light))

    def __repr__(self) -> str:
        values = ", ".join(f"{p.path}={np.asarray(p.value).round(4).tolist()}" for p in parameters(self.model))
        return f"Posterior({self.scheme}, {self.observations.support!r}, log evidence {self.evidence:.3f}, {values})"

    def _mixed(self, moments: Callable[[Any, Conditional], tuple[np.ndarray, np.ndarray]]) -> Any:
        """Mean and (co)variance over hyper-parameters, by the law of total variance."""
        if not self.mixture:
            return moments(self.model, self.conditional)
        weights = np.array([part.weight for part in self.mixture])
        each = [moments(unpack(self.model, jnp.asarray(part.vector)), part.conditional) for part in self.mixture]
        means, spreads = (np.stack(x) for x in zip(*each))
        mean = weights @ means
        away = (means - mean) * np.sqrt(weights)[:, None]
        between = np.sum(away**2, axis=0) if spreads.ndim == 2 else away.T @ away
        return mean, np.tensordot(weights, spreads, 1) + between

    def _moments(self, support: Support) -> tuple[np.ndarray, np.ndarray]:
        if getattr(self.model, "varies", False):
            return self._mixed(
                lambda model, state: aggregate_moments(model, self._inducing, state, support, product_moments)
            )
        return self._mixed(lambda model, state: latent_moments(model, self._training, state, support))

    def _joint(self, support: Callable[[], Support]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        def joint() -> tuple[np.ndarray, np.ndarray]:
            if getattr(self.model, "varies", False):
                raise TypeError("predict: joint distributions of products of functions are not known.")
            where = support()
            return self._mixed(lambda model, state: latent_joint(model, self._training, state, where))

        return functools.cache(joint)

    @functools.cached_property
    def _training_support(self) -> Support | None:
        if self.conditional.root is not None:
            return self.inducing
        observed = self.observations.support
        if self.scaler is not None:
            observed = self.scaler(observed)
        return observed if self.virtual is None else concatenate([observed, self.virtual])

    @functools.cached_property
    def _training(self) -> Layout | None:
        return None if self._training_support is None else layout(self._training_support)

    @functools.cached_property
    def _inducing(self) -> Inducing:
        return on_device(self.inducing)

    def _response(self, support: Support) -> tuple[Marginals, Callable[[], Support]]:
        """The distribution of the response, and supports whose integrals move with it."""
        link = self.model.likelihood.g
        as_it_is = self.model.aggregation == "latent" or self.model.likelihood.link == "identity"
        if as_it_is or support.kind == "Points":
            if self.mixture and self.model.likelihood.link != "identity":
                moments = self._mixed(lambda model, state: self._transformed(model, state, support))
                return _matched(link, *moments), lambda: support
            mean, variance = self._moments(support)
            if self.virtual is None:
                return link.marginals(mean, variance), lambda: support
            return truncated(mean, np.sqrt(np.maximum(variance, np.finfo(float).tiny))), lambda: support
        if any(support.wide):
            raise TypeError(
                "predict: the response can be aggregated over points only, but these supports have width. Use Bags or "
                'Polygons(..., method="sobol").'
            )
        moments = self._mixed(lambda model, state: aggregate_moments(model, self._inducing, state, support))
        return _matched(link, *moments), lambda: self._linearised(support)

    def _transformed(self, model: Any, state: Conditional, support: Support) -> tuple[np.ndarray, np.ndarray]:
        """Moments of g(v), so that those of a bag and of its individuals add up when they are mixed."""
        return _in_blocks(_moments_through, model.likelihood.g, latent_moments(model, self._training, state, support))

    def _linearised(self, support: Support) -> Support:
        """Weights w_i E g'(v_i): the integral of f against them is the response to first order."""
        mean, variance = (jnp.asarray(x) for x in self._moments(Points(support.center)))
        slope = jax.jvp(lambda m: self.model.likelihood.g.mean(m, variance), (mean,), (jnp.ones_like(mean),))[1]
        return dataclasses.replace(support, weight=support.effective_weight * np.asarray(slope), measure="total")


def pearson(post: Posterior) -> tuple[float, float]:
    """`Posterior.dispersion`, and the degrees of freedom that it is over.

    An observation uses Var(η̂) / Var(y | η̂) parameters; where others share the functions, all of them use more.
    """
    support, y = post.observations.support, post.observations.y
    if len(support) == 0:
        raise TypeError("dispersion: a saved posterior does not hold its data. Ask before saving.")
    fitted = post.predict(support, "observation").mean
    spread = np.maximum(post.model.likelihood.scatter(fitted), LEAST)
    used = min(post.effective_parameters, float(np.sum(post.predict(support).variance / spread)))
    free = max(1.0, len(y) - used)
    return float(np.sum((y - fitted) ** 2 / spread) / free), free


def _matched(link: Link, mean: np.ndarray, variance: np.ndarray) -> Marginals:
    """The response with this mean and variance."""
    return link.marginals(*_in_blocks(_match, link, (mean, variance)))


def _in_blocks(
    through: Callable[[Link, Array, Array], tuple[Array, Array]], link: Link, pair: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Elementwise work whose quadrature would take too much memory for all rows at once; one shape is compiled."""
    n = len(pair[0])
    filled = [np.append(x, np.full(-n % ROWS, x[-1])).reshape(-1, ROWS) if n else x.reshape(0, ROWS) for x in pair]
    parts = [through(link, jnp.asarray(x), jnp.asarray(y)) for x, y in zip(*filled)]
    first, second = (np.concatenate([np.zeros(0), *(np.asarray(p[i]) for p in parts)])[:n] for i in (0, 1))
    return first, second


@functools.partial(jax.jit, static_argnums=0)
def _match(link: Link, mean: Array, variance: Array) -> tuple[Array, Array]:
    return link.match(mean, variance)


@functools.partial(jax.jit, static_argnums=0)
def _moments_through(link: Link, m: Array, S: Array) -> tuple[Array, Array]:
    """Mean and variance of g(v)."""
    S = S[:, None]
    return link.mean(m, S[:, 0]), link.covariance(m[:, None], S, S[:, :, None])[:, 0, 0]
