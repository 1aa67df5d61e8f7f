"""Total variation to the target against the number of steps, for MALA and AdamMCMC (Theorem 2 of the paper)."""

from collections.abc import Callable, Mapping

import numpy as np

from sgtune.errors import InputError
from sgtune.sampling.arm import Arm
from sgtune.study.adam_mcmc.gaussians import logistic_density_model
from sgtune.theory.geometric_rate import (
    distances_of_chains,
    distances_of_matrix,
    geometric_fit,
    mala_matrix,
    monte_carlo_floor,
)

__all__ = ["LINES", "measure_distances"]

START = 6.0
"""Where every chain starts: P(X > 6) = 0.0025."""

REACH, N_POINTS = 25.0, 2_001
"""Of the grid of MALA's transition matrix."""

LINES: dict[str, tuple[str, dict[str, float]]] = {
    "mala": ("mala", {"step_size": 0.5}),
    "adam-mcmc-exact": ("adam-mcmc-exact", {"step_size": 0.1, "noise_sd": 1.0, "directional_noise": 1.0}),
    "adam-mcmc": ("adam-mcmc", {"step_size": 0.1, "noise_sd": 1.0, "directional_noise": 1.0}),
    "adam-mcmc-large": ("adam-mcmc", {"step_size": 1.0, "noise_sd": 1.0, "directional_noise": 1.0}),
}
"""By name: the sampler and its hyperparameters. MALA's noise has the sd 1, too."""


def _probability(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def measure_distances(
    settings: Mapping, *, seed: int = 0, report: Callable[[str], None] = lambda line: None
) -> dict:
    """Distances after 0, 1, ... steps from one point, on the logistic density: MALA's on a grid, exactly, and all
    samplers' from histograms of many chains, with the line fitted to each (None: too few points above the floor).

    Args:
        settings: the configuration's section ``adam_mcmc.distances``.
    """
    model = logistic_density_model()
    n_steps, bins = settings["steps"], settings["bins"]
    # Bins of equal probability; the first and the last have no end.
    shares = np.arange(1, bins) / bins
    edges, target = np.log(shares / (1 - shares)), np.full(bins, 1 / bins)
    floor = monte_carlo_floor(target, settings["chains"])
    lines = []
    for name, (sampler, numbers) in LINES.items():
        distances = distances_of_chains(
            model,
            sampler,
            Arm(batch_size=1, **numbers),
            start=np.array([START]),
            edges=edges,
            target=target,
            n_chains=settings["chains"],
            n_steps=n_steps,
            seed=seed,
        )
        lines.append({"name": name, "distances": distances.tolist(), "fit": _fit(distances, floor)})
        report(f"{name}: {distances[-1]:.4f} after {n_steps} steps; the floor is {floor:.4f}")
    exact = _exact(n_steps)
    grid = {"name": "mala-grid", "distances": exact.tolist(), "fit": _fit(exact, 1e-8)}
    return {
        "chains": settings["chains"],
        "bins": bins,
        "floor": floor,
        "start": START,
        "lines": [grid, *lines],
    }


def _exact(n_steps: int) -> np.ndarray:
    grid = np.linspace(-REACH, REACH, N_POINTS)
    matrix = mala_matrix(
        grid,
        lambda x: -2 * np.logaddexp(x / 2, -x / 2),
        lambda x: 1 - 2 * _probability(x),
        LINES["mala"][1]["step_size"],
    )
    start = np.zeros(N_POINTS)
    start[np.argmin(np.abs(grid - START))] = 1.0
    target = np.exp(-2 * np.logaddexp(grid / 2, -grid / 2))
    return distances_of_matrix(matrix, start, target / target.sum(), n_steps)


def _fit(distances: np.ndarray, floor: float) -> dict | None:
    """The line from where the first tenth of the steps is over: the law is then near its slowest part."""
    try:
        return geometric_fit(distances, floor, first=max(1, len(distances) // 10))._asdict()
    except InputError:
        return None
