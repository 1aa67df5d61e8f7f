"""The forecast of a discrepancy at the horizon, from its present bias and variance; errors of a chain's means."""

import numpy as np
import pytest
from stein_forms import autoregressive

from sgtune.stein import quadratic
from sgtune.stein.mean_errors import mean_error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # All variance, with a quarter of the time; half bias, with any standard error.
        ({"square": 4.0, "bias": 0.0, "error": 0.0, "share": 0.25}, 1.0),
        ({"square": 4.0, "bias": 2.0, "error": 0.0, "share": 0.25}, 2.5),
        ({"square": 4.0, "bias": 2.0, "error": 0.5, "share": 0.25}, 2.5),
        # A negative bias counts as 0, and the present variance is at least the variance of independent draws.
        ({"square": 4.0, "bias": -3.0, "error": 0.0, "share": 0.25}, 1.0),
        ({"square": 4.0, "bias": 5.0, "error": 0.0, "share": 0.5, "least": 0.2}, 5.1),
        # At most ten times as far, and also backwards from beyond the horizon.
        ({"square": 4.0, "bias": 0.0, "error": 0.0, "share": 1e-6}, 4.0 * quadratic.LEAST_SHARE),
        ({"square": 4.0, "bias": 1.0, "error": 0.0, "share": 2.0}, 7.0),
        # Where bias and variance cannot be separated, there is no forecast.
        ({"square": 4.0, "bias": 0.0, "error": np.inf, "share": 0.25}, 4.0),
        ({"square": np.inf, "bias": 0.0, "error": np.inf, "share": 0.25}, np.inf),
    ],
)
def test_bias_stays_and_variance_falls(arguments, expected):
    assert quadratic.square_at_horizon(**({"least": 0.0} | arguments)) == pytest.approx(expected)


def test_scores_of_kernels_add_the_standard_error_of_the_bias():
    """Uses sums that differ between stretches. For sums that give no bias, the score is V."""
    sums = np.random.default_rng(1).uniform(50, 150, (quadratic.N_STRETCHES, quadratic.N_STRETCHES))
    stretches = quadratic.Stretches(
        np.full(quadratic.N_STRETCHES, 10), sums + sums.T, np.full(quadratic.N_STRETCHES, 40.0)
    )
    square, (bias, error) = quadratic.mean_square(stretches, 50), quadratic.squared_bias(stretches)
    assert 0 < error < np.inf
    expected = quadratic.square_at_horizon(square, bias, error, least=4 / 50, share=0.3) + error
    assert quadratic.horizon_score(stretches, 50, 0.3) == pytest.approx(expected)
    single = stretches._replace(counts=np.array([50, 0, 0, 0, 0]))
    assert quadratic.horizon_score(single, 50, 0.3) == quadratic.mean_square(single, 50)


def test_the_bias_is_from_pairs_of_later_stretches_that_are_not_neighbours():
    """By hand: B^2 = (3 + 5 + 4) / (1 + 1 + 2) of the pairs (1, 3), (1, 4) and (2, 4).

    Without stretch 1, 2, 3 or 4 it is 4 / 2, 8 / 2, 9 / 3 or 3 / 1. The other sums are wrong by far, and not used.
    """
    sums = np.full((quadratic.N_STRETCHES, quadratic.N_STRETCHES), 1e6)
    for (a, b), value in {(1, 3): 3.0, (1, 4): 5.0, (2, 4): 4.0}.items():
        sums[a, b] = sums[b, a] = value
    stretches = quadratic.Stretches(np.array([2, 1, 2, 1, 1]), sums, np.full(quadratic.N_STRETCHES, 1e6))
    bias, error = quadratic.squared_bias(stretches)
    assert bias == pytest.approx(3.0)
    assert error == pytest.approx(np.sqrt(3 / 4 * 2))


def test_stretches_are_fifths_of_the_steps():
    stretches = quadratic.stretch_of(np.arange(1, 101), 100)
    assert np.bincount(stretches).tolist() == [20] * 5
    assert (np.diff(stretches) >= 0).all()
    # A random subset of a chain whose length is not a multiple of five.
    assert quadratic.stretch_of(np.array([1, 3, 5, 7, 12]), 12).tolist() == [0, 0, 1, 2, 4]


def of(draws, n_draws=None, **options):
    n = len(draws)
    return mean_error(draws, quadratic.stretch_of(np.arange(1, n + 1), n), n_draws=n_draws, **options)


def test_the_squared_error_is_one_over_the_effective_sample_size():
    rng, memory, n = np.random.default_rng(0), 0.8, 2000
    values = [of(autoregressive(rng, n, 50, memory)) for _ in range(20)]
    assert np.mean(values) == pytest.approx((1 + memory) / (1 - memory) / n, rel=0.05)
    # At least that of independent draws.
    assert of(np.tile([[-1.0], [1.0]], (500, 1))) == 1 / 1000


@pytest.mark.parametrize("n_draws", [None, 900])
def test_it_is_the_naive_formula_in_float64(n_draws):
    """Stretch by stretch and coordinate by coordinate; in float32 far from zero, where sums lose digits."""
    rng, n = np.random.default_rng(5), 400
    draws = (1e3 + autoregressive(rng, n, 3, 0.7)).astype(np.float32)
    stretch = quadratic.stretch_of(np.arange(1, n + 1), n)
    ratios = []
    for column in draws.astype(np.float64).T:
        parts = [column[stretch == one] for one in range(1, quadratic.N_STRETCHES)]
        between = np.var([part.mean() for part in parts], ddof=1)
        within = sum(((part - part.mean()) ** 2).sum() for part in parts) / sum(len(part) for part in parts)
        # Of draws that are a subset, the noise of drawing it is subtracted.
        noise = np.mean([1 / len(part) for part in parts]) - quadratic.N_STRETCHES / (n_draws or n)
        ratios.append(
            (between - max(noise, 0) * (within + between)) / quadratic.N_STRETCHES / (within + between)
        )
    found = mean_error(draws, stretch, n_draws=n_draws)
    assert found == pytest.approx(max(np.mean(ratios), 1 / (n_draws or n)), rel=1e-9)
    assert found > 1.5 / n


def test_a_factor_has_the_directions_in_which_a_slow_one_shows():
    rng = np.random.default_rng(3)
    z = np.column_stack([autoregressive(rng, 3000, 1, 0.0), autoregressive(rng, 3000, 1, 0.99)])
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    # The slow direction is narrow, so its error is invisible in the parameters.
    root = turn @ np.diag([1.0, 0.05])
    x, factor = z @ root.T, np.linalg.cholesky(root @ root.T)
    assert of(x, scale=factor) == pytest.approx(of(z), rel=1e-6)
    assert of(x, scale=factor, target="marginals") == pytest.approx(of(x))
    assert of(x, scale=factor) > 5 * of(x)
