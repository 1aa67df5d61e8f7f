"""The table of what a step of each chosen arm costs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sgtune.axes import STATIC, named
from sgtune.study.adam_mcmc.names import sampler_label, samplers_in
from sgtune.study.artifacts.labels import MODELS, in_order
from sgtune.study.artifacts.layout import Cell, Row, Table
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.studies import artifact

__all__ = ["adam_costs", "cost_findings"]

COMPARED_SHARE = 0.01
"""Costs are compared with a step of SGLD whose batch size is nearest to this share of the data."""


def _shape(numbers: Mapping) -> tuple:
    return tuple(numbers.get(axis.name) for axis in STATIC)


def _compared(rows: Sequence[Mapping], n_data: int) -> Mapping | None:
    """The row of SGLD that other costs are multiples of."""
    own = [row for row in rows if row["sampler"] == "sgld"]
    return min(own, key=lambda row: abs(row["batch_size"] - COMPARED_SHARE * n_data), default=None)


class _Step(NamedTuple):
    """What a step of one shape of a chosen arm costs; ``times``: in steps of SGLD (`_compared`), None without it."""

    model: str
    sampler: str
    label: str
    seconds: float
    times: float | None
    compared: Mapping | None


def _steps(costs: Mapping[str, Mapping], found: Sequence[dict]) -> list[_Step]:
    steps = []
    for model in in_order((record["model"] for record in found if record["model"] in costs), MODELS):
        own = {record["sampler"]: record for record in found if record["model"] == model}
        known = {(row["sampler"], *_shape(row)): row["seconds_per_step"] for row in costs[model]["rows"]}
        compared = _compared(costs[model]["rows"], costs[model]["n_data"])
        for sampler in samplers_in(own.values()):
            for shape in dict.fromkeys(_shape(arm) for arm in own[sampler]["arms"] if arm is not None):
                seconds = known[(sampler, *shape)]
                times = seconds / compared["seconds_per_step"] if compared else None
                label = named(dict(zip((axis.name for axis in STATIC), shape, strict=True)))
                steps.append(_Step(model, sampler, label, seconds, times, compared))
    return steps


def cost_findings(records: Records) -> list[str]:
    """What a test on all data costs against SGLD, and remarks on the measured costs."""
    costs = {record["model"]: record for record in records.get("costs") or [] if "rows" in record}
    lines = [
        f"{MODELS[step.model]}: a step of AdamMCMC ({step.label}), whose test uses all "
        f"{costs[step.model]['n_data']:,} data, costs as much as {step.times:.2g} steps of SGLD "
        f"(n={step.compared['batch_size']})."
        for step in _steps(costs, records.get("evaluations") or [])
        if step.sampler == "adam-mcmc" and step.times is not None
    ]
    return lines + [f"{line}." for record in costs.values() for line in record.get("warnings", [])]


def adam_costs(records: Records) -> Table:
    """A row per model, sampler and shape of its chosen arms."""
    name = "adam_costs"
    costs = {record["model"]: record for record in need(records, "costs", name) if "rows" in record}
    rows = [
        Row(
            (MODELS[step.model], sampler_label(step.sampler), step.label),
            (
                Cell(step.model, step.sampler, "", "seconds_per_step", value=step.seconds, detail=step.label),
                Cell(step.model, step.sampler, "", "cost_ratio", value=step.times, detail=step.label),
            ),
        )
        for step in _steps(costs, need(records, "evaluations", name))
    ]
    return Table(
        name=name,
        title=artifact(name).title,
        caption=" ".join(cost_findings(records))
        + "\nSeconds of one step of the arms that the races chose, measured alone on the machine: the smallest of "
        "several passes over all shapes. Ratio: over a step of SGLD with about 1% of the data.",
        stub=("Model", "Sampler", "Step"),
        columns=(("", "Seconds per step"), ("", "Ratio to SGLD")),
        rows=tuple(rows),
    )
