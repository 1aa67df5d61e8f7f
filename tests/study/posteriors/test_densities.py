"""The models against the densities of their papers in float64: the factorisation and the network (App. B.2.1, B.3.1),
the discriminative RBM with its hidden states enumerated, and CCAdL's logistic regression.

Models omit constants, so the tests compare differences of log densities, and gradients.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import special, stats

from sgtune.model import posterior
from sgtune.study.posteriors import bnn, drbm, pmf
from sgtune.study.posteriors.classification import mnist79
from sgtune.support.errors import InputError


def pmf_log_prior(position):
    """U_i ~ N(mu_U, Lambda_U^-1), mu_U ~ N(0, Lambda_U^-1), entries of Lambda_U ~ Gamma(4, rate 5); the same for V.

    The density is over log precisions, with the Jacobian exp(log precision).
    """
    total = 0.0
    for side in ("users", "items"):
        log_precision = position[f"log_precision_{side}"]
        precision = np.exp(log_precision)
        sd = precision**-0.5
        total += stats.gamma.logpdf(precision, a=4, scale=1 / 5).sum() + log_precision.sum()
        total += stats.norm.logpdf(position[f"mean_{side}"], 0, sd).sum()
        total += stats.norm.logpdf(position[side], position[f"mean_{side}"], sd).sum()
    return total


def pmf_log_likelihood(position, ratings):
    """One value per rating: ratings minus their overall mean ~ N(U_i' V_j, 1 / 3)."""
    values = ratings[:, 2]
    return stats.norm.logpdf(values - values.mean(), products_of(position, ratings), 3**-0.5)


def products_of(position, ratings):
    return np.sum(position["users"][ratings[:, 0]] * position["items"][ratings[:, 1]], axis=1)


def network_probabilities(position, images):
    """softmax(softmax(x B + b) A + a) of pixels scaled to [0, 1]."""
    hidden = special.softmax(images / 255 @ position["B"] + position["b"], axis=1)
    return special.softmax(hidden @ position["A"] + position["a"], axis=1)


def boltzmann_log_probabilities(position, inputs):
    """log p(y | x), ``(n, K)``, from p(y, h | x) ~ exp(d_y + h' c + h' U e_y + h' W x), h in {0, 1}^H."""
    states = np.array(list(product((0, 1), repeat=len(position["c"]))))
    energies = (
        (states @ position["W"] @ inputs.T).T[:, :, None]
        + (states @ position["U"])[None]
        + (states @ position["c"])[None, :, None]
        + position["d"]
    )
    return special.log_softmax(special.logsumexp(energies, axis=1), axis=1)


def normal_log_prior(position):
    return sum(stats.norm.logpdf(leaf).sum() for leaf in position.values())


SIZES = {"n_users": 7, "n_items": 9, "n_factors": 3}
ROWS = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
N = np.arange(len(ROWS))


def simulated_ratings(n, n_users, n_items, **_):
    """Rows (user, item, rating), no pair twice."""
    rng = np.random.default_rng(0)
    pairs = rng.choice(n_users * n_items, n, replace=False)
    return np.column_stack([pairs // n_items, pairs % n_items, rng.integers(1, 6, n)])


RATINGS = simulated_ratings(40, **SIZES)


def small_pmf(test=None):
    return pmf.from_arrays(RATINGS, test, **SIZES, shuffle_seed=None)


def classes(n_classes):
    return np.random.default_rng(1).integers(n_classes, size=40).astype(np.uint8)


def normals(**shapes):
    """seed -> normal arrays of these shapes by name."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        return {name: rng.normal(size=shape) for name, shape in shapes.items()}

    return draw


def factors(n_users, n_items, n_factors):
    sides = {"users": n_users, "items": n_items}
    shapes = {f"{part}_{side}": (n_factors,) for side in sides for part in ("mean", "log_precision")}
    return normals(**shapes, **{side: (size, n_factors) for side, size in sides.items()})


FACTORS = factors(**SIZES)
MACHINE = normals(U=(4, 3), W=(4, 6), c=(4,), d=(3,))


@cache
def cases():
    """By name: a small model, a drawer of positions, and the exact log prior and log-likelihoods."""
    images = np.random.default_rng(0).integers(0, 256, (40, 12), dtype=np.uint8)
    labels = {n: classes(n) for n in (2, 3, 10)}
    # The paper's likelihood 1 / (1 + exp(-y w' x)), y of -1 and 1.
    signed = (2.0 * labels[2] - 1)[:, None] * ROWS.astype(float)
    return {
        "pmf": (small_pmf(), FACTORS, pmf_log_prior, lambda p: pmf_log_likelihood(p, RATINGS)),
        "bnn": (
            bnn.from_arrays(images, labels[10], n_hidden=5, shuffle_seed=None),
            normals(A=(5, 10), B=(12, 5), a=(10,), b=(5,)),
            normal_log_prior,
            lambda p: np.log(network_probabilities(p, images)[N, labels[10]]),
        ),
        "drbm": (
            drbm.from_arrays(ROWS, labels[3], n_hidden=4, n_classes=3, shuffle_seed=None),
            MACHINE,
            normal_log_prior,
            lambda p: boltzmann_log_probabilities(p, ROWS.astype(float))[N, labels[3]],
        ),
        "mnist79": (
            mnist79(ROWS, labels[2], shuffle_seed=None),
            normals(w=(6,)),
            normal_log_prior,
            lambda p: special.log_expit(signed @ p["w"]),
        ),
    }


@pytest.fixture(scope="module", params=["pmf", "bnn", "drbm", "mnist79"])
def case(request):
    return cases()[request.param]


def single(position):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), position)


def in_form_of(model, position):
    """The position in the model's form, possibly a vector."""
    return single(position) if isinstance(model.position_shape, dict) else jnp.float32(position["w"])


def test_log_priors_differ_as_the_papers(case):
    model, draw, log_prior, _ = case
    for seed in range(5):
        one, other = draw(seed), draw(seed + 100)
        found = np.subtract(*(float(model.log_prior(in_form_of(model, p))) for p in (one, other)))
        # float32: sums of some hundred terms of order 1.
        assert found == pytest.approx(log_prior(one) - log_prior(other), rel=1e-5, abs=1e-3)


def test_each_datum_has_the_papers_log_likelihood(case):
    """The constant is the same for all data and positions, so that all data have the same weight."""
    model, draw, _, log_likelihood = case
    exact = np.array([log_likelihood(draw(seed)) for seed in range(5)])
    found = [model.log_likelihood(in_form_of(model, draw(seed)), model.data) for seed in range(5)]
    found = np.array(found, np.float64)
    assert found.shape == (5, 40)
    np.testing.assert_allclose(found, exact + np.median(found - exact), rtol=1e-4, atol=1e-4)


def test_starts_are_finite_and_differ_by_key(case):
    model, _, _, _ = case
    one, other = (ravel_pytree(model.init(jax.random.key(seed)))[0] for seed in range(2))
    assert np.isfinite(one).all()
    assert not np.array_equal(one, other)
    value = posterior.log_posterior(posterior.density_of(model), model.init(jax.random.key(0)), model.data)
    assert np.isfinite(float(value))


FEW = np.array([[0, 0, 5], [6, 8, 1], [3, 2, 4]])


def test_predicted_ratings_are_products_about_the_mean_clipped():
    model, position = small_pmf(test=FEW), FACTORS(0)
    np.testing.assert_array_equal(model.test_data["targets"], FEW[:, 2])
    for factor in (0.01, 1, 100):
        scaled = {**position, "users": factor * position["users"]}
        found = np.asarray(model.predict(single(scaled), model.test_data["inputs"]))
        exact = np.clip(RATINGS[:, 2].mean() + products_of(scaled, FEW), 1, 5)
        np.testing.assert_allclose(found, exact, rtol=1e-5)
    assert set(found) <= {1.0, 5.0}


def test_functionals_of_a_factorisation_are_products_of_test_pairs():
    """Few rows are all used. Of many rows 2,000 are drawn once from the whole test set, which is sorted."""
    position = FACTORS(2)
    found = np.sort(small_pmf(test=FEW).functionals(single(position)))
    np.testing.assert_allclose(found, np.sort(products_of(position, FEW)), rtol=1e-5)
    assert small_pmf().functionals is None
    sizes = {"n_users": 60, "n_items": 70, "n_factors": 1}
    many = simulated_ratings(3_000, **sizes)
    many = many[np.lexsort((many[:, 1], many[:, 0]))]
    # With one feature, the product of the user's and the item's numbers identifies the pair.
    position = factors(**sizes)(0)
    position["users"][:, 0], position["items"][:, 0] = np.arange(60) + 1, 1 + np.arange(70) / 100
    models = (pmf.from_arrays(many[:10], many, **sizes) for _ in range(2))
    one, other = (np.asarray(model.functionals(single(position)), np.float64) for model in models)
    assert len(one) == 2_000
    np.testing.assert_array_equal(one, other)
    every = products_of(position, many)
    # Drawn without replacement, so the standard error is less than this; the first 2,000 are 8 away.
    assert abs(one.mean() - every.mean()) < 4 * every.std() / np.sqrt(2_000)


def test_training_ratings_have_the_form_of_test_data():
    model, position = small_pmf(test=RATINGS[:7]), single(FACTORS(1))
    rows = model.as_test({name: leaf[:7] for name, leaf in model.data.items()})
    np.testing.assert_allclose(rows["targets"], model.test_data["targets"], atol=1e-6)
    found = (model.predict(position, inputs) for inputs in (rows["inputs"], model.test_data["inputs"]))
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("name", ["bnn", "drbm", "mnist79"])
def test_the_predicted_probability_of_a_rows_class_is_its_likelihood(name):
    """Of training rows in the form of test data; and probabilities sum to 1."""
    model, draw, _, log_likelihood = cases()[name]
    rows = model.as_test(model.data)
    for seed in (2, 3):
        probabilities = np.asarray(model.predict(in_form_of(model, draw(seed)), rows["inputs"]), np.float64)
        if probabilities.ndim == 1:
            probabilities = np.column_stack([1 - probabilities, probabilities])
        # float32: some terms of a sum near 1.
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
        own = probabilities[np.arange(40), np.asarray(rows["targets"])]
        np.testing.assert_allclose(np.log(own), log_likelihood(draw(seed)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("scale", [0, 1, 10, 40])
def test_sums_over_hidden_units_are_accurate_for_large_inputs_and_many_units(scale):
    """The reference is a float64 sum of logarithms, with sums of sigmoids as derivatives; 127 units are the maximum: at
    zero each contributes log 2, and the product 2^127 does not overflow in float32."""
    rng = np.random.default_rng(3)
    activations, biases = (
        np.clip(scale * rng.normal(size=(127, size)), -43, 43).astype(np.float32) for size in (8, 5)
    )
    found, pull_back = jax.vjp(drbm.sum_softplus, jnp.asarray(activations), jnp.asarray(biases))
    z = activations[:, None, :].astype(float) + biases[:, :, None]
    exact = np.logaddexp(0, z).sum(axis=0)
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    weights = rng.normal(size=(5, 8)).astype(np.float32)
    slopes = special.expit(z) * weights
    # float32 rounds z, up to 86, to one part in 10^7 before the sigmoid, and 8 terms are added.
    for gradient, expected in zip(pull_back(weights), (slopes.sum(axis=1), slopes.sum(axis=2)), strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


def test_positions_far_outside_the_posterior_give_finite_numbers():
    """Sums and their first and second derivatives are finite."""

    def gradient(activations, biases):
        return jax.grad(lambda *pair: jnp.sum(drbm.sum_softplus(*pair)), (0, 1))(activations, biases)

    both = jax.jit(lambda *pair: (drbm.sum_softplus(*pair), jax.jvp(gradient, pair, pair)))
    for value in (80.0, 1e3, 1e15):
        for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            found = both(*(jnp.full((4, 2), sign * value) for sign in signs))
            assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
    # The sum is twice 1e3, since large terms equal their arguments.
    assert float(drbm.sum_softplus(jnp.full((4, 1), 1e3), jnp.full((4, 1), 1e3))[0, 0]) == 8e3


def test_curvatures_are_differences_of_exact_gradients():
    """Second derivatives, which Hutchinson's diagonal and Newton's steps use."""
    model, _, _, log_likelihood = cases()["drbm"]
    position, direction = MACHINE(4), MACHINE(5)
    score = jax.grad(lambda p: jnp.sum(model.log_likelihood(p, model.data)))
    _, found = jax.jit(lambda p, v: jax.jvp(score, (p,), (v,)))(single(position), single(direction))
    # v' H v along the direction, by second differences with an error of order 1e-6.
    low, here, high = (
        log_likelihood({name: position[name] + step * direction[name] for name in position}).sum()
        for step in (-1e-3, 0, 1e-3)
    )
    product = sum(np.vdot(np.asarray(found[name], float), direction[name]) for name in position)
    assert product == pytest.approx((high - 2 * here + low) / 1e-6, rel=1e-3)
    assert abs(product) > 1


def test_more_hidden_units_than_a_product_of_float32_holds_are_refused():
    with pytest.raises(InputError, match=r"n_hidden: 128 .* >= 1 and <= 127"):
        drbm.from_arrays(np.zeros((2, 3)), np.array([0, 1]), n_hidden=128, n_classes=2)
