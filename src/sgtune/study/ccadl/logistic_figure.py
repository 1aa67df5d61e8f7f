"""The figure of the logistic regression: test log-likelihood against passes, and 95% ellipses of two coordinates."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.ccadl.ellipses import ellipse_of, pooled
from sgtune.study.ccadl.looks import FRICTION_LINES, THIN, draw_runs, handles_of, method_style, say_diverged
from sgtune.study.ccadl.names import methods_in
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import INK, WIDTH, styled

__all__ = ["logistic_regression"]

NUTS = {"color": INK, "linewidth": 2.4, "alpha": 0.35}
REACH = 2.2
"""Half the width of a panel of ellipses over half the width of NUTS's ellipse."""


def _curves(
    axis: Axes, found: Sequence[dict], step_size: float, frictions: Sequence[float], goal: float
) -> None:
    axis.axhline(goal, **NUTS)
    lost: list[str] = []
    for record in found:
        for cell in record["cells"]:
            if cell["step_size"] != step_size:
                continue
            values = np.array([run["log_likelihoods"] for run in cell["replicates"]], float)
            look = method_style(record["method"]) | {"marker": "", "linewidth": 1.1, "label": None}
            look["linestyle"] = FRICTION_LINES[frictions.index(cell["friction"]) % len(FRICTION_LINES)]
            draw_runs(axis, record["passes"], values, look)
            if not np.isfinite(values[:, -1]).all():
                lost.append(record["method"])
    say_diverged(axis, lost, 0.05)


def _ellipses(axis: Axes, found: Sequence[dict], step_size: float, reference: Mapping) -> None:
    places = list(found[0]["coordinates"])
    mean = np.asarray(reference["mean"])[places]
    covariance = _covariance(reference, places)
    outline = ellipse_of(mean, covariance)
    axis.plot(*outline.T, **NUTS)
    axis.plot(*mean, marker="o", markersize=7, markerfacecolor="none", markeredgecolor=INK, linestyle="none")
    for record in found:
        for cell in record["cells"]:
            together = pooled(cell["replicates"]) if cell["step_size"] == step_size else None
            if together is not None:
                color = method_style(record["method"])["color"]
                is_whole = not any(run["diverged"] for run in cell["replicates"])
                axis.plot(*ellipse_of(*together).T, color=color, linewidth=1.1 if is_whole else THIN)
                axis.plot(*together[0], color=color, marker="x", markersize=5, linestyle="none")
    half = REACH * np.abs(outline - mean).max(axis=0)
    axis.set(xlim=(mean[0] - half[0], mean[0] + half[0]), ylim=(mean[1] - half[1], mean[1] + half[1]))


def _covariance(reference: Mapping, places: Sequence[int]) -> np.ndarray:
    """Of two coordinates; of so few draws of NUTS that there is none, of the sds alone."""
    if reference.get("covariance") is None:
        return np.diag(np.asarray(reference["sd"])[list(places)] ** 2)
    return np.asarray(reference["covariance"])[np.ix_(places, places)]


@styled
def logistic_regression(records: Records) -> Figure:
    """A column per h: above test log-likelihood against passes, below 95% ellipses at one A."""
    name = "logistic_regression"
    curves = {record["method"]: record for record in need(records, "logistic_curves", name)}
    draws = {record["method"]: record for record in need(records, "logistic_draws", name)}
    [reference] = need(records, "logistic_reference", name)
    goal = next(iter(draws.values()))["truth_log_likelihood"]
    methods = methods_in(curves.values())
    curves = [curves[method] for method in methods]
    draws = [draws[method] for method in methods_in(draws.values())]
    step_sizes = list(dict.fromkeys(cell["step_size"] for cell in curves[0]["cells"]))
    frictions = list(dict.fromkeys(cell["friction"] for cell in curves[0]["cells"]))
    figure = Figure(figsize=(WIDTH, 4.8), layout="constrained")
    axes = figure.subplots(2, len(step_sizes), squeeze=False, sharey="row", sharex="row")
    for axis, step_size in zip(axes[0], step_sizes, strict=True):
        _curves(axis, curves, step_size, frictions, goal)
        axis.set_title(f"h = {step_size:g}")
        axis.set_xlabel("passes over the data")
    axes[0, 0].set_ylim(*_limits(curves, goal))
    axes[0, 0].set_ylabel("test log-likelihood")
    for axis, step_size in zip(axes[1], step_sizes, strict=True):
        _ellipses(axis, draws, step_size, reference)
        axis.set_xlabel(f"coordinate {draws[0]['coordinates'][0] + 1}")
    axes[1, 0].set_ylabel(
        f"coordinate {draws[0]['coordinates'][1] + 1}, A = {draws[0]['cells'][0]['friction']:g}"
    )
    handles = [Line2D([], [], label="NUTS", **NUTS), *handles_of(methods, marker="", linestyle="-")]
    handles += [
        Line2D([], [], color=INK, linestyle=line, label=f"above: A = {friction:g}")
        for friction, line in zip(frictions, FRICTION_LINES, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=2.6)
    return figure


def _limits(found: Sequence[dict], goal: float) -> tuple[float, float]:
    """Of the log-likelihoods: the lowest 15% of the means over runs are below the panel."""
    means = np.concatenate(
        [
            np.array([run["log_likelihoods"] for run in cell["replicates"]], float).mean(axis=0)
            for record in found
            for cell in record["cells"]
        ]
    )
    finite = means[np.isfinite(means)]
    low = np.quantile(finite, 0.15) if len(finite) else goal - 1
    return min(low, goal - 0.02), max(goal, finite.max(initial=goal)) + 0.04 * abs(goal - low)
