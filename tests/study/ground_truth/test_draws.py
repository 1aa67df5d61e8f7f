"""Draws from known distributions: moments, joined chains and files."""

import os

import numpy as np
import pytest
from reference_models import gaussian_model, one_chain, wide_model

from sgtune.study.ground_truth import draws
from sgtune.support.errors import DataError, InputError

N_CHAINS, N_DRAWS = 2, 400


@pytest.fixture(scope="module")
def matrices():
    """Two chains of autoregressive draws of three parameters, so that R-hat and ESS differ among them."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(N_CHAINS, N_DRAWS, 3))
    for t in range(1, N_DRAWS):
        noise[:, t] += np.array([0.0, 0.5, 0.9]) * noise[:, t - 1]
    return (noise * [1, 2, 3] + [0, 50, -5]).astype(np.float32)


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


# --- chains ---


def test_chains_are_joined_with_their_variables_and_totals(matrices):
    model, _, _ = gaussian_model()
    attributes = {"seconds": 1.5, "warmup_leapfrogs": 10, "seed": 4}
    both = draws.combine_chains([one_chain(model, matrix, attributes=attributes) for matrix in matrices])
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
    cut = chain.copy()
    cut.posterior = cut.posterior.isel(draw=slice(-10))
    others = [
        chain.isel(draw=slice(10)),
        one_chain(wide_model(3), matrices[0]),
        # The same number of draws is kept, but of other iterations.
        one_chain(model, np.repeat(matrices[0], 2, axis=0), keep_every=2),
        # The numbers agree, but other draws are kept: a chain may lose draws only from its start.
        one_chain(model, matrices[0], keep_every=2),
        cut,
    ]
    for other in others:
        with pytest.raises(InputError, match="chains: they differ"):
            draws.combine_chains([chain, other])


def test_draws_survive_netcdf(matrices, tmp_path):
    model, _, _ = gaussian_model()
    both = draws.combine_chains([one_chain(model, matrix, keep_every=3) for matrix in matrices])
    draws.write_draws(tmp_path / "nuts.nc", both)
    again = draws.read_draws(tmp_path / "nuts.nc")
    assert again.posterior.equals(both.posterior)
    assert again.sample_stats.equals(both.sample_stats)
    np.testing.assert_array_equal(draws.summary(again), draws.summary(both))
    assert os.listdir(tmp_path) == ["nuts.nc"]


def test_files_that_are_no_draws_are_named(tmp_path):
    (tmp_path / "nuts.nc").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"nuts.nc: not a readable NetCDF"):
        draws.read_draws(tmp_path / "nuts.nc")
    with pytest.raises(DataError, match=r"none.nc: .*No such file"):
        draws.read_draws(tmp_path / "none.nc")
