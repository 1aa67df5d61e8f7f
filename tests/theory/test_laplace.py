"""The Laplace approximation against naive sums, and the theory's predictions against chains of the samplers."""

import jax.numpy as jnp
import numpy as np
import pytest
from posteriors_of_users import regression
from reference_models import gaussian_model
from small_models import model_of_prior

from sgtune import Arm, InputError, Preconditioner, define_model
from sgtune.mode.coordinates import check_curvature, precondition
from sgtune.mode.find import map_position
from sgtune.model.positions import flatten
from sgtune.sampling.lockstep import Lockstep
from sgtune.theory.laplace import CHUNK_FLOATS, laplace_of, spread_ratios
from sgtune.theory.linear import expected_run, stationary_variances

N_ROWS = 100


@pytest.fixture(scope="module")
def gaussian():
    model, _, _ = gaussian_model(n_rows=N_ROWS)
    return model, laplace_of(model)


@pytest.mark.parametrize("chunk", [CHUNK_FLOATS, 3 * 48])
def test_the_directions_of_small_models_are_eigenvectors(gaussian, monkeypatch, chunk):
    """Also for 100 rows in chunks of 48, and of 16 for the Hessians: rows that pad a chunk do not count."""
    monkeypatch.setattr("sgtune.theory.laplace.CHUNK_FLOATS", chunk)
    model = gaussian[0]
    laplace = laplace_of(model)
    rows = np.column_stack([np.ones(N_ROWS), model.data["inputs"]]).astype(np.float64)
    curvature, basis = np.linalg.eigh(rows.T @ rows + np.eye(3))
    np.testing.assert_allclose(laplace.directions.curvature, curvature, rtol=1e-4)
    np.testing.assert_allclose(np.abs(np.sum(basis * laplace.basis, axis=0)), 1, rtol=1e-4)
    np.testing.assert_allclose(laplace.mode, flatten(map_position(model)), rtol=1e-5)
    along = rows @ laplace.basis
    gradients = along * (np.asarray(model.data["targets"]) - rows @ laplace.mode)[:, None]
    np.testing.assert_allclose(laplace.directions.noise, np.var(gradients, axis=0, ddof=1), rtol=1e-3)
    hessians = along[:, :, None] * along[:, None, :]
    np.testing.assert_allclose(laplace.directions.noise_slopes, np.var(hessians, axis=0, ddof=1), rtol=1e-3)
    assert laplace.directions.n_data == N_ROWS


def test_a_few_rows_of_huge_leverage_do_not_escape_a_subset(monkeypatch):
    """Four of 3,000 rows have nearly all the variance of the Hessians; with 400 Hessians it is that of all rows."""
    rng = np.random.default_rng(8)
    inputs = rng.standard_normal((3_000, 3)).astype(np.float32)
    inputs[rng.choice(3_000, 4, replace=False), 1] *= 100
    targets = inputs @ [1.0, -1.0, 0.5] + rng.standard_normal(3_000)
    model = regression("leverage", inputs, targets)
    whole = laplace_of(model).directions
    monkeypatch.setattr("sgtune.theory.laplace.MOST_HESSIANS", 400)
    monkeypatch.setattr("sgtune.theory.laplace.CHUNK_FLOATS", 3 * 48)
    several = [laplace_of(model, seed=seed).directions for seed in range(5)]
    np.testing.assert_allclose(several[0].noise, whole.noise, rtol=1e-3)
    for each in several:
        # The largest entries are of the four rows; 200 others stand for the rest, with an error of about 10%.
        np.testing.assert_allclose(each.noise_slopes, whole.noise_slopes, rtol=0.4)
        assert each.noise_slopes.max() == pytest.approx(whole.noise_slopes.max(), rel=1e-3)


LARGE = 205


def large_model(rng, inputs):
    """Linear regression in coordinates about its mode, of the sds given all other parameters: no search is needed."""
    targets = inputs @ rng.standard_normal(LARGE) + rng.standard_normal(len(inputs))
    model = regression("large", inputs.astype(np.float32), targets.astype(np.float32), shuffle_seed=None)
    hessian = inputs.T @ inputs + np.eye(LARGE)
    mode, sds = np.linalg.solve(hessian, inputs.T @ targets), np.diagonal(hessian) ** -0.5
    return precondition(model, Preconditioner(mode, sds)), mode, sds, targets


def test_a_few_rows_of_huge_leverage_do_not_escape_above_200_dimensions(monkeypatch):
    """Four of 5,000 rows have nearly all the noise along one coordinate: so it is by all rows, and by random signs."""
    rng = np.random.default_rng(8)
    inputs = rng.standard_normal((5_000, LARGE))
    outliers = rng.choice(5_000, 4, replace=False)
    inputs[outliers, 1] *= 100
    model, mode, sds, targets = large_model(rng, inputs)
    z = inputs * sds
    gradients = z * (targets - inputs @ mode)[:, None]
    exact = np.sum((z**2).T @ z**2 / 5_000 - (z.T @ z / 5_000) ** 2, axis=1)
    others = np.delete(z, outliers, axis=0)
    whole = laplace_of(model).directions
    np.testing.assert_allclose(whole.noise, np.var(gradients, axis=0, ddof=1), rtol=1e-3)
    assert whole.noise_slopes[1] == pytest.approx(exact[1], rel=0.4)
    assert exact[1] > 30 * np.var(others[:, 1:2] * others, axis=0).sum(), "a subset misses it"
    monkeypatch.setattr("sgtune.theory.laplace.MOST_NUMBERS", 0)
    for seed in range(3):
        signed = laplace_of(model, seed).directions
        assert 0.4 < signed.noise_slopes[1] / exact[1] < 2.5
        assert np.mean(np.delete(signed.noise_slopes / exact, 1)) == pytest.approx(1, abs=0.1)
        assert np.mean(signed.noise / whole.noise) == pytest.approx(1, abs=0.1)


def test_what_is_no_mode_is_refused_above_200_dimensions():
    rng = np.random.default_rng(5)
    model, mode, sds, _ = large_model(rng, rng.standard_normal((400, LARGE)))
    away = precondition(model.original, Preconditioner(mode + 0.3 * sds, sds))
    with pytest.raises(InputError, match=r"^position: .*'large' is no mode"):
        laplace_of(away)
    along = np.full(LARGE, LARGE**-0.5)
    # Curvature 1, but -0.5 along the diagonal: that of each coordinate alone is positive.
    saddle = model_of_prior(lambda p: -0.5 * p @ p + 0.75 * (along @ p) ** 2, jnp.zeros(LARGE), "saddle")
    seen = precondition(saddle, Preconditioner(np.zeros(LARGE), np.ones(LARGE)))
    with pytest.raises(InputError, match=r"'saddle' is not concave .*: the least curvature is -0\.50?\d?;"):
        laplace_of(seen)
    groups, y = np.repeat(np.arange(LARGE), 11), rng.laplace(size=(LARGE, 11))
    kinks = define_model(
        "kinks",
        log_prior=lambda position: -0.5 * position @ position / 100,
        log_likelihood=lambda position, batch: -jnp.abs(batch["y"] - position[batch["group"]]),
        data={"y": y.ravel().astype(np.float32), "group": groups.astype(np.int32)},
        init=lambda key: jnp.zeros(LARGE),
    )
    seen = precondition(kinks, Preconditioner(np.median(y, axis=1), np.full(LARGE, 10.0)))
    with pytest.raises(InputError, match=r"^log_likelihood: .*'kinks'.* must have second derivatives"):
        laplace_of(seen)


def test_correlations_of_large_models_are_not_taken_for_kinks():
    """2,500 parameters of which the data know the sum alone: of 16 moves the sums are 50 times one of their entries."""
    sums = model_of_prior(lambda p: -0.5 * (jnp.sum(p) ** 2 + 1e-3 * p @ p), jnp.zeros(2_500), "sums")
    check_curvature(sums, np.zeros(2_500), np.full(2_500, 1.001**-0.5))


def test_the_directions_of_large_models_are_coordinates():
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((1_000, LARGE)) * np.geomspace(0.3, 1, LARGE)
    model, _, _, targets = large_model(rng, inputs)
    laplace = laplace_of(model.original)
    assert laplace.basis is None
    noise, slopes = laplace.directions.noise, laplace.directions.noise_slopes
    gradients = inputs * (targets - inputs @ laplace.mode)[:, None]
    np.testing.assert_allclose(noise, np.var(gradients, axis=0, ddof=1), rtol=1e-3)
    # Slopes are estimated from the differences H_j x for four draws x ~ N(0, 1 / curvature). The exact value needs the
    # variance of products of two inputs, here without storing the products of all rows.
    variances = (inputs**2).T @ inputs**2 / 1_000 - (inputs.T @ inputs / 1_000) ** 2
    exact = variances * (1_000 / 999) @ (1 / laplace.directions.curvature)
    assert np.mean(slopes / exact) == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(slopes, exact, rtol=0.4)
    assert (laplace.along(np.tile(laplace.mode, (2, 1))) == 0).all()


@pytest.mark.parametrize("name", ["sgld", "sgld-cv"])
def test_draws_have_the_predicted_sds_and_show_where_the_assumption_fails(gaussian, name):
    model, laplace = gaussian
    arm = Arm(1e-3, 10)
    draws = Lockstep(model, name, [arm], seed=5).advance(4_000, 1)[:, 0]
    ratios = np.sqrt(stationary_variances(name, arm, laplace.directions) * laplace.directions.curvature)
    np.testing.assert_allclose(spread_ratios(laplace, name, arm), ratios)
    # In units of the Laplace approximation's sd, with the standard deviation over chains by the delta method.
    mean, variance = expected_run(name, arm, laplace.directions, len(draws))
    predicted, error = np.sqrt(mean), np.sqrt(variance / mean) / 2
    measured = laplace.along(draws).std(axis=0) * np.sqrt(laplace.directions.curvature)
    assert (np.abs(measured - predicted) < 4 * error).all()
    assert (3 * measured - predicted > 4 * error).all()


def test_coordinates_of_another_scale_are_known_above_200_dimensions():
    """Sds that are given three times too large make every curvature 9."""
    rng = np.random.default_rng(6)
    model, mode, sds, _ = large_model(rng, rng.standard_normal((20_000, LARGE)))
    for factor in (1.0, 3.0):
        seen = precondition(model.original, Preconditioner(mode, factor * sds))
        found = laplace_of(seen).directions.curvature
        np.testing.assert_allclose(found, factor**2, rtol=0.1)
