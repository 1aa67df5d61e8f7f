"""The tables of the effect of noise along the update, at one isotropic noise s."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import sqrt

from sgtune.study.adam_mcmc.acceptance_table import (
    best_by_ess,
    chain_counts,
    chains_said,
    ess_per_second,
    lengths_said,
    mean_cell,
    rate_cell,
    scales_said,
    seconds_per_step,
    shown_scale,
)
from sgtune.study.adam_mcmc.findings import acceptance_counts, gain_of, pairs_of
from sgtune.study.adam_mcmc.intervals import t_quantile
from sgtune.study.adam_mcmc.names import OPTIMAL_SCALE, target_label, targets_in
from sgtune.study.adam_mcmc.stationarity import moves_of
from sgtune.study.adam_mcmc.verdicts import (
    LEAST_LENGTH,
    STUCK,
    STUCK_MEANS,
    TOO_SLOW_MEANS,
    ess_cause,
    estimate_text,
    has_left_target,
    is_stuck,
    is_unsettled,
    moment_cause,
)
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import DASH, Cell, Row, Table
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted

__all__ = ["adam_efficiency", "adam_prolate"]


def _gain(record: Mapping, without: Mapping, with_noise: Mapping, detail: str) -> Cell:
    value, se = gain_of(without, with_noise)
    text = estimate_text(value, se, signed=True) or f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")
    if is_unsettled(record, without) or is_unsettled(record, with_noise):
        text = f"{text} *"
    return Cell(
        record["target"], "adam-mcmc", "", "acceptance_gain", value=value, se=se, detail=detail, text=text
    )


def _second_moment(record: Mapping, cell: Mapping, detail: str) -> Cell:
    cause = moment_cause(record, cell)
    if cause and has_left_target(record, cell):
        own = mean_cell(record, "second_moment", cell["square"], detail)
        return replace(own, text=f"{own.shown} *")
    return mean_cell(record, "second_moment", [] if cause else cell["square"], detail, missing=cause or DASH)


def _jump(record: Mapping, cell: Mapping, seconds: float | None, detail: str) -> Cell:
    has_jumps = seconds is not None and not is_stuck(cell)
    jumps = [jump / seconds for jump in cell.get("jump", ())] if has_jumps else []
    missing = STUCK if is_stuck(cell) else DASH
    return mean_cell(record, "jump_per_second", jumps, detail, missing=missing)


def _ess(
    record: Mapping, ratio: float, along: float, seconds: float | None, detail: str
) -> tuple[Cell, Cell]:
    """ESS per second at the s that gives the most, and this s; or the cause of the chains that moved most."""
    cell = best_by_ess(record, ratio, along)
    own = [] if cell is None else ess_per_second(record, cell, seconds)
    cause = DASH
    if cell is None:
        same = [c for c in record["cells"] if (c["drift_ratio"], c["directional_noise"]) == (ratio, along)]
        cause = ess_cause(record, max(same, key=lambda c: moves_of(c, c["steps"]) or 0.0))
    at = Cell(
        record["target"], "adam-mcmc", "", "scale", text=f"{cell['scale']:g}" if own else None, detail=detail
    )
    return mean_cell(record, "ess_per_second", own, detail, missing=cause or DASH), at


def _longest_update(record: Mapping, ratio: float) -> Cell:
    """gamma sqrt(D) / s: the length over s of an update that moves every coordinate by gamma."""
    length = ratio * sqrt(record["dimension"])
    # Not :.2g, which prints 100 as 1e+02.
    text = f"{float(format(length, '.2g')):g}"
    return Cell(record["target"], "adam-mcmc", "", "update_length", value=length, detail="longest", text=text)


CellsOf = Callable[[Mapping, float, Mapping, Mapping], Sequence[Cell]]
"""The cells of a row, of (the record, gamma / s, the chains without noise along the update, those with it)."""


def _paired(
    found: Sequence[Mapping], shown: float, cells_of: CellsOf
) -> tuple[tuple[str, ...], tuple[Row, ...], str]:
    """The headings of the rows' labels, the rows, and the heading of the side with noise along the update.

    The value of s_d is a label only if there are several.
    """
    pairs = [(record, *pair) for record in found for pair in pairs_of(record) if pair[2] == shown]
    values = {along for _, _, along, *_ in pairs}
    stub = ("Target", "γ / s", "s_d")[: 3 if len(values) > 1 else 2]
    rows = []
    for record, ratio, along, _, without, with_noise in pairs:
        labels = (target_label(record), f"{ratio:g}", f"{along:g}")
        rows.append(Row(labels[: len(stub)], tuple(cells_of(record, ratio, without, with_noise))))
    return stub, tuple(rows), "with s_d" if len(values) > 1 else f"s_d = {max(values):g}"


def _verdicts_said(found: Sequence[Mapping]) -> str:
    widths = " and ".join(f"{t_quantile(n):.3g} with {counted(n, 'chain')}" for n in chain_counts(found))
    return (
        "“biased”: E x² is further than 0.1 from 1, by its 95% t interval, whose half width in standard errors is "
        f"{widths}."
    )


def adam_prolate(records: Records) -> Table:
    """Acceptance, the mean square of the draws, and the length of updates: a row per target and gamma / s."""
    name = "adam_prolate"
    found = targets_in(need(records, "acceptance", name))
    shown = shown_scale(found)

    def cells_of(record: Mapping, ratio: float, without: Mapping, with_noise: Mapping) -> tuple[Cell, ...]:
        return (
            rate_cell(record, without, "0"),
            rate_cell(record, with_noise, "1"),
            _gain(record, without, with_noise, f"{ratio:g}"),
            _second_moment(record, without, "0"),
            _second_moment(record, with_noise, "1"),
            _longest_update(record, ratio),
            mean_cell(record, "update_length", with_noise.get("update", ()), "1"),
        )

    stub, rows, prolate = _paired(found, shown, cells_of)
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{' '.join(acceptance_counts(found, shown))}\n"
        f"All numbers are at s √T = {shown:g}, T the trace of the curvature. |u| / s is the mean length of an update "
        "over s, with noise along the update; it is at most about γ √D / s, and smaller with noisy gradients. E x² is "
        "over this run, which starts from exact draws (Laplace approximation for the logistic regression); x is in "
        "posterior sds from the mode, so E x² is 1 for the posterior. If it is smaller, the draws are too close to the "
        "mode, and a high acceptance is not an advantage.\n"
        f"{STUCK_MEANS} {TOO_SLOW_MEANS} {_verdicts_said(found)} The logistic posterior's chains start from "
        f"approximate draws: those of fewer than {LEAST_LENGTH} autocorrelation times are “too slow” as well. *: the "
        "chains are stuck or too slow, and have not settled. Their rate may still be that of their starts; a gain has "
        "this mark if one of its rates has it, and its size then says nothing; an E x² with this mark is given where "
        "it has clearly left 1. "
        f"{chains_said(found)}, ± one standard error; gradients are exact on N(0, I), and of minibatches of the "
        f"chain's own elsewhere. Steps of a chain: {lengths_said(found, shown)}. Chains end early if they are stuck, "
        "if they would still be too slow at the end, or on a Gaussian if their bias is clear, in fewer "
        "dimensions only when it has settled.",
        stub=stub,
        columns=(
            ("Acceptance", "s_d = 0"),
            ("Acceptance", prolate),
            ("Acceptance", "gained"),
            ("E x²", "s_d = 0"),
            ("E x²", prolate),
            ("|u| / s", "γ √D / s"),
            ("|u| / s", "mean"),
        ),
        rows=rows,
    )


def adam_efficiency(records: Records) -> Table:
    """Squared jumps and effective sample size per second: a row per target and gamma / s."""
    name = "adam_efficiency"
    found = targets_in(need(records, "acceptance", name))
    shown = shown_scale(found)

    def cells_of(record: Mapping, ratio: float, *sides: Mapping) -> tuple[Cell, ...]:
        seconds = seconds_per_step(records, record)
        jumps = [_jump(record, side, seconds, str(place)) for place, side in enumerate(sides)]
        ess = [
            _ess(record, ratio, side["directional_noise"], seconds, str(place))
            for place, side in enumerate(sides)
        ]
        return (*jumps, *(cell for cell, _ in ess), *(at for _, at in ess))

    stub, rows, prolate = _paired(found, shown, cells_of)
    return Table(
        name=name,
        title=artifact(name).title,
        caption="Squared jump: the mean of (xₜ₊₁ − xₜ)² of the chains of the table "
        f"“{artifact('adam_prolate').title}”, at s √T = {shown:g}, with x in posterior sds, per second by measured "
        "costs; compare it only where E x² is near 1. ESS: of one chain, from the integrated autocorrelation time of "
        "all chains together, a mean over parameters weighted by variances, at the s that gives the most; only of "
        "draws whose E x² is not clearly further than 0.1 from 1. The ESS shown is the largest of a few noisy numbers, "
        "one for each s, and therefore somewhat too large; its standard error is the jackknife's over chains. Values "
        f"of s √T: {scales_said(found)}; a random walk, which is the limit of small γ / s, "
        f"does best at {OPTIMAL_SCALE:g} in many dimensions (Roberts, Gelman and Gilks 1997).\n"
        f"{STUCK_MEANS} {TOO_SLOW_MEANS} In place of an ESS stands the cause at the s whose chains moved most. ESS is "
        "also too slow if the chains together are too short for their autocorrelation time. "
        f"{_verdicts_said(found)} {chains_said(found)}, ± one standard error.",
        stub=stub,
        columns=tuple(
            (heading, side)
            for heading in (
                f"Squared jump per second, s √T = {shown:g}",
                "ESS per second, best s",
                "Best s √T",
            )
            for side in ("s_d = 0", prolate)
        ),
        rows=rows,
    )
