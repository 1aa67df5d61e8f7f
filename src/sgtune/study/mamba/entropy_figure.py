"""The figure of predictive entropies, apart from their table, which does not wait for Matplotlib."""

import textwrap

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgtune.study.mamba.entropies import ood_set
from sgtune.study.mamba.figures import numbers, say_empty, tuner_legend, why_empty
from sgtune.study.report.labels import SAMPLERS, TUNERS, in_order, label
from sgtune.study.report.records import Records, need
from sgtune.study.report.style import INK, WIDTH, styled, tuner_style
from sgtune.support.errors import DataError

__all__ = ["ood_entropy"]


def _density(record: dict, which: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Edges of the bins, and the density in each: the mean over the replicates that have one."""
    accounts = [row["ood"] for row in record["table"] if row.get("ood") and not row.get("diverged")]
    accounts = [account for account in accounts if account.get(which) and None not in account[which]]
    if not accounts:
        return None
    edges = [account["edges"] for account in accounts]
    if any(other != edges[0] for other in edges):
        raise DataError(f"ood_entropy: replicates of {record['sampler']} have histograms of different bins")
    return np.array(edges[0]), np.mean([account[which] for account in accounts], axis=0)


def _densities(axis: Axes, records: list[dict], which: str) -> None:
    lost = []
    for record in records:
        style, found = tuner_style(record["tuner"]), _density(record, which)
        if found is None:
            lost.append(f"{style['label']}: {'no arm' if record['best'] is None else 'not finite'}")
        else:
            axis.stairs(found[1], found[0], color=style["color"], linestyle=style["linestyle"], linewidth=1.2)
    if len(lost) == len(records):
        say_empty(axis, why_empty(records))
        return
    axis.set_ylim(bottom=0)
    axis.text(
        0.99, 0.97, "\n".join(lost), transform=axis.transAxes, ha="right", va="top", fontsize=7, color=INK
    )


def _aurocs(axis: Axes, records: list[dict]) -> None:
    """A dot per tuner, one below the other: the mean over replicates, with a bar of one standard deviation."""
    names = [record["tuner"] for record in records]
    for record in records:
        accounts = [row.get("ood") or {} for row in record["table"] if not row.get("diverged")]
        values = numbers([account.get("auroc") for account in accounts])
        if not np.isfinite(values).any():
            continue
        dots = pd.DataFrame({"auroc": values, "tuner": record["tuner"]})
        look = tuner_style(record["tuner"]) | {"linestyle": "none", "markersize": 5}
        bars = {"errorbar": "sd", "err_kws": {"linewidth": 1, "zorder": 1}}
        sns.pointplot(dots, x="auroc", y="tuner", order=names, legend=False, ax=axis, **bars, **look)
    if not axis.lines:
        say_empty(axis, why_empty(records))
    axis.set(xlabel="", ylabel="", yticks=[])
    axis.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (2, 2)))


@styled
def ood_entropy(records: Records) -> Figure:
    """Densities of the predictive entropy on both sets and AUROC: a row per sampler, a line per tuner."""
    found = need(records, "evaluation", "ood_entropy")
    name, missing = ood_set(found)
    if missing:
        lines = textwrap.wrap(missing, 100)
        figure = Figure(figsize=(WIDTH, 0.6 + 0.15 * len(lines)))
        figure.text(0.5, 0.5, "\n".join(lines), ha="center", va="center", color=INK)
        return figure
    samplers = in_order((record["sampler"] for record in found), SAMPLERS)
    tuners = in_order((record["tuner"] for record in found), TUNERS)
    figure = Figure(figsize=(WIDTH, 1.15 * len(samplers) + 1.0), layout="constrained")
    axes = figure.subplots(
        len(samplers), 3, squeeze=False, sharex="col", gridspec_kw={"width_ratios": [1, 1, 0.55]}
    )
    for (test, other, dots), sampler in zip(axes, samplers, strict=True):
        own = {record["tuner"]: record for record in found if record["sampler"] == sampler}
        own = [own[tuner] for tuner in tuners if tuner in own]
        _densities(test, own, "histogram_test")
        _densities(other, own, "histogram_ood")
        _aurocs(dots, own)
        test.set_ylabel(label(sampler, SAMPLERS))
    headings = {
        "Density on the test set (1/nat)": "predictive entropy (nats)",
        f"Density on {name} (1/nat)": "predictive entropy (nats)",
        "Detection": "AUROC",
    }
    for column, (title, unit) in zip(axes.T, headings.items(), strict=True):
        column[0].set_title(title)
        column[-1].set_xlabel(unit)
    figure.align_ylabels(axes[:, 0])
    tuner_legend(figure, found)
    return figure
