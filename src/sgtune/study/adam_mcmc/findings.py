"""Sentences with what the records of the study show: every number is theirs, and a difference is claimed only if
its 95% t interval excludes 0 (`sgtune.study.adam_mcmc.intervals`)."""

# ruff: noqa: RUF001 - sentences have Greek letters and signs of mathematics

from collections.abc import Iterable, Mapping, Sequence
from math import exp, expm1, hypot, sqrt

from sgtune.study.adam_mcmc.intervals import is_beyond
from sgtune.study.adam_mcmc.names import mean_of, target_label, targets_in
from sgtune.study.adam_mcmc.verdicts import estimate_text, has_left_target, squares_cause
from sgtune.study.artifacts.remarks import counted

__all__ = [
    "DISTANCES",
    "STRAIGHT",
    "acceptance_counts",
    "acceptance_findings",
    "bias_findings",
    "distance_findings",
    "gain_of",
    "pairs_of",
]

DISTANCES = {
    "mala-grid": "MALA, exactly",
    "mala": "MALA",
    "adam-mcmc-exact": "AdamMCMC, exact",
    "adam-mcmc-exact-slow": "AdamMCMC, exact, Adam's b₁, b₂",
    "adam-mcmc": "AdamMCMC, γ / s = 0.1",
    "adam-mcmc-large": "AdamMCMC, γ / s = 1",
}
"""Lines of total variation, in print."""

CLEAR_OF_FLOOR = 2
"""A curve that ends at more than this many times the distance of as many exact draws ends at a bias."""

STRAIGHT = 0.15
"""A line whose largest misfit, in log, is more than this is not called straight."""


def pairs_of(record: Mapping) -> list[tuple[float, float, float, Mapping, Mapping]]:
    """(gamma / s, s_d, s, the cell without directional noise, the one with it): for every s_d but 0."""
    cells = {(c["drift_ratio"], c["directional_noise"], c["scale"]): c for c in record["cells"]}
    return [
        (ratio, along, scale, cells[ratio, 0, scale], cell)
        for (ratio, along, scale), cell in cells.items()
        if along
    ]


def gain_of(without: Mapping, with_noise: Mapping) -> tuple[float, float | None]:
    """The acceptance rate with directional noise less the rate without, and the standard error of the difference."""
    (first, first_se), (second, second_se) = (mean_of(cell["acceptance"]) for cell in (without, with_noise))
    has_error = first_se is not None and second_se is not None
    return second - first, hypot(first_se, second_se) if has_error else None


def _text(value: float, se: float | None, *, signed: bool = False) -> str:
    return estimate_text(value, se, signed=signed) or f"{value:.3g}"


def _listed(items: Iterable[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def acceptance_findings(found: Sequence[Mapping], scale: float) -> list[str]:
    """On the claim of the paper that the prolate proposal raises acceptance, at one s."""
    rows = _comparisons(found, scale)
    return _counts(rows) + _by_length(rows)


def acceptance_counts(found: Sequence[Mapping], scale: float) -> list[str]:
    """The findings on acceptance without those on Gaussians of different D."""
    return _counts(_comparisons(found, scale))


def _comparisons(found: Sequence[Mapping], scale: float) -> list[tuple]:
    """Of each pair of cells at this s: gamma sqrt(D) / s, the gain, its standard error, the record, gamma / s, whether
    the gain is clear of noise, and the cell with noise along the update."""
    rows = []
    for record in targets_in(found):
        for ratio, _, own, without, with_noise in pairs_of(record):
            gain, se = gain_of(without, with_noise)
            if own == scale and se is not None:
                n_chains = min(len(cell["acceptance"]) for cell in (without, with_noise))
                is_clear = is_beyond(gain, se, n_chains)
                rows.append(
                    (ratio * sqrt(record["dimension"]), gain, se, record, ratio, is_clear, with_noise)
                )
    return rows


def _counts(rows: Sequence[tuple]) -> list[str]:
    if not rows:
        return []
    raised = [row for row in rows if row[1] > 0 and row[5]]
    lowered = [row for row in rows if row[1] < 0 and row[5]]
    said = [
        f"Noise along the update raised the acceptance rate in {len(raised)} of {counted(len(rows), 'comparison')} "
        f"and lowered it in {len(lowered)}, by 95% t intervals."
    ]
    if raised:
        least, most = min(raised, key=lambda row: row[1]), max(raised, key=lambda row: row[1])
        said.append(
            f"The gains that were found lie between {_where(least)} and {_where(most)}."
            if least is not most
            else f"The gain was {_where(most)}."
        )
        biased = [row for row in raised if has_left_target(row[3], row[6])]
        slow = [row for row in raised if row not in biased and squares_cause(row[6], row[6]["steps"])]
        said.append(
            f"In {len(biased)} of these {len(raised)} cases the draws with this noise are biased: E x² is further "
            f"than 0.1 from 1, by its 95% t interval. {_too_slow(len(slow))}".rstrip()
        )
    rest = [row for row in rows if row not in raised and row not in lowered]
    if rest:
        said.append(
            f"The 95% t intervals of the other differences contain 0; the largest γ √D / s among them is "
            f"{max(row[0] for row in rest):.2g}."
        )
    return said


def _too_slow(count: int, after: str = "") -> str:
    if not count:
        return ""
    return f"{count} more {'is' if count == 1 else 'are'} too slow to tell.{after}"


def _where(row: tuple) -> str:
    length, gain, se, record, ratio, *_ = row
    return (
        f"{_text(gain, se, signed=True)} ({target_label(record)}, γ / s = {ratio:g}, γ √D / s = {length:.2g})"
    )


def _by_length(rows: Sequence[tuple]) -> list[str]:
    """Pairs of Gaussians of different D with the same gamma sqrt(D) / s: the gain is a function of this ratio."""
    of_length: dict[float, list[tuple]] = {}
    for row in rows:
        if row[3]["target"].startswith("gaussian"):
            of_length.setdefault(float(f"{row[0]:.2g}"), []).append(row)
    lines = []
    for length, own in sorted(of_length.items()):
        if len(own) > 1 and all(row[1] > 0 and row[5] for row in own):
            gains = _listed(
                f"{_text(row[1], row[2], signed=True)} at D = {row[3]['dimension']:,}" for row in own
            )
            lines.append(f"At γ √D / s = {length:g} the gain was {gains}.")
    return lines


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
        return f"E x² = {_text(*mean_of(cells[key]['squares']))} at D = {key[1]:,}, γ / s = {key[2]:g}"

    lines = []
    paper = [key for key in every if key[0] in ("isotropic", "prolate")]
    slow = [key for key in paper if key not in cells]
    biased = [key for key in paper if key in cells and is_off(key)]
    if biased:
        smallest = min(key[2] for key in biased)
        worst = max((k for k in biased if k[2] == smallest), key=lambda k: abs(deviation(cells[k])[0]))
        lines.append(
            "The algorithm of the paper leaves out the momentum's factor of its Theorem 1, and it does not keep the "
            f"target: by 95% t intervals E x² differs from 1 in {len(biased)} of {counted(len(paper), 'case')}, with "
            f"exact gradients and a test on all data; {said(worst)}. {_too_slow(len(slow))}".rstrip()
        )
    above = [key for key in biased if deviation(cells[key])[0] > 0]
    below = [key for key in biased if deviation(cells[key])[0] < 0]
    if above and below:
        high = max(above, key=lambda key: deviation(cells[key])[0])
        low = min(below, key=lambda key: deviation(cells[key])[0])
        lines.append(f"This bias has both signs: {said(low)}, and {said(high)}.")
    lines += _minibatch_findings(cells, deviation, said)
    exact = [key for key in cells if key[0] == "exact"]
    if exact:
        n_near = sum(not is_off(key) for key in exact)
        slow = [key for key in every if key[0] == "exact" and key not in cells]
        off = max(exact, key=lambda key: abs(deviation(cells[key])[0]) / deviation(cells[key])[1])
        lines.append(
            f"With the exact variant the 95% t interval of E x² contains 1 in {n_near} of "
            f"{counted(len(exact) + len(slow), 'case')} (of an unbiased sampler one interval in 20 does not); the "
            f"largest difference in standard errors is at {said(off)}. "
            f"{_too_slow(len(slow), after=' ')}Its acceptance rate falls from {_fall(cells, exact)}."
        )
    return lines


def _minibatch_findings(cells: Mapping, deviation, said) -> list[str]:
    """Of the pairs of cells that both have an estimate: in how many the bias is smaller, and in how many larger."""
    smaller, larger, n_compared = [], [], 0
    for key in cells:
        exact = ("prolate", *key[1:])
        if key[0] != "prolate-batch" or exact not in cells:
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
        without = _text(*mean_of(cells[("prolate", *key[1:])]["squares"]))
        return f" (the largest difference: {said(key)} with them, {without} without)"

    if not smaller and not larger:
        return []
    return [
        f"By 95% t intervals, minibatch gradients make the bias smaller in {len(smaller)} of "
        f"{counted(n_compared, 'case')}{largest(smaller)} and larger in {len(larger)}{largest(larger)}."
    ]


def _fall(cells: Mapping, exact: Sequence[tuple]) -> str:
    """The exact variant's acceptance at the smallest and the largest D, at the largest gamma / s below 1."""
    ratios = sorted({key[2] for key in exact})
    ratio = max([r for r in ratios if r < 1] or ratios)
    ends = sorted({key[1] for key in exact})
    first, last = (_text(*mean_of(cells["exact", d, ratio]["acceptance"])) for d in (ends[0], ends[-1]))
    return f"{first} at D = {ends[0]:,} to {last} at D = {ends[-1]:,} (γ / s = {ratio:g})"


def distance_findings(found: Mapping, names: Mapping[str, str]) -> list[str]:
    """On the straight lines of Theorem 2: rates with their windows, and the curves that have none.

    Args:
        names: of the lines, in print.
    """
    lines = []
    for line in found["lines"]:
        fit, label = line["fit"], names[line["name"]]
        if fit is None or fit["misfit"] > STRAIGHT:
            lines.append(
                f"{label}: no rate; the distance falls only to {line.get('plateau', line['distances'][-1]):.3g} in "
                f"{len(line['distances']) - 1} steps."
                if fit is None
                else f"{label}: no rate; the curve is up to a factor of {exp(fit['misfit']):.2g} off a line."
            )
        else:
            lines.append(
                f"{label}: a factor of {fit['rate']:.3f} a step over steps {fit['first']} to {fit['last']}, at most "
                f"{100 * expm1(fit['misfit']):.0f}% off the line."
            )
    return lines + _ends_of_the_printed(found, names)


QUICK_NAMES = ("adam-mcmc-exact", "adam-mcmc", "adam-mcmc-large")
"""The lines of AdamMCMC with the decay rates `sgtune.study.adam_mcmc.distances.QUICK`."""


def _ends_of_the_printed(found: Mapping, names: Mapping[str, str]) -> list[str]:
    """The decay rates that no label has, and the distances at which the paper's own algorithm ends."""
    lines = {line["name"]: line for line in found["lines"]}
    said = []
    if any(name in lines for name in QUICK_NAMES):
        said.append("The curves of AdamMCMC without a mark have b₁ = 0.5 and b₂ = 0.9.")
    ends = [
        (names[name], lines[name]["plateau"])
        for name in ("adam-mcmc", "adam-mcmc-large")
        if "plateau" in lines.get(name, ())
    ]
    if ends:
        above = _listed(f"{end:.2g} ({label})" for label, end in ends)
        verdict = (
            ": the rest is the bias of the algorithm"
            if min(end for _, end in ends) > CLEAR_OF_FLOOR * found["floor"]
            else ""
        )
        said.append(
            f"The algorithm as printed ends at a distance of {above}, as many exact draws at "
            f"{found['floor']:.2g}{verdict}."
        )
    return said
