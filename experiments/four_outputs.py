"""Noise that varies: two birth orders at two resolutions, Gaussian against heteroscedastic (Yousefi's thesis 2021, Figure 5.5).

Four tasks, rates of first and of second births as single cells and as means over blocks, share functions of age and
year. Either every task has a noise variance, or every task has a log variance, for which there is one more function.
"""

import functools

import numpy as np
import pandas as pd
from common import arguments, folder, page, resumable, table

import aggregauss as ag

BLOCKS, FINE, REPETITIONS, TESTED, INDUCING = (2, 5), 80, 4, 1000, 60
ORDERS = {"first births": "rate_1", "second births": "rate_2"}
MODELS = ("Gaussian", "heteroscedastic")
FIRST_AGE = 15
OF_NOISE, LITTLE = [8.0, 15.0], 0.5  # lengthscales and size of the log variances, to begin with
SCORES = ["evidence", "SMSE", "SNLP", "coverage"]


class Split:
    """Rates in births per hundred women; the same random cells of both orders are tested."""

    def __init__(self, data: pd.DataFrame, repetition: int):
        self.X = data[["age", "year_index"]].to_numpy(float)
        self.y = {order: 100 * data[column].to_numpy() for order, column in ORDERS.items()}
        shuffled = np.random.default_rng(repetition).permutation(len(self.X))
        self.test, self.rest = shuffled[:TESTED], shuffled[TESTED:]

    def data(self, blocks: int) -> dict[str, tuple[ag.Support, np.ndarray]]:
        """Single cells, and means over the cells of each block that are not tested."""
        fine, X = self.rest[:FINE], self.X[self.rest]
        block = (X - [FIRST_AGE, 0]) // blocks @ [1000.0, 1.0]
        bags, order = ag.Bags(X, block, measure="mean"), np.argsort(block, kind="stable")
        cells = {name: (ag.Points(self.X[fine]), y[fine]) for name, y in self.y.items()}
        means = {f"{name}, blocks": (bags, bags.integrate(y[self.rest][order])) for name, y in self.y.items()}
        return {**cells, **means}

    def scores(self, blocks: int) -> list[dict]:
        data = self.data(blocks)
        scheme = ag.SVI(inducing=INDUCING, integrate=False, max_epochs=100, tolerance=1e-4)
        kernels = [ag.RBF([4.0, 5.0]), ag.RBF([10.0, 20.0])]
        plain = ag.MultiTaskGP(kernels, dict.fromkeys(data, ag.Gaussian())).fit(data, inference=scheme, progress=False)
        varying = near(plain.model).fit(data, inference=scheme, progress=False)
        return [row for name, post in zip(MODELS, (plain, varying)) for row in self.score(name, post)]

    def score(self, model: str, post) -> list[dict]:
        found = post.predict({name: ag.Points(self.X[self.test]) for name in ORDERS}, "observation")
        rows = []
        for name, prediction in found.items():
            y, seen = self.y[name][self.test], self.y[name][self.rest]
            trivial = ag.metrics.gaussian_nlpd(y, seen.mean(), seen.var())
            rows.append(
                {
                    "model": model,
                    "output": name,
                    "evidence": post.evidence,
                    "SMSE": ag.metrics.mse(y, prediction.mean) / y.var(),
                    "SNLP": -prediction.log_density(y).mean() - trivial,
                    "coverage": ag.metrics.coverage(y, *prediction.interval(0.95)),
                }
            )
        return rows


def near(plain: ag.MultiTaskGP) -> ag.MultiTaskGP:
    """The heteroscedastic model that begins where the Gaussian one ended, with log variances that vary a little.

    They have a function of their own: means need not bend the ones that they share to make noise vary.
    """
    latents = [*plain.latents, ag.RBF(OF_NOISE)]
    model = ag.MultiTaskGP(latents, dict.fromkeys(plain.tasks, ag.HeteroscedasticGaussian()))
    log_variance = [np.log(float(likelihood.variance)) for likelihood in plain.likelihoods]
    none = np.zeros(len(plain.tasks))
    each = [(mixing.weights, none) for mixing in plain.mixing] + [(none, none + LITTLE)]
    weights = {f"mixing[{q}].weights": np.ravel(np.column_stack(pair)) for q, pair in enumerate(each)}
    levels = np.ravel(np.column_stack([plain.mean.values, log_variance]))
    return model.replace({path: ag.param(value) for path, value in {**weights, "mean.values": levels}.items()})


def lines(rows: pd.DataFrame) -> list[list[str]]:
    """Means over the repetitions."""
    means = rows.groupby(["blocks", "output", "model"], sort=False)[SCORES].mean()
    return [
        [f"{b}x{b}", output, model, f"{row.evidence:.0f}", f"{row.SMSE:.4f}", f"{row.SNLP:.2f}", f"{row.coverage:.2f}"]
        for (b, output, model), row in means.iterrows()
    ]


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    data = pd.read_csv(folder(options, "fertility_canada") / "fertility_1x1.csv")
    split = functools.lru_cache(1)(functools.partial(Split, data))
    keys = [(r, b) for r in range(REPETITIONS) for b in BLOCKS]
    columns = ["repetition", "blocks", "model", "output", *SCORES]
    found = resumable("four_outputs", keys, columns, lambda r, b: split(r).scores(b), options.fresh)
    rows = pd.DataFrame(found).astype(dict.fromkeys(SCORES, float))
    snlp = rows.pivot_table(index=["repetition", "blocks", "output"], columns="model", values="SNLP")
    better = int((snlp["heteroscedastic"] < snlp["Gaussian"]).sum())
    smse = rows.pivot_table(index=["repetition", "blocks", "output"], columns="model", values="SMSE")
    closer = int((smse["heteroscedastic"] < smse["Gaussian"]).sum())
    page(
        "four_outputs",
        "Noise that varies, at two resolutions",
        f"""
Rates of first and of second births by single age and year in Canada. {TESTED} cells are tested. {FINE} others are known by
themselves, and all that are not tested as means over blocks: four tasks, which share two functions. Either every task has
one noise variance, or every task has a log variance too, for which there is a third function (`HeteroscedasticGaussian`;
that search begins where the other ended). `SVI` with {INDUCING} inducing points for each function; {REPETITIONS} repetitions,
averaged. SNLP is the mean negative log density of a tested rate less that of a normal distribution with mean and variance of all cells that are not tested.

{table(["blocks", "output", "model", "bound", "SMSE", "SNLP", "inside 95%"], lines(rows))}

The heteroscedastic model has the better SNLP in {better} of {len(snlp)} cases, and the smaller squared error in {closer}. Rates are near zero, and hardly scatter, at the youngest
and oldest ages.
""",
    )
