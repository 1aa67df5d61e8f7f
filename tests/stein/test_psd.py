"""The polynomial Stein discrepancy: its naive form, its value for wrong draws, memory, bad input."""

import tracemalloc
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard
from stein_forms import a_factor, sizes, some_draws, varied

from sgtune.stein import psd, psd_stretches
from sgtune.stein.quadratic import N_STRETCHES, TARGETS, mean_square, squared_bias
from sgtune.support.errors import InputError

# In the package the function hides the module of the same name.
MODULE = import_module("sgtune.stein.psd")


def naive_moments(x, s, scale, centre, target, blocks, has_pairs):
    """The moments of one draw, multiplied by the roots of their weights, by loops over coordinates."""
    dimension = len(x)
    factor = np.diag(scale) if np.ndim(scale) == 1 else scale
    covariance = factor @ factor.T
    moments = []
    if target == "marginals":
        for i in range(dimension):
            steered = sum(covariance[i, j] * s[j] for j in range(dimension))
            moments.append(steered / np.sqrt(covariance[i, i]))
            moments.append(steered * (x[i] - centre[i]) / covariance[i, i] + 1)
        return np.array(moments) / np.sqrt(dimension)
    z, s = np.linalg.solve(factor, x - centre), factor.T @ s
    for i in range(dimension):
        moments.append(s[i])
        for j in range(dimension) if has_pairs else [i]:
            moments.append(s[i] * z[j] + (i == j))
    moments = list(np.array(moments) / np.sqrt(dimension))
    start, n_modes = 0, sum(size > 1 for size in blocks)
    for size in [] if has_pairs else blocks:
        block = range(start, start + size)
        start += size
        if size > 1:
            moments.append(sum(s[i] for i in block) / np.sqrt(size * n_modes))
            crossed = sum(s[i] * z[j] for i in block for j in block if i != j)
            moments.append(crossed / size / np.sqrt(n_modes))
    return np.array(moments)


def naive_kernel(positions, scores, scale, centre, target="all directions", blocks=(), has_pairs=True):
    rows = [
        naive_moments(np.float64(x), np.float64(s), scale, centre, target, blocks, has_pairs)
        for x, s in zip(positions, scores, strict=True)
    ]
    return np.array(rows) @ np.array(rows).T


def check_sums(found, kernel, stretch):
    """Compare sums with tolerances relative to the largest one, since sums may cancel."""
    expected = np.zeros((N_STRETCHES, N_STRETCHES))
    own = np.zeros(N_STRETCHES)
    for i, a in enumerate(stretch):
        own[a] += kernel[i, i]
        for j, b in enumerate(stretch):
            expected[a, b] += kernel[i, j] * (i != j)
    np.testing.assert_array_equal(found.counts, np.bincount(stretch, minlength=N_STRETCHES))
    np.testing.assert_allclose(found.own, own, rtol=1e-9)
    np.testing.assert_allclose(found.sums, expected, rtol=1e-9, atol=1e-9 * own.sum())


@pytest.mark.parametrize("form", ["pairs", "diagonal", "marginals"])
@varied
@given(
    **sizes,
    kind=st.sampled_from(["sds", "factor"]),
    rows=st.integers(1, 10),
    columns=st.integers(1, 7),
)
def test_it_is_the_sum_over_moments_in_naive_loops(form, n, dimension, seed, kind, rows, columns):
    draws, rng = some_draws(seed, n, dimension, offset=3.0, size=2.0), np.random.default_rng(seed)
    scale = a_factor(seed, dimension) if kind == "factor" else rng.uniform(0.5, 2.0, dimension)
    centre, stretch = rng.normal(3, 1, dimension), rng.integers(0, N_STRETCHES, n)
    first = int(rng.integers(0, dimension + 1))
    blocks = [first, dimension - first]
    target = "marginals" if form == "marginals" else "all directions"
    kernel = naive_kernel(*draws, scale, centre, target, blocks, form == "pairs")
    arguments = {"centre": centre, "target": target, "blocks": blocks}
    with (
        patch.object(MODULE, "PAIRS_UP_TO", 200 if form == "pairs" else 0),
        patch.multiple(MODULE, ROWS=rows, COLUMNS=columns),
    ):
        check_sums(psd_stretches(*draws, stretch, scale, **arguments), kernel, stretch)
        every = psd(*draws, scale, **arguments)
        part = psd(*draws, scale, n_draws=2 * n, **arguments)
    # With all draws it is the mean over all pairs, which may be less than for independent draws.
    assert every == pytest.approx(np.sqrt(kernel.mean()), rel=1e-6)
    own = np.trace(kernel) / n
    others = (kernel.sum() / n - own) / (n - 1) if n > 1 else own
    assert part == pytest.approx(np.sqrt(max(others, 0) + (own - max(others, 0)) / (2 * n)), rel=1e-6)


@pytest.mark.parametrize("dimension", [200, 201])
def test_all_pairs_end_at_two_hundred_dimensions(dimension):
    draws, centre = some_draws(1, 7, dimension), np.linspace(-1, 1, dimension)
    blocks = [1, 150, dimension - 151]
    kernel = naive_kernel(
        *draws, np.ones(dimension), centre, blocks=blocks, has_pairs=dimension == 200
    ).mean()
    assert psd(*draws, centre=centre, blocks=blocks) == pytest.approx(np.sqrt(kernel), rel=1e-9)


def test_blocks_are_the_leaves_of_the_position_unless_given():
    positions, scores = some_draws(2, 9, 205)

    def as_tree(matrix):
        return {"a": matrix[:, :5], "b": matrix[:, 5:].reshape(-1, 10, 20), "c": matrix[:, :0]}

    centre = np.linspace(-1, 1, 205, dtype=np.float32)
    found = psd(
        as_tree(positions), as_tree(scores), centre={"a": centre[:5], "b": centre[5:].reshape(10, 20)}
    )
    assert found == psd(positions, scores, centre=centre, blocks=[5, 200])
    assert psd(positions, scores) == psd(positions, scores, centre=np.zeros(205), blocks=[205]) != found


# --- wrong draws


def design(dimension):
    """Draws whose mean is 0 and whose covariance is the identity, exactly; all of their entries are 1 or -1."""
    n = 1 << dimension.bit_length()
    return hadamard(n)[:, 1 : dimension + 1].astype(np.float64)


FORMS = [(20, "all directions"), (250, "all directions"), (20, "marginals"), (250, "marginals")]


@pytest.mark.parametrize(("dimension", "target"), FORMS)
def test_the_value_for_wrong_coordinates(dimension, target):
    z, sds = design(dimension), np.linspace(1e-3, 5, dimension)
    mean = np.linspace(-9, 9, dimension)

    def square(factors):
        x = z * factors
        return psd(mean + sds * x, -x / sds, sds, centre=mean, target=target) ** 2

    factors = np.ones(dimension)
    assert square(factors) == pytest.approx(0, abs=1e-20)
    factors[:3] = 0
    assert square(factors) == pytest.approx(3 / dimension)
    factors[:3], factors[5] = 1, np.sqrt(7)
    assert square(factors) == pytest.approx(6**2 / dimension)
    assert square(0 * factors) == pytest.approx(1)
    # Moments of second order do not depend on sds.
    x = z * factors
    assert psd(x, -x, sds, centre=0 * mean, target=target) ** 2 == pytest.approx(36 / dimension, rel=1e-9)


def test_a_frozen_common_mode_is_seen_in_many_dimensions():
    """D = 300, correlation 0.9, scaled by conditional sds, as in the Laplace scale of large D."""
    dimension = 300
    z, common = design(dimension), np.full(dimension, dimension**-0.5)
    values = np.array([np.sqrt(0.1), np.sqrt(0.1 + 0.9 * dimension)])
    precision = np.eye(dimension) / 0.1 + (values[1] ** -2 - 10) * np.outer(common, common)
    sds = 1 / np.sqrt(np.diag(precision))

    def square(frozen, **arguments):
        along = np.outer(z @ common, common)
        x = values[0] * (z - along) + (not frozen) * values[1] * along
        return psd(x, -x @ precision, sds, centre=np.zeros(dimension), **arguments) ** 2

    assert square(False) == pytest.approx(0, abs=1e-18)
    # The mean of the diagonal has 1 / D of it.
    assert square(True) == pytest.approx((1 - 1 / dimension) ** 2 + 1 / dimension**2, rel=1e-6)
    assert square(True, blocks=[1] * dimension) == pytest.approx(1 / dimension**2, rel=1e-6)
    # Each of two blocks has half of the mode.
    assert square(True, blocks=[150, 150]) == pytest.approx((0.5 - 1 / dimension) ** 2 + 1 / dimension**2)


def test_a_frozen_mode_of_one_of_four_blocks_costs_a_quarter():
    z = design(240)
    x = z.copy()
    x[:, 60:120] -= x[:, 60:120].mean(axis=1, keepdims=True)
    square = psd(x, -x, blocks=[60] * 4) ** 2
    assert square == pytest.approx((1 - 1 / 60) ** 2 / 4 + 60 / 60**2 / 240, rel=1e-9)


def test_a_frozen_direction_costs_the_same_whichever_it_is_with_all_pairs():
    z, rng = design(30), np.random.default_rng(3)
    for direction in (np.eye(30)[0], np.ones(30), rng.standard_normal(30)):
        direction = direction / np.linalg.norm(direction)
        x = z - np.outer(z @ direction, direction)
        assert psd(x, -x) ** 2 == pytest.approx(1 / 30)


@varied
@given(**sizes)
def test_a_factor_makes_it_affine_invariant(n, dimension, seed):
    """x -> A x + b takes the score to A^-T score, the centre to A c + b, the covariance to A L L' A'."""
    positions, scores = (array.astype(np.float64) for array in some_draws(seed, n, dimension))
    factor, rng = a_factor(seed, dimension), np.random.default_rng(seed)
    orthogonal = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    linear, offset = orthogonal @ a_factor(seed + 1, dimension), rng.normal(0, 10, dimension)
    centre = rng.normal(0, 1, dimension)
    moved = positions @ linear.T + offset, scores @ np.linalg.inv(linear)
    moved_factor = np.linalg.cholesky(linear @ factor @ factor.T @ linear.T)
    value = psd(positions, scores, factor, centre=centre)
    assert psd(*moved, moved_factor, centre=linear @ centre + offset) == pytest.approx(value, rel=1e-6)


def test_marginals_see_marginal_sds_and_no_correlations():
    """Posterior of correlation 0.8. Draws of correlation -0.8 have its marginals; others have one variance of 4."""
    z, factor = design(2), np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]])

    def squares(covariance):
        x = z @ np.linalg.cholesky(covariance).T
        scores = -np.linalg.solve(factor @ factor.T, x.T).T
        return [psd(x, scores, factor, target=target) ** 2 for target in TARGETS]

    np.testing.assert_allclose(squares(factor @ factor.T), 0, atol=1e-20)
    mirrored = np.array([[1.0, -0.8], [-0.8, 1.0]])
    short = np.eye(2) - np.linalg.solve(factor @ factor.T, mirrored)
    # Of the whitened matrix: short is L^-T M L'.
    whitened = factor.T @ short @ np.linalg.inv(factor.T)
    assert squares(mirrored) == pytest.approx([np.sum(whitened**2) / 2, 0], abs=1e-12)
    assert squares(mirrored)[0] > 10
    wide = np.array([[4.0, 1.6], [1.6, 1.0]])
    assert squares(wide)[1] == pytest.approx((4 - 1) ** 2 / 2)


@pytest.mark.parametrize("blocks", [[500], [1] * 500])
def test_memory_does_not_grow_with_pairs_of_draws_or_copies_of_them(blocks):
    """4,000 draws of 500 float32 coordinates: float64 copies of both would be 32 MB, all pairs of draws 128 MB."""
    positions, scores = some_draws(3, 4_000, 500)
    with patch.multiple(MODULE, ROWS=200, COLUMNS=100):
        tracemalloc.start()
        psd(positions, scores, np.full(500, 2.0), blocks=blocks)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 6e6


# --- bad input


def test_draws_that_are_not_finite_are_infinitely_far():
    positions, scores = some_draws(0, 10, 2)
    stretch = np.arange(10) // 2
    positions[3, 1] = np.nan
    for lost in ((positions, scores), (np.full((10, 2), 1e200), np.full((10, 2), 1e200))):
        sums = psd_stretches(*lost, stretch, centre=None)
        assert mean_square(sums, 30) == psd(*lost) == psd(*lost, target="marginals") == np.inf
        assert squared_bias(sums) == (0, np.inf)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"n_draws": 4}, r"^n_draws: 4 is not allowed; it must be an integer >= 5$"),
        ({"scale": np.ones(2)}, r"^scale: "),
        ({"target": "marginal"}, r"^target: 'marginal' is not known \(did you mean 'marginals'\?\)"),
        ({"centre": np.ones(2)}, r"^centre: leaves of shapes \(2,\) are not allowed; .* D = 3 finite"),
        ({"centre": {}}, r"^centre: leaves of shapes none "),
        ({"centre": [0, np.nan, 0]}, r"^centre: nan is not allowed; entries must be finite$"),
        ({"blocks": [1, 1]}, r"^blocks: sum 2 is not allowed; the sizes must add up to D = 3$"),
        ({"blocks": [4, -1]}, r"^blocks: -1 is not allowed; it must be an integer >= 0$"),
    ],
)
def test_bad_arguments_get_one_line(options, line):
    with pytest.raises(InputError, match=line):
        psd(*some_draws(0, 5, 3), **options)


@pytest.mark.parametrize(
    ("stretch", "line"),
    [
        (np.zeros(4, int), r"shape \(4,\) is not allowed; it must be \(5,\)"),
        (np.full(5, 5), "5 is not allowed; all values must be integers from 0 to 4"),
        (np.full(5, -1), "-1 is not allowed; all values must be integers from 0 to 4"),
    ],
)
def test_stretches_that_are_none_are_refused(stretch, line):
    with pytest.raises(InputError, match=rf"^stretch: {line}$"):
        psd_stretches(*some_draws(0, 5, 3), stretch, centre=None)
