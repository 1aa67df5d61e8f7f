"""The polynomial Stein discrepancy: its naive form, its value for wrong draws, memory, bad input."""

from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stein_forms import a_factor, check_stretches, mean_of_pairs, sizes, some_draws, varied

from sgtune.stein import psd, psd_stretches
from sgtune.stein.quadratic import N_STRETCHES
from sgtune.support.errors import InputError

# In the package the function hides the module of the same name.
MODULE = import_module("sgtune.stein.psd")


def naive_moments(x, s, scale, centre, target="all directions", blocks=(), has_pairs=True):
    """The moments of one draw, multiplied by the roots of their weights."""
    dimension = len(x)
    factor = np.diag(scale) if np.ndim(scale) == 1 else scale
    if target == "marginals":
        covariance = factor @ factor.T
        variances, steered = np.diag(covariance), covariance @ s
        of_second = steered * (x - centre) / variances + 1
        return np.concatenate([steered / np.sqrt(variances), of_second]) / np.sqrt(dimension)
    z, s = np.linalg.solve(factor, x - centre), factor.T @ s
    products = np.outer(s, z) + np.eye(dimension)
    moments = [s, products.ravel() if has_pairs else np.diag(products)]
    moments = list(np.concatenate(moments) / np.sqrt(dimension))
    ends, n_modes = np.cumsum(blocks), sum(size > 1 for size in blocks)
    for end, size in [] if has_pairs else zip(ends, blocks, strict=True):
        block = slice(end - size, end)
        if size > 1:
            moments.append(s[block].sum() / np.sqrt(size * n_modes))
            crossed = s[block].sum() * z[block].sum() - s[block] @ z[block]
            moments.append(crossed / size / np.sqrt(n_modes))
    return np.array(moments)


def naive_kernel(positions, scores, *options, **more):
    rows = zip(np.float64(positions), np.float64(scores), strict=True)
    moments = np.array([naive_moments(x, s, *options, **more) for x, s in rows])
    return moments @ moments.T


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
        check_stretches(psd_stretches(*draws, stretch, scale, **arguments), kernel, stretch, 1e-9)
        for n_draws in (n, 2 * n):
            found = psd(*draws, scale, n_draws=n_draws, **arguments)
            assert found == pytest.approx(np.sqrt(mean_of_pairs(kernel, n_draws)), rel=1e-6)


@pytest.mark.parametrize("dimension", [200, 201])
def test_all_pairs_end_at_two_hundred_dimensions(dimension):
    draws, centre = some_draws(1, 7, dimension), np.linspace(-1, 1, dimension)
    blocks, has_pairs = [1, 150, dimension - 151], dimension == 200
    kernel = naive_kernel(*draws, np.ones(dimension), centre, blocks=blocks, has_pairs=has_pairs)
    assert psd(*draws, centre=centre, blocks=blocks) == pytest.approx(np.sqrt(kernel.mean()), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"n_draws": 4}, r"^n_draws: 4 is not allowed; it must be an integer >= 5$"),
        ({"target": "marginal"}, r"^target: 'marginal' is not known \(did you mean 'marginals'\?\)"),
        ({"centre": np.ones(2)}, r"^centre: leaves of shapes \(2,\) are not allowed; .* D = 3 finite"),
        ({"centre": [0, np.nan, 0]}, r"^centre: nan is not allowed; entries must be finite$"),
        ({"blocks": [1, 1]}, r"^blocks: sum 2 is not allowed; the sizes must add up to D = 3$"),
        ({"blocks": [4, -1]}, r"^blocks: -1 is not allowed; it must be an integer >= 0$"),
    ],
)
def test_bad_arguments_get_one_line(options, line):
    with pytest.raises(InputError, match=line):
        psd(*some_draws(0, 5, 3), **options)
