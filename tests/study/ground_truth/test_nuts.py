"""NUTS against exact Gaussians: chains, blocks on disk, and the kept draws of long chains."""

import logging
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
import reference_models
from reference_models import gaussian_model, short_run, standard_normal
from small_models import model_of_prior

from sgtune.study.ground_truth import nuts
from sgtune.study.ground_truth.diagnostics import reference_record
from sgtune.study.ground_truth.draws import combine_chains, covariance, flat_draws, summary
from sgtune.study.ground_truth.nuts import Checkpoints, thinning

DRAWS = 130
# Of 130 draws of three float32 parameters every fourth fits into 400 bytes.
KEPT_BYTES, EVERY = 400, 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an uninterrupted chain, and the chain."""
    folder = tmp_path_factory.mktemp("whole")
    run = short_run(folder)
    return folder, run


def test_nuts_draws_an_exact_gaussian(tmp_path):
    model, exact_mean, exact_covariance = gaussian_model()
    run = {"n_warmup": 300, "n_draws": 1_000, "seed": 5}
    both = combine_chains(
        [nuts.sample_nuts(model, **run, chain=i, checkpoint_dir=tmp_path / str(i)) for i in range(2)]
    )
    # Chains share start and seed; 4.5 standard errors of a correlation, since the draws are nearly independent.
    for one, other in np.moveaxis(flat_draws(both), -1, 0):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(1_000)
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


@pytest.mark.parametrize("dimension", [3, 201])
def test_the_mass_matrix_starts_as_the_laplace_covariance(tmp_path, monkeypatch, dimension):
    """NumPyro's inverse mass matrix: variances, dense up to D = 200, its diagonal above."""
    sds = np.geomspace(0.1, 10, dimension).astype(np.float32)
    model = model_of_prior(lambda position: -0.5 * jnp.sum((position / sds) ** 2), jnp.zeros(dimension))

    def start(kernel, position, covariance, *rest):
        raise Lost(covariance)

    monkeypatch.setattr(nuts, "initial_state", start)
    with pytest.raises(Lost) as started:
        nuts.sample_nuts(model, n_warmup=5, n_draws=5, seed=0, checkpoint_dir=tmp_path)
    (found,) = started.value.args
    expected = np.diag(sds**2) if dimension == 3 else sds**2
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


def test_a_thinned_chain_has_every_kth_draw_and_the_moments_of_all(tmp_path, monkeypatch, whole):
    _, whole = whole
    monkeypatch.setattr(nuts, "KEPT_BYTES", KEPT_BYTES)
    found = short_run(tmp_path)
    np.testing.assert_array_equal(flat_draws(found), flat_draws(whole)[:, EVERY - 1 :: EVERY])
    np.testing.assert_array_equal(found.posterior["draw"], np.arange(DRAWS)[EVERY - 1 :: EVERY])
    # Statistics, functionals and moments include all draws.
    assert found.sample_stats.equals(whole.sample_stats)
    exact = flat_draws(whole)[0].astype(np.float64)
    np.testing.assert_allclose(summary(found), (exact.mean(axis=0), exact.std(axis=0, ddof=1)), rtol=1e-12)
    np.testing.assert_allclose(covariance(found), np.cov(exact.T), rtol=1e-9)
    # As many as the bound allows.
    sizes = [(10, 10_000), (52_580, 2_500), (52_580, 5_000), (10**9, 3)]
    monkeypatch.undo()
    assert [thinning(*size, nuts.KEPT_BYTES) for size in sizes] == [1, 1, 2, 3]


def test_functionals_of_every_draw_are_kept_with_their_moments(tmp_path, whole):
    _, run = whole
    held = run.sample_stats["functionals"]
    assert (held.dims, held.shape) == (("chain", "draw", "functional"), (1, DRAWS, 2))
    intercept, slopes = (run.posterior[name].values[0] for name in ("intercept", "slopes"))
    np.testing.assert_allclose(held[0], intercept[:, None] * slopes, rtol=1e-5)
    exact = held[0].values.astype(np.float64)
    expected = exact.mean(axis=0), exact.std(axis=0, ddof=1)
    np.testing.assert_allclose(summary(run, "functionals"), expected, rtol=1e-12)
    # Functionals do not change the draws, and a model without functionals has none.
    without = short_run(tmp_path, functionals=None)
    assert not [name for name in without.sample_stats if name.startswith("functionals")]
    np.testing.assert_array_equal(flat_draws(without), flat_draws(run))


class Lost(Exception):
    pass


def run_until(blocks, folder, **options):
    """A run that ends after a number of blocks."""
    keep, left = Checkpoints.keep, iter(range(blocks - 1, -1, -1))

    def keep_and_stop(self, arrays, state):
        keep(self, arrays, state)
        if next(left) == 0:
            raise Lost

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "keep", keep_and_stop)
        with pytest.raises(Lost):
            short_run(folder, **options)


def test_an_interrupted_chain_continues_bit_for_bit(tmp_path, caplog, monkeypatch):
    """After its last whole block; its record includes the functionals and the moments of all draws."""
    monkeypatch.setattr(nuts, "KEPT_BYTES", KEPT_BYTES)
    folder = tmp_path / "interrupted"
    run_until(4, folder)
    path = folder / "block-00003.npz"
    path.write_bytes(path.read_bytes()[:-100])
    with caplog.at_level(logging.INFO, nuts.logger.name):
        resumed = short_run(folder)
    assert "continues after iteration 120 of 180" in caplog.text
    whole = short_run(tmp_path / "whole")
    np.testing.assert_array_equal(flat_draws(resumed), flat_draws(whole))
    assert resumed.sample_stats.equals(whole.sample_stats)


def other_products(position):
    """Other functionals, as many as in `products`."""
    return 1.001 * reference_models.products(position)


OTHERS = [("seed", 3), ("chain", 2), ("max_tree_depth", 1), ("n_draws", 131), ("n_warmup", 51), ("block", 41)]
OTHERS += [("functionals", one) for one in (None, other_products, lambda position: position["slopes"][:1])]


@pytest.mark.parametrize(("name", "value"), [*OTHERS, ("moved", lambda leaf: leaf + 0.5), ("prior", 100)])
def test_blocks_of_other_arguments_or_another_posterior_are_thrown_away(
    tmp_path, monkeypatch, whole, name, value
):
    changes = {name: value}
    if name == "prior":
        # It does not change the checksum of the data, but the potential energy.
        monkeypatch.setattr(reference_models, "standard_normal", lambda at: value * standard_normal(at))
        changes = {}
    shutil.copytree(whole[0], tmp_path / "one")
    again, fresh = (short_run(tmp_path / place, **changes) for place in ("one", "two"))
    assert again.sample_stats.equals(fresh.sample_stats)
    np.testing.assert_array_equal(flat_draws(again), flat_draws(fresh))
    # Another length of blocks, or other functionals, give the same chain.
    assert (name in ("block", "functionals")) == np.array_equal(flat_draws(again), flat_draws(whole[1]))


def test_blocks_of_other_functionals_do_not_come_back(tmp_path, whole):
    """They have the fingerprint of those that followed them, until these were interrupted."""
    shutil.copytree(whole[0], tmp_path / "one")
    run_until(2, tmp_path / "one", functionals=other_products)
    assert len(list((tmp_path / "one").glob("block-*.npz"))) == 2
    assert short_run(tmp_path / "one").sample_stats.equals(whole[1].sample_stats)
