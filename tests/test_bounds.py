"""Expected log likelihoods of small bags under a known Gaussian q: against draws, dense formulas and closed forms."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import binom, gamma, nbinom, poisson

import aggregauss as ag
from aggregauss.inference import bounds
from aggregauss.inference.ascent import cast
from aggregauss.inference.data import observe
from aggregauss.inference.groups import Shape, groups, pack
from aggregauss.inference.inducing import JITTER, on_device
from aggregauss.inference.sparse import pair_sum, prepare, prior_covariance
from aggregauss.inference.variational import Moments2
from aggregauss.likelihoods.sums import Sums
from aggregauss.parameters import pack as packed
from aggregauss.parameters import unpack

RNG = np.random.default_rng(5)
X = np.array([0.4, 1.1, 1.1, 0.0, 0.9, 1.7, 2.6])  # one individual, two in the same place, four apart
OWNERS = np.array([0, 1, 1, 2, 2, 2, 2])
MEMBERS = [slice(0, 1), slice(1, 3), slice(3, 7)]
WEIGHTS = np.array([1.3, 0.5, 2.0, 0.8, 1.1, 0.4, 1.6])
BAGS = ag.Bags(X, OWNERS, WEIGHTS)
Z = np.linspace(-0.2, 2.8, 4)[:, None]
ROOT = 0.5 * np.eye(4) + 0.25 * np.tril(RNG.normal(size=(4, 4)))
Q = Moments2(jnp.asarray(RNG.normal(size=4) * 0.7), jnp.asarray(ROOT @ ROOT.T))
KEY = jax.random.key(0)
DRAWS = 100_000
ROOMY = Shape(16, 5, 6, np.dtype(float))  # for 7 individuals of 3 bags of up to 4

LIKELIHOODS = {  # the likelihood, observations of the three bags, and log p(y | η) as scipy has it
    "poisson": (ag.Poisson(), [2.0, 5.0, 3.0], poisson.logpmf),
    "square": (ag.Poisson("square"), [2.0, 5.0, 3.0], poisson.logpmf),
    "negative binomial": (ag.NegativeBinomial(2.0), [2.0, 5.0, 3.0], lambda y, eta: nbinom.logpmf(y, 2, 2 / (2 + eta))),
    "binomial": (ag.Binomial(), [2.0, 5.0, 3.0], lambda y, eta: binom.logpmf(y, 6, eta)),
    "gamma": (ag.GammaResponse(2.5), [0.4, 5.0, 3.0], lambda y, eta: gamma.logpdf(y, 2.5, scale=eta / 2.5)),
}
FORWARD = {"exp": np.exp, "square": np.square, "logit": expit}


def _model(name, aggregation="response", variance=0.8):
    return ag.GP(ag.RBF(1.2, variance), LIKELIHOODS[name][0], mean=ag.Constant(0.3), aggregation=aggregation)


def _observations(name, support=BAGS):
    binary = name == "binomial"
    counts = np.full(len(support), 6.0) if binary else None
    y = np.resize(LIKELIHOODS[name][1], len(support))
    return observe(support.with_measure("mean") if binary else support, y, None, counts)


def _group(observations, shape=ROOMY):
    return pack(observations, np.arange(len(observations.y)), shape, np.random.default_rng(0))


@eqx.filter_jit
def _compiled(model, at, q, group, key, chosen):
    now = prepare(model, at, q, JITTER["float64"])
    return {bound: bounds.expected(model, at, now, group, bound, key) for bound in chosen}


def _expected(name, model=None, group=None, at=Z, q=Q, key=KEY, chosen=None):
    """Every bound for every bag; one compiled program for each likelihood."""
    chosen = chosen or (bounds.BOUNDS if name in ("poisson", "square") else ("matched", "jensen"))
    group = group or _group(_observations(name))
    every = _compiled(model or _model(name), on_device(ag.Points(at)), q, group, key, chosen)
    return {bound: np.asarray(values) for bound, values in every.items()}


def _field(model, x, at=Z, q=Q):
    """Joint mean and covariance of the latent function at x under q, by dense formulas."""

    def k(a, b):
        return np.asarray(ag.cov(model.kernel, ag.Points(a), ag.Points(b)))

    K = k(at, at)
    L = np.linalg.cholesky(K + JITTER["float64"] * np.diag(np.diag(K)))
    C = np.linalg.solve(L, k(at, x)).T
    mean = float(model.mean.value) + C @ np.asarray(q.mean)
    return mean, k(x, x) - C @ C.T + C @ np.asarray(q.covariance) @ C.T


M, S = _field(_model("poisson"), X)


def _average(density, y, draws):
    """The average of log p(y | η) over draws of η, and its standard error."""
    values = density(np.array(y), draws)
    return values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))


def _totals(responses):
    return np.stack([responses[:, own].sum(axis=1) for own in MEMBERS], axis=1)


@pytest.fixture(scope="module")
def draws():
    return np.random.default_rng(1).multivariate_normal(M, S, DRAWS, method="eigh")


def _expected_log_square(m, s):
    t = -(mpmath.mpf(m) ** 2) / (2 * s)
    return float(mpmath.log(s / 2) - mpmath.euler - 2 * t * mpmath.hyp2f2(1, 1, 2, 1.5, t))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_jensen_stays_below_the_truth_and_matched_is_near_it(name, draws):
    likelihood, y, density = LIKELIHOODS[name]
    weight = _observations(name).support.effective_weight
    truth, error = _average(density, y, _totals(weight * FORWARD[likelihood.link](draws)))
    got = _expected(name)
    assert (got["jensen"][:3] <= truth + 5 * error).all()
    assert (got["jensen"][:3] >= truth - 2.0).all()
    alone = np.abs(got["matched"][:2] - truth[:2])  # one individual, and two that move together
    assert (alone <= 5 * error[:2] + 1e-4).all()
    if name != "square":
        assert got["matched"][2] == pytest.approx(truth[2], abs=0.1)


@pytest.mark.parametrize("name", ["poisson", "square"])
def test_matched_is_exact_for_one_individual_and_for_those_that_move_together(name):
    y, mass = np.array(LIKELIHOODS[name][1][:2]), BAGS.mass[:2]
    m, s = M[:2], np.diag(S)[:2]
    if name == "poisson":
        log, mean = m, np.exp(m + s / 2)
    else:
        log, mean = np.array([_expected_log_square(*case) for case in zip(m, s)]), m**2 + s
    exact = y * (np.log(mass) + log) - mass * mean - gammaln(y + 1)
    np.testing.assert_allclose(_expected(name)["matched"][:2], exact, rtol=1e-7)


def test_taylor_is_the_formula_of_law_et_al_for_the_square_link():
    y, got = LIKELIHOODS["square"][1], _expected("square")["taylor"]
    for i, own in enumerate(MEMBERS):
        P, m, s = np.diag(WEIGHTS[own]), M[own], S[own, own]
        mean = m @ P @ m + np.trace(s @ P)
        zeta = np.log(mean) - (2 * m @ P @ s @ P @ m + np.trace(s @ P @ s @ P)) / mean**2
        assert got[i] == pytest.approx(y[i] * zeta - mean - gammaln(y[i] + 1), rel=1e-9)


def test_the_expected_logarithm_of_a_squared_normal_number():
    """Taylor says -1, the truth is -γ - log 2; both are slopes in y."""
    model = ag.GP(ag.RBF(1.0, 1.0), ag.Poisson("square"), mean=ag.Constant(0.0), aggregation="response")
    prior = Moments2(jnp.zeros(4), jnp.eye(4))
    none, one = (_expected("square", model, _group(observe(ag.Points([0.0]), [y], None)), Z, prior) for y in (0, 1))
    for bound, value in (("taylor", -1.0), ("matched", -np.euler_gamma - np.log(2))):
        assert one[bound][0] - none[bound][0] == pytest.approx(value, abs=1e-5)


def test_the_corrected_bound_of_a_reciprocal(draws):
    """Two known individuals, for which the printed formula says 1, and four uncertain ones."""
    own = MEMBERS[2]
    m, s, w = (np.concatenate(pair) for pair in (([0, 0], M[own]), ([0, 0], np.diag(S)[own]), ([1, 1], WEIGHTS[own])))
    sums = Sums(*map(jnp.asarray, (m, s, w)), jnp.asarray([0, 0, 1, 1, 1, 1]), 2, "exp")
    above = np.asarray(jax.jit(Sums.reciprocal_above)(sums))
    np.testing.assert_allclose(above, [0.5, 1 / np.sum((w / np.exp(-m + s / 2))[2:])])
    assert above[1] > np.mean(1 / (np.exp(draws[:, own]) @ w[2:]))


def test_exponential_is_gamma_of_shape_one():
    group = _group(_observations("gamma"))
    sums = Sums(*map(jnp.asarray, (M, np.diag(S), WEIGHTS)), jnp.asarray(OWNERS), 5, "exp")
    jensen = jax.jit(lambda sums: [p.jensen(group.seen, sums) for p in (ag.Exponential(), ag.GammaResponse(1.0))])
    one, other = jensen(sums)
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_all_bounds_are_the_log_density_where_nothing_is_uncertain(name):
    likelihood, y, density = LIKELIHOODS[name]
    eta = _observations(name).support.integrate(FORWARD[likelihood.link](np.full(len(X), 0.3)))
    for values in _expected(name, _model(name, variance=1e-12)).values():
        np.testing.assert_allclose(values[:3], density(np.array(y), eta), rtol=1e-4, atol=1e-4)


def test_draws_average_to_the_truth():
    """Individuals at the inducing points leave nothing open but what is drawn."""
    model, w = _model("poisson"), WEIGHTS[MEMBERS[2]]
    group = _group(observe(ag.Bags(Z, np.zeros(4, int), w), [3.0], None))
    each = np.array([_expected("poisson", model, group, key=k)["mc"][0] for k in jax.random.split(KEY, 120)])
    v = np.random.default_rng(3).multivariate_normal(*_field(model, Z), DRAWS, method="eigh")
    truth, error = _average(poisson.logpmf, 3.0, np.exp(v) @ w)
    assert abs(each.mean() - truth) < 4 * np.hypot(error, each.std() / np.sqrt(len(each)))


@pytest.mark.parametrize("name", ["poisson", "square"])
def test_aggregating_before_and_after_the_link_is_the_same_at_points(name):
    group = _group(_observations(name, ag.Points(X[3:])))
    before = _expected(name, _model(name, "latent"), group, chosen=("matched",))["matched"]
    np.testing.assert_allclose(_expected(name, group=group)["matched"], before, rtol=1e-6)


def test_pairs_of_probes_add_up_to_all_pairs():
    model, big, w = _model("poisson"), BAGS[[2]], WEIGHTS[MEMBERS[2]]
    whole = w @ np.asarray(ag.cov(model.kernel, ag.Points(X[MEMBERS[2]]))) @ w
    for probes, copies in ((4, 1), (2, 10_000)):  # all individuals, and samples of them
        many = observe(big[np.zeros(copies, int)], np.ones(copies), None)
        group = _group(many, Shape(4 * copies, copies, probes, np.dtype(float)))
        sums = np.asarray(jax.jit(lambda g: pair_sum(g, prior_covariance(model, g.probes)))(group))
        assert sums.mean() == pytest.approx(whole, abs=4 * sums.std() / np.sqrt(copies) + 1e-9)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_padding_adds_nothing(name):
    for bound, values in _expected(name).items():
        assert (values[3:] == 0).all(), bound


def test_padding_has_no_slope():
    model, group, places = _model("gamma"), _group(_observations("gamma")), on_device(ag.Points(Z))

    @jax.jit
    def total(vector):
        now = prepare(unpack(model, vector), places, Q, JITTER["float64"])
        return jnp.sum(bounds.expected(unpack(model, vector), places, now, group, "jensen", KEY))

    assert np.isfinite(jax.jit(jax.grad(total))(packed(model))).all()


def test_grouping_changes_nothing():
    bags = ag.Bags(RNG.uniform(0, 3, 40), np.append(np.arange(10), RNG.integers(0, 10, 30)), RNG.uniform(0.5, 2.0, 40))
    observations = observe(bags, RNG.poisson(3.0, 10).astype(float), None)
    totals = []
    for atoms, most in ((40, 10), (20, 3)):
        shape, each = Shape(atoms, most, int(bags.atom_counts.max()), np.dtype(float)), np.full(10, np.nan)
        for rows, group in groups(observations, np.arange(10), (shape,), np.random.default_rng(0)):
            each[rows] = _expected("poisson", group=group, chosen=("matched",))["matched"][: len(rows)]
        totals.append(each)
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-9)


def test_bags_in_rows_have_the_same_bound_and_slopes():
    """Rows, the last atoms of which weigh nothing, against atoms in a line with the owner of each."""
    model, observations = _model("poisson"), _observations("poisson")
    n, largest = len(observations.y), int(observations.support.atom_counts.max())
    rows = Shape(n * largest, n, largest, np.dtype(float), every_atom=True, in_rows=True)
    line = dataclasses.replace(rows, in_rows=False)
    places, found = on_device(ag.Points(Z)), []
    for shape in (rows, line):
        group = pack(observations, np.arange(n), shape, np.random.default_rng(0))

        @jax.jit
        def total(vector, group=group):
            own = unpack(model, vector)
            now = prepare(own, places, Q, 1e-8)
            return sum(jnp.sum(bounds.expected(own, places, now, group, b, KEY)) for b in ("linearised", "matched"))

        found.append(jax.value_and_grad(total)(packed(model)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-7)


@eqx.filter_jit
def _in_precision(model, group, dtype):
    places = on_device(ag.Points(Z))
    now = prepare(model, places, Q, JITTER["float32"])
    now = jax.tree.map(lambda x: x.astype(dtype), now)
    return bounds.expected(cast(model, dtype), cast(places, dtype), now, group, "matched", KEY)


def test_single_precision_tells_nearly_the_same():
    model, observations = _model("poisson"), _observations("poisson")
    shapes = {kind: dataclasses.replace(ROOMY, dtype=np.dtype(kind)) for kind in ("float32", "float64")}
    values = {kind: np.asarray(_in_precision(model, _group(observations, s), kind)) for kind, s in shapes.items()}
    assert [str(x.dtype) for x in values.values()] == ["float32", "float64"]
    np.testing.assert_allclose(values["float32"], values["float64"], rtol=1e-4)


def test_observations_reach_the_group_beside_their_bags():
    observations = dataclasses.replace(_observations("binomial"), noise_variance=np.array([0.1, 0.2, 0.3]))
    rows, group = next(groups(observations, np.array([0, 2]), (Shape(8, 3, 4, np.dtype(float)),), RNG))
    np.testing.assert_array_equal(group.present, [1, 1, 0])
    np.testing.assert_array_equal(np.asarray(group.seen.y)[:2], observations.y[rows])
    np.testing.assert_array_equal(np.asarray(group.seen.known)[:2], [0.1, 0.3])
    mean = observations.support.effective_weight
    np.testing.assert_allclose(np.asarray(group.seen.scale)[:2], [1.0, np.sum(mean[MEMBERS[2]] ** 2)])
