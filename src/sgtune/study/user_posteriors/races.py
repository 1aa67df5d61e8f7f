"""Tuners in several coordinates on posteriors of users, beside the best arm that there is; and the study's own models
with and without a preconditioner at equal seconds."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.mode.coordinates import laplace_preconditioner, precondition
from sgtune.mode.curvature import largest_curvature
from sgtune.model import Model
from sgtune.model.preconditioner import Preconditioner
from sgtune.sampling.arm import shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.by_clock import calibrate_cost
from sgtune.sampling.chain import FEWEST_STEPS, sample
from sgtune.sampling.lockstep import Lockstep, data_terms
from sgtune.sampling.thinning import evenly_spaced, thin_draws
from sgtune.study.experiments.evaluate import effective_draws, stein_metrics
from sgtune.study.experiments.losses import losses_of
from sgtune.study.pipeline.parts import Task
from sgtune.study.report.records import grouped
from sgtune.support.axes import Arm
from sgtune.support.errors import InputError
from sgtune.support.randomness import named_seed
from sgtune.tuning import AllDivergedError, TuningResult, make_arms, tune
from sgtune.tuning.grid import default_fractions, fitted_step_sizes
from sgtune.tuning.tuners import TUNERS

COORDINATES: dict[str, dict] = {
    "none": {"preconditioner": "none"},
    "laplace": {"preconditioner": "laplace", "rounds": 1},
    "rounds": {},
}
"""The arguments of `sgtune.tune` for each; the last are its defaults."""

TUNED = {
    "mamba": tuple(COORDINATES),
    "theory": ("none", "laplace"),
    "mamba-ksd": tuple(COORDINATES),
    "heuristic": ("none",),
}
"""The coordinates of each tuner. Rounds follow a race, which theory does not run; h = 1/N is a step in theta."""

KEPT, KEPT_NUMBERS = 20_000, 2**25
"""Draws of a chain that are judged, evenly spaced; and numbers of all chains that advance together."""

ESCAPED = 10.0
"""A chain with a larger error has left the posterior."""

CONTENDERS, FRESH = 5, 4
"""So many arms of a screen run again, in so many fresh chains; the best of these is the best arm."""

COST_ROUNDS = 3
"""So many times the costs of all samplers are measured."""


class Truth(NamedTuple):
    """Moments of a posterior by NUTS. Directions are the eigenvectors of the covariance of its first chain, and sds are
    those of the others: along the eigenvectors of the same draws sds would be too far apart.

    Attributes:
        mean, sd: of the parameters, in the order of a flat position.
        directions: orthonormal columns.
        sd_along: sds along them.
    """

    mean: Float[np.ndarray, " D"]
    sd: Float[np.ndarray, " D"]
    directions: Float[np.ndarray, "D D"]
    sd_along: Float[np.ndarray, " D"]

    @classmethod
    def of_chains(cls, chains: Float[np.ndarray, "c n D"]) -> "Truth":
        """From two chains or more."""
        draws = np.asarray(chains, np.float64)
        mean = draws.mean(axis=(0, 1))
        directions, centred = np.linalg.eigh(np.cov(draws[0].T))[1], draws - mean
        sd, rest = centred.reshape(-1, len(mean)).std(axis=0), centred[1:].reshape(-1, len(mean))
        return cls(mean, sd, directions, (rest @ directions).std(axis=0))

    def errors(self, draws: Float[np.ndarray, "n D"]) -> dict[str, float | int | bool | None]:
        """Of a chain's draws: ``xi_white``, `sgtune.metrics.xi_rel` along the directions; and of the means, in
        posterior sds, the root of the mean square, the largest, and its parameter. ``unstable`` if it has left."""
        if np.isfinite(draws).all():
            centred = evenly_spaced(draws, KEPT).astype(np.float64) - self.mean
            xi = metrics.xi_rel((centred @ self.directions).std(axis=0), self.sd_along)
            of_means = np.abs(centred.mean(axis=0)) / self.sd
            if xi <= ESCAPED:
                mean_error = float(np.sqrt(np.mean(of_means**2)))
                worst = {"largest_mean_error": float(of_means.max()), "parameter": int(of_means.argmax())}
                return {"xi_white": xi, "mean_error": mean_error, **worst, "unstable": False}
        return dict.fromkeys(("xi_white", "mean_error", "largest_mean_error", "parameter")) | {
            "unstable": True
        }


def race_case(task: Task, truth: Truth, section: Mapping) -> dict:
    """The choices of every tuner in all its coordinates, each judged by a fresh chain; and the best arm. By
    section ``posteriors``.

    Returns:
        ``runs``: of each tuner, coordinates and replicate the errors (`Truth.errors`), the ``arm``, the data terms
        ``spent``, and the number of ``doubts``; ``refused`` is the reason of a tuner that does not choose. ``best``:
        `best_arm`.
    """
    model, runs = task.model, []
    for tuner, replicate in product(TUNED, range(section["replicates"])):
        for coordinates in TUNED[tuner]:
            make = partial(_tuned, task, truth, section, tuner, coordinates, replicate)
            runs.append(task.once(f"{tuner} {coordinates} {replicate}", make))
            task.report(f"{model.name}, {task.sampler}: {runs[-1]}")
    best = task.once("best", partial(best_arm, task, truth, section))
    about = {"case": model.name, "sampler": task.sampler, "n_data": model.n_data}
    return {**about, "dimension": model.dimension, "runs": runs, "best": best}


def _budgets(unit: str, race: float, run: float) -> dict[str, Budget]:
    return {"budget": Budget(**{unit: race}), "horizon": Budget(**{unit: run})}


def _result_of(task: Task, coordinates: str, **options) -> tuple[TuningResult | None, str]:
    """The result of `sgtune.tune`; or that of a race without an arm, or None, and why."""
    try:
        return tune(task.model, task.sampler, **COORDINATES[coordinates], **options), ""
    except AllDivergedError as error:
        return error.result, "no arm"
    except InputError as error:
        return None, str(error)


def _tuned(task: Task, truth: Truth, section: Mapping, tuner: str, coordinates: str, replicate: int) -> dict:
    options = {"tuner": tuner, "seed": task.seed, "replicate": replicate}
    options |= _budgets("gradients", section["gradients"], section["horizon"])
    result, refused = _result_of(task, coordinates, **options)
    run = {"tuner": tuner, "coordinates": coordinates, "replicate": replicate, "refused": refused}
    run |= {"spent": 0, "doubts": 0}
    if result is not None:
        run |= {"spent": result.gradient_evaluations, "doubts": len(result.warnings)}
    if refused:
        return {**run, "arm": None}
    name, seed = f"{tuner} {coordinates} {replicate}", named_seed(task.seed, "chains of tuners")
    draws = result.sample(check=False, seed=seed, replicate=name, kept_draws=KEPT).draws
    return {**run, "arm": plain(result.best), **truth.errors(draws)}


def plain(arm: Arm) -> dict:
    """The numbers of an arm, without its preconditioner."""
    return {name: number for name, number in arm.items() if not isinstance(number, Preconditioner)}


def best_arm(task: Task, truth: Truth, section: Mapping) -> dict:
    """The arm of the smallest expected error, of all coordinates and of a grid with twice as many step sizes.

    Each arm runs to the horizon once. The best `CONTENDERS` run again in `FRESH` chains, the best of these in
    ``finals`` more, which give its errors: no chain chooses and judges. The coordinates of ``rounds`` are those of a
    race of another seed.

    Returns:
        ``coordinates``, ``arm``, and ``runs``, the errors of its chains.
    """
    model, sampler, seed = task.model, task.sampler, named_seed(task.seed, "best arm")
    horizon, screened, systems = section["horizon"], [], {"none": None}
    for name in ("laplace", "rounds"):
        # The best arm may be one that tuners could not reach: where there is no proper mode.
        budgets = _budgets("gradients", section["gradients"], horizon)
        result, refused = _result_of(task, name, seed=seed, **budgets)
        if not refused and "preconditioner" in result.best:
            systems[name] = result.best.preconditioner

    def screen(system: Preconditioner | None, arms: list[Arm]) -> list[dict]:
        """The errors of one chain of each arm at the horizon."""
        seen, start = precondition(model, system), None
        if system is not None:
            start = system.coordinates(system.start[None])[0]
        ensemble = Lockstep(seen, sampler, arms, seed=seed, replicate="screen", position=start)
        n_steps = int(horizon / data_terms(seen, sampler, arms[0]))
        most = min(KEPT, KEPT_NUMBERS // (len(arms) * model.dimension))
        draws = ensemble.advance(n_steps, -(-n_steps // most))
        own = (draws[:, i] for i in range(len(arms)))
        return [truth.errors(chain if system is None else system.positions(chain)) for chain in own]

    for name, system in systems.items():
        curvature = largest_curvature(model) if system is None else 1.0
        for arms in _by_shape(model, sampler, horizon, curvature):
            rows = task.once(f"screen {name} {arms[0].to_record()}", partial(screen, system, arms))
            pairs = zip(rows, arms, strict=True)
            screened += [(row["xi_white"], name, arm) for row, arm in pairs if not row["unstable"]]
    if not screened:
        raise InputError(
            f"posteriors.horizon: {horizon:g} is not allowed for {model.name}; it must pay for {FEWEST_STEPS} steps of "
            "an arm that stays in the posterior"
        )
    contenders = [(name, arm) for _, name, arm in sorted(screened, key=itemgetter(0))[:CONTENDERS]]

    def runs_of(place: int, count: int, stage: str) -> list[dict]:
        name, arm = contenders[place]
        options = {"preconditioner": "none" if systems[name] is None else systems[name], "kept_draws": KEPT}
        options |= {"budget": Budget(gradients=horizon), "seed": seed}
        chains = (sample(model, sampler, **arm, **options, replicate=f"{stage} {i}") for i in range(count))
        return [truth.errors(chain.draws) for chain in chains]

    fresh = [runs_of(place, FRESH, "fresh") for place in range(len(contenders))]
    means = [np.mean([np.inf if run["unstable"] else run["xi_white"] for run in runs]) for runs in fresh]
    place = int(np.argmin(means))
    name, arm = contenders[place]
    return {"coordinates": name, "arm": plain(arm), "runs": runs_of(place, section["finals"], "final")}


def _by_shape(model: Model, sampler: str, horizon: float, curvature: float) -> list[list[Arm]]:
    """The arms of the default grid and of the step sizes halfway between (by their logarithms), in groups of one shape;
    those of which the horizon buys `FEWEST_STEPS` steps."""
    arms = []
    for fraction in default_fractions(model.n_data):
        coarse = fitted_step_sizes(sampler, fraction, curvature)
        sizes = [size + half * (coarse[1] - coarse[0]) / 2 for size in coarse for half in (0, 1)]
        arms += make_arms(model.n_data, sampler, batch_fractions=(fraction,), log10_step_sizes=sizes)
    affordable = [arm for arm in arms if horizon >= FEWEST_STEPS * data_terms(model, sampler, arm)]
    return list(grouped(affordable, partial(shape_of, sampler)).values())


def compare_preconditioned(task: Task, samplers: Sequence[str], settings: Mapping) -> dict:
    """Each of ``samplers`` tuned by mamba with and without the Laplace coordinates, at equal seconds of its race and of
    its run, by costs measured in these coordinates. The costs are timed. ``settings`` are those of the model.

    Returns:
        ``runs``: of each sampler, coordinates and replicate the ``arm``, the ``losses`` by which the model's arms are
        judged, and as ``row`` the KSD and the effective sample sizes of an evaluation run.
    """
    model, runs, section = task.model, [], settings["evaluation"]
    losses, seed = losses_of(task, section["prediction_draws"]), named_seed(task.seed, "preconditioned")
    budgets = _budgets("seconds", settings["mamba"]["seconds"], section["seconds"])

    def evaluated(own: Task, name: str, **options: object) -> dict:
        result, refused = _result_of(own, **options)
        if refused:
            return {"arm": None, "refused": refused, "losses": {}}
        at, most = {"seed": seed, "replicate": name, "cost": options["cost"]}, section["kept_draws"]
        chain = result.sample(check=False, kept_draws=most, **at)
        # The draws that count, and of these the points of the KSD, are those of an evaluation run.
        draws = chain.draws[int(section["burn_in"] * len(chain.draws)) :]
        row, points = {}, section["ksd_points"]
        if np.isfinite(draws).all():
            thinned = thin_draws(draws, max(1, section["thin"] // chain.stride))
            row = stein_metrics(model, thinned, points, seed, name) if points else {}
            row |= effective_draws(model, draws)
        judged = losses.of_draws(model, draws)
        return {"arm": plain(result.best), "refused": "", "losses": judged, "row": row}

    # All costs first: what follows goes by steps, and does not depend on what else the machine does. The smallest of
    # several rounds counts, so that a machine that is slow for a minute is not slow for one sampler alone.
    measured: dict[tuple[str, str], list] = {}
    for round_, sampler, coordinates in product(range(COST_ROUNDS), samplers, ("none", "laplace")):
        system = None if coordinates == "none" else laplace_preconditioner(model)
        curvature = 1.0 if system is not None else largest_curvature(model)
        arms = TUNERS["mamba"].arms(model.n_data, sampler, curvature)
        shapes = list(dict.fromkeys(shape_of(sampler, arm) for arm in arms))
        seen = precondition(model, system)
        name = f"costs {round_} {sampler} {coordinates}"
        rows = task.once(name, lambda: calibrate_cost(seen, shapes).to_rows())  # noqa: B023
        measured.setdefault((sampler, coordinates), []).append(rows)
    for (sampler, coordinates), rounds in measured.items():
        rows = [min(each, key=itemgetter("seconds_per_step")) for each in zip(*rounds, strict=True)]
        options = {
            "coordinates": coordinates,
            "cost": CostTable.from_rows(rows),
            "seed": task.seed,
            **budgets,
        }
        for replicate in range(settings["tuning"]["replicates"]):
            name, own = f"{sampler} {coordinates} {replicate}", task._replace(sampler=sampler)
            make = partial(evaluated, own, name, replicate=replicate, **options)
            row = {"sampler": sampler, "coordinates": coordinates, "replicate": replicate}
            runs.append(row | task.once(name, make, costs=rows))
            task.report(f"{name}: {runs[-1]}")
    about = {"model": model.name, "n_data": model.n_data}
    return {**about, "seconds": section["seconds"], "runs": runs}
