"""The figure of the discriminative RBM: test error against passes, a row per data set, a column per h."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.ccadl.artifacts import SETS
from sgtune.study.ccadl.drbm_table import sets_in
from sgtune.study.ccadl.looks import FRICTION_LINES, draw_runs, handles_of, method_style, say_diverged
from sgtune.study.ccadl.names import methods_in
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import INK, WIDTH, styled

__all__ = ["drbm_curves"]

MAP = {"color": INK, "linewidth": 2.2, "alpha": 0.35}
BURN_IN = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 2))}


def _panel(
    axis: Axes, own: Sequence[dict], step_size: float, frictions: Sequence[float], at_map: float
) -> None:
    axis.axhline(at_map, **MAP)
    axis.axvline(own[0]["burn_in_passes"], **BURN_IN)
    lost: list[str] = []
    for record in own:
        for cell in record["cells"]:
            if cell["step_size"] == step_size:
                errors = 100 * np.array([run["errors"] for run in cell["replicates"]], float)
                look = method_style(record["method"]) | {"marker": "", "linewidth": 1.1, "label": None}
                look["linestyle"] = FRICTION_LINES[frictions.index(cell["friction"]) % len(FRICTION_LINES)]
                draw_runs(axis, record["passes"], errors, look)
                if not np.isfinite(errors[:, -1]).all():
                    lost.append(record["method"])
    say_diverged(axis, lost, 0.78)
    axis.set_title(f"h = {step_size:g}")


def _top(own: Sequence[dict], at_map: float) -> float:
    """The upper limit of a row's panels: the value that all but the worst are below when the burn-in ends."""
    late = [
        100 * error
        for record in own
        for cell in record["cells"]
        for run in cell["replicates"]
        for at, error in zip(record["passes"], run["errors"], strict=True)
        if error is not None and at >= record["burn_in_passes"]
    ]
    return max([at_map, float(np.quantile(late, 0.9))] if late else [at_map, 100.0])


def _say_missing(axes: Iterable[Axes], data_set: str) -> None:
    first, *others = axes
    for axis in (first, *others):
        axis.set_axis_off()
    words = f"{SETS[data_set]}: no source has it; the study continues without it"
    said = first.text(0.0, 0.5, words, transform=first.transAxes, va="center")
    # The text is wider than a panel: the layout would make the panels above it narrow.
    said.set_in_layout(False)


@styled
def drbm_curves(records: Records) -> Figure:
    """Test error of averaged predictions against passes; for an unavailable data set there is only a line of text."""
    found = need(records, "drbm", "drbm_curves")
    maps = {record["set"]: record for record in need(records, "map", "drbm_curves")}
    data_sets, methods = sets_in(found), methods_in(found)
    missing = {record["set"] for record in found if record["missing"]}
    whole = [record for record in found if not record["missing"]]
    columns = max((len({cell["step_size"] for cell in record["cells"]}) for record in whole), default=1)
    frictions = list(dict.fromkeys(cell["friction"] for record in whole for cell in record["cells"]))
    heights = [0.25 if name in missing else 1.0 for name in data_sets]
    figure = Figure(figsize=(WIDTH, 1.9 * sum(heights) + 0.9), layout="constrained")
    axes = figure.subplots(len(data_sets), columns, squeeze=False, sharey="row", height_ratios=heights)
    for row, name in zip(axes, data_sets, strict=True):
        if name in missing:
            _say_missing(row, name)
            continue
        by_method = {record["method"]: record for record in whole if record["set"] == name}
        own = [by_method[method] for method in methods if method in by_method]
        at_map = 100 * (1 - maps[name]["test"]["accuracy"])
        step_sizes = list(dict.fromkeys(cell["step_size"] for cell in own[0]["cells"]))
        for axis, step_size in zip(row, step_sizes, strict=False):
            _panel(axis, own, step_size, frictions, at_map)
        for axis in row[len(step_sizes) :]:
            axis.set_axis_off()
        top = _top(own, at_map)
        lowest = min(
            [
                at_map,
                *(
                    100 * e
                    for r in own
                    for c in r["cells"]
                    for run in c["replicates"]
                    for e in run["errors"]
                    if e
                ),
            ]
        )
        row[0].set_ylim(max(0.0, lowest - 0.1 * (top - lowest)), top + 0.1 * (top - lowest))
        row[0].set_ylabel(f"{SETS[name]}\ntest error (%)")
    drawn = [row for row, name in zip(axes, data_sets, strict=True) if name not in missing]
    for axis in drawn[-1] if drawn else []:
        axis.set_xlabel("passes over the data")
    handles = [Line2D([], [], label="MAP", **MAP), Line2D([], [], label="end of burn-in", **BURN_IN)]
    handles += handles_of(methods, marker="", linestyle="-")
    handles += [
        Line2D([], [], color=INK, linestyle=line, label=f"A = {friction:g}")
        for friction, line in zip(frictions, FRICTION_LINES, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=2.6)
    return figure
