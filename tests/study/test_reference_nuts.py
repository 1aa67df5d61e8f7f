"""NUTS against exact Gaussians: chains, checkpoints, and the kept draws of long chains."""

import logging
import os
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models
from reference_models import gaussian_model, short_run, standard_normal
from sgtune.study.ground_truth.checkpoints import thinning

from sgtune.mode.find import map_result
from sgtune.model import define_model
from sgtune.study.ground_truth import nuts
from sgtune.study.ground_truth.draws import covariance, flat_draws
from sgtune.study.posteriors import pmf
from sgtune.support.errors import InputError

STATISTICS = ("diverging", "n_steps", "acceptance_rate", "energy", "step_size")
# Of 130 draws of three float32 parameters every fourth fits into 400 bytes.
FEW_BYTES, EVERY = 400, 4


def test_nuts_draws_an_exact_gaussian(tmp_path):
    model, exact_mean, exact_covariance = gaussian_model()
    settings = {"n_warmup": 300, "n_draws": 1_000, "seed": 5}
    both = nuts.combine_chains(
        [
            nuts.sample_nuts(model, **settings, chain=chain, checkpoint_dir=tmp_path / str(chain))
            for chain in range(2)
        ]
    )
    report = nuts.diagnostics(both)
    assert report["chains"] == 2
    assert report["draws"] == report["draws_kept"] == 1_000
    assert report["r_hat"] < 1.01
    assert report["divergences"] == report["max_tree_depth_share"] == report["n_parameters_stuck"] == 0
    assert min(report["e_bfmi"]) > 0.5
    assert report["leapfrogs"] == pytest.approx(2_000 * report["leapfrogs_per_draw"])
    mean, sd = nuts.summary(both)
    exact_sd = np.sqrt(np.diag(exact_covariance))
    # 4.5 standard errors: sd / sqrt(ESS) for a mean, sd / sqrt(2 ESS) for an sd, with half the ESS.
    assert np.all(np.abs(mean - exact_mean) < 4.5 * exact_sd / np.sqrt(report["ess_bulk"]))
    assert np.all(np.abs(sd - exact_sd) < 4.5 * exact_sd / np.sqrt(report["ess_bulk"]))
    blocks = nuts.by_block(both)
    assert {name: block["n"] for name, block in blocks.items()} == {"intercept": 1, "slopes": 2}
    assert blocks["intercept"]["sd"] == pytest.approx(exact_sd[0], rel=0.1)
    assert blocks["slopes"]["sd"] == pytest.approx(np.sqrt(np.mean(exact_sd[1:] ** 2)), rel=0.1)


SCRIPT = """
import logging, os, signal, sys
sys.path.insert(0, {tests!r})
import reference_models
from sgtune.study.ground_truth import nuts

class Kill(logging.Handler):
    def emit(self, record):
        if "iteration 120 of" in record.getMessage():
            os.kill(os.getpid(), signal.SIGKILL)

logger = logging.getLogger("sgtune.study.ground_truth.nuts")
logger.setLevel("INFO")
logger.addHandler(Kill())
nuts.KEPT_BYTES = {kept_bytes}
reference_models.short_run({folder!r})
"""


@pytest.mark.parametrize("kept_bytes", [nuts.KEPT_BYTES, FEW_BYTES])
def test_a_killed_chain_goes_on_bit_for_bit(tmp_path, caplog, monkeypatch, kept_bytes):
    folder = tmp_path / "killed"
    names = {
        "tests": os.path.dirname(os.path.dirname(__file__)),
        "folder": str(folder),
        "kept_bytes": kept_bytes,
    }
    script = SCRIPT.format(**names)
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert sorted(os.listdir(folder)) == [f"block-0000{i}.npz" for i in range(3)]
    monkeypatch.setattr(nuts, "KEPT_BYTES", kept_bytes)
    with caplog.at_level(logging.INFO, "sgtune.study.ground_truth.nuts"):
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
    for name in STATISTICS:
        assert resumed.sample_stats[name].shape == (1, 130)


def test_a_thinned_chain_has_every_kth_draw_and_the_moments_of_all(tmp_path, monkeypatch):
    whole = short_run(tmp_path / "whole")
    monkeypatch.setattr(nuts, "KEPT_BYTES", FEW_BYTES)
    thinned = short_run(tmp_path / "thinned")
    assert flat_draws(thinned).nbytes <= FEW_BYTES
    np.testing.assert_array_equal(flat_draws(thinned), flat_draws(whole)[:, EVERY - 1 :: EVERY])
    np.testing.assert_array_equal(thinned.posterior["draw"], np.arange(130)[EVERY - 1 :: EVERY])
    # Statistics, functionals and moments include all draws.
    assert thinned.sample_stats.equals(whole.sample_stats)
    exact = flat_draws(whole)[0].astype(np.float64)
    expected = exact.mean(axis=0), exact.std(axis=0, ddof=1)
    np.testing.assert_allclose(nuts.summary(thinned), expected, rtol=1e-12)
    np.testing.assert_allclose(covariance(thinned), np.cov(exact.T), rtol=1e-9)
    # The test can fail: moments of the kept draws would not pass.
    kept = flat_draws(thinned)[0].astype(np.float64)
    assert np.all(np.abs(kept.std(axis=0, ddof=1) / nuts.summary(thinned)[1] - 1) > 1e-3)
    aligned = thinned.sel(draw=thinned.posterior["draw"])
    np.testing.assert_array_equal(
        aligned.sample_stats["energy"], whole.sample_stats["energy"][:, EVERY - 1 :: EVERY]
    )
    report = nuts.diagnostics(thinned)
    assert (report["draws"], report["draws_kept"]) == (130, 32)
    assert report["leapfrogs"] == nuts.diagnostics(whole)["leapfrogs"]


def test_functionals_of_every_draw_are_kept_with_their_moments(tmp_path):
    model, _, _ = gaussian_model()
    run = short_run(tmp_path / "with")
    held = run.sample_stats["functionals"]
    assert held.dims == ("chain", "draw", "functional")
    assert (held.shape, held.dtype) == ((1, 130, 2), np.float32)
    matrix = flat_draws(run)[0]
    expected = jax.vmap(lambda row: reference_models.products(model.unravel(row)))(matrix)
    np.testing.assert_allclose(held[0], expected, rtol=1e-5)
    mean, sd = nuts.summary(run, "functionals")
    exact = held[0].values.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sd, exact.std(axis=0, ddof=1), rtol=1e-12)
    # Functionals do not change the draws, and a model without functionals has none.
    without = short_run(tmp_path / "without", functionals=None)
    assert not [name for name in without.sample_stats if name.startswith("functionals")]
    np.testing.assert_array_equal(flat_draws(without), flat_draws(run))


def other_products(position):
    """Other functionals, as many as in `products`."""
    return 1.001 * reference_models.products(position)


@pytest.mark.parametrize("other", [None, other_products, lambda position: position["slopes"][:1]])
def test_blocks_with_other_functionals_are_thrown_away(tmp_path, other, caplog):
    short_run(tmp_path / "one")
    again = short_run(tmp_path / "one", functionals=other)
    assert "sampling again" in caplog.text or "another log posterior" in caplog.text
    assert again.sample_stats.equals(short_run(tmp_path / "two", functionals=other).sample_stats)


@pytest.mark.parametrize(
    ("dimension", "n_draws", "every"),
    [(10, 10_000, 1), (52_580, 2_500, 1), (52_580, 5_000, 2), (10**9, 3, 3)],
)
def test_as_much_is_kept_as_the_bound_allows(dimension, n_draws, every):
    assert thinning(dimension, n_draws, nuts.KEPT_BYTES) == every
    if n_draws > every:
        assert n_draws // every * dimension * 4 <= nuts.KEPT_BYTES


def test_blocks_of_another_run_are_thrown_away(tmp_path, monkeypatch):
    other = flat_draws(short_run(tmp_path / "one"))
    fresh = flat_draws(short_run(tmp_path / "two", seed=3))
    assert not np.array_equal(other, fresh)
    np.testing.assert_array_equal(flat_draws(short_run(tmp_path / "one", seed=3)), fresh)
    # Another prior does not change the checksum of the data, but the potential energy.
    monkeypatch.setattr(reference_models, "standard_normal", lambda position: 100 * standard_normal(position))
    narrow = flat_draws(short_run(tmp_path / "one", seed=3))
    np.testing.assert_array_equal(narrow, flat_draws(short_run(tmp_path / "three", seed=3)))
    assert not np.array_equal(narrow, fresh)
    monkeypatch.setattr(nuts, "KEPT_BYTES", FEW_BYTES)
    thinned = flat_draws(short_run(tmp_path / "one", seed=3))
    np.testing.assert_array_equal(thinned, narrow[:, EVERY - 1 :: EVERY])


@pytest.mark.parametrize(
    "other", [{"chain": 2}, {"max_tree_depth": 1}, {"n_draws": 131}, {"n_warmup": 51}, {"block": 41}]
)
def test_blocks_of_other_arguments_are_thrown_away(tmp_path, other):
    """Each argument changes the draws, also in a folder with earlier blocks."""
    first = flat_draws(short_run(tmp_path / "one"))
    again = flat_draws(short_run(tmp_path / "one", **other))
    fresh = flat_draws(short_run(tmp_path / "two", **other))
    np.testing.assert_array_equal(again, fresh)
    # Another block length gives the same chain.
    assert ("block" in other) == np.array_equal(again, first)


def test_chains_are_independent(tmp_path):
    """Chains share start and seed. With a shared key they would be equal, with a perfect R-hat."""
    one, other = (flat_draws(short_run(tmp_path / str(chain), chain=chain))[0] for chain in (0, 1))
    assert not np.any(np.all(one == other, axis=1))
    # 4.5 standard errors of a correlation of 130 draws, since draws of NUTS are nearly independent.
    for a, b in zip(one.T, other.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(130)


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
    (covariance,) = started.value.args
    assert covariance.shape == ((3, 3) if dimension == 3 else (201,))
    variances = np.diag(covariance) if dimension == 3 else covariance
    np.testing.assert_allclose(variances, sds**2, rtol=1e-3)


def test_blocks_from_another_map_are_thrown_away(tmp_path):
    """A more accurate mode is a new start, although posterior and arguments are the same."""
    model, _, _ = reference_models.gaussian_model()
    settings = {"n_warmup": 10, "n_draws": 10, "seed": 0}
    first = flat_draws(nuts.sample_nuts(model, **settings, checkpoint_dir=tmp_path / "one"))
    found = map_result(model)
    moved = jax.tree.map(lambda leaf: leaf + 0.5, found.position)
    model.found.mode = found._replace(position=moved)
    again = flat_draws(nuts.sample_nuts(model, **settings, checkpoint_dir=tmp_path / "one"))
    fresh = flat_draws(nuts.sample_nuts(model, **settings, checkpoint_dir=tmp_path / "two"))
    np.testing.assert_array_equal(again, fresh)
    assert not np.array_equal(again, first)


def test_a_few_draws_of_a_factorisation_are_judged_honestly(tmp_path):
    """30 + 30 iterations cannot have converged, and the record must say so for the blocks of the position."""
    rng = np.random.default_rng(0)
    pairs = rng.choice(30 * 40, 600, replace=False)
    ratings = np.column_stack([pairs // 40, pairs % 40, rng.integers(1, 6, 600)])
    model = pmf.from_arrays(ratings, n_users=30, n_items=40, n_factors=3)
    assert model.dimension == 222
    chains = [
        nuts.sample_nuts(model, n_warmup=30, n_draws=30, seed=0, chain=i, checkpoint_dir=tmp_path / str(i))
        for i in range(2)
    ]
    both = nuts.combine_chains(chains)
    checked = nuts.convergence(both)
    report, blocks = nuts.diagnostics(both, checked), nuts.by_block(both, checked)
    assert report["n_parameters_checked"] == 222
    assert report["r_hat"] > 1.1
    assert report["ess_bulk"] < 60
    sizes = {"users": 90, "items": 120} | dict.fromkeys(
        ("mean_users", "mean_items", "log_precision_users", "log_precision_items"), 3
    )
    assert {name: block["n"] for name, block in blocks.items()} == sizes
    assert max(block["r_hat_max"] for block in blocks.values()) == report["r_hat"]
    assert min(block["ess_min"] for block in blocks.values()) == report["ess_bulk"]
    assert all(0 < block["sd"] < np.inf for block in blocks.values())


def test_sizes_of_a_chain_are_checked(tmp_path):
    with pytest.raises(InputError, match="n_draws: 0"):
        short_run(tmp_path, n_draws=0)


def test_jobs_that_do_not_sample_do_not_load_numpyro_or_arviz():
    heavy = {"numpyro", "arviz", "optax"}
    code = f"import sys, sgtune.study.ground_truth.nuts; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
