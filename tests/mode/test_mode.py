"""The mode against Newton's method in float64 and exact Gaussians, and the file in which it is saved."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from predictive_models import small_network, small_pmf
from reference_models import (
    DIMENSION,
    gaussian_log_likelihood,
    gaussian_model,
    model_of,
    newton,
    simulated_arrays,
    standard_normal,
)

from sgtune.mode.find import descend, find_map, map_position, map_result
from sgtune.model import Found, define_model
from sgtune.model.positions import flatten
from sgtune.model.posterior import LARGE_DIMENSION, log_posterior, negative_hessian, scores
from sgtune.study.posteriors import logistic
from sgtune.support.errors import InputError
from sgtune.support.randomness import named_key


@pytest.fixture(scope="module")
def arrays():
    return simulated_arrays()


@pytest.fixture
def model(arrays):
    return model_of(arrays)


def test_the_map_is_newtons_in_float64(arrays, model):
    exact, hessian = newton(arrays)
    result = find_map(model)
    half = np.linalg.cholesky(hessian)
    # Distances are in posterior sds; the float32 gradient of 2,000 rows has an error of about 1e-4.
    assert np.linalg.norm(half.T @ (np.asarray(result.position, np.float64) - exact)) < 1e-3
    assert result.gradient_norm < 1e-2
    assert result.distance < 1e-3
    margin = arrays["train_inputs"] @ exact * (2.0 * arrays["train_targets"] - 1)
    value = np.logaddexp(0, -margin).sum() + exact @ exact / 20
    assert result.negative_log_posterior == pytest.approx(value, rel=1e-6)


def test_the_map_of_the_papers_data_set(logistic_data_dir):
    model = logistic.load(logistic_data_dir)
    result = map_result(model)
    assert result.distance < 1e-2
    assert result.steps < 100
    # -log pi at the mode is lower than at the true parameter by half a chi-square with 10 degrees of freedom.
    assert 0 < 115_910.1 - result.negative_log_posterior < 15
    kept = logistic.load(logistic_data_dir)
    np.testing.assert_array_equal(map_position(kept), result.position)
    assert map_result(kept) == result._replace(position=map_position(kept))


def test_the_map_is_kept_beside_the_data_until_they_change(tmp_path):
    model, exact, _ = gaussian_model(data_dir=tmp_path)
    first = map_position(model)
    np.testing.assert_allclose(ravel_pytree(first)[0], exact, atol=1e-4)
    assert map_position(model) is first
    path = tmp_path / "gaussian.map.npz"
    written = path.stat().st_mtime_ns
    again = map_position(gaussian_model(data_dir=tmp_path)[0])
    assert path.stat().st_mtime_ns == written
    jax.tree.map(np.testing.assert_array_equal, first, again)
    other, exact, _ = gaussian_model(n_rows=50, data_dir=tmp_path)
    np.testing.assert_allclose(ravel_pytree(map_position(other))[0], exact, atol=1e-4)
    path.write_bytes(b"broken")
    other = replace(other, found=Found())
    np.testing.assert_allclose(ravel_pytree(map_position(other))[0], exact, atol=1e-4)


def test_a_start_that_is_not_finite_is_refused(model):
    with pytest.raises(InputError, match="'logistic' is not finite"):
        find_map(model, position=jnp.full(DIMENSION, jnp.nan))


def wide_model(precisions=1.0):
    """50 rows ~ N(position, 1 / precisions) of D = 300 under N(0, I), and the exact mode."""
    precisions = np.broadcast_to(np.float32(precisions), (300,))
    rows = np.random.default_rng(0).normal(2, precisions**-0.5, (50, 300)).astype(np.float32)
    model = define_model(
        "wide",
        log_prior=standard_normal,
        log_likelihood=lambda position, rows: -0.5 * jnp.sum(precisions * (rows - position) ** 2, axis=1),
        data=rows,
        init=lambda key: 5 * jax.random.normal(key, (300,)),
    )
    weights = precisions.astype(np.float64)
    return model, weights * rows.sum(axis=0, dtype=np.float64) / (50 * weights + 1)


def test_the_map_of_a_large_model_is_the_exact_mode():
    model, exact = wide_model()
    result = find_map(model, tolerance=1e-5)
    # The posterior sds are 0.14; the float32 error of a sum of 51 terms is about 1e-5.
    np.testing.assert_allclose(result.position, exact, atol=1e-4)
    assert result.converged


def test_scales_that_differ_by_a_million_need_few_steps():
    precisions = np.logspace(-3, 3, 300)
    model, exact = wide_model(precisions)
    result = find_map(model, position=jnp.zeros(300))
    sds = (50 * precisions + 1) ** -0.5
    distance = np.linalg.norm((np.asarray(result.position, np.float64) - exact) / sds)
    assert distance < 0.01 * np.sqrt(300)
    assert result.distance == pytest.approx(distance, rel=0.1, abs=0.01)
    # The Hessian is diagonal, so a step in scaled coordinates is a Newton step.
    assert result.steps <= 5


@pytest.mark.parametrize("make", [small_pmf, lambda: small_network(n_hidden=9)], ids=["pmf", "bnn"])
def test_the_large_studies_modes_are_minima(make):
    model = make()
    assert model.dimension > LARGE_DIMENSION
    result = find_map(model)
    assert result.converged
    assert 0 < result.distance <= 0.01 * np.sqrt(model.dimension)
    hessian = negative_hessian(model, result.position)
    curvatures, directions = np.linalg.eigh(hessian)
    gradient = scores(model, flatten(result.position)[None])[0]
    # The mode is no saddle: negative curvatures, in valleys not followed to the end, are tiny.
    assert curvatures[0] > -1e-3 * curvatures[-1]
    # The Newton step with the full Hessian is also short along the directions with larger curvature.
    curved = curvatures > 1e-3 * curvatures[-1]
    step = (directions.T @ gradient)[curved] / np.sqrt(curvatures[curved])
    assert np.linalg.norm(step) < 0.1 * np.sqrt(model.dimension)
    assert curved.mean() > 0.5


def test_a_flat_posterior_has_no_mode():
    flat = define_model(
        "flat",
        log_prior=lambda position: 0.0 * jnp.sum(position),
        log_likelihood=lambda position, rows: 0.0 * rows * position[0],
        data=np.ones(50, np.float32),
        init=lambda key: jnp.zeros(300),
    )
    result = find_map(flat, position=jnp.ones(300))
    assert np.isnan(result.distance)
    assert not result.converged


def test_a_tolerance_below_float32_costs_few_steps():
    model, exact = wide_model(np.logspace(-3, 3, 300))
    result = find_map(model, position=jnp.zeros(300), tolerance=1e-12)
    assert not result.converged
    assert result.steps < 200
    np.testing.assert_allclose(result.position, exact, atol=1e-3)


def test_an_unconverged_mode_is_logged(caplog):
    model, _ = wide_model(np.logspace(-3, 3, 300))
    result = find_map(model, epochs=1, max_steps=1)
    assert not result.converged
    assert result.distance > 0.01 * np.sqrt(300)
    assert "MAP of wide: NOT converged" in caplog.text
    # Adam's single pass has one minibatch, all 50 rows.
    assert result.steps == 2


def test_without_steps_of_l_bfgs_the_mode_is_where_adam_ends():
    model, _ = wide_model(np.logspace(-3, 3, 300))
    result = find_map(model, epochs=3, max_steps=0)
    position, steps = descend(model, model.init(named_key(0, "map", model.name)), epochs=3)
    assert result.steps == steps == 3
    np.testing.assert_array_equal(result.position, position)
    assert result.negative_log_posterior == pytest.approx(-float(log_posterior(model, position, model.data)))
    np.testing.assert_allclose(result.gradient_norm, np.linalg.norm(scores(model, position[None])), rtol=1e-5)


def test_a_start_at_the_mode_costs_no_step():
    model, exact = wide_model(np.logspace(-3, 3, 300))
    result = find_map(model, position=jnp.asarray(exact, jnp.float32))
    assert result.converged
    assert result.steps == 0


@pytest.mark.parametrize("field", ["converged", "first_rows"])
def test_a_saved_map_of_another_version_is_found_again(tmp_path, caplog, field):
    model, exact, _ = gaussian_model(data_dir=tmp_path)
    path = tmp_path / "gaussian.map.npz"
    map_position(model)
    with np.load(path) as kept:
        former = {name: kept[name] for name in kept.files if name != field}
    np.savez(path, **former)
    again = map_result(gaussian_model(data_dir=tmp_path)[0])
    np.testing.assert_allclose(ravel_pytree(again.position)[0], exact, atol=1e-4)
    assert again.converged is True
    assert "another version" in caplog.text
    with np.load(path) as kept:
        assert kept["converged"]
        assert field in kept.files


@pytest.mark.parametrize(
    "functions",
    [
        {"log_prior": lambda position: 1.05 * standard_normal(position)},
        {"log_likelihood": lambda position, batch: 1.05 * gaussian_log_likelihood(position, batch)},
        {"log_likelihood": lambda position, batch: gaussian_log_likelihood(position, batch) - 1e-4},
    ],
)
def test_a_saved_map_of_another_posterior_is_found_again(tmp_path, caplog, functions):
    model, _, _ = gaussian_model(n_rows=1000, data_dir=tmp_path)
    map_position(model)
    other = replace(model, found=Found(), **functions)
    found = map_result(other)
    assert "the saved one is of another log posterior; found again" in caplog.text
    expected = find_map(replace(other, data_dir=None)).negative_log_posterior
    assert found.negative_log_posterior == pytest.approx(expected)


def test_a_saved_map_is_checked_on_a_few_rows_only(tmp_path, monkeypatch):
    seen = []

    def log_likelihood(position, batch):
        seen.append(len(batch["targets"]))
        return gaussian_log_likelihood(position, batch)

    def find_nothing(*arguments, **budget):
        raise AssertionError("the saved MAP was not used")

    for n_rows in (40, 1000):
        model, _, _ = gaussian_model(n_rows=n_rows, data_dir=tmp_path)
        first = map_result(model)
        with monkeypatch.context() as patch:
            patch.setattr("sgtune.mode.find.find_map", find_nothing)
            again = map_result(replace(model, found=Found(), log_likelihood=log_likelihood))
        assert again._replace(position=None) == first._replace(position=None)
    assert set(seen) == {40, 256}


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [("tolerance", 0, "> 0 and <= 1"), ("tolerance", 2, "> 0 and <= 1"), ("epochs", 0, ">= 1")],
)
def test_bad_budgets_are_refused(model, argument, value, allowed):
    with pytest.raises(InputError, match=f"^{argument}: {value} is not allowed.*{allowed}$"):
        find_map(model, **{argument: value})
