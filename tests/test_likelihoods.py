"""Likelihoods and links against scipy's densities, sums over all outcomes, and dense quadrature."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, gammaln, log_expit, log_ndtr, logsumexp, ndtr

import aggregauss as ag
from aggregauss.archive import write
from aggregauss.likelihoods.likelihood import Seen
from aggregauss.likelihoods.links import LINKS
from instances import LIKELIHOODS

TRIALS, SHARE = 12.0, 1.7  # trials of the binomial ones, Σ w² of the support
FORWARD = {"identity": lambda v: v, "exp": np.exp, "square": np.square, "logit": expit, "probit": ndtr}
LOG_FORWARD = {"logit": log_expit, "probit": log_ndtr}
TRUTH = {  # log p(y | η) as scipy has it
    "gaussian": lambda y, eta: stats.norm.logpdf(y, eta, np.sqrt(0.3)),
    "gaussian-individual": lambda y, eta: stats.norm.logpdf(y, eta, np.sqrt(0.3 * SHARE)),
    "poisson-exp": stats.poisson.logpmf,
    "poisson-square": stats.poisson.logpmf,
    "negative-binomial": lambda y, eta: stats.nbinom.logpmf(y, 3.0, 3.0 / (3.0 + eta)),
    "binomial-logit": lambda y, eta: stats.binom.logpmf(y, TRIALS, eta),
    "binomial-probit": lambda y, eta: stats.binom.logpmf(y, TRIALS, eta),
    "bernoulli": stats.bernoulli.logpmf,
    "gamma": lambda y, eta: stats.gamma.logpdf(y, 2.5, scale=eta / 2.5),
    "exponential": lambda y, eta: stats.expon.logpdf(y, scale=eta),
}
Z, MASS = np.polynomial.hermite_e.hermegauss(60)
MASS = MASS / MASS.sum()
ROWS = 4096  # every density is asked for in rows of this length, so that it is compiled once


def _trials(name):
    return TRIALS if name.startswith("binomial") else 1.0


def _seen(name, y):
    ones = jnp.ones(len(y))
    return Seen(jnp.asarray(y), _trials(name) * ones, 0.0 * ones, SHARE * ones)


@eqx.filter_jit
def _compiled(likelihood, seen, eta):
    return likelihood.log_density(seen, eta)


def _log_density(name, y, eta):
    y, eta = (np.asarray(x, float) for x in np.broadcast_arrays(y, eta))
    filler = -len(y) % ROWS
    y, eta = (np.append(x, np.full(filler, x[-1])).reshape(-1, ROWS) for x in (y, eta))
    rows = [_compiled(LIKELIHOODS[name], _seen(name, row), jnp.asarray(own)) for row, own in zip(y, eta)]
    return np.concatenate(rows)[: y.size - filler]


def _outcomes(name):
    """All outcomes that matter for moderate η, with the weights of a sum or of the trapezium rule."""
    if name.startswith(("gaussian", "laplace")):
        y = np.linspace(-40, 40, ROWS)
        return y, np.full(ROWS, y[1] - y[0])
    if name in ("gamma", "exponential"):
        t = np.linspace(-30, 8, ROWS)
        return np.exp(t), np.exp(t) * (t[1] - t[0])
    last = {"binomial": TRIALS, "bernoulli": 1.0}.get(name.split("-")[0], ROWS - 1.0)
    return np.arange(last + 1), np.ones(int(last) + 1)


def _etas(name):
    link = LIKELIHOODS[name].link
    return {"identity": [-2.0, 0.0, 3.0], "logit": [1e-6, 0.3, 0.999], "probit": [1e-6, 0.3, 0.999]}.get(
        link, [1e-3, 0.5, 30.0]
    )


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_probabilities_add_up_to_one(name):
    y, weight = _outcomes(name)
    for eta in _etas(name):
        assert np.exp(_log_density(name, y, eta)) @ weight == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", TRUTH)
def test_densities_agree_with_scipy(name):
    y, _ = _outcomes(name)
    for eta in _etas(name):
        np.testing.assert_allclose(_log_density(name, y, eta), TRUTH[name](y, eta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_new_observation_has_the_moments_and_probabilities_of_the_mixture(name):
    likelihood = LIKELIHOODS[name]
    m, S = np.array([0.6]), np.array([0.09])
    observation = likelihood.observation(likelihood.g.marginals(m, S), np.array([SHARE]), np.array([_trials(name)]))
    y, weight = _outcomes(name)
    rates = FORWARD[likelihood.link](m + np.sqrt(S) * Z)
    p = sum(w * np.exp(_log_density(name, y, eta)) for w, eta in zip(MASS, rates))
    mean = (p * y) @ weight
    assert observation.mean[0] == pytest.approx(mean, rel=1e-6)
    assert observation.variance[0] == pytest.approx((p * (y - mean) ** 2) @ weight, rel=1e-5)
    likely = np.flatnonzero(p > 1e-6)[:: max(1, np.sum(p > 1e-6) // 10)]
    np.testing.assert_allclose(observation.log_prob(y[likely]), np.log(p[likely]), atol=1e-5)


@pytest.mark.parametrize("name", ["poisson-exp", "poisson-region", "negative-binomial"])
def test_scatter_is_the_variance_of_a_count_with_that_mean(name):
    y = np.arange(float(ROWS))
    p = np.exp(_log_density(name, y, 5.0))
    assert LIKELIHOODS[name].scatter(np.array([p @ y]))[0] == pytest.approx(p @ y**2 - (p @ y) ** 2, rel=1e-6)


GRID = np.linspace(-10, 10, ROWS)
GRID_MASS = np.exp(-0.5 * GRID**2) / np.exp(-0.5 * GRID**2).sum()


def _expected(h, a, b):
    """E h(v), v ~ N(a, b), by the trapezium rule, which a smooth h makes exponentially accurate."""
    return GRID_MASS @ h(a + np.sqrt(b) * GRID)


def _expected_log_square(a, b):
    """E log v² = log(b/2) - γ - G(-a²/2b), G(t) = 2t ₂F₂(1, 1; 2, 3/2; t), and its expansion where b is small."""
    if b < 1e-4 * a**2:
        return np.log(a**2) - b / a**2 - 1.5 * (b / a**2) ** 2
    t = -(mpmath.mpf(a) ** 2) / (2 * b)
    return float(mpmath.log(b / 2) - mpmath.euler - 2 * t * mpmath.hyp2f2(1, 1, 2, 1.5, t))


CLOSED = ["gaussian", "gaussian-individual", "poisson-exp", "poisson-square", "gamma", "exponential"]


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_expected_log_densities_agree_with_quadrature(name):
    link, y = LIKELIHOODS[name].link, {"bernoulli": 1.0, "gamma": 2.3, "exponential": 0.4}.get(name, 4.0)
    a, b = (x.ravel() for x in np.meshgrid([-1.5, 0.0, 2.0], [1e-8, 0.1, 9.0 if name in CLOSED else 2.0]))
    got = LIKELIHOODS[name].expected_log_prob(_seen(name, np.full(len(a), y)), jnp.asarray(a), jnp.asarray(b))
    if link == "square":
        truth = [y * _expected_log_square(*case) - case[0] ** 2 - case[1] - gammaln(y + 1) for case in zip(a, b)]
    elif link in LOG_FORWARD:  # log p in terms of v keeps its digits where η is close to one
        log, n = LOG_FORWARD[link], _trials(name)
        choices = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
        truth = [_expected(lambda v: choices + y * log(v) + (n - y) * log(-v), *case) for case in zip(a, b)]
    else:
        density = TRUTH.get(name, lambda y, eta: _log_density(name, y, eta))
        truth = [_expected(lambda v: density(y, FORWARD[link](v)), *case) for case in zip(a, b)]
    np.testing.assert_allclose(got, truth, rtol=1e-8 if name in CLOSED else 1e-4, atol=1e-7)


def test_known_noise_beside_laplace_noise_is_noise_of_the_sum_of_the_variances():
    y, eta = jnp.array([-3.0, 0.2, 9.0]), jnp.array([0.0, 0.5, 1.0])
    ones = jnp.ones(3)

    def density(variance, known):
        return ag.LaplaceNoise(0.7, ag.fixed(variance)).log_density(Seen(y, ones, known * ones, ones), eta)

    np.testing.assert_allclose(density(0.0, 0.0), stats.laplace.logpdf(y, eta, 0.7))
    np.testing.assert_allclose(density(0.0, 0.5), density(0.5, 0.0))
    np.testing.assert_allclose(density(0.2, 0.3), density(0.5, 0.0))

    def smoothed(r):
        return quad(lambda e: stats.laplace.pdf(r - e, 0, 0.7) * stats.norm.pdf(e, 0, 0.5**0.5), -9, 9, points=[r])[0]

    np.testing.assert_allclose(np.exp(density(0.5, 0.0)), [smoothed(r) for r in y - eta], rtol=1e-6)


@pytest.mark.parametrize("sd", [0.05, 0.6, 1.5])
def test_the_effect_of_a_region_is_integrated_out_at_any_count(sd):
    y = np.array([0.0, 1.0, 7.0, 300.0, 1e4, 1e5])
    eta = np.maximum(y, 0.5) * np.exp(np.array([1.0, -1.0, 2.0, -0.5, 0.2, 0.03]) * sd)
    got = ag.Poisson(region_effect=True, region_sd=sd).log_prob(jnp.asarray(y), jnp.asarray(eta))

    def truth(y, eta):
        def log_joint(v):
            return stats.poisson.logpmf(y, eta * np.exp(v)) + stats.norm.logpdf(v, 0.0, sd)

        grid = np.linspace(-9 * sd, 9 * sd, 20_001)
        centre = grid[np.argmax(log_joint(grid))]
        reach = 12 / np.sqrt(1 / sd**2 + eta * np.exp(centre))
        v = np.linspace(centre - 2 * reach, centre + reach, 20_001)
        return logsumexp(log_joint(v)) + np.log(v[1] - v[0])

    np.testing.assert_allclose(got, [truth(*case) for case in zip(y, eta)], rtol=1e-5)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_slopes_are_finite_however_extreme_the_latent_value(name):
    likelihood = LIKELIHOODS[name]
    y = jnp.asarray([0.0, 1.0] if name == "bernoulli" else [1.0, TRIALS]).repeat(6)
    v = jnp.asarray([-300.0, -30.0, 0.0, 1e-9, 30.0, 300.0] * 2)
    slope = jax.jit(jax.grad(lambda v: jnp.sum(likelihood.log_density(_seen(name, y), likelihood.g.forward(v)))))(v)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_likelihood_comes_back_whole(name, tmp_path):
    write(tmp_path / "likelihood", LIKELIHOODS[name])
    again = ag.load(tmp_path / "likelihood")
    assert jax.tree.structure(again) == jax.tree.structure(LIKELIHOODS[name])
    assert [float(p.value) for p in ag.parameters(again)] == [float(p.value) for p in ag.parameters(LIKELIHOODS[name])]


# Links: two latent values, all pairs of their moments by dense two-dimensional quadrature.

LATENT = np.array([-0.8, 0.7])
DENSE, DENSE_MASS = np.polynomial.hermite_e.hermegauss(120)
DENSE_MASS = DENSE_MASS / DENSE_MASS.sum()


def _covariance_matrix(sd, correlation):
    return sd**2 * np.array([[1.0, 1.2 * correlation], [1.2 * correlation, 1.44]])


def _responses(link, S):
    """g(v) of two dependent latent values on a grid, and the grid's weights."""
    root = np.linalg.cholesky(S + 1e-14 * np.eye(2))
    first = np.broadcast_to(LATENT[0] + root[0, 0] * DENSE[:, None], (120, 120))
    second = LATENT[1] + root[1, 0] * DENSE[:, None] + root[1, 1] * DENSE[None, :]
    return np.stack([FORWARD[link](first).ravel(), FORWARD[link](second).ravel()]), np.outer(
        DENSE_MASS, DENSE_MASS
    ).ravel()


SPREADS = {0.3: 1e-4, 1.0: 1e-2, 2.0: 0.1}  # of the latent values, and how far the expansion in them may be trusted


@pytest.mark.parametrize("link", LINKS)
def test_moments_of_responses_agree_with_dense_quadrature(link):
    cases = [(sd, correlation) for sd in SPREADS for correlation in (-0.9, 0.5, 0.95)]
    S = np.stack([_covariance_matrix(*case) for case in cases])
    m = jnp.asarray(np.tile(LATENT, (len(cases), 1)))
    variance = jnp.asarray(np.diagonal(S, axis1=1, axis2=2))
    means, covariances = jax.jit(
        lambda g=LINKS[link]: (g.mean(m, variance), g.covariance(m, variance, jnp.asarray(S)))
    )()
    for i, own in enumerate(S):
        g, weight = _responses(link, own)
        first = g @ weight
        second = (g * weight) @ g.T - np.outer(first, first)
        allowed = SPREADS[cases[i][0]] if link in LOG_FORWARD else 1e-7
        np.testing.assert_allclose(means[i], first, rtol=1e-4)
        assert np.abs(covariances[i] - second).max() < allowed * np.diag(second).max()


@pytest.mark.parametrize("link", ["square", "logit", "probit"])
def test_logarithms_of_responses_agree_with_quadrature(link):
    m, S = (x.ravel() for x in np.meshgrid([-1.3, 0.4, 5.0], [1e-6, 0.5, 4.0]))
    got = LINKS[link].log_mean(jnp.asarray(m), jnp.asarray(S))
    if link == "square":
        return np.testing.assert_allclose(got, [_expected_log_square(*case) for case in zip(m, S)], rtol=1e-7)
    np.testing.assert_allclose(got, [_expected(LOG_FORWARD[link], *case) for case in zip(m, S)], rtol=1e-4)
    got = LINKS[link].log_complement(jnp.asarray(-m), jnp.asarray(S))
    return np.testing.assert_allclose(got, [_expected(LOG_FORWARD[link], *case) for case in zip(m, S)], rtol=1e-4)


def test_a_squared_value_that_is_known_exactly_has_its_own_logarithm():
    for dtype in (jnp.float64, jnp.float32):
        got = jax.jit(LINKS["square"].log_mean)(jnp.asarray([0.5, 100.0], dtype), jnp.zeros(2, dtype))
        np.testing.assert_allclose(got, np.log([0.25, 1e4]), rtol=1e-5)


def _moments(link, a, b):
    """Mean and variance of g(v), v ~ N(a, b)."""
    g = FORWARD[link](a + np.sqrt(b) * GRID[:, None])
    mean = GRID_MASS @ g
    return mean, GRID_MASS @ (g - mean) ** 2


@pytest.mark.parametrize("link", ["exp", "square", "logit", "probit"])
def test_match_finds_the_latent_moments_again_and_moves_with_the_response(link):
    a, b = (x.ravel() for x in np.meshgrid([-2.0, 0.3, 1.5], [1e-6, 0.3, 2.0]))
    mean, variance = _moments(link, a, b)
    step, towards = 1e-5, np.random.default_rng(0).normal(size=(2, len(a))) * np.stack([mean, variance])
    at = [np.concatenate([x + s * d for s in (0.0, step, -step)]) for x, d in zip((mean, variance), towards)]
    values, slopes = jax.jvp(LINKS[link].match, tuple(map(jnp.asarray, at)), tuple(jnp.tile(d, 3) for d in towards))
    for value, slope, truth in zip(values, slopes, (np.abs(a) if link == "square" else a, b)):
        found, up, down = np.split(np.asarray(value), 3)
        np.testing.assert_allclose(found, truth, rtol=1e-3, atol=1e-7)
        np.testing.assert_allclose(slope[: len(a)], (up - down) / (2 * step), rtol=1e-4, atol=1e-9)


def test_covariances_of_probabilities_hold_for_latent_values_as_wide_as_a_prior():
    S = _covariance_matrix(4.0, 0.5)
    g, weight = _responses("logit", S)
    truth = (g * weight) @ g.T - np.outer(g @ weight, g @ weight)
    got = jax.jit(LINKS["logit"].covariance)(jnp.asarray(LATENT), jnp.asarray(np.diag(S)), jnp.asarray(S))
    assert np.abs(got - truth).max() < 0.06 * np.diag(truth).max()


def test_match_holds_for_rare_outcomes_that_vary_much():
    mean = np.array([1e-6, 1e-4, 1e-2])
    variance = np.array([1e-3, 0.05, 0.4]) * mean * (1 - mean)
    found = LINKS["logit"].match(jnp.asarray(mean), jnp.asarray(variance))
    again = _moments("logit", *(np.asarray(x) for x in found))
    np.testing.assert_allclose(again[0], mean, rtol=0.02)
    np.testing.assert_allclose(again[1], variance, rtol=0.05)


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_a_weighted_sum_of_squares_varies_by_at_most_twice_its_squared_mean(seed, spread):
    rng = np.random.default_rng(seed)
    root, m, w = rng.normal(size=(4, 4)) * np.sqrt(spread), rng.normal(size=4), rng.exponential(size=4) ** 3
    S = root @ np.diag(rng.exponential(size=4) ** 4) @ root.T
    link, variance = LINKS["square"], jnp.asarray(np.diag(S))
    mean = w @ np.asarray(link.mean(jnp.asarray(m), variance))
    ratio = w @ np.asarray(link.covariance(jnp.asarray(m), variance, jnp.asarray(S))) @ w / mean**2
    assert 0 <= ratio <= 2 * (1 + 1e-12)
