"""Total variation to the target falls geometrically: of MALA on a grid, and of chains by their histograms."""

import numpy as np
import pytest
from small_models import gaussian_model

from sgtune.sampling.arm import Arm
from sgtune.study.adam_mcmc.distances import (
    distances_of_chains,
    distances_of_matrix,
    geometric_fit,
    mala_matrix,
    monte_carlo_floor,
    total_variation,
)

pytestmark = pytest.mark.optimised

GRID = np.linspace(-6, 6, 241)
TARGET = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()
STEP_SIZE, START = 0.1, 3.0

N_CHAINS = 20_000


def matrix_of_normal():
    return mala_matrix(GRID, -(GRID**2) / 2, -GRID, STEP_SIZE)


def from_start():
    start = np.zeros_like(GRID)
    start[np.argmin(np.abs(GRID - START))] = 1.0
    return start


def test_the_matrix_of_mala_is_reversible_and_its_line_has_the_slope_of_its_second_eigenvalue():
    matrix = matrix_of_normal()
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    flow = TARGET[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-16)
    distances = distances_of_matrix(matrix, from_start(), TARGET, 150)
    assert distances[0] == pytest.approx(1, abs=2e-3)
    assert (np.diff(distances) < 0).all()
    second = np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]
    fit = geometric_fit(np.arange(151.0), distances, 0.0, 60)
    assert fit["last"] == 150
    assert fit["rate"] == pytest.approx(second, abs=1e-5)
    assert fit["misfit"] < 1e-3
    # A single rate does not describe the first steps.
    assert geometric_fit(np.arange(20.0), distances[:20], 0.0, 1)["misfit"] > 0.05


@pytest.mark.parametrize("window", [1, 5])
def test_the_sampler_mala_converges_as_its_matrix_does(window):
    """Down to the floor: each step's law, and, of 42 steps by 5, the start and the mean laws of eight windows."""
    matrix, laws = matrix_of_normal(), [from_start()]
    for _ in range(40):
        laws.append(laws[-1] @ matrix)
    # Bins of whole cells of the grid: a point stands for a cell.
    edges = GRID[20:220:20] + (GRID[1] - GRID[0]) / 2
    *binned, target = (np.add.reduceat(law, [0, *range(21, 221, 20)]) for law in [*laws, TARGET])
    exact = total_variation(np.array(binned[1:]).reshape(40 // window, window, -1).mean(axis=1), target)
    options = {"start": START, "edges": edges, "n_chains": N_CHAINS, "n_steps": 40 + (window > 1) * 2}
    model = gaussian_model(np.eye(1), np.zeros(1))
    arm = Arm(STEP_SIZE, model.n_data)
    found = distances_of_chains(model, "mala", arm, target=target, window=window, **options)
    assert found[0] == pytest.approx(total_variation(np.array(binned[:1]), target)[0])
    # The error of a histogram is about the floor.
    floor = monte_carlo_floor(target, N_CHAINS)
    assert len(found) == len(exact) + 1
    assert np.abs(found[1:] - exact).max() < 2 * floor
    assert exact[20 // window] > 8 * floor > exact[-1]


def test_a_fit_uses_the_points_above_the_floor():
    distances = np.maximum(0.9 * 0.8 ** np.arange(60), 0.01)
    fit = geometric_fit(np.arange(60.0), distances, 0.01, 1)
    assert (fit["rate"], fit["constant"]) == (pytest.approx(0.8), pytest.approx(0.9))
    assert fit["last"] == np.flatnonzero(distances > 0.03)[-1]
    assert fit["misfit"] < 1e-12
    steps = np.array([0, 25.5, 75.5, 125.5])
    assert geometric_fit(steps, 0.5 * 0.99**steps, 0.0, 1)["rate"] == pytest.approx(0.99)
    assert geometric_fit(np.arange(4.0), np.array([1.0, 0.5, 0.01, 0.01]), 0.01, 1) is None
