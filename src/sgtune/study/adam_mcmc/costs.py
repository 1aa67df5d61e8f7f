"""Measured costs of a step that a short disturbance of the machine does not change."""

from collections.abc import Callable, Iterable, Mapping

from sgtune.model import Model
from sgtune.sampling.budget import CostTable
from sgtune.study.adam_mcmc.cost_remarks import remarks_on_costs
from sgtune.tuning import calibrate_cost

__all__ = ["least_costs"]


def least_costs(
    model: Model,
    shapes: Iterable[tuple],
    settings: Mapping,
    *,
    report: Callable[[str], None] = lambda line: None,
) -> tuple[CostTable, list[str]]:
    """The smallest of several measured costs of each shape, and remarks on costs that still contradict each other.

    All shapes are measured one after another, and then again, ``repeats`` times: what slows the machine for some
    seconds slows every shape in one pass, and the minimum leaves it out. A disturbance only makes steps slower.

    Args:
        shapes: as for `sgtune.tuning.calibrate_cost`.
        settings: the configuration's section ``adam_mcmc.costs``: ``seconds`` and ``repeats``.
    """
    shapes = list(dict.fromkeys(shapes))
    passes = [
        calibrate_cost(model, shapes, seconds=settings["seconds"], report=report).seconds_per_step
        for _ in range(settings["repeats"])
    ]
    least = {shape: min(own[shape] for own in passes) for shape in passes[0]}
    remarks = remarks_on_costs(least)
    for remark in remarks:
        report(remark)
    return CostTable(least), remarks
