"""Bags of points on a swiss roll in 18 dimensions (Law et al. 2018), and what the experiments with such bags share.

A point at angle t, uniform on [1.5π, 4.5π], lies at (t cos t, 21 u, t sin t). Points are sorted by the last coordinate,
largest first, and fill the bags in that order; sizes are 1 + negative binomial. Then 15 zeros are appended, a fixed
rotation mixes the 18 coordinates, and the training set's mean and standard deviation standardise them.

* Poisson: rates λ = t/2, counts Poisson(λ); a bag's count is their sum.
* Normal: means μ = (t - 4.7124)/(14.137 - 4.7124), labels N(μ, 0.1²); a bag's label is their sum.
"""

import argparse
import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd
from common import ROWS, arguments, resumable, table
from scipy.stats import wilcoxon

import aggregauss as ag
from aggregauss.metrics import LEVELS, calibration, mse

DIMENSIONS, TEST_BAGS, NOISE = 18, 500, 0.1
LANDMARKS, SEEDS = 30, 5
BESIDE = 2  # repetitions of other bounds, which are shown beside the default for one design
COVERS = [f"cover {level:.2f}" for level in LEVELS]
COVERED = 5_000  # individuals whose intervals are checked
DESIGNS = {"bags": (100, 150, 200, 250, 300, 350), "size": (50, 100, 200, 300)}
DESIGN_KEY = ["design", "value", "seed"]
BATCH = 15
PILOT_SEED = 100
SETTINGS = ["manifold", "l2", "learning_rate"]
PILOT = {"manifold": (10, 1, 0), "l2": (1, 0), "learning_rate": (0.01, 0.05)}
BEST = 1  # settings of the pilot that are tried on every set


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Individuals in bags: inputs (N, d), the bag of each, what is to be found, and the label that is summed."""

    X: np.ndarray
    bag: np.ndarray
    truth: np.ndarray
    label: np.ndarray

    @property
    def size(self) -> np.ndarray:
        return np.bincount(self.bag)

    @property
    def y(self) -> np.ndarray:
        """What is observed: the sum of each bag's labels."""
        return self.total(self.label)

    @property
    def bags(self) -> ag.Support:
        return ag.Bags(self.X, bag=self.bag, measure="total")

    def total(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.bag, values)


@dataclasses.dataclass(frozen=True, eq=False)
class Splits:
    """Bags to learn from, to stop early by, to choose settings by, and to test on."""

    train: Sample
    early: Sample
    validation: Sample
    test: Sample

    def standardised(self) -> "Splits":
        """Inputs less the training mean, over the training standard deviation."""
        centre, scale = self.train.X.mean(axis=0), self.train.X.std(axis=0)
        parts = (self.train, self.early, self.validation, self.test)
        return Splits(*(dataclasses.replace(part, X=(part.X - centre) / scale) for part in parts))


def sizes(rng: np.random.Generator, mean: float, sd: float, number: int) -> np.ndarray:
    """1 + negative binomial, with the given mean and standard deviation."""
    success = (mean - 1) / sd**2
    return 1 + rng.negative_binomial((mean - 1) * success / (1 - success), success, number)


def swiss_bags(
    n_bags: int,
    mean_size: float,
    sd_size: float,
    seed: int,
    rotation_seed: int = 23,
    model: Literal["poisson", "normal"] = "poisson",
) -> Sample:
    """One set of bags, not standardised."""
    rng = np.random.default_rng(seed)
    size = sizes(rng, mean_size, sd_size, n_bags)
    t = rng.uniform(1.5 * np.pi, 4.5 * np.pi, size.sum())
    roll = np.column_stack([t * np.cos(t), rng.uniform(0, 21, len(t)), t * np.sin(t)])
    order = np.argsort(-roll[:, 2], kind="stable")
    roll, t = roll[order], t[order]
    truth = t / 2 if model == "poisson" else (t - 4.7124) / (14.137 - 4.7124)
    label = rng.poisson(truth).astype(float) if model == "poisson" else rng.normal(truth, NOISE)
    mixed = np.random.RandomState(rotation_seed).uniform(0, 2, (DIMENSIONS, DIMENSIONS))
    rotation = np.linalg.qr(mixed).Q
    return Sample(roll @ rotation[:3], np.repeat(np.arange(n_bags), size), truth, label)


def splits(
    n_bags: int,
    mean_size: float,
    sd_size: float,
    seed: int,
    held_out: int | None = None,
    model: Literal["poisson", "normal"] = "poisson",
) -> Splits:
    """Four independent sets, standardised; `held_out` bags (as many as for training by default) to stop and to choose."""
    held_out = n_bags if held_out is None else held_out
    numbers, seeds = (n_bags, held_out, held_out, TEST_BAGS), np.random.SeedSequence(seed).generate_state(4)
    return Splits(
        *(swiss_bags(n, mean_size, sd_size, int(s), model=model) for n, s in zip(numbers, seeds))
    ).standardised()


def designed(design: str, value: int, seed: int, model: Literal["poisson", "normal"]) -> Splits:
    """The paper's two designs: `value` bags of 150 ± 50 individuals, or 600 bags of `value` ± `value`/2."""
    if design == "bags":
        return splits(value, 150, 50, seed, model=model)
    return splits(600, value, value / 2, seed, held_out=150, model=model)


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """What a method says: the individuals of a sample, its bags' totals, and, where it is Bayesian, intervals."""

    individuals: Callable[[Sample], np.ndarray]
    totals: Callable[[Sample], np.ndarray]
    interval: Callable[[ag.Support], Callable[[float], tuple[np.ndarray, np.ndarray]]] | None = None
    bag_variance: Callable[[Sample], np.ndarray] | None = None
    tau: float = np.nan  # variance of an individual's label, under the normal model
    setting: str = ""
    model: Any = None


def by_individuals(individuals: Callable[[Sample], np.ndarray], **rest: Any) -> Fit:
    """A method whose totals are the sums of its individuals."""
    return Fit(individuals, lambda sample: sample.total(individuals(sample)), **rest)


def constant(data: Splits) -> Fit:
    """Individuals: the mean label of their own bag. Bags: their size times the overall mean of the training set."""
    overall = data.train.y.sum() / data.train.size.sum()
    return Fit(lambda sample: (sample.y / sample.size)[sample.bag], lambda sample: overall * sample.size)


def gaussian_process(post: ag.Posterior, normal: bool = False) -> Fit:
    """A posterior of ours; under the normal model with its noise and the variance of a new bag's total."""
    fit = by_individuals(
        lambda sample: post.predict(ag.Points(sample.X)).mean,
        interval=lambda points: post.predict(points).interval,
    )
    if not normal:
        return fit
    variance = lambda sample: post.predict(sample.bags, kind="observation").variance  # noqa: E731
    return dataclasses.replace(fit, bag_variance=variance, tau=float(post.model.likelihood.variance))


def landmarks(X: np.ndarray, seed: int, number: int = LANDMARKS) -> np.ndarray:
    """Centres by the seeding of k-means++, without Lloyd's iterations."""
    from sklearn.cluster import kmeans_plusplus

    return kmeans_plusplus(X, number, random_state=seed)[0]


def median_lengthscale(X: np.ndarray, seed: int = 0) -> float:
    """√(median squared distance / 2) of a thousand points: where the paper's kernels start."""
    from scipy.spatial.distance import pdist

    chosen = np.random.default_rng(seed).permutation(len(X))[:1000]
    return float(np.sqrt(np.median(pdist(X[chosen], "sqeuclidean")) / 2))


def schedule(bags: int) -> dict[str, int]:
    """Batches of 15 bags, 1,500 to 4,500 steps, and 100 steps without improvement before the end.

    That is the paper's schedule at 150 bags, where a batch is a tenth of the bags.
    """
    steps = -(-bags // BATCH)
    return {"batch_size": BATCH, "epochs": -(-4500 // steps), "patience": -(-100 // steps)}


def estimator(method: str, data: Splits, seed: int, likelihood: str, ard: bool = False) -> Any:
    """A baseline before its settings are chosen."""
    from aggregauss.baselines import NeuralNetwork, NystromMAP

    rest: dict[str, Any] = {"likelihood": likelihood, "standardise": False, "seed": seed, **schedule(len(data.train.y))}
    if method == "nystrom":
        return NystromMAP(landmarks=LANDMARKS, ard=ard, **rest)
    return NeuralNetwork(hidden=LANDMARKS, **rest)


def baseline(model: Any, settings: list[dict[str, float]], data: Splits) -> Fit:
    """The setting with the highest likelihood of the validation bags; training stops early by a set of its own."""
    from aggregauss.baselines import tuned

    train, early, validation = ((part.bags, part.y) for part in (data.train, data.early, data.validation))
    grid = [{name: [value] for name, value in setting.items()} for setting in settings]
    best: Any = tuned(model, grid, *train, validation=validation, stopping=early, progress=False)
    return by_individuals(
        lambda sample: best.predict(ag.Points(sample.X)),
        setting=describe({name: getattr(best, name) for name in SETTINGS}),
        tau=getattr(best, "tau_", np.nan),
        model=best,
    )


def describe(setting: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in setting.items())


def pilot(name: str, estimators: dict[str, Any], data: Splits, fresh: bool) -> pd.DataFrame:
    """Every setting of the baselines on one set that is no part of the experiment; a failure is a row without figures.

    The network has no L2 penalty, as in the authors' code.
    """

    def compute(method: str, *setting: float) -> dict:
        try:
            fit = baseline(estimators[method], [dict(zip(SETTINGS, setting))], data)
        except FloatingPointError:
            return {}
        error = mse(data.train.truth, fit.individuals(data.train))
        loss = -fit.model.score(data.validation.bags, data.validation.y)
        return {"validation nll": f"{loss:.6g}", "mse": f"{error:.6g}", "epochs": fit.model.n_iter_}

    keys = [("nystrom", *setting) for setting in itertools.product(*PILOT.values())]
    keys += [("nn", *setting) for setting in itertools.product(*PILOT.values()) if setting[1] == 0]
    columns = ["method", *SETTINGS, "validation nll", "mse", "epochs"]
    rows = pd.DataFrame(resumable(f"{name}_pilot", keys, columns, compute, fresh))
    return rows.assign(**{c: pd.to_numeric(rows[c]) for c in columns[1:]})


def best_settings(rows: pd.DataFrame, method: str) -> list[dict[str, float]]:
    """The settings with the lowest NLL of the pilot's validation bags."""
    rows = rows[rows.method == method].dropna(subset=["validation nll"]).sort_values("validation nll")
    return [dict(r) for _, r in rows[SETTINGS].head(BEST).iterrows()]


def pilot_table(rows: pd.DataFrame, names: dict[str, str]) -> str:
    """The settings that were tried, best first."""
    rows = rows.sort_values("validation nll")
    lines = [
        [f"{names[r.method]}: {describe(r[SETTINGS])}", f"{r['validation nll']:.3f}", f"{r.mse:.4f}"]
        for m in ("nystrom", "nn")
        for _, r in rows[rows.method == m].iterrows()
    ]
    return table(["setting", "NLL of validation bags", "MSE of individuals (not used)"], lines)


def coverages(fit: Fit, sample: Sample) -> dict[str, float]:
    """The share of true values inside the central intervals of each level, over some of the individuals."""
    if fit.interval is None:
        return {}
    chosen = np.random.default_rng(0).permutation(len(sample.X))[:COVERED]
    shares = calibration(sample.truth[chosen], fit.interval(ag.Points(sample.X[chosen])))
    return dict(zip(COVERS, shares.values()))


def coverage_error(rows: pd.DataFrame) -> pd.Series:
    """Mean absolute difference of coverage and level, for each row."""
    return (rows[COVERS] - np.array(LEVELS)).abs().mean(axis=1)


def options_for(description: str, methods: Iterable[str], seeds: int) -> argparse.Namespace:
    """The usual options, and which part of the plan to run."""
    parser = arguments(description)
    parser.add_argument("--methods", default=",".join(methods), help="methods to run, separated by commas")
    parser.add_argument("--seeds", type=int, default=seeds, help="how many repetitions to run")
    parser.add_argument(
        "--pilot", action="store_true", help="try all settings of the baselines on a set apart, and stop"
    )
    parser.add_argument("--quick", action="store_true", help="one repetition of the first setting of each design")
    options = parser.parse_args()
    options.methods = options.methods.split(",")
    if unknown := set(options.methods) - set(methods):
        parser.error(f"--methods: {', '.join(sorted(unknown))} is none of {', '.join(methods)}")
    return options


def run(
    name: str,
    designs: dict[str, tuple],
    columns: list[str],
    compute: Callable[..., dict],
    methods: Iterable[str],
    seeds: int,
    options: argparse.Namespace,
) -> tuple[pd.DataFrame, bool]:
    """Compute the part of the plan that the options want; all rows of the plan that are known, and whether that is all.

    The plan has a row for every (design, value, seed, method); `--fresh` forgets the wanted part only.
    """
    plan = [(d, v, s, m) for s in range(seeds) for d, values in designs.items() for v in values for m in methods]
    plan = [key for key in plan if not key[3].endswith("jensen") or (key[0] == "bags" and key[2] < BESIDE)]
    repetitions = 1 if options.quick else options.seeds
    wanted = [key for key in plan if key[2] < repetitions and key[3] in options.methods]
    if options.quick:
        wanted = [key for key in wanted if key[1] == designs[key[0]][0]]
    path = ROWS / f"{name}.csv"
    if options.fresh and path.exists():
        old = pd.read_csv(path, dtype=str)
        gone = pd.MultiIndex.from_frame(old[columns[:4]]).isin([tuple(map(str, key)) for key in wanted])
        old[~gone].to_csv(path, index=False)
    resumable(name, wanted, columns, compute, fresh=False)
    rows = pd.read_csv(path)
    rows = rows[pd.MultiIndex.from_frame(rows[columns[:4]]).isin(plan)]
    return rows, len(rows) == len(plan)


def p_value(rows: pd.DataFrame, key: list[str], ours: str, other: str, score: str) -> str:
    """One-sided Wilcoxon signed-rank test over repetitions; small when ours has the lower score."""
    scores = rows[rows.method.isin([ours, other])].pivot_table(index=key, columns="method", values=score)
    if ours not in scores or other not in scores or len(pairs := scores[[ours, other]].dropna()) < 5:
        return "–"
    return f"{wilcoxon(pairs[ours], pairs[other], alternative='less').pvalue:.2g}"


def with_sd(values: pd.Series, digits: int) -> str:
    """Mean ± standard deviation over repetitions."""
    values = values.dropna()
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}" if len(values) > 1 else "–"
