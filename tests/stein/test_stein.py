"""The Stein discrepancies against naive forms of Eqs. (3) and (4), on draws known to be wrong, in other coordinates, of
draws in any form, and on bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import a_factor, few_shapes, naive_fssd, sizes, some_draws, varied

from sgtune import stein
from sgtune.stein.fssd import _weighted_fssd
from sgtune.stein.quadratic import mean_square, squared_bias
from sgtune.stein.virials import virial_error, virial_score, virial_sums
from sgtune.support.errors import InputError
from sgtune.support.machine import full_precision


@varied
@given(
    **sizes,
    n_locations=st.integers(1, 5),
    offset=st.sampled_from([0.0, 5.0, -1e4]),
    spread=st.sampled_from([1e-2, 1.0, 1e2]),
    size=st.sampled_from([0.0, 1.0, 1e3]),
)
def test_fssd_at_is_the_naive_form(n, dimension, seed, n_locations, offset, spread, size):
    positions, scores = some_draws(seed, n, dimension, offset=offset, spread=spread, size=size)
    locations = some_draws(seed + 1, n_locations, dimension, offset=offset, spread=2 * spread)[0]
    expected = naive_fssd(positions, scores, locations)
    assert stein.fssd_at(positions, scores, locations) == pytest.approx(expected, rel=1e-5)


@varied
@given(**few_shapes | {"n": st.integers(1, 32)})
def test_padding_does_not_change_adams_objective(n, dimension, seed):
    """Float32 against float64: 1e-4. Rows of weight zero have no effect, for any contents."""
    positions, scores = some_draws(seed, 32, dimension)
    locations = some_draws(seed + 1, 3, dimension)[0]
    weights = np.zeros(32, np.float32)
    weights[:n] = 1 / n
    unit = np.float32(0.25)
    padded = jax.jit(full_precision(_weighted_fssd))(positions, scores * unit, weights, unit, locations)
    expected = naive_fssd(positions[:n], scores[:n], locations)
    assert float(padded) / 0.25 == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 30])
def test_fssd_chooses_locations_on_the_even_draws_and_scores_the_odd_ones(n):
    positions, scores = some_draws(7, n, 3)
    even, odd = (slice(0, None, 2), slice(1, None, 2)) if n >= 4 else (slice(None), slice(None))
    locations = stein.optimise_locations(positions[even], scores[even], seed=3)
    assert locations.shape == (10, 3)
    assert stein.fssd(positions, scores, seed=3) == stein.fssd_at(positions[odd], scores[odd], locations)
    expected = naive_fssd(positions[odd], scores[odd], locations)
    assert stein.fssd(positions, scores, seed=3) == pytest.approx(expected, rel=1e-9)


def test_locations_start_as_draws_of_the_fitted_gaussian():
    """Mean and covariance of 20,000 of them, each entry within five standard errors of the Gaussian fit's."""
    rng, count = np.random.default_rng(8), 20_000
    positions = 50 + rng.standard_normal((30, 3)) @ rng.normal(size=(3, 3)).T
    start = stein.optimise_locations(positions, -positions, n_locations=count, n_steps=0)
    mean, covariance = positions.mean(0), np.cov(positions.T, bias=True)
    variances = np.diag(covariance)
    assert np.all(np.abs(start.mean(0) - mean) < 5 * np.sqrt(variances / count))
    error = np.sqrt((covariance**2 + np.outer(variances, variances)) / count)
    assert np.all(np.abs(np.cov(start.T) - covariance) < 5 * error)


# The PSD also needs the mode as its centre; otherwise it has the arguments of the others.
CALLED_ALIKE = {**stein.DISCREPANCIES, "psd": stein.psd}


@varied
@given(**sizes)
def test_a_factor_makes_the_discrepancies_affine_invariant(n, dimension, seed):
    """x -> A x + b takes the score to A^-T score and the covariance to A L L' A', A being any matrix."""
    positions, scores = (array.astype(np.float64) for array in some_draws(seed, n, dimension))
    locations = some_draws(seed + 1, 3, dimension)[0].astype(np.float64)
    factor, rng = a_factor(seed, dimension), np.random.default_rng(seed)
    orthogonal = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    linear, offset = orthogonal @ a_factor(seed + 1, dimension), rng.normal(0, 10, dimension)
    moved = positions @ linear.T + offset, scores @ np.linalg.inv(linear)
    moved_factor = np.linalg.cholesky(linear @ factor @ factor.T @ linear.T)
    assert stein.ksd(*moved, moved_factor) == pytest.approx(stein.ksd(positions, scores, factor), rel=1e-6)
    value = stein.fssd_at(positions, scores, locations, factor)
    assert stein.fssd_at(*moved, locations @ linear.T + offset, moved_factor) == pytest.approx(
        value, rel=1e-6
    )


def test_pytrees_and_jax_arrays_are_the_flat_matrix():
    positions, scores = some_draws(14, 20, 7)

    def as_tree(matrix):
        last = jnp.asarray(matrix[:, 3:]).reshape(20, 2, 2)
        return {"a": jnp.asarray(matrix[:, 0]), "b": [matrix[:, 1:3], last]}

    scale = np.linspace(0.5, 2, 7)
    for discrepancy in (stein.ksd, stein.psd):
        expected = discrepancy(positions, scores, scale, 0)
        assert discrepancy(as_tree(positions), as_tree(scores), scale, 0) == expected
        found = discrepancy(*map(jnp.asarray, (positions, scores, scale)), 0)
        assert found == pytest.approx(expected, rel=1e-5)


@varied
@given(
    **few_shapes,
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
    place=st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 5)),
    scale=st.sampled_from(["identity", "vector", "factor"]),
)
def test_draws_that_are_not_finite_score_infinity(n, dimension, seed, bad, place, scale):
    draws = some_draws(seed, n, dimension)
    draws[place[0]][place[1] % n, place[2] % dimension] = bad
    scale = {"identity": "identity", "vector": np.ones(dimension), "factor": np.eye(dimension)}[scale]
    assert stein.ksd(*draws, scale) == np.inf
    assert stein.psd(*draws, scale) == stein.psd(*draws, scale, target="marginals") == np.inf
    assert stein.fssd_at(*draws, np.zeros((2, dimension)), scale) == np.inf
    assert stein.fssd(*draws, scale, n_steps=2) == np.inf


def test_what_judges_a_stretch_or_a_subset_of_draws_that_are_not_finite_is_infinite():
    positions, scores = some_draws(0, 10, 2)
    positions[3, 1], stretch = np.nan, np.arange(10) // 2
    for lost in ((positions, scores), (np.full((10, 2), 1e200), np.full((10, 2), 1e200))):
        value, se, squared = stein.ksd_estimate(*lost, n_draws=30)
        assert value == squared == stein.virial(*lost) == np.inf
        assert np.isnan(se)
        for sums in (stein.ksd_stretches(*lost, stretch), stein.psd_stretches(*lost, stretch, centre=None)):
            assert mean_square(sums, 30) == np.inf
            assert squared_bias(sums) == (0, np.inf)
        sums = virial_sums(*lost, stretch, "identity", centre=None)
        assert virial_error(sums, 30) == virial_score(sums, 30, 0.1) == np.inf


good = np.ones((5, 3), np.float32)


@pytest.mark.parametrize(
    ("positions", "scores", "message"),
    [
        (good, good[:4], r"scores: shape \(4, 3\) differs from positions, \(5, 3\)"),
        (good, good[:, :2], r"scores: shape \(5, 2\)"),
        (good[0], good[0], r"positions: an array of shape \(3,\) is not allowed; it must be \(n, D\)"),
        (good[:0], good[:0], "positions: shape .* has no entries"),
        ({"a": good}, good, "scores: structure"),
        ({}, {}, "positions: leaves of shapes"),
        ({"a": good, "b": good[:2]}, {"a": good, "b": good[:2]}, "must share a leading axis"),
        (good.astype(complex), good, "positions: dtype complex128"),
        (good, good.astype(str), "scores: dtype <U"),
    ],
)
def test_draws_of_wrong_shape_are_refused_in_one_line(positions, scores, message):
    calls = [*CALLED_ALIKE.values(), stein.optimise_locations, lambda *draws: stein.fssd_at(*draws, good)]
    for call in calls:
        with pytest.raises(InputError, match=message) as error:
            call(positions, scores)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("laplace", r"pass an array, e.g. `sgtune.mode.curvature.laplace_scale\(model\)`"),
        ("laplase", "'laplase' is not known; allowed: 'identity'"),
        # Other arrays are refused as for a preconditioner.
        (np.ones((3, 1)), r"scale: shape \(3, 1\) is not allowed; it must be \(3,\), sds, or \(3, 3\)"),
        (np.diag([1.0, 0.0, 1.0]), "scale: 0 is not allowed"),
    ],
)
def test_scales_that_mean_nothing_are_refused_in_one_line(scale, message):
    for discrepancy in CALLED_ALIKE.values():
        with pytest.raises(InputError, match=message) as error:
            discrepancy(good, good, scale, 0)
        assert "\n" not in str(error.value)
