"""Every arm of a grid in a few replicates, and the arms that oracles choose from it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget
from sgtune.study.experiments.losses import (
    frozen_losses,
    losses_of,
    over_replicates,
    raced_arm,
    run_arms,
    width_of,
)
from sgtune.study.pipeline.parts import Task
from sgtune.tuning import Grid, Halving, make_arms

__all__ = ["as_grid", "screen_grid"]


def screen_grid(
    task: Task, section: Mapping, *, race: Mapping, n_races: int, extra: Iterable[Arm] = ()
) -> dict:
    """Every arm of the grid, and the ``extra`` ones, in a few replicates; and the arms that oracles choose.

    Args:
        section: the configuration's section ``regret``: ``prediction_draws``, and of ``screen`` the seconds, the
            replicates, and ``oracle_losses`` (or 1): each of this many losses, the main one first, has an oracle.
        race: ``seconds`` and ``pruning_rate`` of a race of an oracle.
        n_races: of each oracle, one for each tuning replicate.

    Returns:
        ``seconds``, ``replicates``, ``arms`` (hyperparameters, ``is_extra``, steps, and a list over replicates of
        ``diverged`` and of each of the ``losses``), ``oracles`` (loss -> arm or None of each race), and
        ``frozen`` (loss -> value).
    """
    losses, screen = losses_of(task, section["prediction_draws"]), section["screen"]
    seconds, replicates = screen["seconds"], screen["replicates"]
    regular = make_arms(task.model.n_data, task.sampler, **task.grid)
    arms = list(dict.fromkeys([*regular, *extra]))
    width = width_of(task.grid, seconds * replicates)
    run = partial(run_arms, task, arms, losses=losses, seconds=[seconds], width=width)
    names = [f"screen {i}" for i in range(replicates)]
    runs = [task.once(name, partial(run, replicate=name), grid=task.grid) for name in names]

    def chosen_by(loss: str, replicate: int) -> dict | None:
        judge, grid = losses.judge(loss), as_grid(task.grid)
        tuner = Halving(judge=judge, pruning_rate=race["pruning_rate"], grid=grid, thin=1)
        arm = raced_arm(task, tuner=tuner, budget=Budget(seconds=race["seconds"]), replicate=replicate)
        task.report(f"oracle of {loss}, race {replicate}: {arm}")
        return None if arm is None else arm.to_record()

    return {
        "seconds": seconds,
        "replicates": replicates,
        "arms": [
            {
                **arm.to_record(),
                "is_extra": arm not in regular,
                **over_replicates([run[place][0] for run in runs]),
            }
            for place, arm in enumerate(arms)
        ],
        "oracles": {
            loss: [
                task.once(f"oracle {loss} {i}", partial(chosen_by, loss, i), grid=task.grid)
                for i in range(n_races)
            ]
            for loss in losses.names[: screen.get("oracle_losses", 1)]
        },
        "frozen": frozen_losses(task.model, losses),
    }


def as_grid(grid: Mapping[str, Sequence]) -> Grid:
    """A configuration's grid: keys without a field of `sgtune.tuning.Grid` are further axes."""
    fields = ("log10_step_sizes", "batch_fractions", "n_leapfrogs")
    further = {name: tuple(values) for name, values in grid.items() if name not in fields}
    return Grid(**{name: tuple(grid[name]) for name in fields if name in grid}, hyperparameters=further)
