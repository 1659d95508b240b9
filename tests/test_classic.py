"""The classic preset: its priors say what they claim, its nodes cover the map, and it finds effects again."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

import aggregauss as ag
from aggregauss.maps.classic import classic, classic_inference, field_grid
from aggregauss.maps.region_effects import region_effects
from aggregauss.parameters import parameters

KM = np.random.default_rng(0).uniform(0, [300, 600], (400, 2))


def _mass(prior, low, high):
    return integrate.quad(lambda t: float(jnp.exp(prior.log_prob(jnp.asarray(np.exp(t))))) * np.exp(t), low, high)[0]


@pytest.mark.parametrize(
    ("path", "low", "high"),
    [
        ("kernel.lengthscale", -10.0, np.log(100.0 / 2)),  # the range is below 100
        ("kernel.variance", np.log(0.7**2), 8.0),  # the field's standard deviation is above 0.7
        ("likelihood.region_sd", np.log(0.4), 3.0),  # that of regions is above 0.4
    ],
)
def test_priors_have_a_tenth_of_their_mass_where_they_say(path, low, high):
    model = classic(["rain"], KM, range_below=100.0, sd_above=0.7, region_sd_above=0.4)
    prior = next(p.mark.prior for p in parameters(model) if p.path == path)
    assert _mass(prior, low, high) == pytest.approx(0.1, rel=1e-3)


def test_every_pixel_has_a_node_within_a_spacing():
    nodes = field_grid(KM, 60)
    apart = np.linalg.norm(nodes[:, None] - nodes[None], axis=2)
    spacing = apart[apart > 0].min()
    assert len(nodes) >= 60
    assert np.linalg.norm(KM[:, None] - nodes[None], axis=2).min(axis=1).max() < spacing


@pytest.mark.slow
def test_effects_of_simulated_covariates_are_found_again():
    rng = np.random.default_rng(1)
    n, regions = 1500, 60
    where = rng.uniform(0, 100, (n, 2))
    x = rng.normal(size=(n, 2))
    bag = np.floor(where[:, 0] / 10).astype(int) * 6 + np.floor(where[:, 1] / 100 * 6).astype(int)
    f = -2.0 + x @ [0.8, -0.5] + 0.7 * np.sin(where[:, 0] / 20) * np.cos(where[:, 1] / 25)
    mean = np.bincount(bag, 300.0 * np.exp(f), regions) * np.exp(0.2 * rng.standard_normal(regions))
    y = rng.poisson(mean)
    pixels = np.column_stack([x, where])
    bags = ag.Bags(pixels, bag, weights=np.full(n, 300.0))
    inference = classic_inference(x, where, nodes=60, pool=8)
    post = classic(["a", "b"], where).fit(bags, y, inference=inference, progress=False)
    found = post.effects()
    assert ((found["lower"] < [-2.0, 0.8, -0.5]) & (found["upper"] > [-2.0, 0.8, -0.5])).all()
    assert np.abs(region_effects(post)["fitted"] / y - 1).max() < 0.05


def test_without_covariates_there_is_a_field_and_a_level():
    model = classic([], KM)
    assert isinstance(model.mean, ag.Constant)
    assert model.kernel.active_dims == (0, 1)
    assert classic_inference(np.zeros((400, 0)), KM, nodes=30).inducing.shape[1] == 2


def test_a_field_needs_a_map():
    with pytest.raises(ValueError, match='classic: "coordinates" must have at least two different places'):
        classic(["rain"], np.zeros((5, 2)))
