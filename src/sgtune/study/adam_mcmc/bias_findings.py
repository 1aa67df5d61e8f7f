"""Sentences on the bias of AdamMCMC's variants: every number is of the records, and a difference is claimed only if its
95% t interval excludes 0."""

# ruff: noqa: RUF001 - sentences have Greek letters and signs of mathematics

from collections.abc import Callable, Mapping, Sequence
from math import hypot

from scipy.special import chdtrc

from sgtune.study.adam_mcmc.intervals import is_beyond
from sgtune.study.adam_mcmc.names import mean_of
from sgtune.study.adam_mcmc.sentences import listed, said_with_error, too_slow_said
from sgtune.study.adam_mcmc.verdicts import squares_cause
from sgtune.study.report.remarks import counted

__all__ = ["bias_findings"]


def bias_findings(found: Mapping) -> list[str]:
    """On the paper's Theorem 1 with its factor left out, on minibatch gradients, and on the exact variant."""
    every = {(c["variant"], c["dimension"], c["ratio"]): c for c in found["cells"]}
    cells = {key: cell for key, cell in every.items() if not squares_cause(cell, found["steps"])}

    def deviation(cell: Mapping) -> tuple[float, float]:
        mean, se = mean_of(cell["squares"])
        return mean - 1, se or float("inf")

    def is_off(key: tuple[str, int, float]) -> bool:
        return is_beyond(*deviation(cells[key]), len(cells[key]["squares"]))

    def said(key: tuple[str, int, float]) -> str:
        return (
            f"E x² = {said_with_error(*mean_of(cells[key]['squares']))} at D = {key[1]:,}, γ / s = {key[2]:g}"
        )

    lines = []
    paper = [key for key in every if key[0] in ("isotropic", "prolate")]
    slow = [key for key in paper if key not in cells]
    biased = [key for key in paper if key in cells and is_off(key)]
    if biased:
        smallest = min(key[2] for key in biased)
        worst = max((k for k in biased if k[2] == smallest), key=lambda k: abs(deviation(cells[k])[0]))
        lines.append(
            "The algorithm of the paper leaves out the momentum's factor of its Theorem 1, and it does not keep the "
            f"target: by 95% t intervals E x² differs from 1 in {len(biased)} of "
            f"{counted(len(paper) - len(slow), 'case')}, with exact gradients and a test on all data; {said(worst)}. "
            f"{too_slow_said(len(slow))}".rstrip()
        )
    above = [key for key in biased if deviation(cells[key])[0] > 0]
    below = [key for key in biased if deviation(cells[key])[0] < 0]
    if above and below:
        high = max(above, key=lambda key: deviation(cells[key])[0])
        low = min(below, key=lambda key: deviation(cells[key])[0])
        lines.append(f"This bias has both signs: {said(low)}, and {said(high)}.")
    lines += _growth(cells, paper)
    for variant, against, what in (
        ("prolate", "isotropic", "noise along the update makes"),
        ("prolate-batch", "prolate", "minibatch gradients make"),
    ):
        lines += _compared(every, cells, deviation, said, variant, against, what)
    lines += _of_minibatch_test(cells, said)
    exact = [key for key in cells if key[0] == "exact"]
    if exact:
        n_near = sum(not is_off(key) for key in exact)
        slow = [key for key in every if key[0] == "exact" and key not in cells]
        off = max(exact, key=lambda key: abs(deviation(cells[key])[0]) / deviation(cells[key])[1])
        lines.append(
            f"With the exact variant the 95% t interval of E x² contains 1 in {n_near} of "
            f"{counted(len(exact), 'case')} (of an unbiased sampler one interval in 20 does not); the "
            f"largest difference in standard errors is at {said(off)}{_together(cells, exact, deviation)}. "
            f"{too_slow_said(len(slow), after=' ')}{_rates(cells, exact)}".rstrip()
        )
    return lines


def _growth(cells: Mapping, paper: Sequence[tuple]) -> list[str]:
    """E x^2 of the printed algorithm in every D, at the smallest gamma / s that all D have."""
    known = [key for key in paper if key in cells and key[0] == "prolate"]
    ratios = sorted({key[2] for key in known})
    dimensions = sorted({key[1] for key in known})
    common = [ratio for ratio in ratios if all(("prolate", d, ratio) in cells for d in dimensions)]
    if len(dimensions) < 2 or not common:
        return []
    ratio = min(common)
    each = listed(
        f"{said_with_error(*mean_of(cells['prolate', d, ratio]['squares']))} at D = {d:,}" for d in dimensions
    )
    return [f"The bias depends on D, not on γ / s alone: at γ / s = {ratio:g}, s_d = 1, E x² is {each}."]


def _compared(
    every: Mapping, cells: Mapping, deviation, said, variant: str, against: str, what: str
) -> list[str]:
    """Of the pairs of cells that both have an estimate: in how many the bias is smaller, and in how many larger; and
    how many pairs have none."""
    smaller, larger, n_compared, n_unknown = [], [], 0, 0
    for key in every:
        exact = (against, *key[1:])
        if key[0] != variant or exact not in every:
            continue
        if key not in cells or exact not in cells:
            n_unknown += 1
            continue
        n_compared += 1
        (noisy, noisy_se), (plain, plain_se) = deviation(cells[key]), deviation(cells[exact])
        difference = abs(noisy) - abs(plain)
        n_chains = min(len(cells[k]["squares"]) for k in (key, exact))
        if is_beyond(difference, hypot(noisy_se, plain_se), n_chains):
            (smaller if difference < 0 else larger).append((abs(difference), key))

    def largest(own: Sequence[tuple[float, tuple]]) -> str:
        if not own:
            return ""
        _, key = max(own)
        without = said_with_error(*mean_of(cells[(against, *key[1:])]["squares"]))
        return f" (the largest difference: {said(key)} with, {without} without)"

    if not smaller and not larger:
        return []
    return [
        f"By 95% t intervals, {what} the bias smaller in {len(smaller)} of "
        f"{counted(n_compared, 'case')}{largest(smaller)} and larger in {len(larger)}{largest(larger)}. "
        f"{too_slow_said(n_unknown)}".rstrip()
    ]


def _of_minibatch_test(cells: Mapping, said: Callable[[tuple], str]) -> list[str]:
    """E x^2 with a test on minibatches where it differs most from E x^2 with a test on all data, at the smallest
    gamma / s that both have: the bias that does not vanish."""
    pairs = {key: ("prolate-batch", *key[1:]) for key in cells if key[0] == "minibatch-test"}
    pairs = {key: other for key, other in pairs.items() if other in cells}
    if not pairs:
        return []
    smallest = min(key[2] for key in pairs)
    found = []
    for key, other in pairs.items():
        (noisy, noisy_se), (plain, plain_se) = (mean_of(cells[k]["squares"]) for k in (key, other))
        n_chains = min(len(cells[k]["squares"]) for k in (key, other))
        se = hypot(noisy_se, plain_se) if None not in (noisy_se, plain_se) else None
        if key[2] == smallest and is_beyond(noisy - plain, se, n_chains):
            found.append((abs(noisy - plain), key))
    if not found:
        return []
    _, key = max(found)
    return [
        f"A test on minibatches adds a bias that does not vanish with γ / s: {said(key)}, where the test on all data, "
        f"with the same gradients, has {said_with_error(*mean_of(cells[pairs[key]]['squares']))}."
    ]


def _together(cells: Mapping, exact: Sequence[tuple], deviation) -> str:
    """A joint test: the sum of the squared differences in standard errors, whose law without a bias is chi^2."""
    total = sum((mean / se) ** 2 for mean, se in (deviation(cells[key]) for key in exact))
    return f"; χ² of all together {total:.1f}, p = {chdtrc(len(exact), total):.2g}"


def _rates(cells: Mapping, exact: Sequence[tuple]) -> str:
    """A sentence on the exact variant's acceptance at the smallest and the largest D, at the largest gamma / s below 1
    that both have; empty if they have none in common."""
    dimensions = sorted({key[1] for key in exact})
    ends = dimensions[0], dimensions[-1]
    ratios = [r for r in {key[2] for key in exact} if all(("exact", d, r) in cells for d in ends)]
    if not ratios:
        return ""
    ratio = max([r for r in ratios if r < 1] or ratios)

    def rate(variant: str, dimension: int) -> str:
        return said_with_error(*mean_of(cells[variant, dimension, ratio]["acceptance"]))

    first, last = (rate("exact", d) for d in (ends[0], ends[-1]))
    of_paper = ""
    if all(("prolate", d, ratio) in cells for d in (ends[0], ends[-1])):
        of_paper = (
            f", where the paper's variant has {rate('prolate', ends[0])} and {rate('prolate', ends[-1])}"
        )
    return (
        f"Its acceptance rate is {first} at D = {ends[0]:,} and {last} at D = {ends[-1]:,} (γ / s = {ratio:g})"
        f"{of_paper}."
    )
