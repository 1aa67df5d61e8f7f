"""The figure of acceptance rates, effective sample sizes and widths against the noise s."""

# ruff: noqa: RUF001 - labels have Greek letters and signs of mathematics

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.adam_mcmc.acceptance_table import ess_per_second, seconds_per_step
from sgtune.study.adam_mcmc.intervals import t_quantile
from sgtune.study.adam_mcmc.names import mean_of, target_label, targets_in
from sgtune.study.adam_mcmc.verdicts import is_stuck, moment_cause
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import BLUE, INK, ORANGE, VERMILION, WIDTH, log_ticks, styled

__all__ = ["adam_acceptance_curves"]

COLORS = (BLUE, ORANGE, VERMILION, INK)
"""Of gamma / s, ascending."""
GREY = "0.55"
"""Of the legend's lines for s_d: no value of gamma / s has it."""
LINES = ("-", (0, (4, 1.2)), (0, (1.2, 1.2)))
"""Of s_d, ascending from 0."""
ROWS = {
    "acceptance": "acceptance",
    "jump": "squared jump\nper second",
    "ess": "ESS per second",
    "square": "E x²",
}


def _values(row: str, record: Mapping, cell: Mapping, seconds: float | None) -> list[float]:
    """As in the table `adam_prolate`: no number of chains that cannot have it."""
    if row == "ess":
        return ess_per_second(record, cell, seconds)
    if row == "jump":
        return [] if seconds is None or is_stuck(cell) else [jump / seconds for jump in cell.get("jump", ())]
    if row == "square" and moment_cause(record, cell):
        return []
    return list(cell[row])


@styled
def adam_acceptance_curves(records: Records) -> Figure:
    """A column per target: acceptance, squared jumps and ESS per second, and E x^2 against s, a line per gamma / s and
    s_d."""
    found = targets_in(need(records, "acceptance", "adam_acceptance_curves"))
    ratios = sorted({cell["drift_ratio"] for record in found for cell in record["cells"]})
    alongs = sorted({cell["directional_noise"] for cell in found[0]["cells"]})
    figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
    axes = figure.subplots(len(ROWS), len(found), squeeze=False, sharex=True, sharey="row")
    for column, record in enumerate(found):
        seconds = seconds_per_step(records, record)
        for place, row in enumerate(ROWS):
            axis = axes[place, column]
            for ratio, color in zip(ratios, COLORS, strict=False):
                for along, line in zip(alongs, LINES, strict=False):
                    own = [
                        (cell["scale"], *mean_of(values), len(values))
                        for cell in record["cells"]
                        if (cell["drift_ratio"], cell["directional_noise"]) == (ratio, along)
                        and (values := _values(row, record, cell, seconds))
                    ]
                    if own:
                        scales, means, errors, counts = zip(*sorted(own), strict=True)
                        axis.errorbar(
                            scales,
                            means,
                            yerr=[t_quantile(n) * e if e else 0 for e, n in zip(errors, counts, strict=True)],
                            color=color,
                            linestyle=line,
                            linewidth=1.1,
                            marker="o",
                            markersize=2.5,
                        )
            axis.set_xscale("log")
            if row in ("ess", "jump") and any(own.has_data() for own in axes[place]):
                axis.set_yscale("log")
            if row == "square":
                axis.axhline(1, color=INK, alpha=0.35, linewidth=1.6)
                axis.set_xlabel("s √T")
            if row == "acceptance":
                axis.set_ylim(-0.02, 1.02)
                axis.set_title(target_label(record), fontsize="small")
            if column == 0:
                axis.set_ylabel(ROWS[row])
            log_ticks(axis.xaxis)
    # Only now: a limit that is set ends the scaling of all panels that share the axis.
    axes[list(ROWS).index("square"), 0].set_ylim(bottom=0)
    handles = [
        Line2D([], [], color=color, label=f"γ / s = {ratio:g}")
        for ratio, color in zip(ratios, COLORS, strict=False)
    ]
    handles += [
        Line2D([], [], color=GREY, linestyle=line, label=f"s_d = {along:g}")
        for along, line in zip(alongs, LINES, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=2.6)
    return figure
