"""NUTS against exact Gaussians: chains, blocks on disk, the kept draws of long chains, and chains of a lost machine."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models
from reference_models import gaussian_model, short_run, standard_normal

from sgtune.mode.find import map_result
from sgtune.model import define_model
from sgtune.study.ground_truth import nuts
from sgtune.study.ground_truth.diagnostics import reference_record
from sgtune.study.ground_truth.draws import (
    combine_chains,
    covariance,
    flat_draws,
    functionals_of,
    read_draws,
    summary,
    write_draws,
)
from sgtune.study.ground_truth.nuts import RESTORED, Checkpoints, thinning
from sgtune.support.errors import InputError
from sgtune.support.files import read_npz

# ArviZ has a mind of its own on chains without draws.
pytestmark = pytest.mark.filterwarnings("ignore:More chains:UserWarning:arviz")

WARMUP, DRAWS, BLOCK = 50, 130, 40
# Of 130 draws of three float32 parameters every fourth fits into 400 bytes, of two functionals every third into 360.
KEPT_BYTES, EVERY = 400, 4
SAVED_BYTES, EVERY_SAVED = 360, 3


@pytest.fixture
def thinned(monkeypatch):
    """Bounds so low that both draws and saved functionals are thinned."""
    monkeypatch.setattr(nuts, "KEPT_BYTES", KEPT_BYTES)
    monkeypatch.setattr(nuts, "SAVED_BYTES", SAVED_BYTES)


def test_nuts_draws_an_exact_gaussian(tmp_path):
    model, exact_mean, exact_covariance = gaussian_model()
    run = {"n_warmup": 300, "n_draws": 1_000, "seed": 5}
    both = combine_chains(
        [nuts.sample_nuts(model, **run, chain=i, checkpoint_dir=tmp_path / str(i)) for i in range(2)]
    )
    record = reference_record(both)
    found = record["diagnostics"]
    assert (found["chains"], found["draws"], found["draws_kept"]) == (2, 1_000, 1_000)
    assert found["r_hat"] < 1.01
    assert found["divergences"] == found["max_tree_depth_share"] == found["n_parameters_stuck"] == 0
    assert min(found["e_bfmi"]) > 0.5
    exact_sd = np.sqrt(np.diag(exact_covariance))
    # 4.5 standard errors: sd / sqrt(ESS) for a mean, sd / sqrt(2 ESS) for an sd, with half the ESS.
    assert np.all(np.abs(record["mean"] - exact_mean) < 4.5 * exact_sd / np.sqrt(found["ess_bulk"]))
    assert np.all(np.abs(record["sd"] - exact_sd) < 4.5 * exact_sd / np.sqrt(found["ess_bulk"]))


def test_chains_are_independent(tmp_path):
    """Chains share start and seed. With a shared key they would be equal, with a perfect R-hat."""
    one, other = (flat_draws(short_run(tmp_path / str(chain), chain=chain))[0] for chain in (0, 1))
    assert not np.any(np.all(one == other, axis=1))
    # 4.5 standard errors of a correlation of 130 draws, since draws of NUTS are nearly independent.
    for a, b in zip(one.T, other.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("dimension", [3, 201])
def test_the_mass_matrix_starts_as_the_laplace_covariance(tmp_path, monkeypatch, dimension):
    """NumPyro's inverse mass matrix: variances, dense up to D = 200, its diagonal above."""
    sds = np.geomspace(0.1, 10, dimension).astype(np.float32)
    model = define_model(
        "scales",
        log_prior=lambda position: -0.5 * jnp.sum((position / sds) ** 2),
        log_likelihood=lambda position, batch: 0.0 * batch,
        data=np.zeros(20, np.float32),
        init=lambda key: jnp.zeros(dimension),
    )

    class Started(Exception):
        pass

    def start(kernel, position, covariance, *rest):
        raise Started(covariance)

    monkeypatch.setattr(nuts, "initial_state", start)
    with pytest.raises(Started) as started:
        nuts.sample_nuts(model, n_warmup=5, n_draws=5, seed=0, checkpoint_dir=tmp_path)
    (found,) = started.value.args
    assert found.shape == ((3, 3) if dimension == 3 else (201,))
    variances = np.diag(found) if dimension == 3 else found
    np.testing.assert_allclose(variances, sds**2, rtol=1e-3)


# --- what is kept of a chain ---


def test_a_thinned_chain_has_every_kth_draw_and_the_moments_of_all(tmp_path, monkeypatch):
    whole = short_run(tmp_path / "whole")
    monkeypatch.setattr(nuts, "KEPT_BYTES", KEPT_BYTES)
    found = short_run(tmp_path / "thinned")
    assert flat_draws(found).nbytes <= KEPT_BYTES
    np.testing.assert_array_equal(flat_draws(found), flat_draws(whole)[:, EVERY - 1 :: EVERY])
    np.testing.assert_array_equal(found.posterior["draw"], np.arange(DRAWS)[EVERY - 1 :: EVERY])
    # Statistics, functionals and moments include all draws.
    assert found.sample_stats.equals(whole.sample_stats)
    exact = flat_draws(whole)[0].astype(np.float64)
    np.testing.assert_allclose(summary(found), (exact.mean(axis=0), exact.std(axis=0, ddof=1)), rtol=1e-12)
    np.testing.assert_allclose(covariance(found), np.cov(exact.T), rtol=1e-9)
    aligned = found.sel(draw=found.posterior["draw"]).sample_stats["energy"]
    np.testing.assert_array_equal(aligned, whole.sample_stats["energy"][:, EVERY - 1 :: EVERY])


def test_functionals_of_every_draw_are_kept_with_their_moments(tmp_path):
    model, _, _ = gaussian_model()
    run = short_run(tmp_path / "with")
    held = run.sample_stats["functionals"]
    assert (held.dims, held.shape) == (("chain", "draw", "functional"), (1, DRAWS, 2))
    matrix = flat_draws(run)[0]
    expected = jax.vmap(lambda row: reference_models.products(model.unravel(row)))(matrix)
    np.testing.assert_allclose(held[0], expected, rtol=1e-5)
    exact = held[0].values.astype(np.float64)
    expected = exact.mean(axis=0), exact.std(axis=0, ddof=1)
    np.testing.assert_allclose(summary(run, "functionals"), expected, rtol=1e-12)
    # Functionals do not change the draws, and a model without functionals has none.
    without = short_run(tmp_path / "without", functionals=None)
    assert not [name for name in without.sample_stats if name.startswith("functionals")]
    np.testing.assert_array_equal(flat_draws(without), flat_draws(run))


@pytest.mark.parametrize(
    ("dimension", "n_draws", "every"),
    [(10, 10_000, 1), (52_580, 2_500, 1), (52_580, 5_000, 2), (10**9, 3, 3)],
)
def test_as_much_is_kept_as_the_bound_allows(dimension, n_draws, every):
    assert thinning(dimension, n_draws, nuts.KEPT_BYTES) == every


# --- blocks on disk ---

SCRIPT = """
import logging, os, signal, sys
sys.path.insert(0, {tests!r})
import reference_models
from sgtune.study.ground_truth import nuts

class Kill(logging.Handler):
    def emit(self, record):
        if "iteration 120 of" in record.getMessage():
            os.kill(os.getpid(), signal.SIGKILL)

nuts.logger.setLevel("INFO")
nuts.logger.addHandler(Kill())
nuts.KEPT_BYTES, nuts.SAVED_BYTES = {bounds}
reference_models.short_run({folder!r})
"""


def test_a_killed_chain_continues_bit_for_bit(tmp_path, caplog, thinned):
    folder = tmp_path / "killed"
    tests = str(Path(reference_models.__file__).parent)
    script = SCRIPT.format(tests=tests, folder=str(folder), bounds=(KEPT_BYTES, SAVED_BYTES))
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert sorted(os.listdir(folder)) == [f"block-0000{i}.npz" for i in range(3)]
    with caplog.at_level(logging.INFO, nuts.logger.name):
        resumed = short_run(folder)
    assert [r.message.split(": ")[1].split(",")[0] for r in caplog.records] == [
        "continues after iteration 120 of 180",
        "iteration 160 of 180",
        "iteration 180 of 180",
    ]
    whole = short_run(tmp_path / "whole")
    np.testing.assert_array_equal(flat_draws(resumed), flat_draws(whole))
    # They include the functionals and the moments of all draws.
    assert resumed.sample_stats.equals(whole.sample_stats)


def test_a_block_that_is_damaged_is_sampled_again(tmp_path, caplog):
    whole = short_run(tmp_path)
    path = tmp_path / "block-00001.npz"
    path.write_bytes(path.read_bytes()[:-100])
    again = short_run(tmp_path)
    assert "block-00001.npz: not readable; sampling again" in caplog.text
    assert again.sample_stats.equals(whole.sample_stats)


@pytest.mark.parametrize(
    "other",
    [{"seed": 3}, {"chain": 2}, {"max_tree_depth": 1}, {"n_draws": 131}, {"n_warmup": 51}, {"block": 41}],
)
def test_blocks_of_other_arguments_are_thrown_away(tmp_path, other):
    """Each argument changes the draws, also in a folder with earlier blocks."""
    first = flat_draws(short_run(tmp_path / "one"))
    again = flat_draws(short_run(tmp_path / "one", **other))
    np.testing.assert_array_equal(again, flat_draws(short_run(tmp_path / "two", **other)))
    # Another block length gives the same chain.
    assert ("block" in other) == np.array_equal(again, first)


def other_products(position):
    """Other functionals, as many as in `products`."""
    return 1.001 * reference_models.products(position)


@pytest.mark.parametrize("other", [None, other_products, lambda position: position["slopes"][:1]])
def test_blocks_with_other_functionals_are_thrown_away(tmp_path, other, caplog):
    short_run(tmp_path / "one")
    again = short_run(tmp_path / "one", functionals=other)
    assert "sampling again" in caplog.text or "another log posterior" in caplog.text
    assert again.sample_stats.equals(short_run(tmp_path / "two", functionals=other).sample_stats)


def test_blocks_of_another_posterior_are_thrown_away(tmp_path, monkeypatch):
    """Another prior does not change the checksum of the data, but the potential energy."""
    fresh = flat_draws(short_run(tmp_path / "one"))
    monkeypatch.setattr(reference_models, "standard_normal", lambda position: 100 * standard_normal(position))
    narrow = flat_draws(short_run(tmp_path / "one"))
    np.testing.assert_array_equal(narrow, flat_draws(short_run(tmp_path / "two")))
    assert not np.array_equal(narrow, fresh)


def test_blocks_from_another_map_are_thrown_away(tmp_path):
    """A more accurate mode is a new start, although posterior and arguments are the same."""
    model, _, _ = gaussian_model()
    run = {"n_warmup": 10, "n_draws": 10, "seed": 0}
    first = flat_draws(nuts.sample_nuts(model, **run, checkpoint_dir=tmp_path / "one"))
    found = map_result(model)
    model.found.mode = found._replace(position=jax.tree.map(lambda leaf: leaf + 0.5, found.position))
    again = flat_draws(nuts.sample_nuts(model, **run, checkpoint_dir=tmp_path / "one"))
    fresh = flat_draws(nuts.sample_nuts(model, **run, checkpoint_dir=tmp_path / "two"))
    np.testing.assert_array_equal(again, fresh)
    assert not np.array_equal(again, first)


def test_sizes_of_a_chain_are_checked(tmp_path):
    with pytest.raises(InputError, match="n_draws: 0"):
        short_run(tmp_path, n_draws=0)


# --- a chain on a lost machine: the saved state, and the chain that continues from it ---


class Lost(Exception):
    pass


def run_until(blocks, folder, saved):
    """A run that ends after a number of blocks, and its ``saved`` file."""
    keep, left = Checkpoints.keep, iter(range(blocks - 1, -1, -1))

    def keep_and_stop(self, arrays, state):
        keep(self, arrays, state)
        if next(left) == 0:
            raise Lost

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "keep", keep_and_stop)
        with pytest.raises(Lost):
            short_run(folder, saved=saved)


def folder_with(saved, folder):
    folder.mkdir()
    shutil.copy(saved, folder / RESTORED)
    return folder


def lost_run(tmp_path, blocks):
    """A folder with nothing but the file saved after a number of blocks."""
    run_until(blocks, tmp_path / "lost", tmp_path / "saved.npz")
    return folder_with(tmp_path / "saved.npz", tmp_path / "new")


def arrays_of(path):
    """All arrays but the seconds."""
    return {name: array for name, array in read_npz(path).items() if name != "seconds"}


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_a_restored_chain_ends_where_an_uninterrupted_one_does_bit_for_bit(tmp_path, thinned, blocks):
    """The chain is lost in the warm-up, at its end, among the draws, and at the end."""
    folder = lost_run(tmp_path, blocks)
    whole = short_run(tmp_path / "whole", saved=tmp_path / "whole.npz")
    restored = short_run(folder, saved=tmp_path / "saved.npz")
    last, expected = arrays_of(tmp_path / "saved.npz"), arrays_of(tmp_path / "whole.npz")
    assert last.keys() == expected.keys()
    for name in last:
        np.testing.assert_array_equal(last[name], expected[name], err_msg=name)
    # Few functionals and no draws are saved, in one file.
    assert last["draws"].size == 0
    assert last["functionals"].shape == (DRAWS // EVERY_SAVED, 2)
    assert len(last["n_steps"]) == WARMUP + DRAWS

    lost = max(0, min(blocks * BLOCK - WARMUP, DRAWS))
    assert (restored.posterior.attrs["draws_lost"], whole.posterior.attrs["draws_lost"]) == (lost, 0)
    numbers = np.arange(DRAWS)[EVERY - 1 :: EVERY][lost // EVERY :]
    np.testing.assert_array_equal(restored.posterior["draw"], numbers)
    np.testing.assert_array_equal(flat_draws(restored), flat_draws(whole)[:, lost // EVERY :])
    # Statistics and moments include all draws; functionals that were not saved are missing.
    there, missing = np.arange(DRAWS) >= lost, ["functionals"]
    there[EVERY_SAVED - 1 :: EVERY_SAVED] = True
    assert restored.sample_stats.drop_vars(missing).equals(whole.sample_stats.drop_vars(missing))
    found, expected = (run.sample_stats["functionals"].values[0] for run in (restored, whole))
    np.testing.assert_array_equal(found[there], expected[there])
    assert np.isnan(found[~there]).all()
    # The evenly spaced subset of functionals is complete.
    assert not np.isnan(functionals_of(restored)).any()
    assert functionals_of(restored).shape[1] == (DRAWS // EVERY_SAVED if lost else DRAWS)


def test_a_restored_chain_survives_a_kill_and_a_second_loss(tmp_path, thinned):
    folder = lost_run(tmp_path, 2)
    run_until(2, folder, tmp_path / "saved.npz")
    assert sorted(path.name for path in folder.iterdir()) == ["block-00002.npz", "block-00003.npz", RESTORED]
    second = folder_with(tmp_path / "saved.npz", tmp_path / "second")
    whole, killed, again = short_run(tmp_path / "whole"), short_run(folder), short_run(second)
    for run, blocks in ((killed, 2), (again, 4)):
        lost = blocks * BLOCK - WARMUP
        assert run.posterior.attrs["draws_lost"] == lost
        np.testing.assert_array_equal(flat_draws(run), flat_draws(whole)[:, lost // EVERY :])
        np.testing.assert_array_equal(summary(run), summary(whole))
        expected = functionals_of(whole)[:, EVERY_SAVED - 1 :: EVERY_SAVED]
        np.testing.assert_array_equal(functionals_of(run), expected)


def test_only_a_state_of_this_run_is_restored(tmp_path, monkeypatch, caplog):
    folder = lost_run(tmp_path, 3)
    other = short_run(tmp_path / "other", seed=3)
    assert short_run(folder, seed=3).sample_stats.equals(other.sample_stats)
    assert f"{RESTORED}: of another run; sampling again" in caplog.text
    # A chain's first block has priority over a restored file.
    assert short_run(folder, seed=3).posterior.attrs["draws_lost"] == 0
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / RESTORED).write_bytes(b"broken")
    assert short_run(folder).posterior.attrs["draws_lost"] == 0
    assert f"{RESTORED}: not readable" in caplog.text
    # Another prior, which does not change the checksum.
    prior = reference_models.standard_normal
    third = folder_with(tmp_path / "saved.npz", tmp_path / "third")
    monkeypatch.setattr(reference_models, "standard_normal", lambda position: 100 * prior(position))
    narrow = short_run(third)
    assert "of another log posterior" in caplog.text
    assert narrow.sample_stats.equals(short_run(tmp_path / "narrow").sample_stats)


def test_a_mode_that_is_found_again_does_not_cost_what_was_saved(tmp_path):
    """The last digits of the mode differ on another machine; blocks on one machine must have the same start."""
    folder = lost_run(tmp_path, 3)
    model, _, _ = gaussian_model(functionals=reference_models.products)
    found = map_result(model)
    nearly = jax.tree.map(lambda leaf: leaf * np.float32(1 + 1e-6), found.position)
    model.found.mode = found._replace(position=nearly)
    run = {"n_warmup": WARMUP, "n_draws": DRAWS, "seed": 2, "chain": 1, "block": BLOCK}
    restored = nuts.sample_nuts(model, checkpoint_dir=folder, **run)
    whole = short_run(tmp_path / "whole")
    np.testing.assert_array_equal(flat_draws(restored), flat_draws(whole)[:, 3 * BLOCK - WARMUP :])


@pytest.mark.parametrize("blocks", [3, 5])
def test_a_restored_chain_is_joined_with_a_whole_one(tmp_path, thinned, blocks):
    """Common draws are compared; moments include all draws; a restored complete chain has no draws."""
    whole = [short_run(tmp_path / str(chain), chain=chain) for chain in (0, 1)]
    restored = short_run(lost_run(tmp_path, blocks))
    both, expected = combine_chains([whole[0], restored]), combine_chains(whole)
    write_draws(tmp_path / "nuts.nc", both)
    both = read_draws(tmp_path / "nuts.nc")
    lost = blocks * BLOCK - WARMUP if blocks == 3 else DRAWS
    np.testing.assert_array_equal(flat_draws(both), flat_draws(expected)[:, lost // EVERY :])
    for of in ("posterior", "functionals"):
        np.testing.assert_array_equal(summary(both, of), summary(expected, of))
    np.testing.assert_array_equal(covariance(both), covariance(expected))

    record, of_whole = reference_record(both), reference_record(expected)
    found = record["diagnostics"]
    assert (found["draws_lost"], of_whole["diagnostics"]["draws_lost"]) == (lost, 0)
    assert found["draws_kept"] == DRAWS // EVERY - lost // EVERY
    assert found["leapfrogs"] == of_whole["diagnostics"]["leapfrogs"]
    functionals = record["functionals"]
    assert all(np.isfinite(functionals[name]) for name in ("r_hat_p99", "ess_median", "sd_error"))
    assert np.isfinite(record["monte_carlo_error"]["functional_error"])
    # A chain without draws has no diagnostics of the position, and the record says so.
    assert np.isnan(found["r_hat"]) == (blocks == 5)
    assert found["n_parameters_stuck"] == 0
