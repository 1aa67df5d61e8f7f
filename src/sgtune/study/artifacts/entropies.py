"""Predictive entropy on the test set and on inputs of another kind, which a good posterior tells apart."""

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgtune.errors import DataError
from sgtune.study.artifacts.figures import tuner_legend
from sgtune.study.artifacts.labels import OOD_SETS, SAMPLERS, TUNERS, in_order, label
from sgtune.study.artifacts.layout import Table, lay_out, mark_best
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.studies import artifact
from sgtune.study.artifacts.style import INK, WIDTH, styled, tuner_style
from sgtune.study.artifacts.tables import FINITE, SPREAD, evaluation_cells

__all__ = ["ood", "ood_entropy"]

METRICS = ("entropy_test", "entropy_ood", "auroc")


def _sets(records: list[dict]) -> tuple[str, str]:
    """The name of the out-of-distribution set, and in words why there is nothing to show ("" if there is)."""
    accounts = [row["ood"] for record in records for row in record["table"] if row.get("ood")]
    if not accounts:
        why = "the run averages no predictions (evaluation.prediction_draws is 0)"
        if all(record["best"] is None for record in records):
            why = "no tuner found an arm"
        return "", f"There is nothing to show: {why}."
    name = ", ".join(sorted({OOD_SETS.get(account["name"], account["name"]) for account in accounts}))
    reasons = sorted({account["missing"] for account in accounts if account.get("missing")})
    missing = (
        f"There is nothing to show: the out-of-distribution set {name} is missing ({'; '.join(reasons)})."
    )
    return name, missing if reasons else ""


def ood(records: Records) -> Table:
    """Mean predictive entropy on both sets, and how well it tells them apart."""
    found = need(records, "evaluation", "ood")
    name, missing = _sets(found)
    about = (
        f"Mean entropy, in nats, of the averaged predictions on the test set and on {name}, whose images are of no "
        "class that the model knows, and AUROC: the probability that one of these has the higher entropy, 0.5 if "
        f"the entropies tell nothing; {SPREAD}. Bold: best of a sampler. {FINITE}"
    )
    return lay_out(
        mark_best(cell for record in found for cell in evaluation_cells(record, METRICS)),
        name="ood",
        title=artifact("ood").title,
        caption=missing or about,
        rows=("tuner", "metric"),
        columns=("sampler",),
    )


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
    axis.set_ylim(bottom=0)
    axis.text(
        0.99, 0.97, "\n".join(lost), transform=axis.transAxes, ha="right", va="top", fontsize=7, color=INK
    )


def _aurocs(axis: Axes, records: list[dict]) -> list[float]:
    """A dot per tuner, one below the other."""
    shown = []
    for i, record in enumerate(records):
        cell = evaluation_cells(record, ("auroc",))[0]
        if cell.value is not None:
            dot = tuner_style(record["tuner"]) | {"linestyle": "none", "markersize": 5}
            axis.errorbar(cell.value, i, xerr=cell.sd, elinewidth=1, **dot)
            shown.append(cell.value)
    axis.set_ylim(len(records) - 0.4, -0.6)
    axis.set_yticks([])
    axis.grid(False, axis="y")
    axis.axvline(0.5, color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
    return shown


@styled
def ood_entropy(records: Records) -> Figure:
    """Densities of the predictive entropy on both sets and AUROC: a row per sampler, a line per tuner."""
    found = need(records, "evaluation", "ood_entropy")
    name, missing = _sets(found)
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
    aurocs = []
    for (test, other, dots), sampler in zip(axes, samplers, strict=True):
        own = {record["tuner"]: record for record in found if record["sampler"] == sampler}
        own = [own[tuner] for tuner in tuners if tuner in own]
        _densities(test, own, "histogram_test")
        _densities(other, own, "histogram_ood")
        aurocs += _aurocs(dots, own)
        test.set_ylabel(label(sampler, SAMPLERS))
    headings = {
        "Density on the test set": "predictive entropy (nats)",
        f"Density on {name}": "predictive entropy (nats)",
        "Told apart": "AUROC",
    }
    for column, (title, unit) in zip(axes.T, headings.items(), strict=True):
        column[0].set_title(title)
        column[-1].set_xlabel(unit)
    figure.align_ylabels(axes[:, 0])
    axes[0, 2].set_xlim(min([0.48, *(0.98 * value for value in aurocs)]), 1.02)
    tuner_legend(figure, tuners)
    return figure
