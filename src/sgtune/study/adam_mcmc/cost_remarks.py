"""A check of measured costs: steps that differ only in their leapfrogs. Tables are made from it, so nothing heavy is
imported."""

from collections.abc import Collection, Mapping

from sgtune.axes import STATIC, named, numbers_of

__all__ = ["remarks_on_costs"]

LEAST_SHARE, MOST_SHARE = 0.6, 1.15
"""Bounds of the ratio of the costs of two steps over the ratio of their numbers of leapfrogs L. A step costs a + b L:
a >= 0 makes the share smaller than 1, and the larger bound has room for the noise of the clock."""


def remarks_on_costs(costs: Mapping[tuple, float], used: Collection[tuple] | None = None) -> list[str]:
    """A line for each pair of shapes that differ only in L, if the ratio of their costs is far from the ratio of L.

    Args:
        costs: seconds per step by (sampler, batch size, L).
        used: keys of ``costs``; a pair without any of them gets no line. None: all pairs.
    """
    families: dict[tuple, dict[int, tuple]] = {}
    for key in costs:
        sampler, *static = key
        numbers = numbers_of(tuple(static), STATIC)
        n_leapfrog = numbers.pop("n_leapfrog")
        if n_leapfrog is not None:
            families.setdefault((sampler, named(numbers)), {})[n_leapfrog] = key
    lines = []
    for (sampler, others), family in families.items():
        fewest = min(family)
        for more in sorted(family.keys() - {fewest}):
            if used is not None and not {family[fewest], family[more]} & set(used):
                continue
            times = costs[family[more]] / costs[family[fewest]]
            if not LEAST_SHARE <= times * fewest / more <= MOST_SHARE:
                lines.append(
                    f"{sampler}, {others}: a step of L={more} costs {times:.2g} times a step of L={fewest}, and not "
                    f"about {more / fewest:.2g} times; measure the costs again on an idle machine"
                )
    return lines
