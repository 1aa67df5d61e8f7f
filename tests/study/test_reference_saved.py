"""A long chain on a lost machine: the saved state, and the chain that continues from it."""

import shutil

import jax
import numpy as np
import pytest
import reference_models
from reference_models import gaussian_model, short_run
from sgtune.study.ground_truth.checkpoints import RESTORED, Checkpoints
from sgtune.study.ground_truth.record import reference_record

from sgtune.mode.find import map_result
from sgtune.study.ground_truth import nuts
from sgtune.study.ground_truth.draws import covariance, flat_draws, functionals_of
from sgtune.support.files import read_npz

# ArviZ has a mind of its own on chains without draws.
pytestmark = pytest.mark.filterwarnings("ignore:More chains:UserWarning:arviz")

WARMUP, DRAWS, BLOCK = 50, 130, 40
# With 130 draws, every fourth draw of three parameters is kept, and every third value of two functionals is saved.
KEPT_BYTES, EVERY = 400, 4
SAVED_BYTES, EVERY_SAVED = 360, 3


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


def lost_run(tmp_path, blocks):
    """A folder with nothing but the file saved after a number of blocks."""
    run_until(blocks, tmp_path / "lost", tmp_path / "saved.npz")
    folder = tmp_path / "new"
    folder.mkdir()
    shutil.copy(tmp_path / "saved.npz", folder / RESTORED)
    return folder


def arrays_of(path):
    """All arrays but the seconds."""
    return {name: array for name, array in read_npz(path).items() if name != "seconds"}


@pytest.fixture
def thinned(monkeypatch):
    """Bounds so low that both draws and saved functionals are thinned."""
    monkeypatch.setattr(nuts, "KEPT_BYTES", KEPT_BYTES)
    monkeypatch.setattr(nuts, "SAVED_BYTES", SAVED_BYTES)


@pytest.fixture(params=[False, True], ids=["all", "thinned"])
def either(request):
    """Run a test with and without `thinned`."""
    if request.param:
        request.getfixturevalue("thinned")
    return (EVERY, EVERY_SAVED) if request.param else (1, 1)


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_a_restored_chain_ends_where_an_uninterrupted_one_does_bit_for_bit(tmp_path, either, blocks):
    """The chain is lost in the warm-up, at its end, among the draws, and at the end."""
    every, every_saved = either
    folder = lost_run(tmp_path, blocks)
    whole = short_run(tmp_path / "whole", saved=tmp_path / "whole.npz")
    restored = short_run(folder, saved=tmp_path / "saved.npz")
    last, expected = arrays_of(tmp_path / "saved.npz"), arrays_of(tmp_path / "whole.npz")
    assert last.keys() == expected.keys()
    assert "state_0" in last
    for name in last:
        np.testing.assert_array_equal(last[name], expected[name], err_msg=name)

    lost = max(0, min(blocks * BLOCK - WARMUP, DRAWS))
    assert (restored.posterior.attrs["draws_lost"], whole.posterior.attrs["draws_lost"]) == (lost, 0)
    np.testing.assert_array_equal(
        restored.posterior["draw"], np.arange(DRAWS)[every - 1 :: every][lost // every :]
    )
    np.testing.assert_array_equal(flat_draws(restored), flat_draws(whole)[:, lost // every :])
    # Statistics and moments include all draws; functionals that were not saved are missing.
    there, missing = np.arange(DRAWS) >= lost, ["functionals"]
    there[every_saved - 1 :: every_saved] = True
    assert restored.sample_stats.drop_vars(missing).equals(whole.sample_stats.drop_vars(missing))
    found, expected = (run.sample_stats["functionals"].values[0] for run in (restored, whole))
    np.testing.assert_array_equal(found[there], expected[there])
    assert np.isnan(found[~there]).all()
    # The evenly spaced subset of functionals is complete.
    assert not np.isnan(functionals_of(restored)).any()
    assert functionals_of(restored).shape[1] == (DRAWS // every_saved if lost else DRAWS)


def test_what_is_saved_has_no_draws_and_few_functionals(tmp_path, thinned):
    short_run(tmp_path / "run", saved=tmp_path / "deep/saved.npz")
    saved = arrays_of(tmp_path / "deep/saved.npz")
    assert saved["draws"].size == 0
    assert saved["functionals"].nbytes <= SAVED_BYTES
    assert saved["functionals"].shape == (DRAWS // EVERY_SAVED, 2)
    assert len(saved["n_steps"]) == WARMUP + DRAWS
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["saved.npz"]


def test_a_restored_chain_survives_a_kill_and_a_second_loss(tmp_path, thinned):
    folder = lost_run(tmp_path, 2)
    run_until(2, folder, tmp_path / "saved.npz")
    assert sorted(path.name for path in folder.iterdir()) == ["block-00002.npz", "block-00003.npz", RESTORED]
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(tmp_path / "saved.npz", second / RESTORED)
    whole = short_run(tmp_path / "whole")
    killed = short_run(folder)
    assert len(list(folder.iterdir())) == 4
    assert killed.posterior.attrs["draws_lost"] == 2 * BLOCK - WARMUP
    np.testing.assert_array_equal(flat_draws(killed), flat_draws(whole)[:, (2 * BLOCK - WARMUP) // EVERY :])
    again = short_run(second)
    assert again.posterior.attrs["draws_lost"] == 4 * BLOCK - WARMUP
    np.testing.assert_array_equal(flat_draws(again), flat_draws(whole)[:, (4 * BLOCK - WARMUP) // EVERY :])
    for run in (killed, again):
        np.testing.assert_array_equal(nuts.summary(run), nuts.summary(whole))
        np.testing.assert_array_equal(
            functionals_of(run), functionals_of(whole)[:, EVERY_SAVED - 1 :: EVERY_SAVED]
        )


def test_only_a_state_of_this_run_is_restored(tmp_path, monkeypatch, caplog):
    folder = lost_run(tmp_path, 3)
    other = short_run(tmp_path / "other", seed=3)
    assert short_run(folder, seed=3).sample_stats.equals(other.sample_stats)
    assert f"{RESTORED}: of another run; sampling again" in caplog.text
    # A chain's first block has priority over a restored file.
    (folder / RESTORED).write_bytes((tmp_path / "saved.npz").read_bytes())
    assert short_run(folder, seed=3).posterior.attrs["draws_lost"] == 0
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / RESTORED).write_bytes(b"broken")
    assert short_run(folder).posterior.attrs["draws_lost"] == 0
    assert f"{RESTORED}: not readable" in caplog.text
    # Another prior, which does not change the checksum.
    prior = reference_models.standard_normal
    shutil.rmtree(folder)
    folder.mkdir()
    shutil.copy(tmp_path / "saved.npz", folder / RESTORED)
    monkeypatch.setattr(reference_models, "standard_normal", lambda position: 100 * prior(position))
    narrow = short_run(folder)
    assert "of another log posterior" in caplog.text
    assert narrow.sample_stats.equals(short_run(tmp_path / "narrow").sample_stats)


def test_a_mode_that_is_found_again_does_not_cost_what_was_saved(tmp_path):
    """The last digits of the mode differ on another machine; blocks on one machine must have the same start."""
    folder = lost_run(tmp_path, 3)
    model, _, _ = gaussian_model(functionals=reference_models.products)
    found = map_result(model)
    nearly = jax.tree.map(lambda leaf: leaf * np.float32(1 + 1e-6), found.position)
    model.found.mode = found._replace(position=nearly)
    settings = {"n_warmup": WARMUP, "n_draws": DRAWS, "seed": 2, "chain": 1, "block": BLOCK}
    restored = nuts.sample_nuts(model, checkpoint_dir=folder, **settings)
    whole = short_run(tmp_path / "whole")
    np.testing.assert_array_equal(flat_draws(restored), flat_draws(whole)[:, 3 * BLOCK - WARMUP :])


@pytest.mark.parametrize("blocks", [3, 5])
def test_a_restored_chain_is_joined_with_a_whole_one(tmp_path, thinned, blocks):
    """Common draws are compared; moments include all draws; a restored complete chain has no draws."""
    whole = [short_run(tmp_path / str(chain), chain=chain) for chain in (0, 1)]
    restored = short_run(lost_run(tmp_path, blocks))
    both, expected = nuts.combine_chains([whole[0], restored]), nuts.combine_chains(whole)
    nuts.write_draws(tmp_path / "nuts.nc", both)
    both = nuts.read_draws(tmp_path / "nuts.nc")
    lost = blocks * BLOCK - WARMUP if blocks == 3 else DRAWS
    np.testing.assert_array_equal(flat_draws(both), flat_draws(expected)[:, lost // EVERY :])
    np.testing.assert_array_equal(both.posterior["draw"], expected.posterior["draw"][lost // EVERY :])
    for of in ("posterior", "functionals"):
        np.testing.assert_array_equal(nuts.summary(both, of), nuts.summary(expected, of))
    np.testing.assert_array_equal(covariance(both), covariance(expected))
    np.testing.assert_array_equal(
        functionals_of(both), functionals_of(expected)[:, EVERY_SAVED - 1 :: EVERY_SAVED]
    )

    record, of_whole = reference_record(both), reference_record(expected)
    assert (record["diagnostics"]["draws_lost"], of_whole["diagnostics"]["draws_lost"]) == (lost, 0)
    assert record["diagnostics"]["draws_kept"] == (DRAWS // EVERY - lost // EVERY)
    assert record["diagnostics"]["leapfrogs"] == of_whole["diagnostics"]["leapfrogs"]
    found = record["functionals"]
    assert all(np.isfinite(found[name]) for name in ("r_hat_p99", "ess_median", "sd_error"))
    assert np.isfinite(record["monte_carlo_error"]["functional_error"])
    # A chain without draws has no diagnostics of the position, and the record says so.
    assert np.isnan(record["diagnostics"]["r_hat"]) == (blocks == 5)
    assert record["diagnostics"]["n_parameters_stuck"] == 0
