"""Measured costs of a step that a short disturbance of the machine does not change, and a check of them."""

from collections.abc import Callable, Iterable, Mapping

from sgtune.axes import STATIC, named, numbers_of
from sgtune.model import Model
from sgtune.sampling.budget import CostTable
from sgtune.tuning import calibrate_cost

__all__ = ["least_costs", "remarks_on_costs"]

LEAST_SHARE, MOST_SHARE = 0.6, 1.15
"""Bounds of the ratio of the costs of two steps over the ratio of their numbers of leapfrogs L. A step costs a + b L:
a >= 0 makes the share smaller than 1, and the larger bound has room for the noise of the clock."""


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


def remarks_on_costs(costs: Mapping[tuple, float]) -> list[str]:
    """A line for each pair of shapes that differ only in L, if the ratio of their costs is far from the ratio of L."""
    families: dict[tuple, dict[int, float]] = {}
    for (sampler, *static), seconds in costs.items():
        numbers = numbers_of(tuple(static), STATIC)
        n_leapfrog = numbers.pop("n_leapfrog")
        if n_leapfrog is not None:
            families.setdefault((sampler, named(numbers)), {})[n_leapfrog] = seconds
    lines = []
    for (sampler, others), family in families.items():
        fewest = min(family)
        for more in sorted(family.keys() - {fewest}):
            share = family[more] / family[fewest] * fewest / more
            if not LEAST_SHARE <= share <= MOST_SHARE:
                lines.append(
                    f"{sampler}, {others}: a step of L={more} costs {family[more] / family[fewest]:.2g} times a "
                    f"step of L={fewest}, and not about {more / fewest:.2g} times; measure the costs again on an idle "
                    "machine"
                )
    return lines
