"""R-hat and ESS of many parameters at once, against ArviZ for each parameter and against known values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata
from scipy.stats.mstats import mquantiles
from sgtune.study.ground_truth.effective import ess_of_mean, r_hat, r_hat_and_ess

from sgtune.study.ground_truth.draws import arviz_module

# ArviZ divides by zero for constant draws; this package gives no warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore:(divide by zero|invalid value) encountered:RuntimeWarning:arviz"),
    pytest.mark.filterwarnings("error::RuntimeWarning:sgtune"),
]

KINDS = ("independent", "persistent", "alternating", "rejections", "rounded", "skewed", "heavy", "apart")


def some_draws(kind, n_chains, n_draws, size, seed):
    """Draws (chain, draw, k) with what makes the numbers hard."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(n_chains, n_draws, size))
    carried = {"persistent": 0.9, "alternating": -0.8}.get(kind, 0)
    stays = rng.random(draws.shape) < (0.6 if kind == "rejections" else 0)
    for t in range(1, n_draws):
        draws[:, t] = np.where(stays[:, t], draws[:, t - 1], draws[:, t] + carried * draws[:, t - 1])
    if kind == "rounded":
        return np.round(draws)
    if kind == "skewed":
        return np.exp(3 * draws)
    if kind == "heavy":
        return draws / rng.normal(size=draws.shape)
    if kind == "apart":
        return draws + np.arange(n_chains)[:, None, None] * np.arange(size)
    return draws


def by_arviz(draws):
    """R-hat, bulk ESS, tail ESS, each (k,)."""
    arviz = arviz_module()
    data = arviz.convert_to_dataset({"x": draws})
    return np.array(
        [
            arviz.rhat(data, method="rank")["x"].values,
            arviz.ess(data, method="bulk")["x"].values,
            arviz.ess(data, method="tail")["x"].values,
        ]
    )


def hangs_on_rounding(series):
    """Whether two autocorrelations of (chain, draw) cancel, so that rounding decides where their sum ends."""
    half = series.shape[1] // 2
    split = np.concatenate([series[:, :half], series[:, -half:]]).astype(np.float64)
    centred = split - split.mean(axis=1, keepdims=True)
    covariance = np.mean([np.correlate(x, x, "full")[half - 1 :] / half for x in centred], axis=0)
    overall = covariance[0] + split.mean(axis=1).var(ddof=1)
    rho = 1 - (covariance[0] * half / (half - 1) - covariance) / (overall or 1)
    return np.min(np.abs(rho[2:-1:2] + rho[3::2]), initial=1) < 1e-9


def decided(draws):
    """The entries of `by_arviz` that do not depend on rounding."""
    n_chains, n_draws, size = draws.shape
    clear = np.ones((3, size), bool)
    half = n_draws // 2
    for i, x in enumerate(np.moveaxis(draws, -1, 0)):
        ends = np.concatenate([x[:, :half], x[:, -half:]])
        scores = norm.ppf((rankdata(ends) - 3 / 8) / (ends.size + 1 / 4)).reshape(ends.shape)
        scores = np.concatenate([scores[:n_chains], scores[n_chains:]], axis=1)
        clear[1, i] = not hangs_on_rounding(scores)
        clear[2, i] = not any(hangs_on_rounding(x <= q) for q in mquantiles(x, [0.05, 0.95], 1, 1))
    return clear


def assert_arvizs(draws):
    found, expected = np.array(r_hat_and_ess(draws)), by_arviz(draws)
    # Constant chains at different values: the variance within is 0, or rounding error.
    found, expected = (np.where(values > 1e6, np.inf, values) for values in (found, expected))
    clear = decided(draws)
    assert clear.mean() > 0.5
    np.testing.assert_allclose(found[clear], expected[clear], rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_chains", [1, 2, 4])
def test_of_each_parameter_they_are_arvizs(kind, n_chains):
    for seed, n_draws in enumerate([4, 5, 6, 7, 8, 9, 10, 21, 50, 201]):
        assert_arvizs(some_draws(kind, n_chains, n_draws, 5, seed))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(KINDS),
    n_chains=st.integers(1, 5),
    n_draws=st.integers(4, 130),
    seed=st.integers(0, 2**31 - 1),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    offset=st.sampled_from([0.0, -1e3]),
)
def test_they_are_arvizs_for_any_draws(kind, n_chains, n_draws, seed, scale, offset):
    assert_arvizs(scale * (some_draws(kind, n_chains, n_draws, 8, seed) + offset))


def test_draws_that_take_few_values_are_arvizs():
    """The folded draws of two values are constant, and an indicator may be constant."""
    signs = np.sign(some_draws("independent", 2, 25, 20, 0))
    assert_arvizs(signs)
    rare = np.zeros((2, 40, 3))
    rare[0, 7] = 1
    assert_arvizs(rare)


@pytest.mark.parametrize("carried", [-0.4, 0.0, 0.6])
def test_ess_of_autoregressive_draws_is_the_known_one(carried):
    """S (1 - a) / (1 + a) for x_t = a x_{t-1} + noise; the mean over many parameters has an error of a few percent."""
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(4, 1_000, 200))
    for t in range(1, 1_000):
        draws[:, t] += carried * draws[:, t - 1]
    worst, bulk, tail = r_hat_and_ess(draws)
    assert np.median(bulk) == pytest.approx(4_000 * (1 - carried) / (1 + carried), rel=0.04)
    assert worst.max() < 1.03
    if not carried:
        assert np.median(tail) == pytest.approx(4_000, rel=0.05)


@pytest.mark.parametrize("kind", ["independent", "persistent", "rejections", "skewed", "apart"])
def test_ess_of_the_mean_is_arvizs_of_the_draws_themselves(kind):
    draws = some_draws(kind, 2, 200, 20, 4)
    arviz = arviz_module()
    expected = arviz.ess(arviz.convert_to_dataset({"x": draws}), method="mean")["x"].values
    np.testing.assert_allclose(ess_of_mean(draws), expected, rtol=1e-6)
    # The test can distinguish it from the ESS of ranks.
    if kind == "skewed":
        assert not np.allclose(expected, r_hat_and_ess(draws)[1], rtol=0.05)


def test_only_the_order_of_draws_counts_for_the_ess():
    draws = some_draws("persistent", 2, 60, 10, 0)
    for found, expected in zip(r_hat_and_ess(np.exp(draws))[1:], r_hat_and_ess(draws)[1:], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_parameter_has_the_same_numbers_alone_and_among_others():
    draws = np.concatenate([some_draws(kind, 3, 41, 2, 0) for kind in KINDS], axis=-1)
    alone = np.concatenate([r_hat_and_ess(draws[..., i : i + 1]) for i in range(draws.shape[-1])], axis=1)
    np.testing.assert_allclose(r_hat_and_ess(draws), alone, rtol=1e-12)
    np.testing.assert_array_equal(r_hat(draws), r_hat_and_ess(draws)[0])


def test_draws_in_single_precision_are_taken_in_double():
    draws = some_draws("rejections", 2, 33, 6, 1).astype(np.float32)
    np.testing.assert_array_equal(r_hat_and_ess(draws), r_hat_and_ess(draws.astype(np.float64)))


def test_what_is_not_defined_is_nan():
    few, one = some_draws("independent", 2, 3, 4, 0), some_draws("independent", 1, 30, 4, 0)
    assert np.isnan(r_hat_and_ess(few)).all()
    assert np.isnan(r_hat(few)).all()
    assert np.isnan(ess_of_mean(few)).all()
    assert np.isnan(r_hat(one)).all()
    np.testing.assert_array_equal(np.isnan(r_hat_and_ess(one)).all(axis=1), [True, False, False])
    broken = some_draws("independent", 2, 30, 4, 0)
    broken[1, 3, 2] = np.nan
    np.testing.assert_array_equal(np.isnan(r_hat_and_ess(broken)), [[False, False, True, False]] * 3)
    assert np.isnan(r_hat(broken)[2])
    np.testing.assert_array_equal(np.isnan(ess_of_mean(broken)), [False, False, True, False])
