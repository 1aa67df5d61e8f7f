"""The table of how well the discrepancies see a width that is wrong everywhere, by dimension and number of points."""

from collections.abc import Iterable

from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import in_order
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need

__all__ = ["JUDGES", "STATISTICS", "signal_of_width"]

JUDGES = {
    "ksd": "KSD, kernel width 1",
    "ksd_wide": "KSD, kernel width √D",
    "fssd": "FSSD",
    "psd": "PSD",
    "virial": "Virial",
}
STATISTICS = {"square": "Density of the draws", "value": "Value of the draws"}
WIDTHS = (0.5, 1.5)


def signal_of_width(records: Records) -> Table:
    """Signal over noise of one value for draws half, and one and a half times, as wide as the target."""
    rows = _rows(need(records, "sensitivity", "signal_of_width"))
    found = {
        (row["size"], row["judge"], row["dimension"], row["points"]): row
        for row in rows
        if row["perturbation"] == "width" and row["size"] in WIDTHS
    }
    columns = sorted({(dimension, n) for _, _, dimension, n in found})
    judges = in_order({judge for _, judge, _, _ in found}, JUDGES)
    body = []
    for width in WIDTHS:
        for statistic, of_what in STATISTICS.items():
            for judge in judges:
                cells = tuple(
                    _cell(found.get((width, judge, *column)), statistic, width, judge, *column)
                    for column in columns
                )
                body.append(Row((f"Width {width:g}", of_what, JUDGES.get(judge, judge.upper())), cells))
    return Table(
        name="signal_of_width",
        title=artifact("signal_of_width").title,
        caption="By how much the value for draws that are too narrow (half the target's width) or too wide (one and "
        "a half times) exceeds the value for as many exact draws, in standard deviations of one value, ± "
        "its standard error. The target is N(0, I) in D dimensions, and the n draws are independent. Above "
        "2 one value distinguishes them from exact draws; below 0 the judge prefers them.\n"
        "“Density of the draws”: the mean over pairs of two different draws, an unbiased estimate of the "
        "squared discrepancy of the density that they are from, by which the bias of a long chain is "
        "estimated; for the virial, which is not a mean over pairs, the jackknife, which is the same for "
        "all others. “Value of the draws”: the discrepancy of these n draws themselves, which includes the "
        "terms of each draw with itself. In a KSD of few draws in many dimensions these terms are nearly "
        "the whole sum, and they grow with the width of the draws for any width of the target: a narrow "
        "chain looks good.",
        stub=("Width", "By", "Judge"),
        columns=tuple((f"D = {dimension:,}", f"n = {n:,}") for dimension, n in columns),
        rows=tuple(body),
    )


def _rows(found: Iterable[dict]) -> list[dict]:
    return [row for record in found for row in record["rows"]]


def _cell(row: dict | None, statistic: str, width: float, judge: str, dimension: int, n: int) -> Cell:
    detail = f"{judge}, width {width:g}, D = {dimension}, n = {n}"
    whose = {"model": "", "sampler": "", "tuner": "", "metric": f"{statistic}_signal", "detail": detail}
    if row is None:
        return Cell(**whose)
    signal, error = row[f"{statistic}_signal"], row[f"{statistic}_signal_se"]
    # One decimal only for small errors: a signal of hundreds has a standard error of tens.
    decimals = 0 if abs(signal) >= 100 else 1
    text = f"{round(signal, decimals) + 0.0:,.{decimals}f} ± {error:,.{decimals}f}".replace(
        "-", "\N{MINUS SIGN}"
    )
    return Cell(**whose, value=signal, se=error, text=text)
