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
from sgtune.sampling.thinning import evenly_spaced
from sgtune.study.experiments.evaluate import effective_draws, stein_metrics
from sgtune.study.experiments.losses import losses_of
from sgtune.study.pipeline.parts import Task
from sgtune.support.axes import Arm
from sgtune.support.errors import InputError
from sgtune.support.randomness import named_seed
from sgtune.tuning import AllDivergedError, TuningResult, make_arms, tune
from sgtune.tuning.grid import default_fractions, fitted_step_sizes
from sgtune.tuning.tuners import tuner_of

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
        directions = np.linalg.eigh(np.cov(draws[0].T))[1]
        rest = (draws[1:] - mean).reshape(-1, len(mean))
        return cls(
            mean,
            (draws - mean).reshape(-1, len(mean)).std(axis=0),
            directions,
            (rest @ directions).std(axis=0),
        )

    def errors(self, draws: Float[np.ndarray, "n D"]) -> dict[str, float | int | bool | None]:
        """Of a chain's draws: ``xi_white``, `sgtune.metrics.xi_rel` along the directions; and of the means, in
        posterior sds, the root of the mean square, the largest, and its parameter. ``unstable`` if it has left."""
        found = {
            "xi_white": None,
            "mean_error": None,
            "largest_mean_error": None,
            "parameter": None,
            "unstable": True,
        }
        if not np.isfinite(draws).all():
            return found
        centred = evenly_spaced(draws, KEPT).astype(np.float64) - self.mean
        xi = metrics.xi_rel((centred @ self.directions).std(axis=0), self.sd_along)
        if not xi <= ESCAPED:
            return found
        of_means = np.abs(centred.mean(axis=0)) / self.sd
        return {
            "xi_white": xi,
            "mean_error": float(np.sqrt(np.mean(of_means**2))),
            "largest_mean_error": float(of_means.max()),
            "parameter": int(of_means.argmax()),
            "unstable": False,
        }


def race_case(task: Task, truth: Truth, section: Mapping) -> dict:
    """The choices of every tuner in all its coordinates, each judged by a fresh chain; and the best arm.

    Args:
        section: the configuration's section ``posteriors``.

    Returns:
        ``runs``: of each tuner, coordinates and replicate the errors (`Truth.errors`), the ``arm``, the data terms
        ``spent``, and the number of ``doubts``; ``refused`` is the reason of a tuner that does not choose. ``best``:
        `best_arm`.
    """
    model, sampler, runs = task.model, task.sampler, []
    for tuner, replicate in product(TUNED, range(section["replicates"])):
        for coordinates in TUNED[tuner]:
            make = partial(_tuned, model, sampler, truth, section, tuner, coordinates, replicate, task.seed)
            runs.append(task.once(f"{tuner} {coordinates} {replicate}", make))
            task.report(f"{model.name}, {sampler}: {runs[-1]}")
    best = task.once("best", partial(best_arm, task, truth, section))
    about = {"case": model.name, "sampler": sampler, "n_data": model.n_data, "dimension": model.dimension}
    return {**about, "runs": runs, "best": best}


def _budgets(section: Mapping) -> dict[str, Budget]:
    return {"budget": Budget(gradients=section["gradients"]), "horizon": Budget(gradients=section["horizon"])}


def _result_of(model: Model, sampler: str, **options) -> tuple[TuningResult | None, str]:
    """The result of `sgtune.tune`; or that of a race without an arm, or None, and why."""
    try:
        return tune(model, sampler, **options), ""
    except AllDivergedError as error:
        return error.result, "no arm"
    except InputError as error:
        return None, str(error)


def _tuned(model, sampler, truth, section, tuner, coordinates, replicate, seed) -> dict:
    options = {
        "tuner": tuner,
        "seed": seed,
        "replicate": replicate,
        **_budgets(section),
        **COORDINATES[coordinates],
    }
    result, refused = _result_of(model, sampler, **options)
    run = {"tuner": tuner, "coordinates": coordinates, "replicate": replicate, "refused": refused}
    run |= {
        "spent": 0 if result is None else result.gradient_evaluations,
        "doubts": 0 if result is None else len(result.warnings),
    }
    if refused:
        return {**run, "arm": None}
    name = f"{tuner} {coordinates} {replicate}"
    seed = named_seed(seed, "chains of tuners")
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
    model, sampler, others = task.model, task.sampler, named_seed(task.seed, "best arm")
    screened, systems = [], {"none": None}
    for name in ("laplace", "rounds"):
        # The best arm may be one that tuners could not reach: where there is no proper mode.
        result, refused = _result_of(model, sampler, seed=others, **_budgets(section), **COORDINATES[name])
        if not refused and "preconditioner" in result.best:
            systems[name] = result.best.preconditioner
    for name, system in systems.items():
        curvature = largest_curvature(model) if system is None else 1.0
        for arms in _by_shape(model, sampler, section["horizon"], curvature):
            make = partial(_screen, model, sampler, truth, section["horizon"], system, arms, others)
            rows = task.once(f"screen {name} {arms[0].to_record()}", make)
            screened += [
                (row["xi_white"], name, arm)
                for row, arm in zip(rows, arms, strict=True)
                if not row["unstable"]
            ]
    contenders = [(name, arm) for _, name, arm in sorted(screened, key=itemgetter(0))[:CONTENDERS]]

    def runs_of(place: int, count: int, stage: str) -> list[dict]:
        name, arm = contenders[place]
        system = "none" if systems[name] is None else systems[name]
        options = {
            "preconditioner": system,
            "budget": Budget(gradients=section["horizon"]),
            "kept_draws": KEPT,
        }
        chains = (
            sample(model, sampler, **arm, **options, seed=others, replicate=f"{stage} {i}")
            for i in range(count)
        )
        return [truth.errors(chain.draws) for chain in chains]

    means = [_mean_error(runs_of(place, FRESH, "fresh")) for place in range(len(contenders))]
    place = int(np.argmin(means))
    name, arm = contenders[place]
    return {"coordinates": name, "arm": plain(arm), "runs": runs_of(place, section["finals"], "final")}


def _mean_error(runs: Sequence[Mapping]) -> float:
    return float(np.mean([np.inf if run["unstable"] else run["xi_white"] for run in runs]))


def _by_shape(model: Model, sampler: str, horizon: float, curvature: float) -> list[list[Arm]]:
    """The arms of the default grid and of the step sizes halfway between (by their logarithms), in groups of one shape;
    those of which the horizon buys `FEWEST_STEPS` steps."""
    arms = []
    for fraction in default_fractions(model.n_data):
        coarse = fitted_step_sizes(sampler, fraction, curvature)
        sizes = [size + half * (coarse[1] - coarse[0]) / 2 for size in coarse for half in (0, 1)]
        arms += make_arms(model.n_data, sampler, batch_fractions=(fraction,), log10_step_sizes=sizes)
    groups: dict[tuple, list[Arm]] = {}
    for arm in arms:
        if horizon >= FEWEST_STEPS * data_terms(model, sampler, arm):
            groups.setdefault(shape_of(sampler, arm), []).append(arm)
    return list(groups.values())


def _screen(model, sampler, truth, horizon, system, arms, seed) -> list[dict]:
    """The errors of one chain of each arm at the horizon."""
    seen, start = precondition(model, system), None
    if system is not None:
        start = system.coordinates(system.start[None])[0]
    ensemble = Lockstep.at_mode(seen, sampler, arms, seed=seed, replicate="screen", position=start)
    n_steps = int(horizon / data_terms(seen, sampler, arms[0]))
    most = min(KEPT, KEPT_NUMBERS // (len(arms) * model.dimension))
    draws = ensemble.advance(n_steps, -(-n_steps // most))
    own = (draws[:, i] for i in range(len(arms)))
    return [truth.errors(chain if system is None else system.positions(chain)) for chain in own]


def compare_preconditioned(task: Task, samplers: Sequence[str], settings: Mapping) -> dict:
    """Each of ``samplers`` tuned by mamba with and without the Laplace coordinates, at equal seconds of its race and of
    its run, by costs measured in these coordinates. Timed.

    Args:
        settings: `sgtune.study.config.sections.model_settings` of the model.

    Returns:
        ``runs``: of each sampler, coordinates and replicate the ``arm``, the ``losses`` by which the model's arms are
        judged, and as ``row`` the KSD and the effective sample sizes of an evaluation run.
    """
    model, runs, losses = task.model, [], losses_of(task, settings["evaluation"]["prediction_draws"])
    budgets = {"budget": Budget(seconds=settings["mamba"]["seconds"])}
    budgets["horizon"] = Budget(seconds=settings["evaluation"]["seconds"])
    for sampler, coordinates in product(samplers, ("none", "laplace")):
        system = None if coordinates == "none" else laplace_preconditioner(model)
        curvature = 1.0 if system is not None else largest_curvature(model)
        arms = tuner_of("mamba", None).arms(model.n_data, sampler, curvature)
        shapes = list(dict.fromkeys(shape_of(sampler, arm) for arm in arms))
        seen = precondition(model, system)
        rows = task.once(f"costs {sampler} {coordinates}", lambda: calibrate_cost(seen, shapes).to_rows())  # noqa: B023
        options = {
            "cost": CostTable.from_rows(rows),
            "seed": task.seed,
            **budgets,
            **COORDINATES[coordinates],
        }
        for replicate in range(settings["tuning"]["replicates"]):
            name = f"{sampler} {coordinates} {replicate}"
            make = partial(
                _evaluated, task, sampler, losses, settings, options | {"replicate": replicate}, name
            )
            row = {"sampler": sampler, "coordinates": coordinates, "replicate": replicate}
            runs.append(row | task.once(name, make, costs=rows))
            task.report(f"{name}: {runs[-1]}")
    return {
        "model": model.name,
        "n_data": model.n_data,
        "seconds": settings["evaluation"]["seconds"],
        "runs": runs,
    }


def _evaluated(task, sampler, losses, settings, options, name) -> dict:
    result, refused = _result_of(task.model, sampler, **options)
    if refused:
        return {"arm": None, "refused": refused, "losses": {}}
    most = settings["evaluation"]["kept_draws"]
    seed = named_seed(task.seed, "preconditioned")
    chain = result.sample(check=False, cost=options["cost"], seed=seed, replicate=name, kept_draws=most)
    found = {"arm": plain(result.best), "refused": "", "losses": losses.of_draws(task.model, chain.draws)}
    if not np.isfinite(chain.draws).all():
        return found | {"row": {}}
    points = settings["evaluation"]["ksd_points"]
    row = stein_metrics(task.model, chain.draws, points, seed, name) if points else {}
    return found | {"row": row | effective_draws(task.model, chain.draws)}
