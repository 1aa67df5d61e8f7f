"""Standard errors of a chain's means by its stretches."""

import numpy as np
import pytest
from stein_forms import autoregressive

from sgtune.stein.mean_errors import mean_error
from sgtune.stein.quadratic import N_STRETCHES, stretch_of


def of(draws, n_draws=None, **options):
    n = len(draws)
    return mean_error(draws, stretch_of(np.arange(1, n + 1), n), n_draws=n_draws, **options)


def near(values, truth):
    """Whether the mean of independent values is within four standard errors of the truth."""
    return abs(np.mean(values) - truth) < 4 * np.std(values, ddof=1) / np.sqrt(len(values))


def test_the_squared_error_is_one_over_the_effective_sample_size():
    rng, memory, n = np.random.default_rng(0), 0.8, 2000
    values = [of(autoregressive(rng, n, 50, memory)) for _ in range(20)]
    assert np.mean(values) == pytest.approx((1 + memory) / (1 - memory) / n, rel=0.05)


@pytest.mark.parametrize("n_draws", [None, 900])
def test_it_is_the_naive_formula_in_float64(n_draws):
    """Stretch by stretch and coordinate by coordinate; in float32 far from zero, where sums lose digits."""
    rng, n = np.random.default_rng(5), 400
    draws = (1e3 + autoregressive(rng, n, 3, 0.7)).astype(np.float32)
    stretch = stretch_of(np.arange(1, n + 1), n)
    ratios = []
    for column in draws.astype(np.float64).T:
        parts = [column[stretch == one] for one in range(1, N_STRETCHES)]
        between = np.var([part.mean() for part in parts], ddof=1)
        within = sum(((part - part.mean()) ** 2).sum() for part in parts) / sum(len(part) for part in parts)
        # Of draws that are a subset, the noise of drawing it is subtracted.
        noise = np.mean([1 / len(part) for part in parts]) - N_STRETCHES / (n_draws or n)
        ratios.append((between - max(noise, 0) * (within + between)) / N_STRETCHES / (within + between))
    found = mean_error(draws, stretch, n_draws=n_draws)
    assert found == pytest.approx(max(np.mean(ratios), 1 / (n_draws or n)), rel=1e-9)
    assert found > 1.5 / n


def test_a_random_subset_estimates_the_error_of_all_draws():
    rng, n, kept = np.random.default_rng(1), 2000, 300
    chain = autoregressive(rng, n, 200, 0.95)
    all_draws, parts = of(chain), []
    for _ in range(20):
        steps = np.sort(rng.permutation(n)[:kept])
        parts.append(mean_error(chain[steps], stretch_of(steps + 1, n), n_draws=n))
    assert near(parts, all_draws)
    # Without ``n_draws`` the subset's own noise would be included.
    assert mean_error(chain[steps], stretch_of(steps + 1, n)) > 1.1 * all_draws


def test_it_is_at_least_the_error_of_independent_draws():
    x = np.tile([[-1.0], [1.0]], (500, 1))
    assert of(x) == 1 / 1000


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
