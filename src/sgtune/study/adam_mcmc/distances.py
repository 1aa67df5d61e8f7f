"""Total variation to the target against the number of steps, for MALA and AdamMCMC (Theorem 2 of the paper)."""

from collections.abc import Callable, Mapping

import numpy as np

from sgtune.sampling.arm import Arm
from sgtune.study.adam_mcmc.gaussians import logistic_density_model
from sgtune.study.adam_mcmc.names import SLOW_CURVE
from sgtune.support.errors import InputError
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

MARGIN = 3.0
"""A line is fitted to distances of at least this many times the floor, or the plateau."""

REACH, N_POINTS = 25.0, 2_001
"""Of the grid of MALA's transition matrix."""

QUICK = {"b1": 0.5, "b2": 0.9}
"""Decay rates of the moments with a memory of 2 and 10 steps. With Adam's own, 0.9 and 0.999, the law of v takes
thousands of steps to settle, and the distance falls as slowly: one line, with steps and chains of its own, shows it."""

SLOW_FROM = 100
"""The step from which `SLOW_CURVE` falls as slowly as its second moment forgets; before it falls as the others do."""
SLOW_WINDOW = 50
"""Steps of `SLOW_CURVE` behind a distance. Its law hardly changes in them, and so many histograms have less noise."""

LINES: dict[str, tuple[str, dict[str, float]]] = {
    "mala": ("mala", {"step_size": 0.5}),
    "adam-mcmc-exact": (
        "adam-mcmc-exact",
        {"step_size": 0.1, "noise_sd": 1.0, "directional_noise": 1.0, **QUICK},
    ),
    SLOW_CURVE: (
        "adam-mcmc-exact",
        {"step_size": 0.1, "noise_sd": 1.0, "directional_noise": 1.0},
    ),
    "adam-mcmc": ("adam-mcmc", {"step_size": 0.1, "noise_sd": 1.0, "directional_noise": 1.0, **QUICK}),
    "adam-mcmc-large": (
        "adam-mcmc",
        {"step_size": 1.0, "noise_sd": 1.0, "directional_noise": 1.0, **QUICK},
    ),
}
"""By name: the sampler and its hyperparameters. MALA's noise has the sd 1, too."""

SHORTEST = 3.0
"""No line is fitted if the distance falls by less than this factor between the start of the fit and its end."""


def _probability(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def measure_distances(
    settings: Mapping, *, seed: int = 0, report: Callable[[str], None] = lambda line: None
) -> dict:
    """Distances after 0, 1, ... steps from one point, on the logistic density: MALA's on a grid, exactly, and all
    samplers' from histograms of many chains. Of each curve ``plateau``, the distance where it ends, and ``fit``, the
    line (None: the curve falls too little above its floor and its end).

    Args:
        settings: the configuration's section ``adam_mcmc.distances``.
    """
    model = logistic_density_model()
    n_steps, bins = settings["steps"], settings["bins"]
    # Bins of equal probability; the first and the last have no end.
    shares = np.arange(1, bins) / bins
    edges, target = np.log(shares / (1 - shares)), np.full(bins, 1 / bins)
    lines = []
    for name, (sampler, numbers) in LINES.items():
        n_chains, n_own, window = settings["chains"], n_steps, 1
        if name == SLOW_CURVE:
            n_chains, n_own = settings["slow_chains"], settings["slow_steps"]
            window = min(SLOW_WINDOW, n_own // 10)
        distances = distances_of_chains(
            model,
            sampler,
            Arm(batch_size=1, **numbers),
            start=np.array([START]),
            edges=edges,
            target=target,
            n_chains=n_chains,
            n_steps=n_own,
            window=window,
            seed=seed,
        )
        floor = monte_carlo_floor(target, n_chains)
        lines.append({"chains": n_chains, **_line(name, distances, floor, window)})
        report(f"{name}: {distances[-1]:.4f} after {n_own} steps; the floor is {floor:.4f}")
    grid = _line("mala-grid", _exact(n_steps), 1e-8)
    return {
        "chains": settings["chains"],
        "bins": bins,
        "floor": monte_carlo_floor(target, settings["chains"]),
        "start": START,
        "lines": [grid, *lines],
    }


def _line(name: str, distances: np.ndarray, floor: float, window: int = 1) -> dict:
    """A curve: ``distances`` after so many ``steps``, the middle of each window."""
    steps = np.arange(len(distances)) * window - (window - 1) / 2
    steps[0] = 0
    return {
        "name": name,
        "steps": steps.tolist(),
        "distances": distances.tolist(),
        "floor": floor,
        "plateau": _plateau(distances),
        "fit": _fit(name, steps, distances, floor),
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


def _plateau(distances: np.ndarray) -> float:
    """Where the curve ends: the median of its last fifth."""
    return float(np.median(distances[-max(1, len(distances) // 5) :]))


def _fit(name: str, steps: np.ndarray, distances: np.ndarray, floor: float) -> dict | None:
    """The line from where half of the first distance is left (`SLOW_CURVE`: from `SLOW_FROM`), down to three times the
    floor or the curve's own end; its ``first`` and ``last`` are numbers of steps.

    Above three times the end the constant distance that is left there bends the line by at most log 1.5. None if the
    distance falls by less than a factor of `SHORTEST` in between: such a slope follows from the window.
    """
    lowest = max(floor, _plateau(distances))
    starts = np.flatnonzero(steps >= SLOW_FROM if name == SLOW_CURVE else distances <= distances[0] / 2)
    if not len(starts) or distances[starts[0]] < SHORTEST * MARGIN * lowest:
        return None
    try:
        fit = geometric_fit(distances, lowest, first=int(starts[0]), margin=MARGIN, steps=steps)
    except InputError:
        return None
    return {**fit._asdict(), "first": round(steps[fit.first]), "last": round(steps[fit.last])}
