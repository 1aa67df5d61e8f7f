"""The models of CCAdL's experiments against their definitions in float64.

Models omit constants, so the tests compare differences of log densities, and gradients.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boltzmann_models import (
    boltzmann_log_probabilities,
    boltzmann_position,
    normal_log_prior,
    small_boltzmann,
)
from paper_models import single
from scipy import special
from scipy.optimize import approx_fprime
from sgtune.study.posteriors.classification_data import SETS

from sgtune.model import posterior
from sgtune.model.positions import flatten
from sgtune.study.posteriors import drbm, mnist79
from sgtune.support.errors import InputError


def small_logistic(n_data=40, seed=0):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n_data, 6)).astype(np.float32)
    labels = rng.integers(2, size=n_data).astype(np.uint8)
    return mnist79.from_arrays(inputs, labels, shuffle_seed=None), inputs.astype(float), labels


def cases():
    """By name: a small model, a drawer of positions, and the exact log prior and log-likelihoods."""
    machine, inputs, labels = small_boltzmann()
    regression, rows, classes = small_logistic()
    # The paper's likelihood 1 / (1 + exp(-y w' x)), y of -1 and 1.
    signs = 2.0 * classes - 1
    return {
        "drbm": (
            machine,
            boltzmann_position,
            normal_log_prior,
            lambda p: boltzmann_log_probabilities(p, inputs)[np.arange(len(labels)), labels],
        ),
        "mnist79": (
            regression,
            lambda seed: {"w": np.random.default_rng(seed).normal(size=6)},
            normal_log_prior,
            lambda p: special.log_expit(signs * (rows @ p["w"])),
        ),
    }


@pytest.fixture(scope="module", params=["drbm", "mnist79"])
def case(request):
    return cases()[request.param]


def as_position(model, position):
    """The position in the model's form, possibly a vector."""
    return single(position) if isinstance(model.position_shape, dict) else jnp.float32(position["w"])


def test_log_priors_differ_as_the_papers(case):
    model, draw, log_prior, _ = case
    for seed in range(5):
        one, other = draw(seed), draw(seed + 100)
        found = float(model.log_prior(as_position(model, one))) - float(
            model.log_prior(as_position(model, other))
        )
        # float32: sums of some ten terms of order 1.
        assert found == pytest.approx(log_prior(one) - log_prior(other), rel=1e-5, abs=1e-4)


def test_each_datum_has_the_papers_log_likelihood(case):
    model, draw, _, log_likelihood = case
    for seed in range(5):
        position = {name: 2 * leaf for name, leaf in draw(seed).items()}
        found = model.log_likelihood(as_position(model, position), model.data)
        np.testing.assert_allclose(found, log_likelihood(position), rtol=1e-5, atol=1e-5)


def test_gradients_are_the_finite_differences_of_the_papers_density(case):
    model, draw, log_prior, log_likelihood = case
    position = draw(1)
    names = sorted(position)
    ends = np.cumsum([position[name].size for name in names])

    def exact(flat):
        parts = zip(names, np.split(flat, ends[:-1]), strict=True)
        tree = {name: part.reshape(position[name].shape) for name, part in parts}
        return log_prior(tree) + log_likelihood(tree).sum()

    flat = np.concatenate([position[name].ravel() for name in names])
    # The error of central differences with steps of 1e-6 is about 1e-6.
    expected = (approx_fprime(flat, exact, 1e-6) + approx_fprime(flat, exact, -1e-6)) / 2
    found = posterior.scores(model, np.asarray(flat, np.float32)[None])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    # No entry is trivially right.
    assert (np.abs(expected) > 1e-2).mean() > 0.95


def test_rows_of_training_data_have_the_form_of_test_data(case):
    """The predicted probability of a row's class is its likelihood."""
    model, draw, _, log_likelihood = case
    rows = model.as_test(model.data)
    probabilities = np.asarray(model.predict(as_position(model, draw(2)), rows["inputs"]), np.float64)
    if probabilities.ndim == 1:
        probabilities = np.column_stack([1 - probabilities, probabilities])
    own = probabilities[np.arange(40), np.asarray(rows["targets"])]
    np.testing.assert_allclose(np.log(own), log_likelihood(draw(2)), rtol=1e-4, atol=1e-5)


# --- the discriminative RBM ---


def test_class_probabilities_are_the_enumerated_ones_and_sum_to_1():
    model, inputs, _ = small_boltzmann()
    for seed in range(5):
        position = boltzmann_position(seed)
        found = np.asarray(model.predict(single(position), jnp.float32(inputs)), np.float64)
        assert found.shape == (40, 3)
        # float32: three terms of a sum near 1.
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=5e-7)
        np.testing.assert_allclose(
            found, np.exp(boltzmann_log_probabilities(position, inputs)), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", [name for name in SETS if SETS[name].n_hidden])
def test_machines_have_the_papers_numbers_of_parameters(name):
    entry = SETS[name]
    model = drbm.from_arrays(
        np.zeros((2, entry.n_features)), np.array([0, 1]), n_hidden=entry.n_hidden, n_classes=entry.n_classes
    )
    assert model.dimension == {"connect-4": 2_603, "letter": 4_326, "acoustic": 1_083}[name]
    assert model.dimension == entry.n_parameters


def naive_sum(activations, biases):
    return np.logaddexp(0, activations[:, None, :] + biases[:, :, None]).sum(axis=0)


@pytest.mark.parametrize("scale", [0.01, 1, 10, 40])
def test_sums_over_hidden_units_are_accurate_for_large_inputs_and_many_units(scale):
    """The reference is a float64 sum of logarithms, with sums of sigmoids as derivatives; 127 units are the maximum."""
    rng = np.random.default_rng(3)
    activations, biases = (
        np.clip(scale * rng.normal(size=(127, size)), -43, 43).astype(np.float32) for size in (8, 5)
    )
    found, pull_back = jax.vjp(drbm.sum_softplus, jnp.asarray(activations), jnp.asarray(biases))
    exact = naive_sum(activations.astype(float), biases.astype(float))
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    weights = rng.normal(size=(5, 8)).astype(np.float32)
    slopes = special.expit(activations[:, None, :].astype(float) + biases[:, :, None]) * weights
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


def test_no_hidden_unit_is_lost_at_zero():
    """Each of 127 units contributes log 2: the product 2^127 does not overflow in float32."""
    found = drbm.sum_softplus(jnp.zeros((127, 1)), jnp.zeros((127, 2)))
    np.testing.assert_allclose(found, 127 * np.log(2), rtol=1e-6)


def test_curvatures_are_differences_of_exact_gradients():
    """Second derivatives, which Hutchinson's diagonal and Newton's steps use."""
    model, inputs, labels = small_boltzmann()
    position = boltzmann_position(4)
    names, direction = sorted(position), boltzmann_position(5)

    def score(p):
        return jax.grad(lambda p: jnp.sum(model.log_likelihood(p, model.data)))(p)

    _, found = jax.jit(lambda p, v: jax.jvp(score, (p,), (v,)))(single(position), single(direction))

    def exact(step):
        moved = {name: position[name] + step * direction[name] for name in names}
        return boltzmann_log_probabilities(moved, inputs)[np.arange(40), labels].sum()

    # v' H v along the direction, by second differences with an error of order 1e-6.
    along = (exact(1e-3) - 2 * exact(0) + exact(-1e-3)) / 1e-6
    product = sum(np.vdot(np.asarray(found[name], float), direction[name]) for name in names)
    assert product == pytest.approx(along, rel=1e-3)
    assert abs(along) > 1


def test_gradients_of_single_rows_add_up_and_arms_advance_together():
    model, _, _ = small_boltzmann()
    drawn = [single(boltzmann_position(seed)) for seed in range(3)]

    def of_row(position, row):
        batch = jax.tree.map(lambda leaf: leaf[None], row)
        return model.log_likelihood(position, batch)[0]

    def of_all(position):
        return jnp.sum(model.log_likelihood(position, model.data))

    rows = jax.jit(jax.vmap(jax.grad(of_row), (None, 0)))(drawn[0], model.data)
    gradient = jax.jit(jax.grad(of_all))
    whole = [flatten(gradient(position)) for position in drawn]
    np.testing.assert_allclose(
        flatten(jax.tree.map(lambda leaf: leaf.sum(axis=0), rows)), whole[0], atol=1e-4
    )
    together = jax.jit(jax.vmap(jax.grad(of_all)))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *drawn))
    for place, expected in enumerate(whole):
        found = flatten(jax.tree.map(lambda leaf, place=place: leaf[place], together))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_sizes_out_of_range_are_refused():
    inputs, labels = np.zeros((2, 3)), np.array([0, 1])
    with pytest.raises(InputError, match=r"n_hidden: 128 is not allowed; .* >= 1 and <= 127"):
        drbm.from_arrays(inputs, labels, n_hidden=128, n_classes=2)
    with pytest.raises(InputError, match=r"n_classes: 1 is not allowed; .* >= 2 and <= 256"):
        drbm.from_arrays(inputs, labels, n_hidden=1, n_classes=1)
