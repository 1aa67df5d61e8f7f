"""The two jobs behind regret: screen all arms of a grid, then run the best and the chosen ones again (`regret`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from sgtune.metrics import Reference
from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study import catalogue
from sgtune.study.config.sections import fingerprint
from sgtune.study.experiments.regret import (
    Losses,
    best_arms,
    frozen_losses,
    oracle_arm,
    over_replicates,
    random_arms,
    run_arms,
    runs_of,
)
from sgtune.study.pipeline.parts import Parts, code_digest
from sgtune.tuning import Grid, Halving, make_arms

__all__ = ["losses_of", "rerun_finalists", "screen_grid"]


def losses_of(model: str, reference: Reference | None, section: Mapping) -> Losses:
    """The losses for the tuners of the study's ``model``; ``section``: ``regret`` of the configuration.

    With a reference without a covariance (many parameters or few draws), errors along eigenvectors are left out.
    """
    names = catalogue.losses_of(model, reference is not None)
    if reference is not None and reference.covariance is None:
        names = tuple(name for name in names if name != "xi_white")
    return Losses(names, reference, section["prediction_draws"])


def screen_grid(
    model: Model,
    sampler: str,
    *,
    grid: Mapping[str, Sequence],
    extra: Iterable[Arm],
    losses: Losses,
    section: Mapping,
    oracle: Mapping,
    n_oracles: int,
    oracle_losses: int = 1,
    cost: CostTable,
    seed: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """Every arm of the grid, and the ``extra`` ones, in a few replicates; and the arms that oracles choose.

    Args:
        section: ``screen`` of the configuration's section ``regret``: seconds and replicates.
        oracle: ``seconds`` and ``pruning_rate`` of the race that oracles see.
        n_oracles: the number of races of each oracle, one for each tuning replicate.
        oracle_losses: each of this many losses, the main one first, has an oracle.
        depends_on: everything that the results depend on besides the replicate.

    Returns:
        ``seconds``, ``replicates``, ``arms`` (hyperparameters, ``is_extra``, steps, and a list over replicates of
        ``diverged`` and of each of the ``losses``), ``oracles`` (loss -> arm or None of each race), and
        ``frozen`` (loss -> value).
    """
    regular = make_arms(model.n_data, sampler, **grid)
    arms = list(dict.fromkeys([*regular, *extra]))
    one_by_one = _Kept(parts, {**depends_on, "grid": dict(grid)})
    runs = [
        one_by_one.get(
            f"screen {i}",
            lambda i=i: run_arms(
                model,
                sampler,
                arms,
                losses=losses,
                seconds=[section["seconds"]],
                cost=cost,
                replicate=f"screen {i}",
                width=_width(grid, section["seconds"] * section["replicates"]),
                seed=seed,
                report=report,
            ),
        )
        for i in range(section["replicates"])
    ]
    records = [
        {
            **arm.to_record(),
            "is_extra": arm not in regular,
            **over_replicates([run[place][0] for run in runs]),
        }
        for place, arm in enumerate(arms)
    ]
    oracles: dict[str, list] = {name: [] for name in losses.names[:oracle_losses]}
    for name in oracles:
        tuner = Halving(
            judge=losses.judge(name),
            pruning_rate=oracle["pruning_rate"],
            grid=Grid(**_grid_names(grid)),
            thin=1,
        )
        for i in range(n_oracles):
            chosen = one_by_one.get(
                f"oracle {name} {i}",
                lambda i=i, name=name, tuner=tuner: _record(
                    oracle_arm(
                        model,
                        sampler,
                        tuner=tuner,
                        budget=Budget(seconds=oracle["seconds"]),
                        cost=cost,
                        seed=seed,
                        replicate=i,
                    )
                ),
            )
            report(f"oracle of {name}, race {i}: {chosen}")
            oracles[name].append(chosen)
    return {
        "seconds": section["seconds"],
        "replicates": section["replicates"],
        "arms": records,
        "oracles": oracles,
        "frozen": frozen_losses(model, losses),
    }


def rerun_finalists(
    model: Model,
    sampler: str,
    screened: Mapping,
    chosen: Mapping[str, Sequence[Mapping | None]],
    *,
    grid: Mapping[str, Sequence],
    losses: Losses,
    section: Mapping,
    cost: CostTable,
    seed: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """The best arms of the screen, and all arms that a tuner or an oracle chose, in fresh replicates.

    Args:
        screened: the result of `screen_grid`.
        chosen: tuner -> its arm, or None, in each tuning replicate.
        grid: the screen's grid: for short runs its programs are used again.
        section: the configuration's section ``regret``: finalists, seconds and replicates.

    Returns:
        ``losses`` (their names), ``arms``, ``finalists`` (loss -> their places in ``arms``), ``chosen``, ``oracles``,
        ``random`` (places of arms drawn at random from those that stayed finite in the screen), ``runs`` (for each arm
        and each of the seconds: steps, and a list over replicates of ``diverged`` and of each loss), ``screen`` and
        ``frozen``.
    """
    in_screen = [(_arm(record), record) for record in screened["arms"]]
    finalists = {
        name: best_arms(
            {
                arm: float(np.mean(record["losses"][name]))
                for arm, record in in_screen
                if not record["is_extra"]
            },
            section["finalists"],
        )
        for name in losses.names
    }
    finite = [arm for arm, record in in_screen if not record["is_extra"] and not any(record["diverged"])]
    at_random = random_arms(finite, RANDOM_ARMS, seed, model.name, sampler)
    picked = [*chosen.values(), *screened["oracles"].values()]
    wanted = [*(arm for of_loss in finalists.values() for arm in of_loss), *at_random]
    wanted += [Arm(**record) for records in picked for record in records if record is not None]
    arms = list(dict.fromkeys(wanted))
    place = {arm: number for number, arm in enumerate(arms)}
    one_by_one = _Kept(parts, {**depends_on, "arms": [arm.to_record() for arm in arms]})
    runs = [
        one_by_one.get(
            f"finalists {i}",
            lambda i=i: run_arms(
                model,
                sampler,
                arms,
                losses=losses,
                seconds=section["seconds"],
                cost=cost,
                replicate=f"finalists {i}",
                width=_width(grid, section["seconds"][-1] * section["replicates"]),
                seed=seed,
                report=report,
            ),
        )
        for i in range(section["replicates"])
    ]

    def places(records: Sequence[Mapping | None]) -> list[int | None]:
        return [None if record is None else place[Arm(**record)] for record in records]

    return {
        "losses": list(losses.names),
        "arms": [arm.to_record() for arm in arms],
        "finalists": {name: [place[arm] for arm in best] for name, best in finalists.items()},
        "chosen": [{"tuner": tuner, "arms": places(records)} for tuner, records in chosen.items()],
        "oracles": {name: places(records) for name, records in screened["oracles"].items()},
        "runs": runs_of(runs, section["seconds"]),
        "screen": {
            "seconds": screened["seconds"],
            "replicates": screened["replicates"],
            "n_arms": sum(not record["is_extra"] for record in screened["arms"]),
            "diverged": [arm.to_record() for arm, record in in_screen if any(record["diverged"])],
        },
        "random": [place[arm] for arm in at_random],
        "frozen": screened["frozen"],
    }


RANDOM_ARMS = 5
"""This many random arms run with the finalists: the loss of a tuner that does not look at any draws."""

WORTH_COMPILING = 10.0
"""If one chain runs for at least this many seconds in all, a program for fewer chains saves more than its compilation
costs, a few seconds. In lockstep with others, superfluous chains cost a third of their seconds or less."""


def _width(grid: Mapping[str, Sequence], seconds: float) -> int | None:
    """Of the ensembles of a job that runs each chain for ``seconds`` in all."""
    width = len(grid["log10_step_sizes"])
    return width if width * seconds < WORTH_COMPILING else None


class _Kept:
    """Pieces of a job, each made once: after a kill the finished ones are reused."""

    def __init__(self, parts: Parts, depends_on: Mapping):
        self.parts = parts
        self.depends_on = {**depends_on, "code": code_digest()}

    def get(self, name: str, make: Callable[[], object]) -> object:
        own = fingerprint({**self.depends_on, "piece": name})
        kept = self.parts.get(name, own)
        if kept is None:
            kept = {"made": make()}
            self.parts.keep(name, own, kept)
        return kept["made"]


NOT_OF_THE_ARM = ("is_extra", "steps", "diverged", "losses", "acceptance")


def _arm(record: Mapping) -> Arm:
    return Arm(**{name: number for name, number in record.items() if name not in NOT_OF_THE_ARM})


def _record(arm: Arm | None) -> dict | None:
    return None if arm is None else arm.to_record()


def _grid_names(grid: Mapping[str, Sequence]) -> dict:
    """The arguments of `sgtune.tuning.Grid` from a configuration's grid: keys without a field are further axes."""
    fields = ("log10_step_sizes", "batch_fractions", "n_leapfrogs")
    further = {name: tuple(values) for name, values in grid.items() if name not in fields}
    return {name: tuple(grid[name]) for name in fields if name in grid} | {"hyperparameters": further}
