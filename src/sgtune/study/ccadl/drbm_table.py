"""The tables of the discriminative RBM: its data sets beside the paper's, and errors of its predictions."""

from collections.abc import Mapping, Sequence

from sgtune.study.ccadl.artifacts import SETS
from sgtune.study.ccadl.findings import pairs_said
from sgtune.study.ccadl.names import methods_in
from sgtune.study.ccadl.table_parts import (
    BOLD,
    CLIPPED,
    CLIPPING,
    PARTIAL,
    cell_of,
    clipping_of,
    cost_of,
    cost_said,
    rows_of,
)
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS, in_order
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted

__all__ = ["drbm_errors", "drbm_sets", "missing_said", "sets_in"]

SIZES = ("n_train", "n_test", "n_classes", "n_features", "n_hidden", "n_parameters")
METRICS_OF_RUNS = ("error_percent", "log_loss_end", "seconds_per_pass", *CLIPPING)


def sets_in(records: Sequence[Mapping]) -> list[str]:
    """The data sets of the records, in the order of print."""
    return in_order((record["set"] for record in records), SETS)


def missing_said(records: Sequence[Mapping]) -> str:
    """A line for each unavailable set. Its reasons stay in the log: they name folders of one machine."""
    missing = {record["set"] for record in records if record["missing"]}
    return "".join(
        f"\n{SETS[name]} is not among them: no source has it. The log of its download has the reasons."
        for name in sets_in(records)
        if name in missing
    )


def drbm_sets(records: Records) -> Table:
    """Rows, classes, features and parameters of each data set, ours and the paper's."""
    found = {record["set"]: record for record in need(records, "map", "drbm_sets")}
    published = {
        (row["model"], row["metric"]): row["value"]
        for row in records.get("published") or []
        if row["table"] == "table2"
    }

    def row(name: str, source: str, numbers: Mapping) -> Row:
        cells = [
            Cell(name, "", "", metric, value=numbers.get(metric), detail=source, missing="unavailable")
            for metric in SIZES
        ]
        return Row((SETS[name], source), tuple(cells))

    rows = []
    for name in sets_in(list(found.values())):
        rows.append(row(name, "here", {} if found[name]["missing"] else found[name]))
        rows.append(row(name, "paper", {metric: published.get((name, metric)) for metric in SIZES}))
    return Table(
        name="drbm_sets",
        title=artifact("drbm_sets").title,
        caption=f"Rows, classes, features, hidden units and parameters, as counted in the model and its data."
        f"{missing_said(list(found.values()))}",
        stub=("Data set", "Whose"),
        columns=tuple(("", METRICS[metric].label) for metric in SIZES),
        rows=tuple(rows),
    )


def _run_cells(record: dict, cell: dict) -> dict[str, Cell]:
    runs = cell["replicates"]
    numbers = {
        "error_percent": [_percent(run["errors"][-1]) for run in runs],
        "log_loss_end": [run["log_losses"][-1] for run in runs],
    }
    cells = {
        metric: cell_of(record["set"], record["method"], cell, metric, values)
        for metric, values in numbers.items()
    }
    cells["seconds_per_pass"] = cost_of(record["set"], record, cell)
    return cells | clipping_of(record["set"], record["method"], cell)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _settings(cells: Sequence[Mapping]) -> list[tuple[str, str]]:
    """Column headings: each set has its own step sizes, so a column is the place of h among these, and A."""
    places = {h: place for place, h in enumerate(dict.fromkeys(cell["step_size"] for cell in cells), start=1)}
    return [(f"{_ordinal(places[cell['step_size']])} h", f"A = {cell['friction']:g}") for cell in cells]


def _ordinal(place: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(place, f"{place}th")


def drbm_errors(records: Records) -> Table:
    """Test errors at the end of runs, and of the MAP."""
    name = "drbm_errors"
    found = need(records, "drbm", name)
    maps = {record["set"]: record for record in need(records, "map", name)}
    whole = [record for record in found if not record["missing"]]
    rows, columns, said, compared = [], [], [], []
    for data_set in sets_in(whole):
        own = {record["method"]: record for record in whole if record["set"] == data_set}
        own = {method: own[method] for method in methods_in(own.values())}
        cells = {
            method: [_run_cells(record, cell) for cell in record["cells"]] for method, record in own.items()
        }
        rows += rows_of(
            cells, METRICS_OF_RUNS, optional=("seconds_per_pass", *CLIPPING), before=(SETS[data_set],)
        )
        compared += filter(None, [pairs_said(cells, "error_percent", f"{SETS[data_set]}: ")])
        first = next(iter(own.values()))
        columns = columns or _settings(first["cells"])
        h = ", ".join(f"{h:g}" for h in dict.fromkeys(cell["step_size"] for cell in first["cells"]))
        test = maps[data_set]["test"]
        said.append(
            f"{SETS[data_set]}: h = {h}; at the MAP the error is {100 * (1 - test['accuracy']):.2f}% and the log-loss "
            f"{test['log_loss']:.4f}."
        )
        runs = len(first["cells"][0]["replicates"])
        length, burn_in = first["passes"][-1], first["burn_in_passes"]
    if not whole:
        return _no_set(name, found)
    # Of fewer runs a standard error is hardly known, and nothing is claimed.
    findings = " ".join(compared) or "Too few runs to say which sampler has the least error."
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"{findings}\n"
        f"{counted(runs, 'run')} of {length:g} passes, predictions averaged from pass {burn_in:g} on; ± one "
        f"standard error.\n{' '.join(said)}{missing_said(found)}\n{cost_said(whole)}{CLIPPED}\n"
        f"{BOLD} {PARTIAL}",
        stub=("Data set", "Sampler", "Number"),
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _no_set(name: str, found: Sequence[Mapping]) -> Table:
    cell = Cell("", "", "", "error_percent", text="no data set is available")
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"No data set is available.{missing_said(found)}",
        stub=("Data set",),
        columns=(("", METRICS["error_percent"].label),),
        rows=tuple(Row((SETS[data_set],), (cell,)) for data_set in sets_in(found)),
    )
