"""MAP, curvature, full-data scores and NUTS against exact answers."""

import logging
import os
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from sgtune import posterior
from sgtune.data import logistic as logistic_data
from sgtune.errors import DataError, InputError
from sgtune.models import logistic
from sgtune.models.base import define_model
from sgtune.reference import curvature, nuts
from sgtune.reference.draws import flat_draws, to_inference_data
from sgtune.reference.map import find_map, map_position, map_result

N_ROWS, DIMENSION = 2_000, 4


@pytest.fixture(scope="module")
def arrays():
    return logistic_data.simulate(n_rows=N_ROWS + 10, n_train=N_ROWS, dimension=DIMENSION, seed=1)


@pytest.fixture
def model(arrays):
    return logistic.from_arrays(arrays["train_inputs"], arrays["train_targets"], shuffle_seed=None)


def newton(arrays):
    """The mode of the logistic posterior and its Hessian there, in float64."""
    inputs = arrays["train_inputs"].astype(np.float64) * (2.0 * arrays["train_targets"] - 1)[:, None]
    position = np.zeros(inputs.shape[1])
    for _ in range(50):
        probability = 1 / (1 + np.exp(inputs @ position))
        gradient = inputs.T @ probability - position / 10
        hessian = (inputs * (probability * (1 - probability))[:, None]).T @ inputs + np.eye(
            len(position)
        ) / 10
        position = position + np.linalg.solve(hessian, gradient)
    return position, hessian


def gaussian_model(name="gaussian", n_rows=100, **settings):
    """Linear regression with known noise: an exactly Gaussian posterior, with its mean and covariance.

    The position is a dict, so that pytrees are put to the test too.
    """
    rng = np.random.default_rng(3)
    inputs = (rng.normal(size=(n_rows, 2)) @ [[1.0, 0.9], [0.0, 0.4]]).astype(np.float32)
    targets = (0.5 + inputs @ [1.0, -2.0] + rng.normal(size=n_rows)).astype(np.float32)
    model = define_model(
        name,
        log_prior=gaussian_log_prior,
        log_likelihood=gaussian_log_likelihood,
        data={"inputs": inputs, "targets": targets},
        init=lambda key: {"slopes": jax.random.normal(key, (2,)), "intercept": jnp.zeros(())},
        task="regression",
        shuffle_seed=None,
        **settings,
    )
    # In the order of ravel_pytree: intercept, slopes.
    design = np.column_stack([np.ones(n_rows), inputs]).astype(np.float64)
    precision = design.T @ design + np.eye(3)
    return model, np.linalg.solve(precision, design.T @ targets), np.linalg.inv(precision)


def gaussian_log_prior(position):
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


def gaussian_log_likelihood(position, batch):
    mean = position["intercept"] + batch["inputs"] @ position["slopes"]
    return -0.5 * (batch["targets"] - mean) ** 2


# --- the posterior of all data ---


def untiled(model, flat):
    position = model.unravel(flat)
    return model.log_prior(position) + jnp.sum(model.log_likelihood(position, model.data))


@pytest.mark.parametrize("tile", [2_000, 500, 300, 4_096])
def test_sums_over_tiles_cover_every_row_once(tile):
    rows = np.arange(2_000, dtype=np.float32)
    total = posterior.sum_over_tiles(
        lambda rows: {"sum": jnp.sum(rows), "n": rows.shape[0] + 0 * rows[0]}, rows, tile
    )
    assert float(total["sum"]) == 1_999_000
    assert float(total["n"]) == 2_000


def test_compensation_keeps_the_error_of_many_tiles_at_that_of_one():
    rows = np.full(400_000, 0.1, np.float32)
    total = float(jax.jit(lambda rows: posterior.sum_over_tiles(jnp.sum, rows, 4))(rows))
    assert total == pytest.approx(400_000 * float(np.float32(0.1)), rel=2e-7)


@pytest.mark.parametrize(("n_rows", "n_points", "chunk"), [(10_000, 5, 2), (4_096, 7, 7), (5_000, 3, None)])
def test_scores_are_the_gradients_of_the_untiled_log_posterior(n_rows, n_points, chunk):
    arrays = logistic_data.simulate(n_rows=n_rows + 1, n_train=n_rows, dimension=DIMENSION)
    model = logistic.from_arrays(arrays["train_inputs"], arrays["train_targets"])
    points = np.asarray(jax.random.normal(jax.random.key(0), (n_points, DIMENSION)))
    expected = jax.vmap(jax.grad(lambda flat: untiled(model, flat)))(points)
    found = posterior.scores(model, points, chunk=chunk)
    assert found.dtype == np.float32
    # float32 sums of n_rows terms of order 1.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * n_rows)


def test_scores_take_flat_rows_and_pytrees_alike():
    model, _, _ = gaussian_model()
    matrix = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    positions = jax.vmap(model.unravel)(matrix)
    np.testing.assert_array_equal(posterior.to_matrix(positions), matrix)
    np.testing.assert_array_equal(posterior.scores(model, matrix), posterior.scores(model, positions))
    expected = jax.vmap(jax.grad(lambda flat: untiled(model, flat)))(matrix)
    np.testing.assert_allclose(posterior.scores(model, matrix), expected, rtol=1e-5, atol=1e-4)
    assert posterior.scores(model, matrix[:0]).shape == (0, 3)
    with pytest.raises(InputError, match=r"positions: shape \(5, 2\)"):
        posterior.scores(model, matrix[:, :2])


def test_models_of_the_same_functions_share_a_program(arrays):
    inputs, targets = arrays["train_inputs"], arrays["train_targets"]
    points = np.zeros((3, DIMENSION), np.float32)
    posterior.scores(logistic.from_arrays(inputs, targets), points)
    compiled = posterior._scores._cache_size()
    posterior.scores(logistic.from_arrays(inputs + 1, targets), points)
    assert posterior._scores._cache_size() == compiled


def test_the_log_posterior_and_its_gradient_agree_with_the_untiled_one(arrays):
    repeated = [np.concatenate([arrays[name]] * 5) for name in ("train_inputs", "train_targets")]
    model = logistic.from_arrays(*repeated)
    position, offset = 0.1 * jnp.arange(DIMENSION, dtype=jnp.float32), -0.5

    def tiled(position):
        return posterior.log_posterior(posterior.density_of(model), position, model.data, offset)

    value, gradient = jax.value_and_grad(tiled)(position)
    assert float(value) == pytest.approx(float(untiled(model, position)) - offset * 10_000, rel=1e-5)
    assert float(tiled(position)) == pytest.approx(float(value), rel=1e-6)
    np.testing.assert_allclose(
        gradient, jax.grad(lambda p: untiled(model, p))(position), rtol=1e-4, atol=1e-2
    )


# --- MAP ---


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


# --- curvature ---


def test_the_laplace_scale_is_the_root_of_the_inverse_hessian(arrays, model):
    _, hessian = newton(arrays)
    scale = curvature.laplace_scale(model)
    np.testing.assert_allclose(scale @ scale.T @ hessian, np.eye(DIMENSION), atol=1e-4)
    np.testing.assert_array_equal(scale, np.tril(scale))
    np.testing.assert_allclose(
        curvature.laplace_sd(model), np.sqrt(np.diag(np.linalg.inv(hessian))), rtol=1e-4
    )
    assert curvature.laplace_scale(model) is scale


def test_the_laplace_scale_is_kept_beside_the_data(tmp_path):
    first = curvature.laplace_scale(gaussian_model(data_dir=tmp_path)[0])
    path = tmp_path / "gaussian.laplace.npz"
    written = path.stat().st_mtime_ns
    again = curvature.laplace_scale(gaussian_model(data_dir=tmp_path)[0])
    np.testing.assert_array_equal(first, again)
    assert path.stat().st_mtime_ns == written


def wide_model(log_likelihood, log_prior=gaussian_log_prior, dimension=300):
    rng = np.random.default_rng(0)
    return define_model(
        "wide",
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        data=(1 + rng.random((50, dimension))).astype(np.float32),
        init=lambda key: jnp.zeros(dimension),
    )


def test_hutchinson_is_exact_on_a_diagonal_hessian():
    model = wide_model(lambda position, rows: -0.5 * rows**2 @ position**2)
    expected = 1 + np.sum(np.asarray(model.data, np.float64) ** 2, axis=0)
    position = jnp.zeros(300)
    np.testing.assert_allclose(curvature.hutchinson_diagonal(model, position), expected, rtol=1e-5)
    np.testing.assert_allclose(curvature.laplace_scale(model, position), expected**-0.5, rtol=1e-5)
    np.testing.assert_allclose(curvature.laplace_sd(model), expected**-0.5, rtol=1e-5)


def test_hutchinson_is_within_its_error_on_a_dense_hessian():
    model = wide_model(lambda position, rows: -0.5 * (rows @ position / 10) ** 2)
    data = np.asarray(model.data, np.float64) / 10
    hessian = data.T @ data
    expected, error = 1 + np.diag(hessian), np.sqrt((np.sum(hessian**2, 1) - np.diag(hessian) ** 2) / 256)
    found = curvature.hutchinson_diagonal(model, jnp.zeros(300), n_probes=256)
    floored = found == 1
    assert floored.sum() < 200
    assert np.all(np.abs(found - expected)[~floored] < 5 * error[~floored])
    assert found.min() >= 1


def test_entries_without_curvature_get_the_priors_or_the_smallest():
    def half_flat(position, rows):
        return -0.5 * rows[:, 0] * jnp.sum(position[10:] ** 2) / 50

    with_prior = wide_model(lambda p, rows: 0.5 * jnp.sum(p[:10] ** 2) + 0 * rows[:, 0])
    np.testing.assert_allclose(curvature.hutchinson_diagonal(with_prior, jnp.zeros(300)), 1.0, rtol=1e-6)
    flat_prior = wide_model(half_flat, log_prior=lambda position: 0.0 * jnp.sum(position))
    found = curvature.hutchinson_diagonal(flat_prior, jnp.zeros(300))
    np.testing.assert_allclose(found, found[-1], rtol=1e-5)
    assert found[-1] > 0


def test_a_position_that_is_no_mode_is_refused():
    model = define_model(
        "saddle",
        log_prior=lambda position: 0.5 * jnp.sum(position**2),
        log_likelihood=lambda position, rows: 0 * rows,
        data=np.zeros(5, np.float32),
        init=lambda key: jnp.ones(2),
    )
    with pytest.raises(InputError, match="not concave"):
        curvature.laplace_scale(model, jnp.zeros(2))


# --- NUTS ---

SETTINGS = {"n_warmup": 300, "n_draws": 1_000, "seed": 5}


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    model, _, _ = gaussian_model()
    folder = tmp_path_factory.mktemp("nuts")
    return [
        nuts.sample_nuts(model, **SETTINGS, chain=chain, checkpoint_dir=folder / str(chain))
        for chain in range(2)
    ]


def test_nuts_draws_an_exact_gaussian(chains):
    _, exact_mean, exact_covariance = gaussian_model()
    both = nuts.combine_chains(chains)
    report = nuts.diagnostics(both)
    assert report["chains"] == 2
    assert report["draws"] == 1_000
    assert report["r_hat"] < 1.01
    assert report["divergences"] == 0
    assert report["leapfrogs"] == pytest.approx(2_000 * report["leapfrogs_per_draw"])
    mean, sd = nuts.summary(both)
    exact_sd = np.sqrt(np.diag(exact_covariance))
    # 4.5 standard errors: of a mean sd / sqrt(ESS), of an sd sd / sqrt(2 ESS), whose ESS is taken at half.
    assert np.all(np.abs(mean - exact_mean) < 4.5 * exact_sd / np.sqrt(report["ess_bulk"]))
    assert np.all(np.abs(sd - exact_sd) < 4.5 * exact_sd / np.sqrt(report["ess_bulk"]))
    draws = flat_draws(both)
    np.testing.assert_allclose(mean, draws.reshape(-1, 3).mean(0), rtol=1e-4)
    np.testing.assert_array_equal(draws[..., 0], both.posterior["intercept"].values)
    np.testing.assert_array_equal(draws[..., 1:], both.posterior["slopes"].values)


def test_a_single_chain_is_judged_by_its_halves(chains):
    report = nuts.diagnostics(chains[0])
    assert 1 <= report["r_hat"] < 1.02
    model, _, _ = gaussian_model()
    drifting = np.linspace(0, 10, 3_000).reshape(1_000, 3).astype(np.float32)
    statistics = {"n_steps": np.ones(1_000), "diverging": np.zeros(1_000, bool)}
    assert nuts.diagnostics(to_inference_data(model, drifting, statistics, {}))["r_hat"] > 1.5


def test_draws_survive_netcdf(chains, tmp_path):
    both = nuts.combine_chains(chains)
    nuts.write_draws(tmp_path / "nuts.nc", both)
    again = nuts.read_draws(tmp_path / "nuts.nc")
    np.testing.assert_array_equal(flat_draws(both), flat_draws(again))
    assert nuts.diagnostics(again) == nuts.diagnostics(both)
    assert os.listdir(tmp_path) == ["nuts.nc"]
    (tmp_path / "nuts.nc").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"nuts.nc: not a readable NetCDF"):
        nuts.read_draws(tmp_path / "nuts.nc")
    with pytest.raises(DataError, match=r"none.nc: the file is missing"):
        nuts.read_draws(tmp_path / "none.nc")


def test_chains_of_different_runs_are_not_joined(chains):
    with pytest.raises(InputError, match="chains: none"):
        nuts.combine_chains([])
    with pytest.raises(InputError, match="chains: they differ"):
        nuts.combine_chains([chains[0], chains[1].isel(draw=slice(10))])


SCRIPT = """
import logging, os, signal, sys
import numpy as np
sys.path.insert(0, {tests!r})
import test_reference as t
from sgtune.reference import nuts
from sgtune.reference.draws import flat_draws

class Kill(logging.Handler):
    def emit(self, record):
        if "iteration 120 of" in record.getMessage():
            os.kill(os.getpid(), signal.SIGKILL)

logger = logging.getLogger("sgtune.reference.nuts")
logger.setLevel("INFO")
logger.addHandler(Kill())
t.short_run({folder!r})
"""


def short_run(folder, **changes):
    model, _, _ = gaussian_model()
    settings = {"n_warmup": 50, "n_draws": 130, "seed": 2, "chain": 1, "block": 40, **changes}
    return nuts.sample_nuts(model, checkpoint_dir=folder, **settings)


def test_a_killed_chain_goes_on_bit_for_bit(tmp_path, caplog):
    folder = tmp_path / "killed"
    script = SCRIPT.format(tests=os.path.dirname(__file__), folder=str(folder))
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert sorted(os.listdir(folder)) == [f"block-0000{i}.npz" for i in range(3)]
    with caplog.at_level(logging.INFO, "sgtune.reference.nuts"):
        resumed = short_run(folder)
    assert [r.message.split(": ")[1].split(",")[0] for r in caplog.records] == [
        "goes on after iteration 120 of 180",
        "iteration 160 of 180",
        "iteration 180 of 180",
    ]
    whole = short_run(tmp_path / "whole")
    np.testing.assert_array_equal(flat_draws(resumed), flat_draws(whole))
    assert resumed.sample_stats.equals(whole.sample_stats)
    for name in ("diverging", "n_steps", "acceptance_rate", "energy", "step_size"):
        assert resumed.sample_stats[name].shape == (1, 130)


def test_blocks_of_another_run_are_thrown_away(tmp_path, monkeypatch):
    other = flat_draws(short_run(tmp_path / "one"))
    fresh = flat_draws(short_run(tmp_path / "two", seed=3))
    assert not np.array_equal(other, fresh)
    np.testing.assert_array_equal(flat_draws(short_run(tmp_path / "one", seed=3)), fresh)
    # The same data under another prior: no checksum sees it, the potential energy does.
    monkeypatch.setitem(globals(), "gaussian_log_prior", lambda position: 100 * _standard(position))
    narrow = flat_draws(short_run(tmp_path / "one", seed=3))
    np.testing.assert_array_equal(narrow, flat_draws(short_run(tmp_path / "three", seed=3)))
    assert not np.array_equal(narrow, fresh)


def _standard(position):
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


def test_sizes_of_a_chain_are_checked(tmp_path):
    with pytest.raises(InputError, match="n_draws: 0"):
        short_run(tmp_path, n_draws=0)


def test_jobs_that_do_not_sample_do_not_load_numpyro_or_arviz():
    code = (
        "import sys, sgtune.reference.nuts; sys.exit(bool({'numpyro', 'arviz', 'optax'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
