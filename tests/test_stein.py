"""The Stein discrepancies against naive forms of Eqs. (3) and (4), and on draws known to be wrong."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgtune.errors import InputError
from sgtune.stein import DISCREPANCIES, fssd, fssd_at, ksd, optimise_locations, rescale
from sgtune.stein.fssd import _climb, _weighted_fssd

varied = settings(max_examples=25, deadline=None, derandomize=True)
sizes = {"n": st.integers(1, 9), "dimension": st.integers(1, 6), "seed": st.integers(0, 2**31 - 1)}
# What is compiled is compiled once per dimension.
few_shapes = sizes | {"dimension": st.sampled_from([1, 4])}


def kernel(x, y):
    """k and its derivatives for c = 1, beta = -1/2, term by term: k, grad_x k, grad_y k, div_x grad_y k."""
    difference = x - y
    base = 1.0 + np.sum(difference**2)
    gradient_x = -(base**-1.5) * difference
    divergence = sum(base**-1.5 - 3.0 * difference[i] ** 2 * base**-2.5 for i in range(len(x)))
    return base**-0.5, gradient_x, -gradient_x, divergence


def naive_ksd(positions, scores):
    """Eq. (3) with grad U = -score, a float64 double loop."""
    positions, grad_u = np.asarray(positions, np.float64), -np.asarray(scores, np.float64)
    total = 0.0
    for x, u in zip(positions, grad_u, strict=True):
        for y, w in zip(positions, grad_u, strict=True):
            k, k_x, k_y, k_xy = kernel(x, y)
            total += u @ w * k - u @ k_y - w @ k_x + k_xy
    return np.sqrt(total / len(positions) ** 2)


def naive_fssd(positions, scores, locations):
    """Eq. (4) with g of Sect. 2.2.2 and grad U = -score, in float64 loops."""
    positions, grad_u = np.asarray(positions, np.float64), -np.asarray(scores, np.float64)
    locations = np.asarray(locations, np.float64)
    total = 0.0
    for v in locations:
        witness = np.zeros(positions.shape[1])
        for x, u in zip(positions, grad_u, strict=True):
            k, k_x, _, _ = kernel(x, v)
            witness += (-u * k + k_x) / len(positions)
        total += np.sum(witness**2)
    return np.sqrt(total / locations.size)


def some_draws(seed, n, dimension, *, offset=0.0, spread=1.0, size=1.0):
    rng = np.random.default_rng(seed)
    positions = offset + spread * rng.standard_normal((n, dimension))
    scores = size * rng.standard_normal((n, dimension))
    return positions.astype(np.float32), scores.astype(np.float32)


def a_factor(seed, dimension):
    """A random lower-triangular factor with a positive diagonal."""
    rng = np.random.default_rng(seed)
    return np.tril(rng.normal(0, 0.5, (dimension, dimension)), -1) + np.diag(rng.uniform(0.3, 3.0, dimension))


def gaussian(positions, sd=1.0):
    """Positions times sd, and the scores of N(0, sd^2 I) there, as float32."""
    return (sd * positions).astype(np.float32), (-positions / sd).astype(np.float32)


def test_the_naive_kernel_has_the_derivatives_of_k():
    """Autodiff in float32: 1e-5 of values of order one."""

    def k(x, y):
        return (1.0 + jnp.sum((x - y) ** 2)) ** -0.5

    for seed in range(3):
        x, y = np.random.default_rng(seed).standard_normal((2, 4))
        value, k_x, k_y, k_xy = kernel(x, y)
        assert value == pytest.approx(float(k(x, y)), abs=1e-5)
        np.testing.assert_allclose(jax.grad(k, 0)(x, y), k_x, atol=1e-5)
        np.testing.assert_allclose(jax.grad(k, 1)(x, y), k_y, atol=1e-5)
        assert k_xy == pytest.approx(float(jnp.trace(jax.jacfwd(jax.grad(k, 1), 0)(x, y))), abs=1e-5)


# --- KSD


@varied
@given(
    **sizes,
    offset=st.sampled_from([0.0, 5.0, -1e4]),
    spread=st.sampled_from([1e-2, 1.0, 1e2]),
    size=st.sampled_from([1e-2, 1.0, 1e3]),
)
def test_ksd_is_the_double_loop(n, dimension, seed, offset, spread, size):
    positions, scores = some_draws(seed, n, dimension, offset=offset, spread=spread, size=size)
    assert ksd(positions, scores) == pytest.approx(naive_ksd(positions, scores), rel=1e-5)


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e7])
def test_ksd_is_the_double_loop_on_a_narrow_posterior_far_from_zero(offset):
    positions, scores = some_draws(1, 60, 10, offset=offset, spread=1e-2, size=1e3)
    assert ksd(positions, scores) == pytest.approx(naive_ksd(positions, scores), rel=1e-5)
    # In float64, scaled to the spread, where an error of the squared distances would show.
    positions = offset + 1e-2 * np.random.default_rng(1).standard_normal((60, 10))
    scores, sds = -(positions - offset) * 1e5, np.full(10, 1e-2)
    assert ksd(positions, scores) == pytest.approx(naive_ksd(positions, scores), rel=1e-5)
    assert ksd(positions, scores, sds) == pytest.approx(naive_ksd(positions / sds, scores * sds), rel=1e-5)


@varied
@given(**sizes, rows=st.integers(1, 10), columns=st.integers(1, 7), scaled=st.booleans())
def test_tiles_do_not_change_ksd(n, dimension, seed, rows, columns, scaled):
    positions, scores = some_draws(seed, n, dimension, offset=3.0, size=10.0)
    scale = np.linspace(0.5, 2.0, dimension) if scaled else "identity"
    whole = ksd(positions, scores, scale)
    assert ksd(positions, scores, scale, block=(rows, columns)) == pytest.approx(whole, rel=1e-10)


@varied
@given(**sizes)
def test_discrepancies_do_not_depend_on_the_order_of_draws_or_coordinates(n, dimension, seed):
    positions, scores = some_draws(seed, n, dimension)
    locations = some_draws(seed + 1, 4, dimension)[0]
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n), rng.permutation(dimension)
    moved = positions[rows][:, columns], scores[rows][:, columns]
    assert ksd(*moved) == pytest.approx(ksd(positions, scores), rel=1e-10)
    assert fssd_at(*moved, locations[:, columns]) == pytest.approx(
        fssd_at(positions, scores, locations), rel=1e-10
    )


def test_ksd_of_one_draw():
    """k_pi(x, x) = |score|^2 + D."""
    assert ksd(np.array([[7.0, 8.0]]), np.array([[3.0, 4.0]])) == pytest.approx(np.sqrt(25 + 2))


def test_ksd_of_the_same_draw_repeated_is_that_of_one():
    positions, scores = some_draws(0, 1, 5, offset=100.0)
    assert ksd(positions.repeat(50, 0), scores.repeat(50, 0)) == pytest.approx(
        ksd(positions, scores), rel=1e-10
    )


@pytest.mark.parametrize("dimension", [1, 10])
def test_mean_squared_ksd_of_exact_draws_is_two_d_over_n(dimension):
    """Diagonal terms |s|^2 + D have mean 2 D, the others mean zero; 400 replicates, four standard errors."""
    rng, n = np.random.default_rng(2), 40
    squares = [ksd(x, -x) ** 2 for x in rng.standard_normal((400, n, dimension))]
    error = np.std(squares, ddof=1) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 2 * dimension / n) < 4 * error
    assert error < 0.1 * 2 * dimension / n


def test_ksd_holds_no_float64_copy_of_its_input():
    """Peak of what it allocates, against the 32 MB of X and S in float64; with a (D,) scale too."""
    positions, scores = some_draws(3, 100, 20_000)
    for scale in ("identity", np.full(20_000, 2.0)):
        tracemalloc.start()
        ksd(positions, scores, scale, block=(100, 500))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8e6


def test_memory_of_ksd_is_bounded_in_the_number_of_draws():
    """3,000 draws in blocks of 200: far below the 72 MB of one 3,000 x 3,000 matrix."""
    positions, scores = some_draws(4, 3000, 2)
    tracemalloc.start()
    ksd(positions, scores, block=(200, 500))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


# --- FSSD


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
    assert fssd_at(positions, scores, locations) == pytest.approx(expected, rel=1e-5)


def test_fssd_at_reads_many_columns_in_tiles():
    positions, scores = some_draws(5, 4, 5000)
    locations = some_draws(6, 3, 5000)[0]
    expected = naive_fssd(positions, scores, locations)
    assert fssd_at(positions, scores, locations) == pytest.approx(expected, rel=1e-9)


@varied
@given(**few_shapes | {"n": st.integers(1, 32)})
def test_padding_does_not_change_what_adam_climbs(n, dimension, seed):
    """Float32 against float64: 1e-4. Rows of weight zero count for nothing, whatever they hold."""
    positions, scores = some_draws(seed, 32, dimension)
    locations = some_draws(seed + 1, 3, dimension)[0]
    weights = np.zeros(32, np.float32)
    weights[:n] = 1 / n
    unit = np.float32(0.25)
    padded = jax.jit(_weighted_fssd)(positions, scores * unit, weights, unit, locations)
    expected = naive_fssd(positions[:n], scores[:n], locations)
    assert float(padded) / 0.25 == pytest.approx(expected, rel=1e-4, abs=1e-5)


@varied
@given(
    **few_shapes,
    spread=st.sampled_from([0.0, 1e-2, 1.0, 1e2, 1e8]),
    size=st.sampled_from([0.0, 1.0, 1e6]),
)
def test_fssd_of_any_finite_draws_is_finite_and_never_negative(n, dimension, seed, spread, size):
    value = fssd(*some_draws(seed, n, dimension, offset=1.0, spread=spread, size=size), seed, n_steps=2)
    assert 0 <= value < np.inf


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 30])
def test_fssd_chooses_locations_on_the_even_draws_and_scores_the_odd_ones(n):
    positions, scores = some_draws(7, n, 3)
    even, odd = (slice(0, None, 2), slice(1, None, 2)) if n >= 4 else (slice(None), slice(None))
    locations = optimise_locations(positions[even], scores[even], seed=3)
    assert locations.shape == (10, 3)
    assert fssd(positions, scores, seed=3) == fssd_at(positions[odd], scores[odd], locations)
    expected = naive_fssd(positions[odd], scores[odd], locations)
    assert fssd(positions, scores, seed=3) == pytest.approx(expected, rel=1e-9)


def test_locations_start_as_draws_of_the_fitted_gaussian():
    """Mean and covariance of 20,000 of them, each entry within five standard errors of the Gaussian fit's."""
    rng, count = np.random.default_rng(8), 20_000
    positions = 50 + rng.standard_normal((30, 3)) @ rng.normal(size=(3, 3)).T
    start = optimise_locations(positions, -positions, n_locations=count, n_steps=0)
    mean, covariance = positions.mean(0), np.cov(positions.T, bias=True)
    variances = np.diag(covariance)
    assert np.all(np.abs(start.mean(0) - mean) < 5 * np.sqrt(variances / count))
    error = np.sqrt((covariance**2 + np.outer(variances, variances)) / count)
    assert np.all(np.abs(np.cov(start.T) - covariance) < 5 * error)


def test_with_fewer_draws_than_dimensions_locations_lie_in_their_span():
    """But for the nudge, of 1e-4 in each coordinate."""
    positions, scores = some_draws(9, 5, 400, offset=2.0)
    start = optimise_locations(positions, scores, n_steps=0)
    centred = positions.astype(np.float64) - positions.mean(0, dtype=np.float64)
    basis = np.linalg.svd(centred, full_matrices=False)[2][:4]
    outside = (start - positions.mean(0)) - (start - positions.mean(0)) @ basis.T @ basis
    assert np.abs(outside).max() < 1e-3
    assert np.abs(start - positions.mean(0)).max() > 1.0


@pytest.mark.parametrize("sd", [1e-2, 1.0, 1e2])
def test_adam_raises_the_fssd_of_the_draws_it_sees(sd):
    """On draws shifted by one sd; climbed in float32 and measured in float64, hence 1e-4."""
    draws = gaussian(1 + np.random.default_rng(10).standard_normal((60, 5)), sd)
    values = [fssd_at(*draws, optimise_locations(*draws, n_steps=steps)) for steps in (0, 3, 50)]
    assert values[0] < values[1] * (1 + 1e-4)
    assert values[1] < values[2] * (1 + 1e-4)
    assert values[2] > values[0] * (1 + 1e-4)


def test_fssd_is_the_same_bit_for_bit_and_depends_on_its_seed():
    draws = some_draws(11, 50, 4)
    first = [fssd(*draws, seed, n_steps=2) for seed in range(4)]
    assert [fssd(*draws, seed, n_steps=2) for seed in reversed(range(4))] == first[::-1]
    assert len(set(first)) == 4


def test_fssd_compiles_once_for_all_draws_of_one_power_of_two():
    fssd(*some_draws(12, 20, 7))
    compiled = _climb._cache_size()
    for n in (1, 5, 33, 64):
        fssd(*some_draws(n, n, 7), seed=n)
    assert _climb._cache_size() == compiled
    fssd(*some_draws(12, 66, 7))
    assert _climb._cache_size() == compiled + 1


# --- Both, on draws known to be wrong


@pytest.mark.parametrize("dimension", [1, 2])
def test_both_grow_when_draws_are_shifted_or_scaled(dimension):
    """500 draws of N(0, I), the score's target; in every one of three data sets."""
    for seed in range(3):
        exact = np.random.default_rng(seed).standard_normal((500, dimension))
        wrongs = [
            [exact, exact + 0.5, exact + 1],
            [exact, 0.5 * exact, 0.3 * exact],
            [exact, 2 * exact, 3 * exact],
        ]
        for draws in wrongs:
            for discrepancy in (ksd, fssd):
                right, wrong, worse = (discrepancy(*gaussian(x)) for x in draws)
                assert right < wrong < worse


def wrong_draws(exact):
    return {
        "shrunk to 0.3 sd": 0.3 * exact,
        "stretched to 3 sd": 3 * exact,
        "shifted by 1 sd": exact + 1,
        "point mass at the MAP": 0 * exact,
    }


@pytest.mark.parametrize("sd", [1e-2, 1.0, 1e2])
def test_with_the_posterior_scale_exact_draws_score_lowest(sd):
    """Ten dimensions, 500 draws; FSSD sees all but the stretch, for which see the next test."""
    for seed in range(3):
        exact = np.random.default_rng(seed).standard_normal((500, 10))
        right, scale = gaussian(exact, sd), np.full(10, sd)
        for name, positions in wrong_draws(exact).items():
            wrong = gaussian(positions, sd)
            assert ksd(*right, scale) < 0.5 * ksd(*wrong, scale), name
            if name != "stretched to 3 sd":
                assert fssd(*right, scale=scale) < 0.6 * fssd(*wrong, scale=scale), name


def test_fssd_cannot_tell_stretched_draws_in_ten_dimensions():
    """Over 20 data sets of 500 draws the means differ by less than a quarter: what `fssd` warns of."""
    rng = np.random.default_rng(13)
    values = [[fssd(*gaussian(f * x)) for f in (1, 3)] for x in rng.standard_normal((20, 500, 10))]
    exact, stretched = np.mean(values, axis=0)
    assert 0.75 < stretched / exact < 1.25


def test_identity_on_a_narrow_posterior_gives_the_wrong_order():
    """At sd 1e-2 the chain that never moves scores best, then the too narrow one, then exact draws."""
    for seed in range(3):
        exact = np.random.default_rng(seed).standard_normal((500, 10))
        for discrepancy in (ksd, fssd):
            values = [discrepancy(*gaussian(factor * exact, 1e-2)) for factor in (0, 0.3, 1, 3)]
            assert values == sorted(values)
            assert values[0] < 0.25 * values[2]


def test_a_dead_chain_at_the_map_has_a_positive_fssd():
    """One location at distance r has |g|^2 = r^2 / (1 + r^2)^3, largest at r^2 = 1/2: Adam finds it."""
    positions = np.full((100, 10), 3.0, np.float32)
    expected = np.sqrt(0.5 / 1.5**3 / 10)
    assert fssd(positions, np.zeros_like(positions)) == pytest.approx(expected, rel=0.02)


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
    """Of N(0, L L'), whose score at x is -(L L')^-1 x, that of N(0, I) at L^-1 x."""
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
    for name, discrepancy in DISCREPANCIES.items():
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
        fssd(positions, scores, 0, scale)
    np.testing.assert_array_equal(positions, kept[0])
    np.testing.assert_array_equal(scores, kept[1])


def test_registry_has_one_calling_shape():
    draws, scale = some_draws(17, 30, 4), np.full(4, 2.0)
    assert set(DISCREPANCIES) == {"ksd", "fssd"}
    assert DISCREPANCIES["ksd"](*draws, scale, 5) == ksd(*draws, scale)
    assert DISCREPANCIES["fssd"](*draws, scale, 5) == fssd(*draws, 5, scale)
    for discrepancy in DISCREPANCIES.values():
        assert isinstance(discrepancy(*draws, "identity", 0), float)


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
    assert fssd_at(*draws, np.zeros((2, dimension)), scale) == np.inf
    assert fssd(*draws, 0, scale, n_steps=2) == np.inf


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
        (good, good[:4], r"scores: shape \(4, 3\) is not that of positions, \(5, 3\)"),
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
    calls = [*DISCREPANCIES.values(), optimise_locations, lambda *draws: fssd_at(*draws, good)]
    for call in calls:
        with pytest.raises(InputError, match=message) as error:
            call(positions, scores)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("laplace", r"pass an array, e.g. `sgtune.reference.curvature.laplace_scale\(model\)`"),
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
    for discrepancy in DISCREPANCIES.values():
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
