"""Predictive entropy on the test set and on out-of-distribution inputs, which a good posterior distinguishes."""

from sgtune.study.mamba.tables import marked
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import OOD_SETS
from sgtune.study.report.layout import Table, lay_out
from sgtune.study.report.means import evaluation_cells
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import FINITE, spread_said

__all__ = ["ood", "ood_set"]

METRICS = ("entropy_test", "entropy_ood", "auroc")


def ood_set(records: list[dict]) -> tuple[str, str]:
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
    """Mean predictive entropy on both sets, and its AUROC as a detector."""
    found = need(records, "evaluation", "ood")
    cells, bold = marked(records, "ood", [c for record in found for c in evaluation_cells(record, METRICS)])
    name, missing = ood_set(found)
    about = (
        f"{spread_said(found)} Mean entropy, in nats, of the averaged predictions on the test set and on {name}, whose "
        "images belong to none of the model's classes, and AUROC: the probability that one of these has "
        f"the higher entropy, 0.5 if the entropies have no information.\n{bold} {FINITE}"
    )
    return lay_out(
        cells,
        name="ood",
        title=artifact("ood").title,
        caption=missing or about,
        rows=("tuner", "metric"),
        columns=("sampler",),
    )
