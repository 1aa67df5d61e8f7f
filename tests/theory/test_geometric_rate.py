"""Total variation to the target falls geometrically: on a grid for MALA, from histograms for AdamMCMC."""

import numpy as np
import pytest
from scipy.stats import norm
from small_models import gaussian_model

from sgtune.sampling.arm import Arm
from sgtune.support.errors import InputError
from sgtune.theory.geometric_rate import (
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

BINS = np.full(20, 0.05)
EDGES = norm.ppf(np.arange(1, 20) / 20)
N_CHAINS = 20_000
FLOOR = monte_carlo_floor(BINS, N_CHAINS)


def log_normal(x):
    return -(x**2) / 2


def from_start():
    start = np.zeros_like(GRID)
    start[np.argmin(np.abs(GRID - START))] = 1.0
    return start


@pytest.fixture(scope="module")
def model():
    return gaussian_model(np.eye(1), np.zeros(1))


@pytest.mark.parametrize("drift", [None, 0.05])
def test_the_matrix_of_mala_is_reversible_and_its_line_has_the_slope_of_its_second_eigenvalue(drift):
    matrix = mala_matrix(GRID, log_normal, lambda x: -x, STEP_SIZE, drift)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    flow = TARGET[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-16)
    distances = distances_of_matrix(matrix, from_start(), TARGET, 150)
    assert distances[0] == pytest.approx(1, abs=2e-3)
    assert (np.diff(distances) < 0).all()
    second = np.sort(np.abs(np.linalg.eigvals(matrix)))[-2]
    fit = geometric_fit(distances, first=60)
    assert fit.last == 150
    assert fit.rate == pytest.approx(second, abs=1e-5)
    assert fit.misfit < 1e-3
    # A single rate does not describe the first steps.
    assert geometric_fit(distances[:20], first=1).misfit > 0.05


def test_the_sampler_mala_converges_as_its_matrix_does(model):
    """The distance of a histogram of the sampler agrees with the kernel on the grid, down to the floor."""
    matrix = mala_matrix(GRID, log_normal, lambda x: -x, STEP_SIZE)
    # Edges are half way between grid points, since a point stands for a cell.
    edges = GRID[np.searchsorted(GRID, EDGES)] - (GRID[1] - GRID[0]) / 2
    law, place = from_start(), np.searchsorted(edges, GRID)
    exact = []
    for _ in range(41):
        exact.append(np.bincount(place, law, minlength=20))
        law = law @ matrix
    of_target = np.bincount(place, TARGET, minlength=20)
    exact = total_variation(np.array(exact), of_target)
    arm = Arm(STEP_SIZE, model.n_data)
    options = {"start": np.array([START]), "edges": edges, "n_chains": N_CHAINS, "n_steps": 40}
    found = distances_of_chains(model, "mala", arm, target=of_target, **options)
    assert found[0] == exact[0]
    # The error of a histogram is about the floor.
    assert np.abs(found - exact).max() < 2 * FLOOR
    assert exact[20] > 8 * FLOOR > exact[40]


def test_a_window_has_the_distance_of_its_mean_law(model):
    """Of 42 steps by 5: the start, and eight whole windows."""
    matrix = mala_matrix(GRID, log_normal, np.negative, STEP_SIZE)
    laws = [from_start()]
    for _ in range(40):
        laws.append(laws[-1] @ matrix)
    # Bins of whole cells of the grid.
    edges = GRID[20:220:20] + (GRID[1] - GRID[0]) / 2
    binned = np.array([np.add.reduceat(law, [0, *range(21, 221, 20)]) for law in [*laws, TARGET]])
    exact = total_variation(binned[1:-1].reshape(8, 5, -1).mean(axis=1), binned[-1])
    options = {"start": np.array([START]), "edges": edges, "n_chains": N_CHAINS, "n_steps": 42, "window": 5}
    found = distances_of_chains(model, "mala", Arm(STEP_SIZE, model.n_data), target=binned[-1], **options)
    assert len(found) == 9
    assert np.abs(found[1:] - exact).max() < 2 * monte_carlo_floor(binned[-1], N_CHAINS)


def test_a_line_may_have_its_own_steps():
    steps = np.array([0, 25.5, 75.5, 125.5])
    fit = geometric_fit(0.5 * 0.99**steps, steps=steps)
    assert (fit.rate, fit.constant) == (pytest.approx(0.99), pytest.approx(0.5))


def test_the_distance_of_theta_in_the_exact_adammcmc_falls_geometrically(model):
    """The chain has the state (theta, m, v). The straight line ends at three times the floor of the histograms."""
    arm = Arm(0.2, model.n_data, noise_sd=0.5, b1=0.5, b2=0.9, momentum_noise=2.0, second_moment_noise=4.0)
    options = {"start": np.array([START]), "edges": EDGES, "target": BINS}
    found = distances_of_chains(model, "adam-mcmc-exact", arm, n_chains=N_CHAINS, n_steps=150, **options)
    fit = geometric_fit(found, FLOOR, first=10)
    assert 0.8 < fit.rate < 0.98
    assert fit.last > fit.first + 20
    assert found[fit.first] > 10 * found[fit.last]
    # The error of a distance d is at most the floor, so the error of its log is floor / d: a third at the end.
    steps = np.arange(fit.first, fit.last + 1)
    line = np.log(fit.constant) + steps * np.log(fit.rate)
    off = np.abs(np.log(found[steps]) - line)
    assert (off < 0.1 + FLOOR / found[steps]).all()
    assert found[-20:].mean() < 1.5 * FLOOR


def test_the_papers_approximation_ends_at_its_bias(model):
    """The end is above the floor at gamma = 0.3; at gamma = 0.01 the bias is too small to see."""
    options = {"start": np.array([START]), "edges": EDGES, "target": BINS}
    ends = []
    for gamma in (0.3, 0.01):
        arm = Arm(gamma, model.n_data, noise_sd=0.7, directional_noise=2.0)
        found = distances_of_chains(model, "adam-mcmc", arm, n_chains=N_CHAINS, n_steps=150, **options)
        ends.append(found[-20:].mean())
    assert ends[0] > 3 * FLOOR
    assert ends[1] < 1.5 * FLOOR


def test_the_floor_is_the_mean_distance_of_exact_draws():
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    counts = np.random.default_rng(0).multinomial(5_000, probabilities, size=4_000)
    distances = total_variation(counts / 5_000, probabilities)
    error = distances.std() / np.sqrt(len(distances))
    assert distances.mean() == pytest.approx(monte_carlo_floor(probabilities, 5_000), abs=4.5 * error)


def test_a_fit_uses_the_points_above_the_floor():
    distances = np.maximum(0.9 * 0.8 ** np.arange(60), 0.01)
    fit = geometric_fit(distances, 0.01)
    assert (fit.rate, fit.constant) == (pytest.approx(0.8), pytest.approx(0.9))
    assert fit.last == np.flatnonzero(distances > 0.03)[-1]
    assert fit.misfit < 1e-12


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda: mala_matrix(GRID, log_normal, lambda x: -x, 1e-4),
            r"^grid: a spacing of 0\.05 is not allowed",
        ),
        (lambda: mala_matrix(GRID, log_normal, lambda x: -x, -1.0), r"^step_size: -1\.0"),
        (lambda: geometric_fit(np.array([1.0, 0.5, 0.01, 0.01]), 0.01), r"^distances: 1 from place 1 on"),
    ],
)
def test_bad_input_gets_one_line(call, line):
    with pytest.raises(InputError, match=line):
        call()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"arm": Arm(0.1, 4)}, r"^batch_size: 4 is not allowed; it must be 8, all data"),
        ({"target": BINS[1:]}, r"^target: 19 bins are not allowed; 19 edges have 20"),
        ({"n_chains": 0}, r"^n_chains: 0"),
        ({"n_steps": 0}, r"^n_steps: 0"),
    ],
)
def test_bad_ensembles_get_one_line(model, changes, line):
    options = {"start": np.zeros(1), "edges": EDGES, "target": BINS, "n_chains": 10, "n_steps": 3}
    options |= {"arm": Arm(0.1, 8), **changes}
    with pytest.raises(InputError, match=line):
        distances_of_chains(model, "sgld", options.pop("arm"), **options)
