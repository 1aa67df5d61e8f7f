"""The figure of mean and precision of a normal: marginal densities by setting, and their peaks."""

# ruff: noqa: RUF001 - labels have Greek letters

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.ccadl.looks import handles_of, method_style
from sgtune.study.ccadl.names import methods_in, setting
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import INK, WIDTH, styled

__all__ = ["normal_densities"]

EXACT = {"color": INK, "linewidth": 2.2, "alpha": 0.3}
SYMBOLS = {"mu": "μ", "gamma": "γ"}
PEAK = 0.12
"""Half the width of the inset, as a part of the panel's bins."""


def _lines(axis: Axes, found: Sequence[dict], place: int, name: str) -> None:
    """The exact density and each sampler's, at the middles of the bins."""
    edges = np.asarray(found[0]["edges"][name])
    middles = (edges[1:] + edges[:-1]) / 2
    axis.plot(middles, found[0]["exact"][name], **EXACT)
    for record in found:
        density = record["cells"][place]["density"].get(name)
        if density is not None:
            style = method_style(record["method"]) | {"marker": "", "linewidth": 1.0}
            axis.plot(middles, density, **style)


def _inset(axis: Axes, found: Sequence[dict], place: int, name: str) -> None:
    exact = np.asarray(found[0]["exact"][name])
    edges = np.asarray(found[0]["edges"][name])
    peak, half = int(np.argmax(exact)), max(2, int(PEAK * len(exact)))
    low, high = edges[max(0, peak - half)], edges[min(len(exact), peak + half)]
    inset = axis.inset_axes((0.64, 0.5, 0.36, 0.5))
    _lines(inset, found, place, name)
    near = exact[max(0, peak - half) : peak + half]
    inset.set(xlim=(low, high), ylim=(0.9 * near.min(), 1.06 * near.max()), xticks=[], yticks=[])
    inset.spines[:].set_visible(True)
    inset.spines[:].set_color("#9a9a9a")


@styled
def normal_densities(records: Records) -> Figure:
    """Densities of both parameters: a column per (h, A), a line per sampler, the peak in the inset."""
    by_method = {record["method"]: record for record in need(records, "normal", "normal_densities")}
    methods = methods_in(by_method.values())
    found = [by_method[method] for method in methods]
    cells = found[0]["cells"]
    figure = Figure(figsize=(WIDTH, 3.7), layout="constrained")
    axes = figure.subplots(2, len(cells), squeeze=False, sharex="row", sharey="row")
    for row, name in zip(axes, SYMBOLS, strict=True):
        for place, (axis, cell) in enumerate(zip(row, cells, strict=True)):
            _lines(axis, found, place, name)
            _inset(axis, found, place, name)
            axis.set_xlabel(SYMBOLS[name])
            # Room for the inset beside the peak.
            edges = found[0]["edges"][name]
            axis.set_xlim(edges[0], edges[-1] + 0.25 * (edges[-1] - edges[0]))
            axis.set_ylim(0, 1.25 * max(found[0]["exact"][name]))
            if name == "mu":
                axis.set_title(setting(cell["step_size"], cell["friction"]))
        row[0].set_ylabel("density")
    handles = [Line2D([], [], label="exact", **EXACT), *handles_of(methods, marker="", linewidth=1.4)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=2.6)
    return figure
