"""Every arm of a grid in a few replicates, and the arms that oracles choose from it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.experiments.losses import (
    Losses,
    frozen_losses,
    oracle_arm,
    over_replicates,
    run_arms,
    width_of,
)
from sgtune.study.pipeline.parts import Parts
from sgtune.tuning import Grid, Halving, make_arms

__all__ = ["as_grid", "screen_grid"]


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
        depends_on: everything that the results depend on besides the grid and the replicate.

    Returns:
        ``seconds``, ``replicates``, ``arms`` (hyperparameters, ``is_extra``, steps, and a list over replicates of
        ``diverged`` and of each of the ``losses``), ``oracles`` (loss -> arm or None of each race), and
        ``frozen`` (loss -> value).
    """
    regular = make_arms(model.n_data, sampler, **grid)
    arms = list(dict.fromkeys([*regular, *extra]))
    own = {**depends_on, "grid": grid}
    run = partial(
        run_arms,
        model,
        sampler,
        arms,
        losses=losses,
        seconds=[section["seconds"]],
        cost=cost,
        width=width_of(grid, section["seconds"] * section["replicates"]),
        seed=seed,
        report=report,
    )
    names = [f"screen {i}" for i in range(section["replicates"])]
    runs = [parts.once(name, own, partial(run, replicate=name)) for name in names]

    def chosen_by(loss: str, replicate: int) -> dict | None:
        tuner = Halving(
            judge=losses.judge(loss), pruning_rate=oracle["pruning_rate"], grid=as_grid(grid), thin=1
        )
        budget = Budget(seconds=oracle["seconds"])
        arm = oracle_arm(
            model, sampler, tuner=tuner, budget=budget, cost=cost, seed=seed, replicate=replicate
        )
        report(f"oracle of {loss}, race {replicate}: {arm}")
        return None if arm is None else arm.to_record()

    return {
        "seconds": section["seconds"],
        "replicates": section["replicates"],
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
                parts.once(f"oracle {loss} {i}", own, partial(chosen_by, loss, i)) for i in range(n_oracles)
            ]
            for loss in losses.names[:oracle_losses]
        },
        "frozen": frozen_losses(model, losses),
    }


def as_grid(grid: Mapping[str, Sequence]) -> Grid:
    """A configuration's grid: keys without a field of `sgtune.tuning.Grid` are further axes."""
    fields = ("log10_step_sizes", "batch_fractions", "n_leapfrogs")
    further = {name: tuple(values) for name, values in grid.items() if name not in fields}
    return Grid(**{name: tuple(grid[name]) for name in fields if name in grid}, hyperparameters=further)
