"""The table of what a step of each chosen arm costs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sgtune.study.adam_mcmc.cost_remarks import remarks_on_costs
from sgtune.study.adam_mcmc.names import sampler_label, samplers_in
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import MODELS, in_order
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need
from sgtune.support.axes import STATIC, named

__all__ = ["adam_costs", "cost_findings"]

SMALL_SHARE = 0.01
"""Costs are compared with a step of SGLD whose batch size is nearest to this share of the data, and with a step of
SGLD with the same batch size: only the latter shows what a test costs."""


def _shape(numbers: Mapping) -> tuple:
    return tuple(numbers.get(axis.name) for axis in STATIC)


class _Step(NamedTuple):
    """What a step of one shape of a chosen arm costs.

    Attributes:
        key: the sampler and its shape.
        label: of the shape.
        over_same: in steps of SGLD with the same batch size; None if that was not measured.
        over_small: in steps of SGLD with about `SMALL_SHARE` of the data; None without SGLD.
    """

    model: str
    key: tuple
    batch_size: int
    label: str
    seconds: float
    over_same: float | None
    over_small: float | None

    @property
    def sampler(self) -> str:
        return self.key[0]


def _steps(costs: Mapping[str, Mapping], found: Sequence[dict]) -> list[_Step]:
    steps = []
    for model in in_order((record["model"] for record in found if record["model"] in costs), MODELS):
        own = {record["sampler"]: record for record in found if record["model"] == model}
        known = _seconds(costs[model])
        of_sgld = {key[1]: seconds for key, seconds in known.items() if key[0] == "sgld"}
        small = _small_batch(costs[model])
        for sampler in samplers_in(own.values()):
            for shape in dict.fromkeys(_shape(arm) for arm in own[sampler]["arms"] if arm is not None):
                numbers = dict(zip((axis.name for axis in STATIC), shape, strict=True))
                n, seconds = numbers["batch_size"], known[(sampler, *shape)]
                over_same = seconds / of_sgld[n] if n in of_sgld else None
                over_small = None if small is None else seconds / of_sgld[small]
                steps.append(
                    _Step(model, (sampler, *shape), n, named(numbers), seconds, over_same, over_small)
                )
    return steps


def _seconds(record: Mapping) -> dict[tuple, float]:
    """Seconds per step by (sampler, shape), of all shapes that were measured."""
    return {(row["sampler"], *_shape(row)): row["seconds_per_step"] for row in record["rows"]}


def _small_batch(record: Mapping) -> int | None:
    """The measured batch size of SGLD that is nearest to `SMALL_SHARE` of the data."""
    sizes = [row["batch_size"] for row in record["rows"] if row["sampler"] == "sgld"]
    return min(sizes, key=lambda n: abs(n - SMALL_SHARE * record["n_data"]), default=None)


def _measured(records: Records) -> dict[str, Mapping]:
    return {record["model"]: record for record in records.get("costs") or [] if "rows" in record}


def cost_findings(records: Records) -> list[str]:
    """What a test on all data costs in steps of SGLD with the same batch size; and, if the races chose another batch
    size for SGLD, how such a step compares."""
    costs = _measured(records)
    steps = _steps(costs, records.get("evaluations") or [])
    lines = []
    for model in dict.fromkeys(step.model for step in steps):
        tested = [step for step in steps if step.model == model and step.sampler == "adam-mcmc"]
        lines += [
            f"{MODELS[model]}: a step of AdamMCMC ({step.label}), whose test uses all {costs[model]['n_data']:,} data, "
            f"costs as much as {step.over_same:.2g} steps of SGLD with the same n."
            for step in tested
            if step.over_same is not None
        ]
        sizes = {step.batch_size for step in tested}
        for step in steps:
            if tested and (step.model, step.sampler) == (model, "sgld") and step.batch_size not in sizes:
                times = " and ".join(
                    f"{step.seconds / own.seconds:.2g} times a step of AdamMCMC with {own.label}"
                    for own in tested
                )
                lines.append(
                    f"{MODELS[model]}: the races chose {step.label} for SGLD; such a step costs {times}."
                )
    return lines


def _remarks(costs: Mapping[str, Mapping], steps: Sequence[_Step]) -> list[str]:
    """On costs of chosen shapes that contradict each other, and the load of the machine around the measurements."""
    lines = []
    for model in dict.fromkeys(step.model for step in steps):
        used = {step.key for step in steps if step.model == model}
        for line in remarks_on_costs(_seconds(costs[model]), used):
            sampler, comma, rest = line.partition(",")
            lines.append(f"{MODELS[model]}, {sampler_label(sampler)}{comma}{rest}.")
        origin = costs[model].get("provenance") or {}
        if origin.get("load_before") and origin.get("load_after"):
            lines.append(
                f"{MODELS[model]}: the one-minute load of the machine was {origin['load_before'][0]:g} before the "
                f"measurements and {origin['load_after'][0]:g} after them, on {origin['cores']} cores."
            )
    return lines


def adam_costs(records: Records) -> Table:
    """A row per model, sampler and shape of its chosen arms."""
    name = "adam_costs"
    need(records, "costs", name)
    costs = _measured(records)
    steps = _steps(costs, need(records, "evaluations", name))
    rows = [
        Row(
            (MODELS[step.model], sampler_label(step.sampler), step.label),
            tuple(
                Cell(step.model, step.sampler, "", metric, value=value, detail=f"{step.label}{among}")
                for metric, value, among in (
                    ("seconds_per_step", step.seconds, ""),
                    ("cost_ratio", step.over_same, ", same n"),
                    ("cost_ratio", step.over_small, ""),
                )
            ),
        )
        for step in steps
    ]
    paragraphs = [
        " ".join(cost_findings(records)),
        "Seconds of one step of the arms that the races chose: the smallest of several passes over all shapes, by a "
        "job beside which the workflow runs no other. Ratios: over a step of SGLD with the same n, where it was "
        "measured, and over one with about 1% of the data.",
        " ".join(_remarks(costs, steps)),
    ]
    return Table(
        name=name,
        title=artifact(name).title,
        caption="\n".join(paragraph for paragraph in paragraphs if paragraph),
        stub=("Model", "Sampler", "Step"),
        columns=(("", "Seconds per step"), ("Over SGLD", "same n"), ("Over SGLD", "n = 1%")),
        rows=tuple(rows),
    )
