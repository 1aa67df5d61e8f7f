"""The mode, against Newton's in float64 and exact Gaussians, and where it is kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from reference_models import DIMENSION, gaussian_model, model_of, newton, simulated_arrays, standard_normal

from sgtune.errors import InputError
from sgtune.models import define_model, logistic
from sgtune.reference.map import find_map, map_position, map_result


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
    # Distances in posterior sds; float32 resolves the gradient of 2,000 rows to 1e-4 or so.
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
    # -log pi is lower than at the true parameter, by a half chi-square with 10 degrees of freedom.
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
    other.cache.clear()
    np.testing.assert_allclose(ravel_pytree(map_position(other))[0], exact, atol=1e-4)


def test_a_start_that_is_not_finite_is_refused(model):
    with pytest.raises(InputError, match="'logistic' is not finite"):
        find_map(model, position=jnp.full(DIMENSION, jnp.nan))


def test_the_map_of_a_large_model_is_the_exact_mode():
    """Rows ~ N(position, I) under N(0, I): the mode is the sum of the N rows over N + 1."""
    rows = np.random.default_rng(0).normal(2, 1, (50, 300)).astype(np.float32)
    model = define_model(
        "wide",
        log_prior=standard_normal,
        log_likelihood=lambda position, rows: -0.5 * jnp.sum((rows - position) ** 2, axis=1),
        data=rows,
        init=lambda key: 5 * jax.random.normal(key, (300,)),
    )
    result = find_map(model)
    exact = rows.sum(axis=0, dtype=np.float64) / 51
    # The posterior sds are 0.14.
    np.testing.assert_allclose(result.position, exact, atol=1e-4)
    assert np.isnan(result.distance)
