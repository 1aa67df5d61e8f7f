"""The factorisation and the network against the densities of the paper's App. B.2.1 and B.3.1 in float64.

Models omit constants, so the tests compare differences of log densities, and gradients.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from paper_models import (
    N_HIDDEN,
    network_log_prior,
    network_position,
    network_probabilities,
    pmf_log_likelihood,
    pmf_log_prior,
    pmf_position,
    simulated_images,
    simulated_ratings,
    single,
    small_network,
    small_pmf,
)
from scipy import special
from scipy.optimize import approx_fprime

from sgtune.model import positions, posterior
from sgtune.samplers.gradients import ESTIMATORS
from sgtune.study.posteriors import bnn, pmf

SIGMAS = 5


def cases():
    """By name: a small model, a drawer of positions, and the exact log prior and log-likelihoods."""
    factorisation, ratings = small_pmf()
    network, images, labels = small_network()

    def log_likelihood(position):
        return np.log(network_probabilities(position, images)[np.arange(len(labels)), labels])

    return {
        "pmf": (factorisation, pmf_position, pmf_log_prior, lambda p: pmf_log_likelihood(p, ratings)),
        "bnn": (network, network_position, network_log_prior, log_likelihood),
    }


@pytest.fixture(scope="module", params=["pmf", "bnn"])
def case(request):
    return cases()[request.param]


# --- densities and gradients ---


def test_log_priors_differ_as_the_papers(case):
    model, draw, log_prior, _ = case
    for seed in range(5):
        one, other = draw(seed), draw(seed + 100)
        found = float(model.log_prior(single(one))) - float(model.log_prior(single(other)))
        # float32: sums of some hundred terms of order 1.
        assert found == pytest.approx(log_prior(one) - log_prior(other), rel=1e-5, abs=1e-3)


def test_each_datum_has_the_papers_log_likelihood(case):
    """The constant is the same for all data and positions, so that all data have the same weight."""
    model, draw, _, log_likelihood = case
    exact = np.array([log_likelihood(draw(seed)) for seed in range(5)])
    found = np.array([model.log_likelihood(single(draw(seed)), model.data) for seed in range(5)], np.float64)
    assert found.shape == (5, 40)
    np.testing.assert_allclose(found, exact + np.median(found - exact), rtol=1e-4, atol=1e-4)


def test_gradients_are_the_finite_differences_of_the_papers_density(case):
    model, draw, log_prior, log_likelihood = case
    position = draw(1)
    leaves, structure = jax.tree.flatten(position)
    ends = np.cumsum([leaf.size for leaf in leaves])

    def exact(flat):
        parts = [
            part.reshape(leaf.shape) for part, leaf in zip(np.split(flat, ends[:-1]), leaves, strict=True)
        ]
        tree = structure.unflatten(parts)
        return log_prior(tree) + log_likelihood(tree).sum()

    flat = np.concatenate([leaf.ravel() for leaf in leaves])
    # The error of central differences with steps of 1e-6 is about 1e-6.
    expected = (approx_fprime(flat, exact, 1e-6) + approx_fprime(flat, exact, -1e-6)) / 2
    found = posterior.scores(model, np.asarray(flat, np.float32)[None])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-3)
    # No entry is trivially right.
    assert (np.abs(expected) > 2e-3).mean() > 0.95


def test_shapes_are_the_papers():
    factorisation = pmf.from_arrays(np.array([[942, 1681, 5], [0, 0, 1]]), n_users=943, n_items=1682)
    shapes = {name: leaf.shape for name, leaf in factorisation.position_shape.items()}
    assert shapes == {
        "users": (943, 20),
        "items": (1682, 20),
        "mean_users": (20,),
        "mean_items": (20,),
        "log_precision_users": (20,),
        "log_precision_items": (20,),
    }
    assert (factorisation.name, factorisation.task, factorisation.dimension) == ("pmf", "regression", 52_580)
    network = bnn.from_arrays(*simulated_images(3, n_pixels=784))
    shapes = {name: leaf.shape for name, leaf in network.position_shape.items()}
    assert shapes == {"A": (100, 10), "B": (784, 100), "a": (10,), "b": (100,)}
    assert (network.name, network.task, network.dimension) == ("bnn", "classification", 79_510)


def test_starts_are_finite_and_differ_by_key(case):
    model, _, _, _ = case
    one, other = (ravel_pytree(model.init(jax.random.key(seed)))[0] for seed in range(2))
    assert np.isfinite(one).all()
    assert not np.array_equal(one, other)
    value = posterior.log_posterior(posterior.density_of(model), model.init(jax.random.key(0)), model.data)
    assert np.isfinite(float(value))


# --- the hyperprior of the factorisation, by integration ---


def one_factor(log_precision, mean=0.0, users=()):
    """A position of one factor without items, whose item parameters are constant."""
    zero = jnp.zeros(1)
    return {
        "users": jnp.asarray(users, jnp.float32).reshape(-1, 1),
        "items": jnp.zeros((0, 1)),
        "mean_users": jnp.reshape(mean, (1,)),
        "mean_items": zero,
        "log_precision_users": jnp.reshape(log_precision, (1,)),
        "log_precision_items": zero,
    }


def moments_of_precision(log_densities, log_precisions):
    """Mean and variance of exp(log precision) under densities of the log precision on an even grid."""
    weights = special.softmax(np.asarray(log_densities, np.float64))
    precision = np.exp(log_precisions)
    mean = weights @ precision
    return mean, weights @ (precision - mean) ** 2


def test_the_prior_of_a_precision_integrates_to_gamma_4_5():
    """Mean 4 / 5 and variance 4 / 25 after the mean of the users is integrated out."""
    log_precisions = np.linspace(-6, 3, 901)
    # mean = z / sqrt(precision): an even grid of z, with the Jacobian of the mean.
    z = np.linspace(-8, 8, 161)
    grid = jax.vmap(
        jax.vmap(lambda lp, z: pmf.log_prior(one_factor(lp, z * jnp.exp(-lp / 2))), (None, 0)), (0, None)
    )
    values = np.asarray(grid(jnp.asarray(log_precisions), jnp.asarray(z)), np.float64)
    marginal = special.logsumexp(values, axis=1) - log_precisions / 2
    assert moments_of_precision(marginal, log_precisions) == pytest.approx((4 / 5, 4 / 25), rel=1e-4)


@pytest.mark.parametrize(("mean", "users"), [(0.0, []), (1.5, [0.5, 2.0, -1.0, 3.0])])
def test_a_precision_given_its_users_is_conjugate(mean, users):
    """Gamma(4 + (n + 1) / 2, 5 + (mu^2 + sum of (U_i - mu)^2) / 2), of n users and their mean."""
    log_precisions = np.linspace(-6, 4, 2_001)
    values = jax.vmap(lambda lp: pmf.log_prior(one_factor(lp, mean, users)))(jnp.asarray(log_precisions))
    shape = 4 + (len(users) + 1) / 2
    rate = 5 + (mean**2 + np.sum((np.array(users) - mean) ** 2)) / 2
    assert moments_of_precision(values, log_precisions) == pytest.approx(
        (shape / rate, shape / rate**2), rel=1e-4
    )


# --- predictions ---


def test_predicted_ratings_are_products_about_the_mean_clipped():
    test = np.array([[0, 0, 5], [6, 8, 1], [3, 2, 4]])
    model, ratings = small_pmf(test=test)
    np.testing.assert_array_equal(model.test_data["targets"], test[:, 2])
    position = pmf_position(0)
    products = np.sum(position["users"][test[:, 0]] * position["items"][test[:, 1]], axis=1)
    for factor in (0.01, 1, 100):
        scaled = {**position, "users": factor * position["users"]}
        found = np.asarray(model.predict(single(scaled), model.test_data["inputs"]))
        np.testing.assert_allclose(found, np.clip(ratings[:, 2].mean() + factor * products, 1, 5), rtol=1e-5)
    assert set(found) <= {1.0, 5.0}


def test_predicted_probabilities_are_the_networks():
    model, images, labels = small_network()
    position = network_position(3)
    found = np.asarray(model.predict(single(position), jnp.asarray(images)), np.float64)
    np.testing.assert_allclose(found, network_probabilities(position, images), rtol=1e-4, atol=1e-6)
    # The predicted probability of a class equals its likelihood.
    log_likelihood = model.log_likelihood(single(position), model.data)
    np.testing.assert_allclose(np.log(found[np.arange(40), labels]), log_likelihood, rtol=1e-3, atol=1e-4)


def test_functionals_of_a_factorisation_are_products_of_test_pairs():
    """Few rows are all used. Of many rows 2,000 are drawn once from the whole test set, which is sorted."""
    few = np.array([[0, 0, 5], [6, 8, 1], [3, 2, 4]])
    model, _ = small_pmf(test=few)
    position = pmf_position(2)
    products = np.sum(position["users"][few[:, 0]] * position["items"][few[:, 1]], axis=1)
    np.testing.assert_allclose(np.sort(model.functionals(single(position))), np.sort(products), rtol=1e-5)
    assert small_pmf()[0].functionals is None
    sizes = {"n_users": 60, "n_items": 70}
    many = simulated_ratings(3_000, **sizes)
    many = many[np.lexsort((many[:, 1], many[:, 0]))]
    # With one feature, the product of the user's and the item's numbers identifies the pair.
    position = pmf_position(0, **sizes, n_factors=1)
    position["users"][:, 0], position["items"][:, 0] = np.arange(60) + 1, 1 + np.arange(70) / 100
    one, other = (
        np.asarray(
            pmf.from_arrays(many[:10], many, **sizes, n_factors=1).functionals(single(position)), np.float64
        )
        for _ in range(2)
    )
    assert len(one) == 2_000
    np.testing.assert_array_equal(one, other)
    every = (many[:, 0] + 1) * (1 + many[:, 1] / 100)
    # Drawn without replacement, so the standard error is less than this.
    assert abs(one.mean() - every.mean()) < 4 * every.std() / np.sqrt(2_000)
    assert abs(every[:2_000].mean() - every.mean()) > 8 * every.std() / np.sqrt(2_000)


def test_rows_of_training_data_have_the_form_of_test_data():
    """Ratings, images and labels are unchanged."""
    model, ratings = small_pmf(test=np.array([[0, 0, 5]]))
    rows = model.as_test({name: leaf[:7] for name, leaf in model.data.items()})
    np.testing.assert_allclose(rows["targets"], ratings[:7, 2], atol=1e-6)
    assert rows["inputs"].keys() == model.test_data["inputs"].keys()
    wanted = pmf.from_arrays(
        ratings, ratings[:7], n_users=7, n_items=9, n_factors=3, shuffle_seed=None
    ).test_data
    position = single(pmf_position(1))
    np.testing.assert_allclose(
        model.predict(position, rows["inputs"]), model.predict(position, wanted["inputs"]), rtol=1e-6
    )
    network, images, labels = small_network()
    rows = network.as_test(network.data)
    np.testing.assert_array_equal(rows["inputs"], images)
    np.testing.assert_array_equal(rows["targets"], labels)


# --- gradient estimators and tiles ---


@pytest.mark.parametrize("ending", ESTIMATORS)
@pytest.mark.parametrize("batch_size", [1, 12])
def test_estimates_of_the_gradient_are_unbiased(case, ending, batch_size):
    model, draw, _, _ = case
    position, centre = single(draw(0)), single(draw(1))
    density, estimator, key = posterior.density_of(model), ESTIMATORS[ending], jax.random.key(7)
    constants = estimator.prepare(model, centre)

    @jax.jit
    def run(constants, position):
        def one(i):
            step_key = jax.random.fold_in(key, i)
            gradient, _ = estimator.estimate(density, constants, step_key, position, batch_size, ())
            return ravel_pytree(gradient)[0]

        return jax.lax.map(one, jnp.arange(20_000), batch_size=500)

    sample = np.asarray(run(constants, position), np.float64)
    exact = posterior.scores(model, positions.flatten(position)[None])[0]
    error = sample.std(axis=0) / np.sqrt(len(sample))
    scale = np.abs(exact).max()
    # Entries that no datum touches have no noise but float32's.
    assert (np.abs(sample.mean(axis=0) - exact) < SIGMAS * error + 1e-5 * scale).all()
    # The test can fail: an estimate without N / n, or without the centre, would not pass.
    assert np.linalg.norm(error) < 0.05 * np.linalg.norm(exact)


@pytest.mark.parametrize("name", ["pmf", "bnn"])
def test_scores_by_tiles_are_gradients_of_all_rows_at_once(name):
    n_rows = 500 + (posterior.TILE_OF_SMALL_ROWS if name == "pmf" else posterior.TILE)
    if name == "pmf":
        sizes = {"n_users": 130, "n_items": 140}
        model = pmf.from_arrays(simulated_ratings(n_rows, **sizes), **sizes, n_factors=2)
        position = single(pmf_position(0, **sizes, n_factors=2))
    else:
        model = bnn.from_arrays(*simulated_images(n_rows), n_hidden=N_HIDDEN)
        position = single(network_position(0))

    def log_posterior(position):
        return model.log_prior(position) + jnp.sum(model.log_likelihood(position, model.data))

    found = posterior.score(posterior.density_of(model), position, model.data)
    for tiled, plain in zip(
        jax.tree.leaves(found), jax.tree.leaves(jax.grad(log_posterior)(position)), strict=True
    ):
        np.testing.assert_allclose(tiled, plain, rtol=1e-4, atol=1e-6 * n_rows)
