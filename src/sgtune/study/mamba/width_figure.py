"""The figure of widths: which errors of the width the discrepancies see."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from sgtune.study.mamba.figures import legend_below, numbers, panels
from sgtune.study.report.labels import MODELS, in_order, label
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import BLUE, INK, VERMILION, log_ticks, styled
from sgtune.support.errors import DataError

__all__ = ["widths"]

SCALES = {
    "identity": {
        "color": VERMILION,
        "marker": "s",
        "linestyle": (0, (4, 1.5)),
        "label": "raw coordinates (the paper's)",
    },
    "laplace": {
        "color": BLUE,
        "marker": "o",
        "linestyle": "-",
        "label": "coordinates scaled by the posterior",
    },
}

RING = {
    "marker": "o",
    "markersize": 10,
    "markerfacecolor": "none",
    "markeredgewidth": 1.2,
    "linestyle": "none",
}


def _relative(rows: list[dict], model: str) -> pd.DataFrame:
    """The discrepancy at each width over the discrepancy of exact draws."""
    table = pd.DataFrame({name: numbers([row[name] for row in rows]) for name in ("width", "value")})
    exact = table.loc[np.isclose(table["width"], 1.0), "value"]
    if exact.empty or not exact.iloc[0] > 0:
        raise DataError(f"widths of {model}: no positive value at width 1, over which the others are shown")
    return table.assign(value=table["value"] / exact.iloc[0])


@styled
def widths(records: Records) -> Figure:
    """Discrepancy of draws that are too narrow or wide, over the value of exact draws; the lowest is ringed."""
    found = need(records, "widths", "widths")
    models = in_order((record["model"] for record in found), MODELS)
    names = {"ksd": "KSD", "fssd": "FSSD"}
    present = {row["discrepancy"] for record in found for row in record["rows"]}
    names = {name: heading for name, heading in names.items() if name in present}
    figure, axes = panels(len(models), len(names), height=2.5)
    for column, model in enumerate(models):
        rows = [row for record in found if record["model"] == model for row in record["rows"]]
        for axis, (name, heading) in zip(axes[:, column], names.items(), strict=True):
            axis.axvline(1.0, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), label="exact draws")
            for scale, style in SCALES.items():
                own = [row for row in rows if row["discrepancy"] == name and row["scale"] == scale]
                if not own:
                    continue
                line = _relative(own, model)
                how = {"estimator": None, "legend": False, "zorder": 3}
                sns.lineplot(line, x="width", y="value", ax=axis, **how, **style)
                lowest = line.loc[line["value"].idxmin()]
                axis.plot(lowest["width"], lowest["value"], **RING, color=style["color"], zorder=4)
            axis.plot([], [], **RING, color=INK, label="lowest value")
            # Only now: on a log axis seaborn would take logarithms and their inverse, and round twice.
            axis.set(yscale="log", xlim=(-0.15, None), xlabel="", ylabel="")
            log_ticks(axis.yaxis)
            side_by_side = len(models) == 1
            if side_by_side or name == list(names)[-1]:
                axis.set_xlabel("width of the draws (posterior sds)\n0: a chain that never moves")
            if side_by_side:
                axis.set_title(heading)
            elif name == next(iter(names)):
                axis.set_title(label(model, MODELS))
            if column == 0 and (not side_by_side or name == next(iter(names))):
                axis.set_ylabel(("" if side_by_side else f"{heading}: ") + "value / value of exact draws")
    legend_below(figure, axes[0, 0], 2)
    return figure
