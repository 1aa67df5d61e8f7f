"""Every arm of a grid in a few replicates, the arms that oracles choose from it, and fresh runs of the best and of the
chosen arms, from which regret is computed.

The smallest mean of a screen is too small, because it is the luckiest of many noisy ones; means of fresh runs are
unbiased.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from sgtune.mode.curvature import largest_curvature
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget
from sgtune.sampling.thinning import random_subset
from sgtune.study.experiments.losses import frozen_losses, losses_of, raced_arm, run_replicates
from sgtune.study.experiments.tune import as_grid
from sgtune.study.pipeline.parts import Task
from sgtune.study.pipeline.plan import RANDOM_ARMS
from sgtune.tuning import Halving

NOT_OF_THE_ARM = ("steps", "diverged", "losses", "acceptance")
"""What a record of a screen has beside an arm's hyperparameters."""


def screen_grid(task: Task, section: Mapping, *, race: Mapping, n_races: int) -> dict:
    """Every arm of the grid in a few replicates, and the arms that oracles choose.

    Args:
        section: the configuration's section ``regret``: ``prediction_draws``, and of ``screen`` the seconds, the
            replicates, and ``oracle_losses`` (or 1): each of this many losses, the main one first, has an oracle.
        race: ``seconds`` and ``pruning_rate`` of a race of an oracle.
        n_races: of each oracle, one for each tuning replicate.

    Returns:
        ``seconds``, ``replicates``, ``arms`` (hyperparameters, steps, and a list over replicates of ``diverged`` and of
        each of the ``losses``), ``oracles`` (loss -> arm or None of each race), and ``frozen`` (loss -> value).
    """
    losses, screen = losses_of(task, section["prediction_draws"]), section["screen"]
    seconds, replicates = screen["seconds"], screen["replicates"]
    grid = as_grid(task.grid)
    # As in `sgtune.tune`: step sizes that are not given fit the posterior.
    curvature = (largest_curvature(task.model),) if grid.log10_step_sizes is None else ()
    arms = grid.arms(task.model.n_data, task.sampler, *curvature)
    runs = run_replicates(task, arms, "screen", replicates, losses=losses, seconds=[seconds])

    def chosen_by(loss: str, replicate: int) -> dict | None:
        judge = losses.judge(loss)
        tuner = Halving(judge=judge, pruning_rate=race["pruning_rate"], grid=grid, thin=1)
        arm = raced_arm(task, tuner=tuner, budget=Budget(seconds=race["seconds"]), replicate=replicate)
        task.report(f"oracle of {loss}, race {replicate}: {arm}")
        return None if arm is None else arm.to_record()

    return {
        "seconds": seconds,
        "replicates": replicates,
        "arms": [
            arm.to_record() | {name: values for name, values in run.items() if name not in ("arm", "seconds")}
            for arm, run in zip(arms, runs, strict=True)
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


def rerun_finalists(
    task: Task, section: Mapping, screened: Mapping, chosen: Mapping[str, Sequence[Mapping | None]]
) -> dict:
    """The best arms of the screen, and all arms that a tuner or an oracle chose, in fresh replicates.

    Args:
        section: the configuration's section ``regret``.
        screened: the result of `screen_grid`, whose programs short runs use again.
        chosen: of `sgtune.study.experiments.tune.chosen_arms`.

    Returns:
        ``losses`` (their names), ``arms``, ``finalists`` (loss -> their places in ``arms``), ``chosen``, ``oracles``,
        ``random`` (places of arms drawn at random from those that stayed finite in the screen), ``runs`` (of
        `run_replicates`) and ``frozen``.
    """
    losses, seconds = losses_of(task, section["prediction_draws"]), section["seconds"]
    in_screen = [
        (Arm(**{axis: number for axis, number in record.items() if axis not in NOT_OF_THE_ARM}), record)
        for record in screened["arms"]
    ]

    def best_by(loss: str) -> list[Arm]:
        """The arms with the smallest means; ties keep their order."""
        ordered = sorted(in_screen, key=lambda pair: float(np.mean(pair[1]["losses"][loss])))
        return [arm for arm, _ in ordered[: section["finalists"]]]

    finalists = {name: best_by(name) for name in losses.names}
    finite = [arm for arm, record in in_screen if not any(record["diverged"])]
    stream = task.seed, "random arms", task.model.name, task.sampler
    at_random = [finite[number] for number in random_subset(len(finite), RANDOM_ARMS, *stream)]
    by_tuner, by_oracle = (
        {name: [record and Arm(**record) for record in records] for name, records in some.items()}
        for some in (chosen, screened["oracles"])
    )
    wanted = chain(*finalists.values(), at_random, *by_tuner.values(), *by_oracle.values())
    arms = list(dict.fromkeys(arm for arm in wanted if arm is not None))
    place = {None: None} | {arm: number for number, arm in enumerate(arms)}
    options = {"losses": losses, "seconds": seconds}
    return {
        "losses": list(losses.names),
        "arms": [arm.to_record() for arm in arms],
        "finalists": {name: [place[arm] for arm in best] for name, best in finalists.items()},
        "chosen": [{"tuner": name, "arms": [place[arm] for arm in own]} for name, own in by_tuner.items()],
        "oracles": {name: [place[arm] for arm in own] for name, own in by_oracle.items()},
        "runs": run_replicates(task, arms, "finalists", section["replicates"], **options),
        "random": [place[arm] for arm in at_random],
        "frozen": screened["frozen"],
    }
