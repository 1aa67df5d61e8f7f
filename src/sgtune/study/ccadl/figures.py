"""The figures of the study: densities of the normal, curves against passes, and ellipses of long chains."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgtune.study.ccadl.artifacts import METHODS, SETS
from sgtune.study.ccadl.tables import in_print_order, pooled, setting
from sgtune.study.report.records import Records, required
from sgtune.study.report.style import INK, WIDTH, legend_below, panels

THIN = 0.5
"""Width of the lines of what some runs of several have, because the others diverged."""

TRUTH = {"color": INK, "linewidth": 2.2, "alpha": 0.35}
BURN_IN = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 2))}

SYMBOLS = {"mu": "μ", "gamma": "γ"}
PEAK = 0.12
"""Half the width of the inset, as a part of the panel's bins."""

REACH = 2.2
"""Half the width of a panel of ellipses over half the width of NUTS's ellipse."""

COVERED = -2 * np.log(0.05)
"""Squared Mahalanobis distance within which a two-dimensional Gaussian has 95% of its mass."""


def _legend(figure: Figure, records: Sequence[dict], others: Mapping[str, Mapping], columns: int) -> None:
    """A line of each sampler after those of the exact values, and after it one of each of the ``others``."""
    methods = dict.fromkeys(record["method"] for record in records)
    handles = [Line2D([], [], label=name, **look) for name, look in others.items()]
    handles[1:1] = [Line2D([], [], label=METHODS[name].label, **METHODS[name].look) for name in methods]
    legend_below(figure, handles, columns, handlelength=2.6)


def normal_densities(records: Records) -> Figure:
    """Densities of both parameters: a column per (h, A), a line per sampler, the peak in the inset."""
    found = in_print_order(required(records, "normal"))
    figure, axes = panels(2, len(found[0]["cells"]), WIDTH, 3.7, sharex="row", sharey="row")
    for row, (name, symbol) in zip(axes, SYMBOLS.items(), strict=True):
        edges, exact = np.asarray(found[0]["edges"][name]), np.asarray(found[0]["exact"][name])
        peak, half = int(np.argmax(exact)), max(2, int(PEAK * len(exact)))
        near = slice(max(0, peak - half), peak + half)
        for place, axis in enumerate(row):
            inset = axis.inset_axes((0.64, 0.5, 0.36, 0.5))
            for panel in (axis, inset):
                _densities(panel, found, place, name)
            low, high = edges[:-1][near][0], edges[1:][near][-1]
            inset.set(xlim=(low, high), xticks=[], yticks=[])
            inset.set_ylim(0.9 * exact[near].min(), 1.06 * exact[near].max())
            inset.spines[:].set_visible(True)
            # Room for the inset beside the peak.
            axis.set_xlim(edges[0], edges[-1] + 0.25 * (edges[-1] - edges[0]))
            axis.set(xlabel=symbol, ylim=(0, 1.25 * exact.max()))
        row[0].set_ylabel("density")
    for axis, cell in zip(axes[0], found[0]["cells"], strict=True):
        axis.set_title(setting(cell))
    _legend(figure, found, {"exact": TRUTH}, columns=5)
    return figure


def _densities(axis: Axes, found: Sequence[dict], place: int, name: str) -> None:
    """The exact density and each sampler's, at the middles of the bins."""
    edges = np.asarray(found[0]["edges"][name])
    middles = (edges[1:] + edges[:-1]) / 2
    axis.plot(middles, found[0]["exact"][name], **TRUTH)
    for record in found:
        density = record["cells"][place]["density"].get(name)
        if density is not None:
            axis.plot(middles, density, **METHODS[record["method"]].look, linewidth=1.0)


def draw_runs(
    axis: Axes, at: Sequence[float], values: Float[np.ndarray, "runs points"], **look: object
) -> None:
    """The mean over runs, as far as none is nan; from there on thinly the mean of those that are not."""
    means, has_all = pd.DataFrame(values).mean().to_numpy(), np.isfinite(values).all(axis=0)
    axis.plot(at, np.where(has_all, means, np.nan), **look)
    if (np.isfinite(means) & ~has_all).any():
        is_thin = ~has_all
        # From the last point that all runs have.
        is_thin[:-1] |= ~has_all[1:]
        axis.plot(at, np.where(is_thin, means, np.nan), **(look | {"linewidth": THIN}))


def _curves(
    axis: Axes, found: Sequence[dict], at: tuple[float, float], numbers: str, scale: float = 1.0
) -> None:
    """``numbers`` of the runs ``at`` one h and A against passes: a line per sampler."""
    for record in found:
        for cell in record["cells"]:
            if (cell["step_size"], cell["friction"]) == at:
                values = scale * np.array([run[numbers] for run in cell["replicates"]], float)
                draw_runs(axis, record["passes"], values, **METHODS[record["method"]].look, linewidth=1.1)
    axis.set_title("h = {:g}, A = {:g}".format(*at))


def _values(record: Mapping, key: str) -> list[float]:
    return list(dict.fromkeys(cell[key] for cell in record["cells"]))


def logistic_regression(records: Records) -> Figure:
    """A column per h: test log-likelihood against passes, a row per A, and below them 95% ellipses at one A."""
    curves, draws = (in_print_order(required(records, f"logistic_{kind}")) for kind in ("curves", "draws"))
    [reference] = required(records, "logistic_reference")
    goal, places = draws[0]["truth_log_likelihood"], list(draws[0]["coordinates"])
    step_sizes, frictions = (_values(curves[0], key) for key in ("step_size", "friction"))
    n_rows, shared = len(frictions) + 1, {"sharey": "row", "sharex": "row"}
    figure, axes = panels(n_rows, len(step_sizes), WIDTH, 2.0 * len(frictions) + 2.8, **shared)
    for (*above, below), step_size in zip(axes.T, step_sizes, strict=True):
        for axis, friction in zip(above, frictions, strict=True):
            axis.axhline(goal, **TRUTH)
            _curves(axis, curves, (step_size, friction), "log_likelihoods")
        above[-1].set_xlabel("passes over the data")
        _ellipses(below, draws, step_size, reference, places)
        below.set_xlabel(f"coordinate {places[0] + 1}")
    means = [
        np.array([run["log_likelihoods"] for run in cell["replicates"]], float).mean(axis=0)
        for record in curves
        for cell in record["cells"]
    ]
    finite = np.concatenate(means)[np.isfinite(np.concatenate(means))]
    # The lowest 15% of the means over runs are below the panel.
    low = min(np.quantile(finite, 0.15) if len(finite) else goal - 1, goal - 0.02)
    for axis in axes[:-1, 0]:
        axis.set_ylim(low, max(goal, finite.max(initial=goal)) + 0.04 * abs(goal - low))
        axis.set_ylabel("test log-likelihood")
    axes[-1, 0].set_ylabel(f"coordinate {places[1] + 1}, A = {draws[0]['cells'][0]['friction']:g}")
    _legend(figure, curves, {"NUTS": TRUTH}, columns=5)
    return figure


def _ellipses(
    axis: Axes, found: Sequence[dict], step_size: float, reference: Mapping, places: Sequence[int]
) -> None:
    mean, covariance = np.asarray(reference["mean"])[places], reference.get("covariance")
    if covariance is None:  # of so few draws of NUTS that there is none
        covariance = np.diag(np.asarray(reference["sd"]) ** 2)
    outline = ellipse_of(mean, np.asarray(covariance)[np.ix_(places, places)])
    axis.plot(*outline.T, **TRUTH)
    axis.plot(*mean, marker="o", markersize=7, markerfacecolor="none", markeredgecolor=INK, linestyle="none")
    for record in found:
        for cell in record["cells"]:
            together = pooled(cell["replicates"]) if cell["step_size"] == step_size else None
            if together is not None:
                is_whole = not any(run["diverged"] for run in cell["replicates"])
                look = METHODS[record["method"]].look
                axis.plot(*ellipse_of(*together).T, **look, linewidth=1.1 if is_whole else THIN)
                axis.plot(*together[0], color=look["color"], marker="x", markersize=5, linestyle="none")
    half = REACH * np.abs(outline - mean).max(axis=0)
    axis.set(xlim=(mean[0] - half[0], mean[0] + half[0]), ylim=(mean[1] - half[1], mean[1] + half[1]))


def ellipse_of(
    mean: Float[np.ndarray, " 2"], covariance: Float[np.ndarray, "2 2"], n_points: int = 200
) -> Float[np.ndarray, "n 2"]:
    """The points where a Gaussian's density has the value that bounds 95% of its mass."""
    angles = np.linspace(0, 2 * np.pi, n_points)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # Not by a Cholesky factor, which a chain that does not move in all directions lacks.
    variances, axes = np.linalg.eigh(covariance)
    return mean + circle * np.sqrt(COVERED * np.maximum(variances, 0)) @ axes.T


def drbm_curves(records: Records) -> Figure:
    """Test error of averaged predictions against passes: a row per data set and A, a column per h."""
    found = [record for record in in_print_order(required(records, "drbm")) if not record["missing"]]
    by_set = {name: [record for record in found if record["set"] == name] for name in SETS}
    rows = [(name, own, at) for name, own in by_set.items() if own for at in _values(own[0], "friction")]
    maps = {record["set"]: record for record in required(records, "map")}
    columns = max((len(_values(record, "step_size")) for record in found), default=1)
    n_rows = max(1, len(rows))
    figure, axes = panels(n_rows, columns, WIDTH, 1.7 * n_rows + 0.9, sharey="row")
    for row, (name, own, friction) in zip(axes, rows, strict=False):
        at_map = 100 * (1 - maps[name]["test"]["accuracy"])
        step_sizes = _values(own[0], "step_size")
        for axis, step_size in zip(row, step_sizes, strict=False):
            axis.axhline(at_map, **TRUTH)
            axis.axvline(own[0]["burn_in_passes"], **BURN_IN)
            _curves(axis, own, (step_size, friction), "errors", scale=100)
            axis.set_xlabel("passes over the data")
        for axis in row[len(step_sizes) :]:
            axis.set_axis_off()
        runs = np.array(
            [r["errors"] for record in own for c in record["cells"] for r in c["replicates"]], float
        )
        late = runs[:, np.asarray(own[0]["passes"]) >= own[0]["burn_in_passes"]]
        # All but the worst are in the panels when the burn-in ends.
        top = (
            max(at_map, 100 * np.quantile(late[np.isfinite(late)], 0.9)) if np.isfinite(late).any() else 100.0
        )
        low = min(at_map, 100 * np.nanmin(runs, initial=1.0))
        row[0].set_ylim(max(0.0, low - 0.1 * (top - low)), top + 0.1 * (top - low))
        row[0].set_ylabel(f"{SETS[name]}\ntest error (%)")
    _legend(figure, found, {"MAP": TRUTH, "end of burn-in": BURN_IN}, columns=6)
    return figure
