"""Expected log likelihoods of small bags under a known Gaussian q: against draws, dense formulas and closed forms."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import binom, expon, gamma, nbinom, poisson

import aggregauss as ag
from aggregauss.inference import bounds
from aggregauss.inference.ascent import Free, Settings, data_gradient
from aggregauss.inference.data import observe
from aggregauss.inference.groups import Shape, groups, pack
from aggregauss.inference.sparse import JITTER, Moments2, pair_sum, prepare, prior_covariance
from aggregauss.likelihoods.sums import Sums
from aggregauss.parameters import pack as packed

RNG = np.random.default_rng(5)
X = np.array([0.4, 1.1, 1.1, 0.0, 0.9, 1.7, 2.6])  # one individual, two in the same place, four apart
OWNERS = np.array([0, 1, 1, 2, 2, 2, 2])
WEIGHTS = np.array([1.3, 0.5, 2.0, 0.8, 1.1, 0.4, 1.6])
BAGS = ag.Bags(X, OWNERS, WEIGHTS)
Z = np.linspace(-0.2, 2.8, 4)[:, None]
ROOT = 0.5 * np.eye(4) + 0.25 * np.tril(RNG.normal(size=(4, 4)))
Q = Moments2(jnp.asarray(RNG.normal(size=4) * 0.7), jnp.asarray(ROOT @ ROOT.T))
KEY = jax.random.key(0)
DRAWS = 100_000

LIKELIHOODS = {  # the likelihood, observations of the three bags, and log p(y | η) as scipy has it
    "poisson": (ag.Poisson(), [2.0, 5.0, 3.0], poisson.logpmf),
    "square": (ag.Poisson("square"), [2.0, 5.0, 3.0], poisson.logpmf),
    "negative binomial": (ag.NegativeBinomial(2.0), [2.0, 5.0, 3.0], lambda y, eta: nbinom.logpmf(y, 2, 2 / (2 + eta))),
    "binomial": (ag.Binomial(), [2.0, 5.0, 3.0], lambda y, eta: binom.logpmf(y, 6, eta)),
    "exponential": (ag.Exponential(), [0.4, 5.0, 3.0], lambda y, eta: expon.logpdf(y, scale=eta)),
    "gamma": (ag.GammaResponse(2.5), [0.4, 5.0, 3.0], lambda y, eta: gamma.logpdf(y, 2.5, scale=eta / 2.5)),
}
FORWARD = {"exp": np.exp, "square": np.square, "logit": expit}
COUNTS = ["poisson", "square"]


def _model(name, aggregation="response", variance=0.8):
    return ag.GP(ag.RBF(1.2, variance), LIKELIHOODS[name][0], mean=ag.Constant(0.3), aggregation=aggregation)


def _observations(name, support=BAGS):
    binary = name == "binomial"
    counts = np.full(len(support), 6.0) if binary else None
    y = np.resize(LIKELIHOODS[name][1], len(support))
    return observe(support.with_measure("mean") if binary else support, y, None, counts)


def _group(observations, shape=None):
    counts = observations.support.atom_counts
    shape = shape or Shape(int(counts.sum()), len(counts), int(counts.max()), np.dtype(float))
    return pack(observations, np.arange(len(counts)), shape, np.random.default_rng(0))


@eqx.filter_jit
def _compiled(model, at, q, group, bound, key):
    now = prepare(model, at, q, JITTER["float64"])
    return bounds.expected(model, at, now, group, bound, key)


def _expected(name, bound, model=None, group=None, at=Z, q=Q, key=KEY):
    group = group or _group(_observations(name))
    return np.asarray(_compiled(model or _model(name), jnp.asarray(at), q, group, bound, key))


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


@pytest.fixture(scope="module")
def truth():
    """Averages of log p(y | η) over joint draws of the latent values, and their standard errors."""
    draws = np.random.default_rng(1).multivariate_normal(M, S, DRAWS, method="eigh")
    out = {}
    for name, (likelihood, y, density) in LIKELIHOODS.items():
        weight = _observations(name).support.effective_weight
        g = weight * FORWARD[likelihood.link](draws)
        eta = np.stack([g[:, OWNERS == i].sum(axis=1) for i in range(3)], axis=1)
        values = density(np.array(y), eta)
        out[name] = values.mean(axis=0), values.std(axis=0) / np.sqrt(DRAWS)
    return out


def _expected_log_square(m, s):
    t = -(mpmath.mpf(m) ** 2) / (2 * s)
    return float(mpmath.log(s / 2) - mpmath.euler - 2 * t * mpmath.hyp2f2(1, 1, 2, 1.5, t))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_jensen_stays_below_the_truth(name, truth):
    mean, error = truth[name]
    below = _expected(name, "jensen")
    assert (below <= mean + 5 * error).all()
    assert (below >= mean - 2.5).all()  # and not absurdly far


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_matched_is_close_to_the_truth(name, truth):
    mean, error = truth[name]
    np.testing.assert_allclose(_expected(name, "matched"), mean, atol=0.06, rtol=0)
    alone = np.abs(_expected(name, "matched") - mean)[:2]  # one individual, and two that move together
    assert (alone <= 5 * error[:2] + 1e-4).all()


@pytest.mark.parametrize("name", COUNTS)
def test_matched_is_exact_for_one_individual_and_for_those_that_move_together(name):
    y, mass = np.array(LIKELIHOODS[name][1][:2]), BAGS.mass[:2]
    m, s = M[:2], np.diag(S)[:2]
    if name == "poisson":
        log, mean = m, np.exp(m + s / 2)
    else:
        log, mean = np.array([_expected_log_square(*case) for case in zip(m, s)]), m**2 + s
    exact = y * (np.log(mass) + log) - mass * mean - gammaln(y + 1)
    np.testing.assert_allclose(_expected(name, "matched")[:2], exact, rtol=1e-7)


def test_taylor_is_the_formula_of_law_et_al_for_the_square_link():
    y = np.array(LIKELIHOODS["square"][1])
    for i, got in enumerate(_expected("square", "taylor")):
        own = np.flatnonzero(OWNERS == i)
        P, m, s = np.diag(WEIGHTS[own]), M[own], S[np.ix_(own, own)]
        mean = m @ P @ m + np.trace(s @ P)
        zeta = np.log(mean) - (2 * m @ P @ s @ P @ m + np.trace(s @ P @ s @ P)) / mean**2
        assert got == pytest.approx(y[i] * zeta - mean - gammaln(y[i] + 1), rel=1e-9)


def test_a_square_of_a_standard_normal_number():
    """log E: taylor says -1, the truth is -γ - log 2; both are slopes in y."""
    model = ag.GP(ag.RBF(1.0, 1.0), ag.Poisson("square"), aggregation="response")
    prior = Moments2(jnp.zeros(1), jnp.eye(1))
    two = [_group(observe(ag.Points([0.0]), [y], None)) for y in (0.0, 1.0)]
    for bound, value in (("taylor", -1.0), ("matched", -np.euler_gamma - np.log(2))):
        none, one = (_expected("square", bound, model, group, np.zeros((1, 1)), prior)[0] for group in two)
        assert one - none == pytest.approx(value, abs=1e-6)


def test_the_corrected_bound_of_a_reciprocal():
    known = Sums(jnp.zeros(2), jnp.zeros(2), jnp.ones(2), jnp.zeros(2, int), 1, "exp")
    assert known.reciprocal_above().item() == pytest.approx(0.5)  # the printed formula says 1
    own = OWNERS == 2
    m, s, w = M[own], S[np.ix_(own, own)], WEIGHTS[own]
    xi = np.exp(-m + np.diag(s) / 2)
    four = Sums(jnp.asarray(m), jnp.asarray(np.diag(s)), jnp.asarray(w), jnp.zeros(4, int), 1, "exp")
    assert four.reciprocal_above().item() == pytest.approx(1 / np.sum(w / xi))
    assert four.reciprocal_above().item() < np.sum((w / xi) ** 2 * xi / w) / np.sum(w / xi) ** 2 * 1.001
    draws = np.random.default_rng(2).multivariate_normal(m, s, DRAWS)
    assert four.reciprocal_above().item() > np.mean(1 / (np.exp(draws) @ w))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_all_bounds_are_the_log_density_where_nothing_is_uncertain(name):
    likelihood, y, density = LIKELIHOODS[name]
    model, support = _model(name, variance=1e-12), _observations(name).support
    eta = support.integrate(FORWARD[likelihood.link](np.full(len(X), 0.3)))
    for bound in bounds.BOUNDS:
        np.testing.assert_allclose(_expected(name, bound, model), density(np.array(y), eta), rtol=1e-4, atol=1e-4)


def test_draws_average_to_the_truth():
    """Inducing points at all individuals leave nothing open but what is drawn."""
    at = np.unique(X)[:, None]
    q = Moments2(0.3 * jnp.ones(len(at)), 0.3 * jnp.eye(len(at)))
    model, group = _model("poisson"), _group(_observations("poisson"))
    now = prepare(model, jnp.asarray(at), q, JITTER["float64"])

    def one(key):
        return bounds.expected(model, jnp.asarray(at), now, group, "mc", key)

    each = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(KEY, 2000)))
    m, s = _field(model, X, at, q)
    draws = np.random.default_rng(3).multivariate_normal(m, s, DRAWS, method="eigh")
    eta = np.stack([(np.exp(draws) * WEIGHTS)[:, OWNERS == i].sum(axis=1) for i in range(3)], axis=1)
    values = poisson.logpmf(LIKELIHOODS["poisson"][1], eta)
    error = np.hypot(each.std(axis=0) / np.sqrt(len(each)), values.std(axis=0) / np.sqrt(DRAWS))
    assert (np.abs(each.mean(axis=0) - values.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize("name", ["poisson", "square", "binomial"])
def test_aggregating_before_and_after_the_link_is_the_same_at_points(name):
    group = _group(_observations(name, ag.Points(X)))
    after = _expected(name, "matched", _model(name), group)
    before = _expected(name, "matched", _model(name, "latent"), group)
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-4 if name == "binomial" else 1e-8)


def test_pairs_of_probes_add_up_to_all_pairs():
    model, copies, big = _model("poisson"), 20_000, BAGS[[2]]
    whole = WEIGHTS[OWNERS == 2] @ np.asarray(ag.cov(model.kernel, ag.Points(X[OWNERS == 2]))) @ WEIGHTS[OWNERS == 2]
    for probes in (4, 3, 2):  # all individuals, and samples
        many = observe(big[np.zeros(1 if probes == 4 else copies, int)], np.ones(1 if probes == 4 else copies), None)
        group = _group(many, Shape(4 * len(many.y), len(many.y), probes, np.dtype(float)))
        sums = np.asarray(pair_sum(group, prior_covariance(model, group.probes)))
        error = 0.0 if probes == 4 else sums.std() / np.sqrt(copies)
        assert sums.mean() == pytest.approx(whole, abs=4 * error + 1e-9)


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("bound", ["matched", "jensen"])
def test_padding_changes_nothing(name, bound):
    observations = _observations(name)
    roomy = _group(observations, Shape(16, 5, 6, np.dtype(float)))
    got = _expected(name, bound, group=roomy)
    np.testing.assert_allclose(got[:3], _expected(name, bound), rtol=1e-9)
    assert (got[3:] == 0).all()


@pytest.mark.parametrize(("name", "bound"), [("poisson", "matched"), ("square", "jensen"), ("gamma", "jensen")])
def test_padding_has_no_slope(name, bound):
    model, settings = _model(name), Settings(bound, "float64", True, False)
    free = Free(packed(model), jnp.asarray(Z), jnp.zeros(4), jnp.zeros((4, 4)))
    now = prepare(model, jnp.asarray(Z), Q, JITTER["float64"])
    parts = [
        data_gradient(model, free, now, _group(_observations(name), shape), KEY, settings)
        for shape in (Shape(7, 3, 4, np.dtype(float)), Shape(16, 5, 6, np.dtype(float)))
    ]
    for tight, roomy in zip(*(jax.tree.leaves(part) for part in parts)):
        np.testing.assert_allclose(roomy, tight, rtol=1e-7, atol=1e-9)


def test_grouping_changes_nothing():
    x = RNG.uniform(0, 3, 60)
    bags = ag.Bags(x, RNG.integers(0, 14, 60), RNG.uniform(0.5, 2.0, 60))
    observations = observe(bags, RNG.poisson(3.0, len(bags)).astype(float), None)
    totals = []
    for atoms, most in ((60, 14), (16, 14), (24, 3), (30, 2)):
        shape = Shape(atoms, most, int(bags.atom_counts.max()), np.dtype(float))
        each = np.full(len(bags), np.nan)
        for rows, group in groups(observations, np.arange(len(bags)), shape, np.random.default_rng(0)):
            each[rows] = _expected("poisson", "matched", group=group)[: len(rows)]
        totals.append(each)
    for each in totals[1:]:
        np.testing.assert_allclose(each, totals[0], rtol=1e-9)


def test_observations_reach_the_group_beside_their_bags():
    observations = dataclasses.replace(_observations("binomial"), noise_variance=np.array([0.1, 0.2, 0.3]))
    rows, group = next(groups(observations, np.array([0, 2]), Shape(8, 3, 4, np.dtype(float)), RNG))
    np.testing.assert_array_equal(group.present, [1, 1, 0])
    np.testing.assert_array_equal(np.asarray(group.seen.y)[:2], observations.y[rows])
    np.testing.assert_array_equal(np.asarray(group.seen.known)[:2], [0.1, 0.3])
    mean = observations.support.effective_weight
    np.testing.assert_allclose(np.asarray(group.seen.scale)[:2], [1.0, np.sum(mean[OWNERS == 2] ** 2)])
