"""Log posterior, its gradient and its curvature over all data, against untiled sums and exact Hessians."""

from collections import OrderedDict
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from posteriors_of_users import regression
from reference_models import DIMENSION, gaussian_model, logistic_of_four, newton, standard_normal
from small_models import logistic_arrays, logistic_model

from sgtune.metrics import Reference, at_position, frozen_errors
from sgtune.mode import curvature
from sgtune.mode.find import find_map, hutchinson_diagonal, map_position
from sgtune.model import Found, define_model, posterior
from sgtune.model.derived import temper
from sgtune.model.positions import flatten
from sgtune.samplers.gradients import subset_scores
from sgtune.support.errors import InputError


def untiled(model, flat):
    position = model.unravel(flat)
    return model.log_prior(position) + jnp.sum(model.log_likelihood(position, model.data))


@pytest.mark.parametrize("tile", [2_000, 500, 300, 4_096])
def test_sums_over_tiles_cover_every_row_once(tile):
    def both(rows):
        return {"sum": jnp.sum(rows), "n": rows.shape[0] + 0 * rows[0]}

    total = posterior.sum_over_tiles(both, np.arange(2_000, dtype=np.float32), tile)
    assert (float(total["sum"]), float(total["n"])) == (1_999_000, 2_000)


def test_compensation_keeps_the_error_of_many_tiles_at_that_of_one():
    rows = np.full(400_000, 0.1, np.float32)
    total = float(jax.jit(lambda rows: posterior.sum_over_tiles(jnp.sum, rows, 4))(rows))
    assert total == pytest.approx(400_000 * float(np.float32(0.1)), rel=2e-7)


@pytest.mark.parametrize(("n_rows", "n_points"), [(40_000, 5), (16_384, 130), (5_000, 33)])
def test_scores_are_the_gradients_of_the_untiled_log_posterior(n_rows, n_points):
    model = logistic_model(*logistic_arrays(n_rows, DIMENSION, seed=2))
    points = np.asarray(jax.random.normal(jax.random.key(0), (n_points, DIMENSION)))
    expected = jax.vmap(jax.grad(lambda flat: untiled(model, flat)))(points)
    found = posterior.scores(model, points)
    assert found.dtype == np.float32
    # float32 sums of n_rows terms of order 1.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * n_rows)


def test_products_in_the_models_functions_are_in_full_float32_on_any_device():
    """Three digits, an accelerator's default, are the size of a step of a chain."""
    model = logistic_model(*logistic_arrays(200, DIMENSION, seed=1))
    density, at = posterior.density_of(model), jnp.ones(DIMENSION)
    program = str(jax.make_jaxpr(lambda x: posterior.value_and_score(density, x, model.data))(at))
    n_highest = program.count("precision=(Precision.HIGHEST, Precision.HIGHEST)")
    assert program.count("dot_general") == n_highest > 1


def test_the_laplace_scale_is_the_root_of_the_inverse_hessian():
    model = logistic_of_four()
    _, hessian = newton(model)
    scale = curvature.laplace_scale(model)
    np.testing.assert_allclose(scale @ scale.T @ hessian, np.eye(DIMENSION), atol=1e-4)
    np.testing.assert_array_equal(scale, np.tril(scale))
    sds = np.sqrt(np.diag(np.linalg.inv(hessian)))
    np.testing.assert_allclose(curvature.laplace_sd(model), sds, rtol=1e-4)
    assert curvature.laplace_scale(model) is scale


@pytest.mark.parametrize("n_rows", [20, 20_000])
def test_a_saved_laplace_scale_of_another_curvature_is_computed_again(tmp_path, n_rows, caplog):
    rows = np.random.default_rng(1).standard_normal((n_rows, 2), np.float32)
    own = {"log_prior": standard_normal, "data": rows, "init": lambda key: jnp.zeros(2), "data_dir": tmp_path}

    def scale_of(precision: float) -> np.ndarray:
        # Targets are zero, so that the mode is zero, and the value there, under every precision.
        def log_likelihood(position, batch):
            return -0.5 * precision * (batch @ position) ** 2

        return curvature.laplace_scale(define_model("centred", log_likelihood=log_likelihood, **own))

    scale_of(1)
    covariance = np.linalg.inv(2 * rows.T @ rows + np.eye(2))
    np.testing.assert_allclose(scale_of(2) @ scale_of(2).T, covariance, rtol=1e-3)
    assert caplog.text.count("the saved one is of another log posterior; computed again") == 1


def wide_model(log_likelihood, dimension=300):
    data = (1 + np.random.default_rng(0).random((50, dimension))).astype(np.float32)
    own = {"log_prior": standard_normal, "init": lambda key: jnp.zeros(dimension)}
    return define_model("wide", log_likelihood=log_likelihood, data=data, **own)


def test_the_factor_above_200_dimensions_has_the_marginal_sds_of_each_temperature():
    model = wide_model(lambda position, rows: -0.5 * (rows @ position / 10) ** 2)
    data = np.asarray(model.data, np.float64) / 10
    for own, weight in ((model, 1.0), (temper(model, 2.0 * model.n_data), 2.0)):
        covariance = np.linalg.inv(np.eye(300) + weight * data.T @ data)
        factor = curvature.laplace_factor(own)
        np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-3 * covariance.max())
        np.testing.assert_allclose(np.linalg.norm(factor, axis=1), np.sqrt(np.diag(covariance)), rtol=1e-3)
        assert curvature.laplace_factor(own) is factor


def test_hutchinson_finds_small_entries_beside_huge_ones():
    """Raw columns: without scaled probes the noise of the largest is ten thousand times the smallest entry."""
    rng = np.random.default_rng(6)
    scales = np.geomspace(0.01, 100, 300)
    x = (rng.standard_normal((2_000, 300)) * scales).astype(np.float32)
    model = regression("columns", x, np.zeros(2_000, np.float32))
    exact = np.sum(x.astype(np.float64) ** 2, axis=0) + 1
    found = hutchinson_diagonal(model, jnp.zeros(300))
    # Of 32 probes, with correlations of 2,000^-1/2 between 300 columns: a relative sd of 7%.
    np.testing.assert_allclose(found, exact, rtol=0.35)


def test_hutchinson_is_exact_on_a_diagonal_hessian_and_within_its_error_on_a_dense_one():
    model, position = wide_model(lambda position, rows: -0.5 * rows**2 @ position**2), jnp.zeros(300)
    expected = 1 + np.sum(np.asarray(model.data, np.float64) ** 2, axis=0)
    np.testing.assert_allclose(hutchinson_diagonal(model, position), expected, rtol=1e-5)
    for sds in (curvature.laplace_scale(model, position), curvature.laplace_sd(model)):
        np.testing.assert_allclose(sds, expected**-0.5, rtol=1e-5)
    model = wide_model(lambda position, rows: -0.5 * (rows @ position / 10) ** 2)
    data = np.asarray(model.data, np.float64) / 10
    hessian = data.T @ data
    expected, error = 1 + np.diag(hessian), np.sqrt((np.sum(hessian**2, 1) - np.diag(hessian) ** 2) / 256)
    found = hutchinson_diagonal(model, position, n_probes=256)
    floored = found == 1
    assert floored.sum() < 200
    assert np.all(np.abs(found - expected)[~floored] < 5 * error[~floored])
    assert found.min() >= 1


def test_a_kept_diagonal_is_of_its_position_probes_and_seed():
    def log_likelihood(position, rows):
        return -0.5 * (rows @ position / 10) ** 2 - jnp.sum(position**4)

    model = wide_model(log_likelihood)
    for arguments in ((0.0, 8, 0), (0.5, 8, 0), (0.5, 4, 0), (0.5, 4, 1), (0.0, 8, 0)):
        position = jnp.full(300, arguments[0])
        found = hutchinson_diagonal(model, position, *arguments[1:])
        fresh = hutchinson_diagonal(replace(model, found=Found()), position, *arguments[1:])
        np.testing.assert_array_equal(found, fresh)


def test_what_was_found_for_a_model_is_not_that_of_one_with_another_posterior(tmp_path):
    model, _exact, covariance = gaussian_model()
    curvature.laplace_scale(model)
    narrow = replace(model, log_prior=lambda position: 100 * standard_normal(position))
    assert np.abs(flatten(map_position(narrow)) - flatten(map_position(model))).max() > 0.1
    assert curvature.laplace_sd(narrow).max() < 0.5 * np.sqrt(np.diag(covariance)).max()
    # A file of the mode is that of its data, also where they differ behind the rows that it looks at.
    model, _, _ = gaussian_model(n_rows=1_000, data_dir=tmp_path)
    map_position(model)
    targets = model.data["targets"].at[500:].add(1.0)
    moved = replace(model, data=model.data | {"targets": targets})
    assert moved.checksum != model.checksum
    expected = map_position(replace(moved, data_dir=None, found=Found()))
    np.testing.assert_allclose(flatten(map_position(moved)), flatten(expected), rtol=1e-4)
    assert np.abs(flatten(expected) - flatten(map_position(model))).max() > 0.1
    # Another attribute leaves the posterior as it is; models that were made from the first one have the old attribute.
    temper(model, 7.0)
    alone = replace(model, max_lockstep=1)
    assert map_position(alone) is map_position(model)
    assert temper(alone, 7.0).max_lockstep == 1


def test_scales_that_a_model_keeps_cannot_be_written_to():
    for model in (gaussian_model()[0], wide_model(lambda position, rows: -0.5 * (rows @ position) ** 2)):
        for scale in (curvature.laplace_scale(model), curvature.laplace_factor(model)):
            with pytest.raises(ValueError, match="read-only"):
                scale *= 2


def test_positions_of_another_order_are_refused():
    """Their leaves would be taken for each other, where the sizes agree."""
    model, _, covariance = gaussian_model()
    good = map_position(model)
    wrong = OrderedDict((name, good[name]) for name in sorted(good, reverse=True))
    reference = Reference(np.sqrt(np.diag(covariance)))
    for use in (
        lambda position: find_map(model, position=position),
        lambda position: curvature.laplace_scale(model, position),
        lambda position: at_position(model, position),
        lambda position: frozen_errors(model, position, reference),
        lambda position: subset_scores(model, flatten(good)[None], 0.5, position),
    ):
        use(good)
        with pytest.raises(InputError, match=r"^(position|centre): shape"):
            use(wrong)


def test_a_saved_laplace_scale_is_of_its_mode(tmp_path):
    """Also in a file of an older version, which does not know the log posterior one sd away."""
    model, _, covariance = gaussian_model(data_dir=tmp_path)
    mode, older = flatten(map_position(model)), {"checksum": model.checksum, "scale": np.eye(3)}
    for position, expected in ((mode, np.eye(3)), (mode + 1, covariance)):
        np.savez(tmp_path / "gaussian.laplace.npz", **older, position=position)
        scale = curvature.laplace_scale(replace(model, found=Found()))
        assert np.allclose(scale @ scale.T, expected, rtol=1e-3)
