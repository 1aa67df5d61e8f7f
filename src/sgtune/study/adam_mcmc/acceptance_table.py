"""The tables of acceptance rates and effective sample sizes against the noise s."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence
from math import hypot

from sgtune.study.adam_mcmc.names import mean_of, target_label, targets_in
from sgtune.study.artifacts.layout import Cell, Row, Table
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.remarks import counted
from sgtune.study.artifacts.studies import artifact

__all__ = ["adam_acceptance", "adam_prolate", "ess_per_second", "pairs_of", "seconds_per_step"]

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


def ess_per_second(cell: Mapping, seconds: float | None) -> list[float | None]:
    """Of each chain 1 / (integrated time × seconds of a step); None where the run was too short for its time."""
    return [None if time is None or seconds is None else 1 / (time * seconds) for time in cell["time"]]


def _cells(found: Mapping) -> dict[Key, Mapping]:
    return {(c["drift_ratio"], c["directional_noise"], c["scale"]): c for c in found["cells"]}


def _distinct(found: Mapping, key: str) -> list[float]:
    return list(dict.fromkeys(cell[key] for cell in found["cells"]))


def _cell(
    found: Mapping, metric: str, values: Sequence[float | None], detail: str, missing: str = "–"
) -> Cell:
    kept = [value for value in values if value is not None]
    value, se = mean_of(kept)
    return Cell(
        found["target"],
        "adam-mcmc",
        "",
        metric,
        value=value,
        se=se,
        finite=len(kept),
        replicates=len(values),
        detail=detail,
        missing=missing,
    )


def adam_acceptance(records: Records) -> Table:
    """A row per target, gamma / s and s_d, a column per s."""
    name = "adam_acceptance"
    found = targets_in(need(records, "acceptance", name))
    scales = _distinct(found[0], "scale")
    rows = []
    for record in found:
        cells = _cells(record)
        for ratio in _distinct(record, "drift_ratio"):
            for along in _distinct(record, "directional_noise"):
                rows.append(
                    Row(
                        (target_label(record), f"{ratio:g}", f"{along:g}"),
                        tuple(
                            _cell(
                                record,
                                "acceptance_rate",
                                cells.get((ratio, along, scale), {"acceptance": []})["acceptance"],
                                f"{scale:g}",
                            )
                            for scale in scales
                        ),
                    )
                )
    n = len(found[0]["cells"][0]["acceptance"])
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{counted(n, 'chain')} of each; ± one standard error. s is in units of T^(−1/2), T the trace of the "
        "curvature: s √D of N(0, I). The rate is the mean of the probabilities of all tests after a warm-up.",
        stub=("Target", "γ / s", "s_d"),
        columns=tuple(("s √T", f"{scale:g}") for scale in scales),
        rows=tuple(rows),
    )


def pairs_of(record: Mapping) -> list[tuple[float, float, float, Mapping, Mapping]]:
    """(gamma / s, s_d, s, the cell without directional noise, the one with it): for every s_d but 0."""
    cells = _cells(record)
    return [
        (ratio, along, scale, cells[ratio, 0, scale], cell)
        for (ratio, along, scale), cell in cells.items()
        if along
    ]


def _best_ess(record: Mapping, ratio: float, along: float, seconds: float | None) -> list[float | None]:
    """ESS per second at the s where its mean is largest, of those s where every chain has one."""
    found = [
        ess_per_second(cell, seconds)
        for (r, a, _), cell in _cells(record).items()
        if (r, a) == (ratio, along)
    ]
    whole = [values for values in found if None not in values]
    return max(whole, key=lambda values: sum(values), default=[None] * len(found[0]))


def _gain(record: Mapping, first: Cell, second: Cell, detail: str) -> Cell:
    """The difference of two rates, to three decimals: significant digits are useless for rates near 0 or 1."""
    value = second.value - first.value
    se = None if first.se is None or second.se is None else hypot(first.se, second.se)
    text = f"{value:+.3f}" + ("" if se is None else f" ± {se:.3f}")
    text = text.replace("-", "\N{MINUS SIGN}")
    return Cell(
        record["target"], "adam-mcmc", "", "acceptance_gain", value=value, se=se, detail=detail, text=text
    )


def adam_prolate(records: Records) -> Table:
    """The effect of directional noise: a row per target and gamma / s."""
    name = "adam_prolate"
    found = targets_in(need(records, "acceptance", name))
    scales = _distinct(found[0], "scale")
    shown = scales[(len(scales) - 1) // 2]
    rows = []
    for record in found:
        seconds = seconds_per_step(records, record)
        for ratio, along, scale, without, with_noise in pairs_of(record):
            if scale != shown:
                continue
            first = _cell(record, "acceptance_rate", without["acceptance"], "0")
            second = _cell(record, "acceptance_rate", with_noise["acceptance"], "1")
            gain = _gain(record, first, second, f"{ratio:g}")
            rows.append(
                Row(
                    (target_label(record), f"{ratio:g}", f"{along:g}"),
                    (
                        first,
                        second,
                        gain,
                        _cell(record, "second_moment", without["square"], "0"),
                        _cell(record, "second_moment", with_noise["square"], "1"),
                        _cell(
                            record, "ess_per_second", _best_ess(record, ratio, 0, seconds), "0", "too slow"
                        ),
                        _cell(
                            record,
                            "ess_per_second",
                            _best_ess(record, ratio, along, seconds),
                            "1",
                            "too slow",
                        ),
                    ),
                )
            )
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"Acceptance and E x² at s √T = {shown:g}, T the trace of the curvature; x is in posterior sds from "
        "the mode, so that E x² is 1 for the posterior: if it is smaller, the draws are too close to the "
        "mode, and a high acceptance is not an advantage. ESS per second: for the chain's own stationary "
        "law, at the s where it is largest, from integrated autocorrelation times and measured seconds of "
        "a step; too slow: for no s can half a run determine the time. ± one standard error over chains; "
        "chains of one target with minibatches share these.",
        stub=("Target", "γ / s", "s_d"),
        columns=(
            ("Acceptance", "s_d = 0"),
            ("Acceptance", "with s_d"),
            ("Acceptance", "gained"),
            ("E x²", "s_d = 0"),
            ("E x²", "with s_d"),
            ("ESS per second", "s_d = 0"),
            ("ESS per second", "with s_d"),
        ),
        rows=tuple(rows),
    )
