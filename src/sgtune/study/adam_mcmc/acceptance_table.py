"""The table of acceptance rates against the noise s, and the cells that tables of chains share."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sgtune.study.adam_mcmc.names import common_middle, mean_of, target_label, targets_in
from sgtune.study.adam_mcmc.verdicts import ess_cause, estimate_text, is_unsettled, rate_text
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import DASH, Cell, Row, Table
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted

__all__ = [
    "adam_acceptance",
    "best_by_ess",
    "chain_counts",
    "chains_said",
    "ess_per_second",
    "lengths_said",
    "mean_cell",
    "rate_cell",
    "scales_said",
    "seconds_per_step",
    "shown_scale",
]

Key = tuple[float, float, float]
"""gamma / s, s_d, s."""


def seconds_per_step(records: Records, found: Mapping) -> float | None:
    """What a step of AdamMCMC costs on the target of an acceptance record, as measured; None if it was not."""
    for cost in records.get("costs") or []:
        if found["target"] in cost.get("seconds_per_step", {}):
            return cost["seconds_per_step"][found["target"]]
        if cost.get("model") == found["target"]:
            size = found["cells"][0]["arm"]["batch_size"]
            for row in cost["rows"]:
                if (row["sampler"], row["batch_size"]) == ("adam-mcmc", size):
                    return row["seconds_per_step"]
    return None


def ess_per_second(record: Mapping, cell: Mapping, seconds: float | None) -> list[float]:
    """1 / (integrated time × seconds of a step) of all W chains together, as W pseudo-values of the jackknife, whose
    mean is the estimate without its bias of order 1 / W. Empty if `verdicts.ess_cause` has a cause."""
    if seconds is None or ess_cause(record, cell):
        return []
    together, *without = (1 / (time * seconds) for time in (cell["time"], *cell["time_without"]))
    n = len(without)
    return [n * together - (n - 1) * one for one in without] or [together]


def best_by_ess(record: Mapping, ratio: float, along: float) -> Mapping | None:
    """The cell with this gamma / s and s_d whose s gives the most effective samples; None if no s has a number."""
    known = {
        cell["scale"]: mean_of(own)[0]
        for cell in record["cells"]
        if (cell["drift_ratio"], cell["directional_noise"]) == (ratio, along)
        and (own := ess_per_second(record, cell, 1.0))
    }
    return _cells(record)[ratio, along, max(known, key=known.get)] if known else None


def _cells(found: Mapping) -> dict[Key, Mapping]:
    return {(c["drift_ratio"], c["directional_noise"], c["scale"]): c for c in found["cells"]}


def _distinct(found: Mapping, key: str) -> list[float]:
    return list(dict.fromkeys(cell[key] for cell in found["cells"]))


def shown_scale(found: Sequence[Mapping]) -> float:
    """The s of the tables that have only one: `names.common_middle`."""
    return common_middle([{cell["scale"] for cell in record["cells"]} for record in found])


def mean_cell(
    record: Mapping,
    metric: str,
    values: Sequence[float],
    detail: str,
    *,
    variant: str = "adam-mcmc",
    missing: str = DASH,
    text: str | None = None,
) -> Cell:
    """The mean of chains on the target of ``record``, with its standard error."""
    value, se = mean_of(values)
    return Cell(
        record["target"],
        variant,
        "",
        metric,
        value=value,
        se=se,
        finite=len(values),
        replicates=len(values),
        detail=detail,
        missing=missing,
        text=text or estimate_text(value, se),
    )


def rate_cell(record: Mapping, cell: Mapping | None, detail: str) -> Cell:
    """The acceptance rate, with a mark if the chains have not settled; a dash for a combination that was not run."""
    if cell is None:
        return mean_cell(record, "acceptance_rate", [], detail)
    rates = cell["acceptance"]
    own = mean_cell(
        record, "acceptance_rate", rates, detail, text=rate_text(rates, len(rates) * cell["steps"])
    )
    return replace(own, text=f"{own.shown} *") if is_unsettled(record, cell) else own


def chains_said(found: Sequence[Mapping]) -> str:
    """How many chains a number is of, on each target if that differs."""
    return _said_by_target({counted(n, "chain"): own for n, own in chain_counts(found).items()}, ", ")


def chain_counts(found: Sequence[Mapping]) -> dict[int, list[str]]:
    """Numbers of chains -> the targets that have as many."""
    counts: dict[int, list[str]] = {}
    for record in found:
        counts.setdefault(len(record["cells"][0]["acceptance"]), []).append(target_label(record))
    return counts


def lengths_said(found: Sequence[Mapping], scale: float | None = None) -> str:
    """The lengths of the chains with their targets; of the chains at one ``scale``, or of all.

    "Up to" the longest, where chains of one target and s are not equally long.
    """
    groups: dict[tuple, list[str]] = {}
    for record in found:
        steps_at: dict[float, set[int]] = {}
        for cell in record["cells"]:
            if scale in (None, cell["scale"]):
                steps_at.setdefault(cell["scale"], set()).add(cell["steps"])
        scales_of: dict[tuple[int, bool], list[float]] = {}
        for own, steps in steps_at.items():
            scales_of.setdefault((max(steps), len(steps) > 1), []).append(own)
        for (steps, varies), scales in scales_of.items():
            own_scales = ", ".join(f"{one:g}" for one in sorted(scales))
            at = f" and s √T = {own_scales}" if len(scales_of) > 1 else ""
            groups.setdefault((steps, varies, record["warmup"]), []).append(f"{target_label(record)}{at}")
    return ", ".join(
        f"{'up to ' * varies}{steps:,} after {warmup:,} of warm-up ({'; '.join(targets)})"
        for (steps, varies, warmup), targets in sorted(groups.items(), reverse=True)
    )


def scales_said(found: Sequence[Mapping]) -> str:
    """The values of s of the chains, in the tables' units, on each target if they differ."""
    groups: dict[str, list[str]] = {}
    for record in found:
        scales = sorted({cell["scale"] for cell in record["cells"]})
        groups.setdefault(", ".join(f"{scale:g}" for scale in scales), []).append(target_label(record))
    return _said_by_target(groups, "; ")


def _said_by_target(groups: Mapping[str, Sequence[str]], between: str) -> str:
    """What ``groups`` has targets for, each with its targets; alone, if it is one for all."""
    if len(groups) == 1:
        return next(iter(groups))
    return between.join(f"{said} ({'; '.join(targets)})" for said, targets in groups.items())


def adam_acceptance(records: Records) -> Table:
    """A row per target, gamma / s and s_d, a column per s."""
    name = "adam_acceptance"
    found = targets_in(need(records, "acceptance", name))
    scales = sorted({cell["scale"] for record in found for cell in record["cells"]})
    rows = []
    for record in found:
        cells = _cells(record)
        for ratio in _distinct(record, "drift_ratio"):
            for along in _distinct(record, "directional_noise"):
                rows.append(
                    Row(
                        (target_label(record), f"{ratio:g}", f"{along:g}"),
                        tuple(
                            rate_cell(record, cells.get((ratio, along, scale)), f"{scale:g}")
                            for scale in scales
                        ),
                    )
                )
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{chains_said(found)} of each cell; ± one standard error. s is in units of T^(−1/2), T the trace of "
        "the curvature: s √D of N(0, I). The rate is the mean of the probabilities of all tests. Steps of a chain: "
        f"{lengths_said(found)}. “< x”: less than one acceptance is expected in all tests. *: the chains have not "
        "settled, and the rate may still be that of their starts.",
        stub=("Target", "γ / s", "s_d"),
        columns=tuple(("s √T", f"{scale:g}") for scale in scales),
        rows=tuple(rows),
    )
