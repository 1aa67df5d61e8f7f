"""Sentences on acceptance and effective sample sizes: every number is of the records, and a difference is claimed only
if its t interval excludes 0 (`sgtune.study.adam_mcmc.intervals`), of intervals that together hold with 95%
(Bonferroni): among dozens of comparisons a few would differ by chance."""

# ruff: noqa: RUF001 - sentences have Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence
from math import hypot, sqrt
from typing import NamedTuple

from sgtune.study.adam_mcmc.acceptance_table import ess_per_second
from sgtune.study.adam_mcmc.intervals import is_beyond, together
from sgtune.study.adam_mcmc.names import mean_of, target_label, targets_in
from sgtune.study.adam_mcmc.sentences import listed, said_with_error, too_slow_said
from sgtune.study.adam_mcmc.verdicts import has_left_target, is_unsettled, moment_cause
from sgtune.study.report.remarks import counted

__all__ = ["acceptance_counts", "acceptance_findings", "gain_of", "pairs_of"]


class Comparison(NamedTuple):
    """One cell with noise along the update against the cell without, at the same gamma / s and s."""

    record: Mapping
    """The target's record."""
    ratio: float
    """gamma / s."""
    scale: float
    """s sqrt(T)."""
    length: float
    """gamma sqrt(D) / s."""
    gain: float
    """The rate with the noise less the rate without."""
    se: float
    """The standard error of the gain."""
    n_chains: int
    """Of the cell that has fewer."""
    is_unsettled: bool
    """The chains of either cell have not settled."""
    is_clean: bool
    """Both cells have settled, and neither is biased."""
    without: Mapping
    """The cell without noise along the update."""
    with_noise: Mapping
    """The cell with it."""


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


def acceptance_findings(found: Sequence[Mapping], scale: float) -> list[str]:
    """On the claim of the paper that the prolate proposal raises acceptance: at the ``scale`` of the tables, and at
    all s."""
    rows = _comparisons(found)
    shown = [row for row in rows if row.scale == scale]
    of_gains = _counts(shown, scale) + _over_scales(rows) + _gains_by_dimension(shown, scale)
    return of_gains + _by_dimension(found, scale) + _ess_findings(found)


def acceptance_counts(found: Sequence[Mapping], scale: float) -> list[str]:
    """The findings on acceptance without those on Gaussians of different D."""
    return _counts([row for row in _comparisons(found) if row.scale == scale], scale)


def _comparisons(found: Sequence[Mapping]) -> list[Comparison]:
    """Every pair of cells whose gain has a standard error."""
    rows = []
    for record in targets_in(found):
        for ratio, _, scale, *cells in pairs_of(record):
            gain, se = gain_of(*cells)
            if se is None:
                continue
            faults = [moment_cause(record, cell) or has_left_target(record, cell) for cell in cells]
            rows.append(
                Comparison(
                    record=record,
                    ratio=ratio,
                    scale=scale,
                    length=ratio * sqrt(record["dimension"]),
                    gain=gain,
                    se=se,
                    n_chains=min(len(cell["acceptance"]) for cell in cells),
                    is_unsettled=any(is_unsettled(record, cell) for cell in cells),
                    is_clean=not any(faults),
                    without=cells[0],
                    with_noise=cells[1],
                )
            )
    return rows


def _clear(rows: Sequence[Comparison]) -> list[Comparison]:
    """Those with a gain that is clear of Monte Carlo noise."""
    coverage = together(len(rows))
    return [row for row in rows if is_beyond(row.gain, row.se, row.n_chains, coverage)]


def _counts(rows: Sequence[Comparison], scale: float) -> list[str]:
    if not rows:
        return []
    clear = _clear(rows)
    raised, lowered = [row for row in clear if row.gain > 0], [row for row in clear if row.gain < 0]
    said = [
        f"Noise along the update raised the acceptance rate in {len(raised)} of {counted(len(rows), 'comparison')} "
        f"and lowered it in {len(lowered)}, by t intervals that together hold with 95%, at s √T = {scale:g}."
    ]
    n_unsettled = sum(row.is_unsettled for row in raised)
    if n_unsettled:
        said.append(
            f"{n_unsettled} of the {len(raised)} {'compares' if n_unsettled == 1 else 'compare'} chains that are stuck "
            "or too slow: their rates may still change, so that the size of their gain says nothing."
        )
    if raised:
        biased = [row for row in raised if has_left_target(row.record, row.with_noise)]
        slow = [row for row in raised if row not in biased and moment_cause(row.record, row.with_noise)]
        said.append(
            f"In {len(biased)} of these {len(raised)} cases the draws with this noise are biased: E x² is further "
            f"than 0.1 from 1, by its 95% t interval. {too_slow_said(len(slow))}".rstrip()
        )
        n_clean = sum(row.is_clean for row in raised)
        said.append(
            f"In {n_clean} of these {len(raised)} cases both sets of chains have settled, and E x² of neither is "
            "clearly further than 0.1 from 1."
        )
    rest = [row for row in rows if row not in raised and row not in lowered]
    if rest:
        said.append(
            f"The t intervals of the other differences contain 0; the largest γ √D / s among them is "
            f"{max(row.length for row in rest):.2g}."
        )
    return said


def _over_scales(rows: Sequence[Comparison]) -> list[str]:
    """The counts at all s together, and by how much the rate rose where both sets of chains have settled."""
    n_scales = len({row.scale for row in rows})
    clear = _clear(rows)
    raised = [row for row in clear if row.gain > 0]
    said = []
    if n_scales > 1:
        said.append(
            f"At all {n_scales} values of s it raised the rate in {len(raised)} of {counted(len(rows), 'comparison')} "
            f"and lowered it in {len(clear) - len(raised)}."
        )
    settled = [row for row in raised if not row.is_unsettled]
    if settled:
        least, most = min(settled, key=lambda row: row.gain), max(settled, key=lambda row: row.gain)
        where = f"from {_where(least)} to {_where(most)}" if least is not most else _where(most)
        n = len(settled)
        said.append(
            f"Both sets of chains have settled in {n} of the {len(raised)} cases with a gain, which "
            f"{'is' if n == 1 else 'goes'} {where}."
        )
    return said


def _where(row: Comparison) -> str:
    gained = said_with_error(row.gain, row.se, signed=True)
    squares = (said_with_error(*mean_of(cell["square"])) for cell in (row.without, row.with_noise))
    return (
        f"{gained} ({target_label(row.record)}, γ / s = {row.ratio:g}, s √T = {row.scale:g}; E x² is "
        f"{' without and '.join(squares)} with the noise)"
    )


def _gains_by_dimension(rows: Sequence[Comparison], scale: float) -> list[str]:
    """How the gain scales with D: of pairs on Gaussians that have settled, those with the same gamma / s and s_d."""
    groups: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        if row.record["target"].startswith("gaussian") and not row.is_unsettled:
            gain = f"{said_with_error(row.gain, row.se, signed=True)} at D = {row.record['dimension']:,}"
            groups.setdefault((row.ratio, row.with_noise["directional_noise"]), []).append(gain)
    said = [
        f"for γ / s = {ratio:g} and s_d = {along:g} it is {listed(gains)}"
        for (ratio, along), gains in groups.items()
        if len(gains) > 1
    ]
    return [f"The gain of chains that have settled, at s √T = {scale:g}: {'; '.join(said)}."] if said else []


USABLE = 0.3
"""An acceptance rate that is called usable in the sentence on the dimension."""


def _by_dimension(found: Sequence[Mapping], scale: float) -> list[str]:
    """How acceptance scales with D on Gaussians, at one s: the largest gamma / s with a usable rate without noise along
    the update, and the rate at the largest gamma / s with it."""
    without, along = [], []
    for record in targets_in(found):
        cells = [cell for cell in record["cells"] if cell["scale"] == scale]
        if not record["target"].startswith("gaussian") or not cells:
            continue
        at = f"at D = {record['dimension']:,}"
        usable = [
            cell
            for cell in cells
            if cell["directional_noise"] == 0 and mean_of(cell["acceptance"])[0] >= USABLE
        ]
        largest = max(usable, key=lambda cell: cell["drift_ratio"], default=None)
        without.append(f"{largest['drift_ratio']:g}{_mark(record, largest)} {at}" if usable else f"none {at}")
        last = max(cells, key=lambda cell: (cell["drift_ratio"], cell["directional_noise"]))
        rate, square = mean_of(last["acceptance"])[0], mean_of(last["square"])[0]
        along.append(f"{rate:.2f}{_mark(record, last)} {at} (E x² over the run: {square:.2g})")
    if len(without) < 2:
        return []
    marks = " *: these chains are stuck or too slow, and their rates may still be those of their starts."
    said = (
        f"Without noise along the update, at s √T = {scale:g}, the largest γ / s of the grid with an acceptance rate "
        f"of at least {USABLE:g} is {listed(without)}. With it, at γ / s = {last['drift_ratio']:g}, the rate is "
        f"{listed(along)}."
    )
    return [said + (marks if "*" in said else "")]


def _mark(record: Mapping, cell: Mapping) -> str:
    return " *" if is_unsettled(record, cell) else ""


def _ess_findings(found: Sequence[Mapping]) -> list[str]:
    """Effective samples with directional noise against those without, at one s."""
    differences, missing = [], []
    for record in targets_in(found):
        pairs = dict.fromkeys(pair[:2] for pair in pairs_of(record))
        known = [sizes for pair in pairs if (sizes := _ess_pair(record, *pair)) is not None]
        if pairs and not known:
            missing.append(target_label(record))
        for without, with_noise in known:
            (first, first_se), (second, second_se) = mean_of(without), mean_of(with_noise)
            n_chains = min(len(without), len(with_noise))
            differences.append((second - first, hypot(first_se, second_se), n_chains))
    if not differences:
        return []
    coverage = together(len(differences))
    clear = [gain for gain, *error in differences if is_beyond(gain, *error, coverage)]
    raised = sum(gain > 0 for gain in clear)
    none = f" No comparison is possible on: {listed(missing)}." if missing else ""
    return [
        f"Where both sets of draws have an effective sample size, that is, enough draws without a clear bias, noise "
        f"along the update raised it in {raised} of {counted(len(differences), 'comparison')} and lowered it in "
        f"{len(clear) - raised}, by t intervals that together hold with 95%, at the s with the most effective samples "
        f"of those where both have one.{none}"
    ]


def _ess_pair(record: Mapping, ratio: float, along: float) -> tuple[list[float], list[float]] | None:
    """The effective samples without and with noise along the update, at the s where they are most in sum; None if no s
    has both with a standard error."""
    pairs = [cells for own, noise, _, *cells in pairs_of(record) if (own, noise) == (ratio, along)]
    sizes = [tuple(ess_per_second(record, cell, 1.0) for cell in cells) for cells in pairs]
    known = [of_pair for of_pair in sizes if all(len(one) > 1 for one in of_pair)]
    return max(known, key=lambda of_pair: sum(mean_of(one)[0] for one in of_pair), default=None)
