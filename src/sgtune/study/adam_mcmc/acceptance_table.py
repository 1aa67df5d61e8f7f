"""The tables of acceptance rates and effective sample sizes against the noise s."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence
from math import sqrt

from sgtune.study.adam_mcmc.findings import acceptance_findings, gain_of, pairs_of
from sgtune.study.adam_mcmc.intervals import LEAST_OF_SHARED, t_quantile
from sgtune.study.adam_mcmc.names import mean_of, target_label, targets_in
from sgtune.study.adam_mcmc.verdicts import (
    STUCK,
    TOO_SLOW_MEANS,
    UNSETTLED,
    ess_cause,
    estimate_text,
    has_left_target,
    is_stuck,
    rate_text,
    squares_cause,
)
from sgtune.study.artifacts.layout import DASH, Cell, Row, Table
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.remarks import counted
from sgtune.study.artifacts.studies import artifact

__all__ = [
    "adam_acceptance",
    "adam_prolate",
    "ess_per_second",
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
    """Of each chain 1 / (integrated time × seconds of a step); empty if `verdicts.ess_cause` has a cause."""
    return (
        [] if seconds is None or ess_cause(record, cell) else [1 / (time * seconds) for time in cell["time"]]
    )


def _cells(found: Mapping) -> dict[Key, Mapping]:
    return {(c["drift_ratio"], c["directional_noise"], c["scale"]): c for c in found["cells"]}


def _distinct(found: Mapping, key: str) -> list[float]:
    return list(dict.fromkeys(cell[key] for cell in found["cells"]))


def shown_scale(found: Sequence[Mapping]) -> float:
    """The s at which targets are compared: the middle one, or the smaller of two, of those that all targets have."""
    common = set.intersection(*({cell["scale"] for cell in record["cells"]} for record in found))
    scales = sorted(common) or sorted({cell["scale"] for cell in found[0]["cells"]})
    return scales[(len(scales) - 1) // 2]


def _cell(
    record: Mapping,
    metric: str,
    values: Sequence[float],
    detail: str,
    *,
    missing: str = DASH,
    text: str | None = None,
) -> Cell:
    value, se = mean_of(values)
    return Cell(
        record["target"],
        "adam-mcmc",
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


def _rate_cell(record: Mapping, cell: Mapping | None, detail: str) -> Cell:
    """The acceptance rate; a dash for a combination that was not run."""
    if cell is None:
        return _cell(record, "acceptance_rate", [], detail)
    rates = cell["acceptance"]
    return _cell(
        record, "acceptance_rate", rates, detail, text=rate_text(rates, len(rates) * record["steps"])
    )


def _lengths(found: Sequence[Mapping]) -> str:
    lengths = sorted({(record["steps"], record["warmup"]) for record in found}, reverse=True)
    return " or ".join(f"{steps:,} after {warmup:,} of warm-up" for steps, warmup in lengths)


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
                            _rate_cell(record, cells.get((ratio, along, scale)), f"{scale:g}")
                            for scale in scales
                        ),
                    )
                )
    n = len(found[0]["cells"][0]["acceptance"])
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{counted(n, 'chain')} of each; ± one standard error. s is in units of T^(−1/2), T the trace of the "
        "curvature: s √D of N(0, I). The rate is the mean of the probabilities of all tests. Steps of a chain: "
        f"{_lengths(found)}. “< x”: less than one acceptance is expected in all tests.",
        stub=("Target", "γ / s", "s_d"),
        columns=tuple(("s √T", f"{scale:g}") for scale in scales),
        rows=tuple(rows),
    )


def _gain(record: Mapping, without: Mapping, with_noise: Mapping, detail: str) -> Cell:
    value, se = gain_of(without, with_noise)
    text = estimate_text(value, se, signed=True) or f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")
    return Cell(
        record["target"], "adam-mcmc", "", "acceptance_gain", value=value, se=se, detail=detail, text=text
    )


def _of_draws(record: Mapping, cell: Mapping, seconds: float | None, detail: str) -> tuple[Cell, Cell, Cell]:
    """E x^2, the squared jump per second, and ESS per second."""
    slow = squares_cause(cell, record["steps"])
    squares = [] if slow else cell["square"]
    if slow and has_left_target(record, cell):
        slow = UNSETTLED
    has_jumps = seconds is not None and not is_stuck(cell)
    jumps = [jump / seconds for jump in cell.get("jump", ())] if has_jumps else []
    return (
        _cell(record, "second_moment", squares, detail, missing=slow or DASH),
        _cell(record, "jump_per_second", jumps, detail, missing=STUCK if is_stuck(cell) else DASH),
        _cell(
            record,
            "ess_per_second",
            ess_per_second(record, cell, seconds),
            detail,
            missing=ess_cause(record, cell) or DASH,
        ),
    )


def adam_prolate(records: Records) -> Table:
    """The effect of directional noise: a row per target and gamma / s."""
    name = "adam_prolate"
    found = targets_in(need(records, "acceptance", name))
    shown = shown_scale(found)
    rows = []
    for record in found:
        seconds = seconds_per_step(records, record)
        for ratio, along, scale, without, with_noise in pairs_of(record):
            if scale != shown:
                continue
            first, second = (
                _of_draws(record, cell, seconds, detail)
                for cell, detail in ((without, "0"), (with_noise, "1"))
            )
            rates = (
                _rate_cell(record, without, "0"),
                _rate_cell(record, with_noise, "1"),
                _gain(record, without, with_noise, f"{ratio:g}"),
            )
            pairs = [cell for both in zip(first, second, strict=True) for cell in both]
            update = _cell(record, "update_length", with_noise.get("update", ()), "1")
            # Not :.2g, which prints 100 as 1e+02.
            length = f"{float(format(ratio * sqrt(record['dimension']), '.2g')):g}"
            rows.append(
                # In HTML this label is a heading, without the stub's name above it.
                Row(
                    (target_label(record), f"γ / s = {ratio:g}", length, f"{along:g}"),
                    (*rates, *pairs, update),
                )
            )
    n_chains = len(found[0]["cells"][0]["acceptance"])
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{' '.join(acceptance_findings(found, shown))}\n"
        f"All numbers are at s √T = {shown:g}, T the trace of the curvature. An update is at most about γ √D long, and "
        "shorter with noisy gradients: |u| / s is its mean length over s with s_d. E x² is over this run, which starts "
        "from exact draws (Laplace approximation for the logistic regression); x is in posterior sds from the mode, so "
        "E x² is 1 for the posterior. If it is smaller, the draws are too close to the mode, and a high acceptance is "
        "not an advantage. Squared jump: the mean of (x_{t+1} − x_t)², per second by measured costs; compare it only "
        "where E x² is near 1. ESS: from integrated autocorrelation times.\n"
        "“stuck”: the acceptance rate is below 10⁻³, and the squares of the draws are those of the starts. "
        f"{TOO_SLOW_MEANS} ESS is also too slow if at least one chain is too short for its autocorrelation time. "
        "“biased”: E x² is further than 0.1 from 1, by its 95% t interval, "
        f"{t_quantile(n_chains):.3g} standard errors to each side with {counted(n_chains, 'chain')}, and by at least "
        f"{LEAST_OF_SHARED:g} standard errors of chains that share minibatches. “Not settled”: too slow for "
        "a number, but chains that start from exact draws have left the target. "
        f"{counted(n_chains, 'chain')}, ± one standard error; chains of one target with minibatches share these. Steps "
        f"of a chain: {_lengths(found)}.",
        stub=("Target", "γ / s", "γ √D / s", "s_d"),
        columns=(
            ("Acceptance", "s_d = 0"),
            ("Acceptance", "with s_d"),
            ("Acceptance", "gained"),
            ("E x²", "s_d = 0"),
            ("E x²", "with s_d"),
            ("Squared jump per second", "s_d = 0"),
            ("Squared jump per second", "with s_d"),
            ("ESS per second", "s_d = 0"),
            ("ESS per second", "with s_d"),
            ("|u| / s", "with s_d"),
        ),
        rows=tuple(rows),
    )
