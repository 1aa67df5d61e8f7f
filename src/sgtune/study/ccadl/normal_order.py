"""The order of the samplers by their errors on mean and precision of a normal, beside the paper's order."""

# ruff: noqa: RUF001 - tables print Greek letters

from collections import Counter
from collections.abc import Mapping
from math import hypot

from sgtune.study.ccadl.findings import PAIRS, SAME, order_of
from sgtune.study.ccadl.names import mean_of, method_label, setting
from sgtune.study.ccadl.normal_table import published_of
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need

__all__ = ["normal_order"]

SYMBOLS = {"mu": "RMSE, μ", "gamma": "RMSE, γ"}


def _error(cell: Mapping, name: str) -> tuple[float | None, float | None]:
    """Of all replicates; None of a cell in which one has diverged."""
    runs = cell["replicates"]
    if any(run["diverged"] for run in runs):
        return None, None
    return mean_of([run[name]["density_rmse"] for run in runs])


def _paper(published: Mapping[tuple, float], pair: tuple[str, str], where: tuple[float, float]) -> str | None:
    ours, other = (published.get((method, *where, "density_rmse")) for method in pair)
    if ours is None or other is None:
        return None
    return "=" if ours == other else "<" if ours < other else ">"


def normal_order(records: Records) -> Table:
    """For each (h, A) whether CCAdL's error is below SGNHT's and SGHMC's, here and in the paper."""
    found = {record["method"]: record for record in need(records, "normal", "normal_order")}
    published = published_of(records)
    pairs = [pair for pair in PAIRS if set(pair) <= set(found)]
    columns = [(cell["step_size"], cell["friction"]) for cell in next(iter(found.values()))["cells"]]
    rows, said = [], []
    for pair in pairs:
        cells = [found[method]["cells"] for method in pair]
        here: Counter = Counter()
        for name, symbol in SYMBOLS.items():
            signs = [order_of(_error(a, name), _error(b, name)) for a, b in zip(*cells, strict=True)]
            here.update(signs)
            rows.append(_row(pair, symbol, columns, signs))
        theirs = [_paper(published, pair, where) for where in columns]
        if any(theirs):
            rows.append(_row(pair, "RMSE, paper", columns, theirs))
        said.append(_said(pair, here, Counter(theirs)))
    return Table(
        name="normal_order",
        title=artifact("normal_order").title,
        caption=f"{' '.join(said)} {_why(found)}\n"
        "The sign stands between the error of the first sampler and the error of the second. Not separated: the two "
        "are within two standard errors of their difference. –: a chain of one of them has diverged. The paper's signs "
        "are of its printed numbers, which have no standard errors.".strip(),
        stub=("Samplers", "Number"),
        columns=tuple(("", setting(*where)) for where in columns),
        rows=tuple(rows),
    )


def _row(pair: tuple[str, str], label: str, columns: list[tuple[float, float]], signs: list) -> Row:
    cells = tuple(
        Cell("normal", pair[0], "", "order", detail=f"{pair[1]}, {label}: {setting(*where)}", text=sign)
        for where, sign in zip(columns, signs, strict=True)
    )
    return Row((f"{method_label(pair[0])}, {method_label(pair[1])}", label), cells)


def _said(pair: tuple[str, str], here: Counter, paper: Counter) -> str:
    names = tuple(map(method_label, pair))
    n = sum(here[sign] for sign in ("<", ">", SAME))
    own = (
        f"{names[0]} has a smaller error than {names[1]} in {here['<']} of {n} comparisons here, a larger one in "
        f"{here['>']}, and one that is not separated from it in {here[SAME]}"
    )
    total = sum(paper[sign] for sign in ("<", ">", "="))
    return own + (f"; in the paper a smaller one in {paper['<']} of {total}." if total else ".")


def _why(found: Mapping[str, dict]) -> str:
    """Algorithm 1's own error, where CCAdL's sds of μ are separated from the exact ones, at the worst (h, A)."""
    if "ccadl" not in found:
        return ""
    worst = None
    for place, cell in enumerate(found["ccadl"]["cells"]):
        ratio, se = _sd_ratio(cell)
        if (
            se is not None
            and abs(ratio - 1) > 2 * se
            and (worst is None or abs(ratio - 1) > abs(worst[0] - 1))
        ):
            worst = ratio, se, place
    if worst is None:
        return ""
    ratio, se, place = worst
    cell = found["ccadl"]["cells"][place]
    words = (
        f"At {setting(cell['step_size'], cell['friction'])} the sd of μ by CCAdL is {abs(ratio - 1):.1%} ± {se:.1%} "
        f"too {'small' if ratio < 1 else 'large'}: Algorithm 1 has an error of order h, which grows with A."
    )
    if "mccadl" in found:
        other, other_se = _sd_ratio(found["mccadl"]["cells"][place])
        if other_se is not None and abs(ratio - 1) - abs(other - 1) > 2 * hypot(se, other_se):
            words += f" By mCCAdL, whose splitting is symmetric, it differs by {abs(other - 1):.1%} ± {other_se:.1%}."
    return words


def _sd_ratio(cell: Mapping) -> tuple[float | None, float | None]:
    return mean_of([run["mu"]["sd_ratio"] for run in cell["replicates"] if not run["diverged"]])
