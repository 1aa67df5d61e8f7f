"""Draws from known distributions: moments, joined chains, diagnostics and files."""

import os
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from reference_models import gaussian_model

from sgtune.model import define_model
from sgtune.study.ground_truth import accuracy, draws, nuts
from sgtune.support.errors import DataError, InputError

N_CHAINS, N_DRAWS = 2, 400


def wide_model(dimension, name="wide"):
    return define_model(
        name,
        log_prior=lambda position: -0.5 * jnp.sum(position**2),
        log_likelihood=lambda position, rows: 0 * rows,
        data=np.zeros(2, np.float32),
        init=lambda key: jnp.zeros(dimension),
    )


def statistics(n, **changes):
    energy = np.random.default_rng(9).normal(size=n)
    return {"n_steps": np.full(n, 7), "diverging": np.zeros(n, bool), "energy": energy, **changes}


def one_chain(model, matrix, *, attributes=None, keep_every=1, **changes):
    """A chain of the rows of ``matrix``: every ``keep_every``-th is kept, with the moments of all."""
    return draws.to_inference_data(
        model,
        matrix[keep_every - 1 :: keep_every],
        statistics(len(matrix), **changes),
        attributes or {},
        every=keep_every,
        moments=draws.add_draws(None, matrix),
    )


@pytest.fixture(scope="module")
def matrices():
    """Two chains of autoregressive draws of three parameters, so that R-hat and ESS differ among them."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(N_CHAINS, N_DRAWS, 3))
    for t in range(1, N_DRAWS):
        noise[:, t] += np.array([0.0, 0.5, 0.9]) * noise[:, t - 1]
    return (noise * [1, 2, 3] + [0, 50, -5]).astype(np.float32)


@pytest.fixture(scope="module")
def both(matrices):
    model, _, _ = gaussian_model()
    attributes = {"seconds": 1.5, "warmup_leapfrogs": 10, "seed": 4}
    return nuts.combine_chains([one_chain(model, matrix, attributes=attributes) for matrix in matrices])


# --- moments ---


def test_moments_by_block_are_those_of_all_draws_at_once():
    """Draws are narrow and far from zero, where float32 sums of squares would lose the variance."""
    matrix = (1_000 + 0.01 * np.random.default_rng(0).normal(size=(301, 7))).astype(np.float32)
    moments = None
    for block in np.split(matrix, [1, 2, 120, 300]):
        moments = draws.add_draws(moments, block)
    exact = matrix.astype(np.float64)
    assert moments.n == 301
    np.testing.assert_allclose(moments.mean, exact.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(moments.squares, exact.var(axis=0) * 301, rtol=1e-8)
    products = np.cov(exact.T) * 300
    np.testing.assert_allclose(moments.products, products, rtol=1e-8, atol=1e-8 * products.max())


def test_moments_are_taken_in_columns(monkeypatch):
    matrix = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    at_once = draws.add_draws(None, matrix)
    monkeypatch.setattr(draws, "COLUMNS", 3)
    assert draws.add_draws(None, np.ones((2, 201), np.float32)).products is None
    for found, expected in zip(draws.add_draws(None, matrix), at_once, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_summary_is_of_all_draws_thinned_or_not(matrices, both):
    pooled = matrices.reshape(-1, 3).astype(np.float64)
    mean, sd = nuts.summary(both)
    np.testing.assert_allclose(mean, pooled.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sd, pooled.std(axis=0, ddof=1), rtol=1e-12)
    model, _, _ = gaussian_model()
    # A shifted chain makes the pooled sd larger than the sd of each chain.
    shifted = matrices + 10 * np.arange(2, dtype=np.float32)[:, None, None]
    thinned = nuts.combine_chains([one_chain(model, matrix, keep_every=7) for matrix in shifted])
    pooled = shifted.reshape(-1, 3).astype(np.float64)
    mean, sd = nuts.summary(thinned)
    np.testing.assert_allclose(mean, pooled.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sd, pooled.std(axis=0, ddof=1), rtol=1e-12)
    assert thinned.posterior.sizes["draw"] == 57


# --- chains ---


def test_chains_are_joined_with_their_variables_and_totals(matrices, both):
    flat = draws.flat_draws(both)
    np.testing.assert_array_equal(flat, matrices)
    np.testing.assert_array_equal(flat[..., 0], both.posterior["intercept"].values)
    np.testing.assert_array_equal(flat[..., 1:], both.posterior["slopes"].values)
    assert [both.posterior.attrs[name] for name in ("seconds", "warmup_leapfrogs", "seed")] == [3.0, 20, 4]
    np.testing.assert_array_equal(both.posterior["chain"], [0, 1])
    assert both.sample_stats["energy"].shape == (2, N_DRAWS)


def test_chains_of_different_runs_are_not_joined(matrices):
    model, _, _ = gaussian_model()
    chain = one_chain(model, matrices[0])
    with pytest.raises(InputError, match="chains: none"):
        nuts.combine_chains([])
    others = [
        chain.isel(draw=slice(10)),
        one_chain(wide_model(3), matrices[0]),
        # The same number of draws is kept, but of other iterations.
        one_chain(model, np.repeat(matrices[0], 2, axis=0), keep_every=2),
        # The numbers agree, but other draws are kept: a chain may lose draws only from its start.
        one_chain(model, matrices[0], keep_every=2),
        without_end(chain),
    ]
    for other in others:
        with pytest.raises(InputError, match="chains: they differ"):
            nuts.combine_chains([chain, other])


def without_end(chain):
    """The chain without its last ten draws of the position."""
    cut = chain.copy()
    cut.posterior = cut.posterior.isel(draw=slice(-10))
    return cut


def test_joining_takes_no_more_than_one_copy_of_the_draws():
    model = wide_model(5_000)
    chains = [one_chain(model, np.ones((100, 5_000), np.float32)) for _ in range(4)]
    draws.arviz_module()
    size = 4 * 100 * 5_000 * 4
    nuts.combine_chains(chains[:2])
    tracemalloc.start()
    combined = nuts.combine_chains(chains)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert draws.flat_draws(combined).nbytes == size
    # Together with the chains themselves this is 2.5 times the draws.
    assert peak < 1.5 * size


@pytest.mark.parametrize("keep_every", [1, 3])
def test_draws_survive_netcdf(matrices, tmp_path, keep_every):
    model, _, _ = gaussian_model()
    both = nuts.combine_chains([one_chain(model, matrix, keep_every=keep_every) for matrix in matrices])
    nuts.write_draws(tmp_path / "nuts.nc", both)
    again = nuts.read_draws(tmp_path / "nuts.nc")
    assert again.posterior.equals(both.posterior)
    assert again.sample_stats.equals(both.sample_stats)
    np.testing.assert_array_equal(nuts.summary(again), nuts.summary(both))
    assert nuts.by_block(again) == nuts.by_block(both)
    assert os.listdir(tmp_path) == ["nuts.nc"]


def test_files_that_are_no_draws_are_named(tmp_path):
    (tmp_path / "nuts.nc").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"nuts.nc: not a readable NetCDF"):
        nuts.read_draws(tmp_path / "nuts.nc")
    with pytest.raises(DataError, match=r"none.nc: the file is missing"):
        nuts.read_draws(tmp_path / "none.nc")


# --- diagnostics ---


def test_diagnostics_are_arvizs_of_all_parameters(both, monkeypatch):
    arviz = draws.arviz_module()
    flat = arviz.convert_to_dataset({"x": draws.flat_draws(both).astype(np.float64)})
    r_hat = arviz.rhat(flat)["x"].values
    bulk, tail = (arviz.ess(flat, method=method)["x"].values for method in ("bulk", "tail"))
    assert np.ptp(bulk) > 100
    # Both slopes together, and each alone.
    for values in (2 * N_CHAINS * N_DRAWS, 1):
        monkeypatch.setattr(accuracy, "VALUES", values)
        checked = nuts.convergence(both)
        np.testing.assert_allclose(checked.r_hat, r_hat)
        np.testing.assert_allclose(checked.ess_bulk, bulk)
        np.testing.assert_allclose(checked.ess_tail, tail)
    report = nuts.diagnostics(both)
    assert report == nuts.diagnostics(both, checked)
    expected = (r_hat.max(), bulk.min(), tail.min())
    assert (report["r_hat"], report["ess_bulk"], report["ess_tail"]) == pytest.approx(expected)
    blocks = nuts.by_block(both)
    slopes = blocks["slopes"]
    assert (slopes["r_hat_max"], slopes["ess_min"]) == pytest.approx((r_hat[1:].max(), bulk[1:].min()))
    assert slopes["r_hat_median"] == pytest.approx(np.median(r_hat[1:]))
    assert slopes["ess_median"] == pytest.approx(np.median(bulk[1:]))
    assert slopes["sd"] == pytest.approx(np.sqrt(np.mean(nuts.summary(both)[1][1:] ** 2)))


def test_one_array_is_one_block_under_the_models_name():
    matrix = np.random.default_rng(0).normal(size=(20, 40)).astype(np.float32)
    chain = one_chain(wide_model(40, name="many"), matrix)
    assert nuts.diagnostics(chain)["n_parameters_checked"] == 40
    (block,) = nuts.by_block(chain).items()
    assert (block[0], block[1]["n"]) == ("many", 40)
    assert block[1]["sd"] == pytest.approx(np.sqrt(np.mean(matrix.var(axis=0, ddof=1, dtype=np.float64))))


def test_diagnostics_take_memory_for_some_parameters_at_a_time():
    matrix = np.random.default_rng(0).normal(size=(30, 20_000)).astype(np.float32)
    model = wide_model(20_000)
    both = nuts.combine_chains([one_chain(model, matrix), one_chain(model, matrix[::-1])])
    tracemalloc.start()
    nuts.convergence(both)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All parameters at once would need 110 MB.
    assert peak < 20e6


def test_chains_that_disagree_drift_or_stand_still_are_reported():
    rng = np.random.default_rng(0)
    model = wide_model(2)
    calm = rng.normal(size=(N_DRAWS, 2)).astype(np.float32)
    assert nuts.diagnostics(one_chain(model, calm))["r_hat"] < 1.03
    apart = nuts.combine_chains([one_chain(model, calm), one_chain(model, np.add(calm, [0, 5]))])
    checked = nuts.convergence(apart)
    assert checked.r_hat[0] < 1.03
    assert checked.r_hat[1] > 1.5
    # A single chain is judged by its halves, without the middle draw of an odd number.
    one = calm[:-1].astype(np.float64)
    halves = draws.arviz_module().convert_to_dataset(
        {"x": np.stack([one[: N_DRAWS // 2 - 1], one[N_DRAWS // 2 :]])}
    )
    expected = draws.arviz_module().rhat(halves)["x"].values
    np.testing.assert_allclose(nuts.convergence(one_chain(model, calm[:-1])).r_hat, expected)
    drifting = calm + np.linspace(0, 10, N_DRAWS, dtype=np.float32)[:, None]
    assert nuts.diagnostics(one_chain(model, drifting))["r_hat"] > 1.5
    still = calm.copy()
    still[:, 1] = 3
    report = nuts.diagnostics(nuts.combine_chains([one_chain(model, calm), one_chain(model, still)]))
    assert (report["r_hat"], report["ess_bulk"], report["ess_tail"]) == (np.inf, 0, 0)
    assert report["n_parameters_stuck"] == 1


def test_fewer_than_four_draws_have_no_r_hat():
    chain = one_chain(wide_model(2), np.arange(6, dtype=np.float32).reshape(3, 2))
    report, blocks = nuts.diagnostics(chain), nuts.by_block(chain)
    assert np.isnan([report["r_hat"], report["ess_bulk"], blocks["wide"]["r_hat_max"]]).all()
    assert blocks["wide"]["sd"] == pytest.approx(2)


def test_cut_trajectories_and_energies_are_counted_by_iteration():
    """E-BFMI is 2 for independent energies, and small if steps of the energy are far below its range."""
    n = 4_000
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(n, 2)).astype(np.float32)
    n_steps = np.where(np.arange(n) % 4 == 0, 1_023, 511)
    diverging = np.arange(n) < 3
    model = wide_model(2)
    independent = one_chain(model, matrix, n_steps=n_steps, diverging=diverging, energy=rng.normal(size=n))
    walking = one_chain(
        model, matrix, n_steps=n_steps, diverging=diverging, energy=np.cumsum(rng.normal(size=n))
    )
    report = nuts.diagnostics(nuts.combine_chains([independent, walking]))
    assert report["max_tree_depth_share"] == 0.25
    assert report["divergences"] == 6
    # The sd of the mean of n squared differences of successive independent normals is 2 sqrt(3 / n).
    assert report["e_bfmi"][0] == pytest.approx(2, abs=4.5 * 2 * np.sqrt(3 / n))
    assert report["e_bfmi"][1] < 0.05
