"""The Stein discrepancies in other coordinates, of draws in any form, and on bad input."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import a_factor, few_shapes, naive_fssd, naive_ksd, sizes, some_draws, varied

from sgtune.stein import DISCREPANCIES, fssd, fssd_at, ksd, optimise_locations, psd, rescale
from sgtune.support.errors import InputError

# The PSD also needs the mode as its centre; otherwise it has the arguments of the others.
CALLED_ALIKE = {**DISCREPANCIES, "psd": psd}

# --- Coordinates


@varied
@given(**sizes, logarithm=st.floats(-4, 4))
def test_a_vector_of_sds_is_a_diagonal_factor(n, dimension, seed, logarithm):
    positions, scores = some_draws(seed, n, dimension)
    locations = some_draws(seed + 1, 3, dimension)[0]
    sds = 10.0**logarithm * np.random.default_rng(seed).uniform(0.5, 2.0, dimension)
    for discrepancy in (ksd, lambda *args: fssd_at(*args[:2], locations, args[2])):
        vector, factor = discrepancy(positions, scores, sds), discrepancy(positions, scores, np.diag(sds))
        assert vector == pytest.approx(factor, rel=1e-9)
        by_hand = positions / sds, scores * sds
        assert vector == pytest.approx(
            ksd(*by_hand) if discrepancy is ksd else fssd_at(*by_hand, locations / sds), rel=1e-9
        )


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
    assert ksd(*moved, moved_factor) == pytest.approx(ksd(positions, scores, factor), rel=1e-6)
    value = fssd_at(positions, scores, locations, factor)
    assert fssd_at(*moved, locations @ linear.T + offset, moved_factor) == pytest.approx(value, rel=1e-6)


@varied
@given(**few_shapes)
def test_locations_move_with_the_draws(n, dimension, seed):
    """Locations found with a factor are in the model's own coordinates, like the draws."""
    positions, scores = some_draws(seed, n, dimension, offset=5.0)
    factor = a_factor(seed, dimension)
    locations = optimise_locations(positions, scores, seed, factor, n_steps=2)
    scaled = rescale(positions, scores, factor)
    start = optimise_locations(positions, scores, seed, factor, n_steps=0)
    inside = optimise_locations(*scaled, seed, n_steps=0)
    np.testing.assert_allclose(start, inside @ factor.T, rtol=1e-4, atol=1e-4)
    inside = np.linalg.solve(factor, locations.T).T
    assert fssd_at(positions, scores, locations, factor) == pytest.approx(
        naive_fssd(*scaled, inside), rel=1e-6
    )


@varied
@given(**sizes)
def test_rescale_makes_the_posterior_a_standard_normal(n, dimension, seed):
    """The value for N(0, L L'), whose score at x is -(L L')^-1 x, equals the value for N(0, I) at L^-1 x."""
    factor = a_factor(seed, dimension)
    positions = some_draws(seed, n, dimension)[0].astype(np.float64)
    scores = -np.linalg.solve(factor @ factor.T, positions.T).T
    scaled_positions, scaled_scores = rescale(positions, scores, factor)
    np.testing.assert_allclose(scaled_positions, np.linalg.solve(factor, positions.T).T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scaled_scores, -scaled_positions, rtol=1e-6, atol=1e-8)


def test_pytrees_and_jax_arrays_are_the_flat_matrix():
    positions, scores = some_draws(14, 20, 7)

    def as_tree(matrix):
        return {
            "a": jnp.asarray(matrix[:, 0]),
            "b": [matrix[:, 1:3], jnp.asarray(matrix[:, 3:]).reshape(20, 2, 2)],
        }

    scale = np.linspace(0.5, 2, 7)
    for name, discrepancy in CALLED_ALIKE.items():
        expected = discrepancy(positions, scores, scale, 0)
        assert discrepancy(as_tree(positions), as_tree(scores), scale, 0) == expected, name
        assert discrepancy(
            jnp.asarray(positions), jnp.asarray(scores), jnp.asarray(scale), 0
        ) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, jnp.bfloat16, np.int32])
def test_draws_of_any_real_dtype(dtype):
    positions, scores = (np.round(4 * array).astype(dtype) for array in some_draws(15, 12, 3))
    assert ksd(positions, scores) == pytest.approx(naive_ksd(positions, scores), rel=1e-9)


def test_inputs_are_not_changed():
    positions, scores = (array.astype(np.float64) for array in some_draws(16, 10, 3, offset=2.0))
    kept = positions.copy(), scores.copy()
    for scale in ("identity", np.full(3, 2.0), 2 * np.eye(3)):
        ksd(positions, scores, scale)
        psd(positions, scores, scale, centre=np.ones(3))
        fssd(positions, scores, scale)
    np.testing.assert_array_equal(positions, kept[0])
    np.testing.assert_array_equal(scores, kept[1])


def test_registry_has_one_calling_shape():
    draws, scale = some_draws(17, 30, 4), np.full(4, 2.0)
    assert set(DISCREPANCIES) == {"ksd", "fssd"}
    assert ksd(*draws, scale, 5) == ksd(*draws, scale)
    assert psd(*draws, scale, 5) == psd(*draws, scale)
    assert fssd(*draws, scale, 5) == fssd(*draws, scale, 5, n_draws=300) != fssd(*draws, scale)
    for discrepancy in CALLED_ALIKE.values():
        assert isinstance(discrepancy(*draws, "identity", 0, n_draws=60), float)


# --- Bad input


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
    assert ksd(*draws, scale) == np.inf
    assert psd(*draws, scale) == psd(*draws, scale, target="marginals") == np.inf
    assert fssd_at(*draws, np.zeros((2, dimension)), scale) == np.inf
    assert fssd(*draws, scale, n_steps=2) == np.inf


def test_draws_that_overflow_score_infinity():
    positions = np.array([[1e300], [-1e300]])
    assert ksd(positions, positions) == np.inf
    assert fssd(positions, positions) == np.inf
    assert ksd(np.full((3, 1), 1e308), np.ones((3, 1))) == np.inf
    assert fssd_at(np.ones((3, 1)), np.ones((3, 1)), np.array([[np.nan]])) == np.inf


good = np.ones((5, 3), np.float32)


@pytest.mark.parametrize(
    ("positions", "scores", "message"),
    [
        (good, good[:4], r"scores: shape \(4, 3\) differs from positions, \(5, 3\)"),
        (good, good[:, :2], r"scores: shape \(5, 2\)"),
        (good[0], good[0], r"positions: an array of shape \(3,\) is not allowed; it must be \(n, D\)"),
        (good[None], good[None], r"positions: an array of shape \(1, 5, 3\)"),
        (good[:0], good[:0], "positions: shape .* has no entries"),
        (good[:, :0], good[:, :0], "positions: shape .* has no entries"),
        ({"a": good}, good, "scores: structure"),
        ({}, {}, "positions: leaves of shapes"),
        ({"a": good, "b": good[:2]}, {"a": good, "b": good[:2]}, "must share a leading axis"),
        ({"a": 1.0}, {"a": 1.0}, "must share a leading axis"),
        (good.astype(complex), good, "positions: dtype complex128"),
        (good, good.astype(str), "scores: dtype <U"),
    ],
)
def test_draws_of_wrong_shape_are_refused_in_one_line(positions, scores, message):
    calls = [*CALLED_ALIKE.values(), optimise_locations, lambda *draws: fssd_at(*draws, good)]
    for call in calls:
        with pytest.raises(InputError, match=message) as error:
            call(positions, scores)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("laplace", r"pass an array, e.g. `sgtune.mode.curvature.laplace_scale\(model\)`"),
        ("laplase", "'laplase' is not known; allowed: 'identity'"),
        (np.ones(4), r"float64\[4\] is not allowed; at D = 3"),
        (np.ones((3, 1)), r"\[3, 1\]"),
        (2.0, r"float64\[\]"),
        (np.array([1.0, 0.0, 1.0]), "scale: 0.0 is not allowed"),
        (np.array([1.0, -2.0, 1.0]), "scale: -2.0"),
        (np.array([1.0, np.nan, 1.0]), "scale: nan"),
        (np.array([1.0, np.inf, 1.0]), "scale: inf"),
        (np.diag([1.0, 0.0, 1.0]), "scale: 0.0"),
        (np.array([[1, 0, 0], [np.inf, 1, 0], [0, 0, 1]]), "scale: inf"),
        (np.eye(3) + 0.5 * np.eye(3, k=1), "0.5 above the diagonal"),
    ],
)
def test_scales_that_mean_nothing_are_refused_in_one_line(scale, message):
    for discrepancy in CALLED_ALIKE.values():
        with pytest.raises(InputError, match=message) as error:
            discrepancy(good, good, scale, 0)
        assert "\n" not in str(error.value)


def test_other_bad_arguments_are_refused():
    with pytest.raises(InputError, match="block: 0 is not allowed"):
        ksd(good, good, block=(0, 10))
    for arguments in ({"seed": -1}, {"n_locations": 0}, {"n_steps": -1}):
        with pytest.raises(InputError, match=f"{next(iter(arguments))}: .* is not allowed"):
            fssd(good, good, **arguments)
    for locations in (good[:, :2], good[0], good[:0]):
        with pytest.raises(InputError, match="locations: shape"):
            fssd_at(good, good, locations)
