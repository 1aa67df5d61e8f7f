"""The figure of the logistic regression: test log-likelihood against passes, and 95% ellipses of two coordinates."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.style import INK, WIDTH, styled
from sgtune.study.ccadl.looks import FRICTION_LINES, handles_of, method_style, say_diverged
from sgtune.study.ccadl.names import methods_in

__all__ = ["ellipse_of", "logistic_regression"]

COVERED = -2 * np.log(0.05)
"""Squared Mahalanobis distance within which a two-dimensional Gaussian has 95% of its mass."""

NUTS = {"color": INK, "linewidth": 2.4, "alpha": 0.35}
REACH = 2.2
"""Half the width of a panel of ellipses, in that of NUTS."""


def ellipse_of(
    mean: Float[np.ndarray, " 2"], covariance: Float[np.ndarray, "2 2"], n_points: int = 200
) -> Float[np.ndarray, "n 2"]:
    """The points where a Gaussian's density has the value that bounds 95% of its mass."""
    angles = np.linspace(0, 2 * np.pi, n_points)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return mean + np.sqrt(COVERED) * circle @ np.linalg.cholesky(covariance).T


def _pooled(runs: Sequence[Mapping]) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and covariance of equally long chains together; None if one has diverged."""
    if any(run["diverged"] for run in runs):
        return None
    means = np.array([run["mean"] for run in runs])
    within = np.mean([run["covariance"] for run in runs], axis=0)
    apart = means - means.mean(axis=0)
    return means.mean(axis=0), within + apart.T @ apart / len(runs)


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
            axis.plot(record["passes"], values.mean(axis=0), **look)
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
            pooled = _pooled(cell["replicates"]) if cell["step_size"] == step_size else None
            if pooled is not None:
                style = method_style(record["method"])
                axis.plot(
                    *ellipse_of(*pooled).T, color=style["color"], linestyle=style["linestyle"], linewidth=1.1
                )
                axis.plot(*pooled[0], color=style["color"], marker="x", markersize=5, linestyle="none")
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
    """Of the log-likelihoods: from where most runs are after a tenth of their passes."""
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
