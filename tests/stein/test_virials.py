"""The virials: against naive loops, for exact and for wrong draws, for subsets of slow chains, and the estimates of the
bias of a chain's density."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import a_factor, autoregressive, sizes, some_draws, varied

from sgtune.stein import virial
from sgtune.stein.quadratic import N_STRETCHES
from sgtune.stein.virials import virial_bias, virial_error, virial_score, virial_sums

SIGMAS = 4.0


def sums_of(draws):
    """Sums for draws of N(0, I) in stretches of equal length."""
    stretch = np.arange(len(draws)) * N_STRETCHES // len(draws)
    return virial_sums(draws, -draws, stretch, "identity", centre=None)


def is_mean_of(found, expected) -> bool:
    """Whether the mean of values is this, within `SIGMAS` standard errors."""
    return bool(abs(np.mean(found) - expected) < SIGMAS * np.std(found, ddof=1) / np.sqrt(len(found)))


@varied
@given(
    **sizes,
    form=st.sampled_from(["identity", "sds", "factor"]),
    marginals=st.booleans(),
    tile=st.sampled_from([8, 2**20]),
)
def test_they_agree_with_naive_loops(n, dimension, seed, form, marginals, tile):
    positions, scores = some_draws(seed, n, dimension, offset=3.0, size=2.0)
    rng, factor = np.random.default_rng(seed), a_factor(seed, dimension)
    centre, stretch = rng.standard_normal(dimension), rng.integers(0, N_STRETCHES, n)
    scale = {"identity": "identity", "sds": rng.uniform(0.3, 3.0, dimension)}.get(form, factor)
    x, s, covariance = positions.astype(float) - centre, scores.astype(float), factor @ factor.T
    if form != "factor":
        virials = -s * x
    elif marginals:
        virials = -(s @ covariance) * x / np.diag(covariance)
    else:
        _, directions = np.linalg.eigh(covariance)
        virials = -(s @ directions) * (x @ directions)
    sums = np.array([virials[stretch == a].sum(axis=0) for a in range(N_STRETCHES)])
    target = "marginals" if marginals else "all directions"
    with patch("sgtune.stein.virials.TILE", tile):
        found = virial_sums(positions, scores, stretch, scale, centre=centre, target=target)
    np.testing.assert_array_equal(found.counts, np.bincount(stretch, minlength=N_STRETCHES))
    np.testing.assert_allclose(found.virials, sums, rtol=1e-9, atol=1e-9 * np.abs(sums).max())
    np.testing.assert_allclose(found.squares, np.sum(virials**2, axis=0), rtol=1e-9)
    cost = np.mean([1 - v if v < 0 else (np.sqrt(v) - 1) ** 2 for v in virials.mean(axis=0)])
    value = virial(positions, scores, scale, centre=centre, target=target)
    assert value == pytest.approx(np.sqrt(cost), rel=1e-9)
    assert np.isclose(virial_error(found, n), cost, rtol=1e-9)


@pytest.mark.parametrize(("time", "width"), [(1, 1.2), (1, 0.6), (30, 1.0), (300, 1.0)])
def test_a_random_part_has_the_square_of_all_draws(time, width):
    """100 subsets of 150 of 3,000 draws; without the correction the value would be tens of standard errors larger."""
    rng, n_draws, n = np.random.default_rng(time), 3_000, 150
    draws = width * autoregressive(rng, n_draws, 300, (time - 1) / (time + 1))
    of_all = virial(draws, -draws) ** 2
    found, uncorrected = [], []
    for _ in range(100):
        part = draws[np.sort(rng.choice(n_draws, n, replace=False))]
        sums = sums_of(part)
        found.append(virial_error(sums, n_draws))
        uncorrected.append(virial_error(sums, n))
    assert is_mean_of(found, of_all)
    assert np.mean(uncorrected) > of_all + 10 * np.std(uncorrected) / 10
    assert np.std(found) / 10 < 0.02 * of_all


@pytest.mark.parametrize(("time", "width"), [(1, 1.0), (10, 1.0), (10, 0.7), (30, 1.3)])
def test_the_square_of_the_law_has_no_bias_and_its_error_is_its_spread(time, width):
    """100 chains of 4,000 draws in 20 directions, started at the mode and without the transient."""
    rng, n = np.random.default_rng(time), 4_000
    found = []
    for _ in range(100):
        draws = width * autoregressive(rng, n, 20, (time - 1) / (time + 1))
        draws[: n // N_STRETCHES] *= np.linspace(0, 1, n // N_STRETCHES)[:, None]
        sums = sums_of(draws)
        found.append([*virial_bias(sums), virial_error(sums, n)])
    squares, errors, of_draws = np.transpose(found)
    assert is_mean_of(squares, (width - 1) ** 2)
    assert not is_mean_of(of_draws, (width - 1) ** 2)
    # The variance of 100 squares is known to a seventh, the jackknife's within a third. At its least, where the
    # square has no slope, the jackknife's is up to twice the variance.
    ratio = np.mean(errors**2) / squares.var(ddof=1)
    assert 0.6 < ratio < (1.6 if width != 1 else 3.2)


def test_scores_at_the_horizon_let_variance_fall_and_add_no_standard_error():
    rng = np.random.default_rng(3)
    draws = 0.8 * autoregressive(rng, 2_000, 5, 19 / 21)
    sums = sums_of(draws)
    square, (bias, error) = virial_error(sums, 2_000), virial_bias(sums)
    assert 0 < bias < square
    assert error > 0.01 * square
    for share in (1.0, 0.3, 0.1, 0.01):
        expected = bias + (square - bias) * max(share, 0.1)
        assert virial_score(sums, 2_000, share) == pytest.approx(expected)
    few = sums_of(draws[:9])
    assert virial_score(few, 9, 0.1) == virial_error(few, 9)
