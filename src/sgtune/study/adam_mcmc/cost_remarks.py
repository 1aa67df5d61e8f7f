"""Checks of measured costs: steps that differ only in their leapfrogs, and a step that does what another one does, and
more. Tables are made from it, so nothing heavy is imported."""

from collections.abc import Collection, Mapping

from sgtune.support.axes import STATIC, named, numbers_of

__all__ = ["remarks_on_costs"]

LEAST_SHARE, MOST_SHARE = 0.6, 1.15
"""Bounds of the ratio of the costs of two steps over the ratio of their numbers of leapfrogs L. A step costs a + b L:
a >= 0 makes the share smaller than 1, and the larger bound has room for the noise of the clock."""

CONTAINS = {"sgnht": "sgld"}
"""A sampler -> another one, whose step is a part of its own step: one gradient, and the same noise."""

LEAST_OF_WHOLE = 0.87
"""Bound of the cost of the whole over that of the part, at the same n: less by the noise of the clock alone."""


def remarks_on_costs(costs: Mapping[tuple, float], used: Collection[tuple] | None = None) -> list[str]:
    """A line for each pair of shapes that differ only in L, if the ratio of their costs is far from the ratio of L; and
    for each step that costs less than a part of it (`CONTAINS`).

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
    return lines + _cheaper_than_a_part(costs, used)


def _cheaper_than_a_part(costs: Mapping[tuple, float], used: Collection[tuple] | None) -> list[str]:
    lines = []
    for whole, part in CONTAINS.items():
        for key in costs:
            other = (part, *key[1:])
            if key[0] != whole or other not in costs or (used is not None and not {key, other} & set(used)):
                continue
            times = costs[key] / costs[other]
            if times < LEAST_OF_WHOLE:
                at = named(numbers_of(tuple(key[1:]), STATIC))
                lines.append(
                    f"{at}: a step of {whole} costs {times:.2g} times a step of {part}, which does less; measure the "
                    "costs again on an idle machine"
                )
    return lines
