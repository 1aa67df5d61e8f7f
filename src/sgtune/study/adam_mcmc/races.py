"""Races of the samplers with a Metropolis test, by several judges, and the expected regret of what they choose."""

from collections.abc import Callable, Mapping, Sequence

from sgtune.metrics import Reference
from sgtune.model import Model
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.adam_mcmc.edges import edges_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.experiments.finalists import rerun_finalists
from sgtune.study.experiments.losses import losses_of
from sgtune.study.experiments.screen import screen_grid
from sgtune.study.pipeline.parts import Parts, code_digest
from sgtune.support.errors import InputError
from sgtune.tuning import AllDivergedError, Grid, Halving, acceptance, at_horizon, make_arms, stein, tune

__all__ = ["JUDGES", "judges_for", "race_once", "race_sampler", "shapes_of_grid"]

JUDGES = {
    "mamba": at_horizon,
    "mamba-ksd": stein,
    "acceptance": acceptance,
}
"""By the name of the configuration: the default tuner's judge, the KSD of the MAMBA paper, and |acceptance - optimum|
(its Sect. 5.1), which is for samplers without a bias: MALA and HMC."""


def judges_for(sampler: str, names: Sequence[str]) -> list[str]:
    """The judges of ``names`` that can judge a sampler: the acceptance rate depends on the step size, but does not show
    AdamMCMC's bias."""
    of_step_size = resolve_sampler(sampler)[0].needs_all_data
    return [name for name in names if name != "acceptance" or of_step_size]


def _grid(grid: Mapping[str, Sequence]) -> Grid:
    fields = ("log10_step_sizes", "batch_fractions", "n_leapfrogs")
    further = {name: tuple(values) for name, values in grid.items() if name not in fields}
    return Grid(
        **{name: tuple(grid[name]) for name in fields if name in grid},
        hyperparameters=further,
    )


def shapes_of_grid(model: Model, sampler: str, grid: Mapping[str, Sequence]) -> list[tuple]:
    """The shapes that a cost table needs for the arms of a grid."""
    arms = make_arms(model.n_data, sampler, **grid)
    return list(dict.fromkeys(shape_of(sampler, arm) for arm in arms))


def race_once(
    model: Model,
    sampler: str,
    judge: str,
    grid: Mapping[str, Sequence],
    *,
    seconds: float,
    horizon: float,
    pruning_rate: int,
    cost: CostTable,
    seed: int,
    replicate: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """Successive halving of all arms of the grid: ``judge``, ``replicate``, ``best`` (None: every arm diverged),
    ``n_arms``, ``reason``, ``warnings``, of the tuner, which name a chosen arm that accepted nothing, and ``edges``
    (`sgtune.study.adam_mcmc.edges`).

    Args:
        seconds: R, the budget of the arm that runs longest.
        horizon: seconds of the run that is planned with the chosen arm; the default tuner's judge looks ahead to it.
    """
    name = f"{judge} {replicate}"
    own = fingerprint(
        {**depends_on, "race": name, "seconds": seconds, "horizon": horizon, "code": code_digest()}
    )
    record = parts.get(name, own)
    if record is not None:
        return record
    best, reason, warnings, edges = None, "", [], []
    arms = make_arms(model.n_data, sampler, **grid)
    try:
        result = tune(
            model,
            sampler,
            tuner=Halving(judge=JUDGES[judge](), pruning_rate=pruning_rate, grid=_grid(grid)),
            budget=Budget(seconds=seconds),
            horizon=Budget(seconds=horizon),
            cost=cost,
            seed=seed,
            replicate=replicate,
        )
        best, warnings = result.best.to_record(), result.warnings
        edges = edges_of(resolve_sampler(sampler)[0].axes, result.best, arms)
    except AllDivergedError as failure:
        reason = str(failure)
    record = {"judge": judge, "replicate": replicate, "best": best, "n_arms": len(arms)}
    record |= {"reason": reason, "warnings": warnings, "edges": edges}
    parts.keep(name, own, record)
    report(f"{name}: {best}")
    return record


def race_sampler(
    model: Model,
    sampler: str,
    grid: Mapping[str, Sequence],
    section: Mapping,
    *,
    reference: Reference | None,
    cost: CostTable,
    seed: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """``races`` by every judge, and ``regret``: the arms chosen and the best of a screen in fresh replicates
    (`sgtune.study.experiments.finalists.rerun_finalists`).

    Args:
        section: the configuration's section ``adam_mcmc.race``.

    Raises:
        InputError: there is no reference to judge the arms by.
    """
    if reference is None:
        raise InputError("reference.nuts: False is not allowed for the study adam_mcmc; it must be true")
    judges = judges_for(sampler, section["judges"])
    common = {"cost": cost, "seed": seed, "parts": parts, "depends_on": depends_on, "report": report}
    races = [
        race_once(
            model,
            sampler,
            judge,
            grid,
            seconds=section["seconds"],
            horizon=section["regret"]["seconds"][-1],
            pruning_rate=section["pruning_rate"],
            replicate=replicate,
            **common,
        )
        for judge in judges
        for replicate in range(section["replicates"])
    ]
    regret = {**section["regret"], "prediction_draws": 0}
    losses = losses_of(model.name, reference, regret)
    screened = screen_grid(
        model,
        sampler,
        grid=grid,
        extra=[],
        losses=losses,
        section=regret["screen"],
        oracle={name: section[name] for name in ("seconds", "pruning_rate")},
        n_oracles=section["replicates"],
        **common,
    )
    chosen = {judge: [race["best"] for race in races if race["judge"] == judge] for judge in judges}
    found = rerun_finalists(
        model, sampler, screened, chosen, grid=grid, losses=losses, section=regret, **common
    )
    return {"races": races, "seconds": section["seconds"], "regret": found}
