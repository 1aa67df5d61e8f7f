"""The mode against Newton's method in float64 and exact Gaussians, and the file in which it is saved."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from posteriors_of_users import case
from reference_models import (
    gaussian_log_likelihood,
    gaussian_model,
    logistic_of_four,
    newton,
    standard_normal,
)
from small_models import small_logistic_model

from sgtune.mode import find
from sgtune.mode.find import descend, find_map, map_position, map_result
from sgtune.model import Found, define_model


def test_the_map_is_newtons_in_float64():
    model = logistic_of_four()
    exact, hessian = newton(model)
    result = find_map(model)
    half = np.linalg.cholesky(hessian)
    # Distances are in posterior sds; the float32 gradient of 2,000 rows has an error of about 1e-4.
    assert np.linalg.norm(half.T @ (np.asarray(result.position, np.float64) - exact)) < 1e-3
    assert result.gradient_norm < 1e-2
    assert result.distance < 1e-3
    value = np.logaddexp(0, -np.asarray(model.data["signed_inputs"]) @ exact).sum() + exact @ exact / 20
    assert result.negative_log_posterior == pytest.approx(value, rel=1e-6)


def poisson_model(start: float):
    """Counts with the log mean 2 + x / 2, and the exact mode by Newton's method in float64 from near it."""
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(400), rng.standard_normal(400)])
    counts, exact = rng.poisson(np.exp(x @ [2, 0.5])), np.array([2, 0.5])
    for _ in range(20):
        mean = np.exp(x @ exact)
        exact = exact + np.linalg.solve((x.T * mean) @ x + np.eye(2), x.T @ (counts - mean) - exact)
    model = define_model(
        "counts",
        log_prior=standard_normal,
        log_likelihood=lambda p, rows: rows["y"] * (rows["x"] @ p) - jnp.exp(rows["x"] @ p),
        data={"x": x.astype(np.float32), "y": counts},
        init=lambda key: jnp.full(2, start),
    )
    return model, exact


@pytest.mark.parametrize("start", [-3.0, 0.0, 6.0])
def test_newtons_method_shortens_steps_that_lead_downhill(start, monkeypatch):
    """From -3 the curvature is too small by a factor of a hundred, and a whole step leads to exp(100)."""
    monkeypatch.setattr(find, "_minimise", None)
    model, exact = poisson_model(start)
    result = find_map(model)
    assert result.converged
    assert result.distance < 1e-3
    np.testing.assert_allclose(result.position, exact, atol=1e-4)


@pytest.mark.parametrize("limit", [{"MOST_NEWTON_STEPS": 2}, {"MOST_OF_NEWTON": 400 * 2**2 - 1}])
def test_a_search_that_newtons_method_does_not_end_is_left_to_l_bfgs(limit, monkeypatch):
    model, exact = poisson_model(-3.0)
    calls, minimise = [], find._minimise
    monkeypatch.setattr(find, "_minimise", lambda *given: calls.append(given) or minimise(*given))
    for name, number in limit.items():
        monkeypatch.setattr(find, name, number)
    np.testing.assert_allclose(find_map(model).position, exact, atol=1e-4)
    assert calls


def test_the_map_is_kept_beside_the_data_until_they_change(tmp_path):
    def check(model, exact):
        np.testing.assert_allclose(ravel_pytree(map_position(model))[0], exact, atol=1e-4)

    model, exact, _ = gaussian_model(data_dir=tmp_path)
    check(model, exact)
    first, path = map_position(model), tmp_path / "gaussian.map.npz"
    assert map_position(model) is first
    written = path.stat().st_mtime_ns
    again = map_position(gaussian_model(data_dir=tmp_path)[0])
    assert path.stat().st_mtime_ns == written
    jax.tree.map(np.testing.assert_array_equal, first, again)
    other, exact, _ = gaussian_model(n_rows=50, data_dir=tmp_path)
    check(other, exact)
    path.write_bytes(b"broken")
    check(replace(other, found=Found()), exact)


PRECISIONS = np.logspace(-3, 3, 300)


def wide_model():
    """50 rows ~ N(position, 1 / PRECISIONS) of D = 300 under N(0, I), and the exact mode."""
    precisions = np.float32(PRECISIONS)
    rows = np.random.default_rng(0).normal(2, precisions**-0.5, (50, 300)).astype(np.float32)

    def log_likelihood(position, rows):
        return -0.5 * jnp.sum(precisions * (rows - position) ** 2, axis=1)

    own = {"log_prior": standard_normal, "init": lambda key: 5 * jax.random.normal(key, (300,))}
    weights = precisions.astype(np.float64)
    mode = weights * rows.sum(axis=0, dtype=np.float64) / (50 * weights + 1)
    return define_model("wide", log_likelihood=log_likelihood, data=rows, **own), mode


def test_scales_that_differ_by_a_million_need_few_steps():
    model, exact = wide_model()
    sds = (50 * PRECISIONS + 1) ** -0.5
    for start in (model.init(jax.random.key(0)), jnp.zeros(300)):
        result = find_map(model, position=start)
        distance = np.linalg.norm((np.asarray(result.position, np.float64) - exact) / sds)
        assert distance < 0.01 * np.sqrt(300)
        assert result.distance == pytest.approx(distance, rel=0.1, abs=0.01)
    # The Hessian is diagonal, so a step in scaled coordinates is a Newton step.
    assert result.steps <= 5
    at_mode = find_map(model, position=jnp.asarray(exact, jnp.float32))
    assert (result.converged, at_mode.converged, at_mode.steps) == (True, True, 0)


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


def test_a_saved_map_of_another_budget_is_found_again(tmp_path, caplog):
    model, _, _ = gaussian_model(data_dir=tmp_path)
    map_result(model)
    for budget, is_found_again in (
        ({}, False),
        ({"tolerance": find.TOLERANCE, "epochs": find.EPOCHS}, False),
        ({"max_steps": 7}, True),
    ):
        caplog.clear()
        map_result(replace(model, found=Found()), **budget)
        assert ("found with another budget" in caplog.text) == is_found_again


def test_adams_steps_are_the_same_in_any_number_of_pieces(monkeypatch):
    model, found = small_logistic_model(n_data=2_500), []
    for pieces in (1, 4):
        monkeypatch.setattr("sgtune.mode.find.PIECES", pieces)
        position, steps = descend(model, jnp.zeros(model.dimension), epochs=3)
        found.append(np.asarray(position))
        assert steps == 9
    np.testing.assert_array_equal(*found)
    assert np.abs(found[0]).max() > 0.01


def test_the_search_warns_of_a_mode_that_may_be_far_from_the_posterior(caplog):
    """The joint mode of a hierarchy; not the mode of a regression."""
    for name, is_doubted in (("groups", True), ("leverage", False)):
        caplog.clear()
        assert not find_map(case(name)).doubt
        assert ("far from most of the posterior" in caplog.text) == is_doubted
