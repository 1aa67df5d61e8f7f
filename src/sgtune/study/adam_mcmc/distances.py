"""Total variation to the target against the number of steps, for MALA and AdamMCMC.

Theorem 2 of Bieringer et al. (2023): where gradients are bounded, the law of a chain with a Metropolis test converges
to its target in total variation as (1 - eps)^k after k steps, a straight line in log scale. The distance is computed

* of MALA, from its transition matrix on a grid (`mala_matrix`, `distances_of_matrix`): no draws;
* of any sampler, from histograms of many chains (`distances_of_chains`); for AdamMCMC, whose state is (theta, m, v), it
  is the distance of theta's law from the posterior. It cannot fall below `monte_carlo_floor`.

The total variation of laws p and q on bins is (1/2) sum |p - q|. float64.
"""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import logistic

from sgtune.model import Model, define_model
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import independent_chains
from sgtune.study.adam_mcmc.known_targets import flat
from sgtune.study.experiments.ladder import with_mode_at_zero

START = 6.0
"""Where every chain starts: P(X > 6) = 0.0025."""

REACH, N_POINTS = 25.0, 2_001
"""Of the grid of MALA's transition matrix."""

QUICK = {"b1": 0.5, "b2": 0.9}
"""Decay rates of the moments with a memory of 2 and 10 steps. With Adam's own, 0.9 and 0.999, the law of v takes
thousands of steps to settle, and the distance falls as slowly: one line, with steps and chains of its own, shows it."""

SLOW_CURVE = "adam-mcmc-exact-slow"
"""The line with Adam's own decay rates."""
SLOW_FROM = 100
"""The step from which `SLOW_CURVE` falls as slowly as its second moment forgets; before it falls as the others do."""
SLOW_WINDOW = 50
"""Steps of `SLOW_CURVE` behind a distance. Its law hardly changes in them, and so many histograms have less noise."""

NOISE = {"noise_sd": 1.0, "directional_noise": 1.0}
LINES: dict[str, tuple[str, dict[str, float]]] = {
    "mala": ("mala", {"step_size": 0.5}),
    "adam-mcmc-exact": ("adam-mcmc-exact", {"step_size": 0.1, **NOISE, **QUICK}),
    SLOW_CURVE: ("adam-mcmc-exact", {"step_size": 0.1, **NOISE}),
    "adam-mcmc": ("adam-mcmc", {"step_size": 0.1, **NOISE, **QUICK}),
    "adam-mcmc-large": ("adam-mcmc", {"step_size": 1.0, **NOISE, **QUICK}),
}
"""By name: the sampler and its hyperparameters. MALA's noise has the sd 1, too."""

MARGIN = 3.0
"""A line is fitted to distances of at least this many times the floor, or the plateau."""

SHORTEST = 3.0
"""No line is fitted if the distance falls by less than this factor between the start of the fit and its end."""


def logistic_density_model() -> Model:
    """pi(x) = exp(-x) / (1 + exp(-x))^2 on the line: |grad log pi| < 1, as Theorem 2 asks, and P(X <= x) is known."""
    model = define_model(
        "logistic-density",
        log_prior=flat,
        log_likelihood=lambda position, batch: batch - 2 * jnp.logaddexp(position[0] / 2, -position[0] / 2),
        data=np.zeros(1, np.float32),
        init=lambda key: jax.random.normal(key, (1,)),
        shuffle_seed=None,
    )
    return with_mode_at_zero(model)


def total_variation(p: Float[np.ndarray, "k n"], q: Float[np.ndarray, " n"]) -> Float[np.ndarray, " k"]:
    """(1/2) sum |p - q|, in [0, 1], of k laws and one, all probabilities of the same n bins."""
    return np.abs(p - q).sum(axis=-1) / 2


def mala_matrix(
    grid: Float[np.ndarray, " n"],
    log_density: Float[np.ndarray, " n"],
    scores: Float[np.ndarray, " n"],
    step_size: float,
) -> Float[np.ndarray, "n n"]:
    """P[i, j], the probability that MALA (`sgtune.samplers.mala`) goes from point i to point j of an equally spaced
    grid, which must be finer than the proposal's sd, and wide enough for the target; log density and scores are there.

    A proposal is N(x + step_size score(x), 2 step_size) on the points. Exactly reversible with respect to the target:
    if the proposals of a row sum to less than 1, the chain stays where it is with the remaining probability.
    """
    spacing, variance = float(grid[1] - grid[0]), 2 * step_size
    residual = grid[None, :] - (grid + step_size * scores)[:, None]
    log_proposal = -(residual**2) / (2 * variance) - np.log(2 * np.pi * variance) / 2 + np.log(spacing)
    # Points stand for cells: a row's sum may exceed 1 by rounding.
    log_proposal -= np.log(np.maximum(1.0, np.exp(log_proposal).sum(axis=1)))[:, None]
    log_flow = log_density[:, None] + log_proposal
    matrix = np.exp(log_proposal + np.minimum(0.0, log_flow.T - log_flow))
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return matrix


def distances_of_matrix(
    matrix: Float[np.ndarray, "n n"],
    start: Float[np.ndarray, " n"],
    target: Float[np.ndarray, " n"],
    n_steps: int,
) -> Float[np.ndarray, " k"]:
    """Total variation to ``target`` after 0, 1, ..., ``n_steps`` steps from the law ``start``."""
    laws = [start]
    for _ in range(n_steps):
        laws.append(laws[-1] @ matrix)
    return total_variation(np.array(laws), target)


def monte_carlo_floor(target: Float[np.ndarray, " n"], n_chains: int) -> float:
    """The expected distance of a histogram of so many exact draws: (1/2) sum sqrt(2 p (1 - p) / (pi n_chains)),
    where every bin has many of them."""
    return float(np.sqrt(2 * target * (1 - target) / (np.pi * n_chains)).sum() / 2)


def distances_of_chains(
    model: Model,
    sampler: str,
    arm: Arm,
    *,
    start: float,
    edges: Float[np.ndarray, " e"],
    target: Float[np.ndarray, " n"],
    n_chains: int,
    n_steps: int,
    window: int = 1,
    seed: int = 0,
) -> Float[np.ndarray, " k"]:
    """Total variation of the law of a model's one parameter from ``target`` at the start, and after each of ``n_steps``
    steps, from histograms of ``n_chains`` independent chains, all from ``start``. If the law equals ``target``, the
    distance is about the `monte_carlo_floor`.

    Args:
        arm: must have the batch size N, because chains that share minibatches are not independent.
        edges: of the bins, ascending: n - 1 numbers for n bins; the first and the last bin are unbounded.
        target: probabilities of the bins.
        window: the steps whose mean law is compared, 1 for each step's own: window i has the steps i window + 1 to
            (i + 1) window, and steps after the last whole one do not count. A longer window has less Monte Carlo
            error, and shows only slow changes.
    """
    positions = np.full((n_chains, 1), start, np.float32)
    chains = independent_chains(model, sampler, arm, positions, seed=seed)

    def counts(draws: np.ndarray) -> np.ndarray:
        return np.bincount(np.searchsorted(edges, draws[:, 0]), minlength=len(target))

    laws = [counts(positions)]
    while len(laws) <= n_steps:
        laws += [counts(draws) for draws in chains.advance_chunk(n_steps + 1 - len(laws))]
    after = np.array(laws[1 : n_steps // window * window + 1], np.float64)
    means = after.reshape(-1, window, len(target)).mean(axis=1)
    return total_variation(np.vstack([laws[:1], means]) / n_chains, np.asarray(target, np.float64))


def geometric_fit(
    steps: Float[np.ndarray, " k"], distances: Float[np.ndarray, " k"], lowest: float, first: int
) -> dict | None:
    """The line log distance = log constant + step x log rate, by least squares, through the distances from place
    ``first`` on, down to `MARGIN` times ``lowest``; None if these are fewer than three.

    Returns:
        ``rate``, the factor of a step; ``constant``; ``first`` and ``last``, the steps of the first and the last
        distance; ``misfit``, the largest |log distance - line|.
    """
    below = np.flatnonzero(distances[first:] <= MARGIN * lowest)
    last = first + (int(below[0]) if len(below) else len(distances) - first) - 1
    if last - first < 2:
        return None
    of_fit, logs = steps[first : last + 1], np.log(distances[first : last + 1])
    slope, intercept = np.polyfit(of_fit, logs, 1)
    return {
        "rate": float(np.exp(slope)),
        "constant": float(np.exp(intercept)),
        "first": round(steps[first]),
        "last": round(steps[last]),
        "misfit": float(np.abs(logs - intercept - slope * of_fit).max()),
    }


def measure_distances(
    settings: Mapping, *, seed: int = 0, report: Callable[[str], None] = lambda line: None
) -> dict:
    """Distances after 0, 1, ... steps from one point, on the logistic density: MALA's on a grid, exactly, and all
    samplers' from histograms of many chains. Of each curve ``plateau``, the distance where it ends, and ``fit``, the
    line (None: the curve falls too little above its floor and its end). By section ``adam_mcmc.distances``.
    """
    model, n_steps, bins = logistic_density_model(), settings["steps"], settings["bins"]
    # Bins of equal probability; the first and the last have no end.
    edges, target = logistic.ppf(np.arange(1, bins) / bins), np.full(bins, 1 / bins)
    # MALA's distances by its transition matrix; the derivative of the log density is -tanh(x / 2).
    grid, at_start = np.linspace(-REACH, REACH, N_POINTS), np.zeros(N_POINTS)
    at_start[np.argmin(np.abs(grid - START))] = 1.0
    matrix = mala_matrix(grid, logistic.logpdf(grid), -np.tanh(grid / 2), LINES["mala"][1]["step_size"])
    on_grid = logistic.pdf(grid) / logistic.pdf(grid).sum()
    lines = [_line("mala-grid", distances_of_matrix(matrix, at_start, on_grid, n_steps), 1e-8)]
    for name, (sampler, numbers) in LINES.items():
        n_chains, n_own, window = settings["chains"], n_steps, 1
        if name == SLOW_CURVE:
            n_chains, n_own = settings["slow_chains"], settings["slow_steps"]
            window = min(SLOW_WINDOW, n_own // 10)
        arm, length = Arm(batch_size=1, **numbers), {"n_chains": n_chains, "n_steps": n_own, "window": window}
        distances = distances_of_chains(
            model, sampler, arm, start=START, edges=edges, target=target, seed=seed, **length
        )
        floor = monte_carlo_floor(target, n_chains)
        lines.append({"chains": n_chains, **_line(name, distances, floor, window)})
        report(f"{name}: {distances[-1]:.4f} after {n_own} steps; the floor is {floor:.4f}")
    common = {"chains": settings["chains"], "floor": monte_carlo_floor(target, settings["chains"])}
    return {**common, "bins": bins, "start": START, "lines": lines}


def _line(name: str, distances: Float[np.ndarray, " k"], floor: float, window: int = 1) -> dict:
    """A curve: ``distances`` after so many ``steps``, the middle of each window; where it ends, the median of its last
    fifth; and its line.

    The line goes from where half of the first distance is left (`SLOW_CURVE`: from `SLOW_FROM`) down to three times the
    floor or the curve's own end. There the constant distance that is left bends the line by at most log 1.5. None if
    the distance falls by less than a factor of `SHORTEST` in between: such a slope follows from the window.
    """
    steps = np.arange(len(distances)) * window - (window - 1) / 2
    steps[0] = 0
    plateau = float(np.median(distances[-max(1, len(distances) // 5) :]))
    lowest, fit = max(floor, plateau), None
    starts = np.flatnonzero(steps >= SLOW_FROM if name == SLOW_CURVE else distances <= distances[0] / 2)
    if len(starts) and distances[starts[0]] >= SHORTEST * MARGIN * lowest:
        fit = geometric_fit(steps, distances, lowest, int(starts[0]))
    return {
        **{"name": name, "steps": steps.tolist(), "distances": distances.tolist()},
        **{"floor": floor, "plateau": plateau, "fit": fit},
    }
