"""The tables of samplers tuned by the default tuner, at equal seconds."""

from dataclasses import replace

from sgtune.axes import named
from sgtune.study.adam_mcmc.names import sampler_label, samplers_in
from sgtune.study.artifacts.labels import METRICS, MODELS, in_order
from sgtune.study.artifacts.layout import Cell, Row, Table, mark_best
from sgtune.study.artifacts.means import SOURCES, evaluation_cells
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.studies import artifact

__all__ = ["adam_evaluation"]

ERRORS = ("relative_sd_error_x100", "xi_white_x100")
PREDICTIVE = ("accuracy_percent", "ece_percent", "mce_percent", "log_loss")
COLUMNS = ("n_samples", "ksd", *ERRORS, *PREDICTIVE)


def _map_row(record: dict) -> Row:
    """Predictions of the mode alone."""
    cells = []
    for metric in COLUMNS:
        key, factor = SOURCES[metric]
        value = record["map"].get(key)
        cells.append(
            Cell(record["model"], "map", "", metric, value=None if value is None else factor * value)
        )
    return Row((MODELS[record["model"]], "MAP"), tuple(cells))


def adam_evaluation(records: Records) -> Table:
    """A row per model and sampler, and the MAP; a column per metric."""
    name = "adam_evaluation"
    found = need(records, "evaluations", name)
    rows, said = [], []
    for model in in_order((record["model"] for record in found), MODELS):
        own = {record["sampler"]: record for record in found if record["model"] == model}
        samplers = samplers_in(own.values())
        flat = [cell for sampler in samplers for cell in evaluation_cells(own[sampler], COLUMNS)]
        marked = mark_best(flat, among="sampler")
        for place, sampler in enumerate(samplers):
            cells = marked[place * len(COLUMNS) : (place + 1) * len(COLUMNS)]
            cells = [replace(cell, sd=None) if cell.se is not None else cell for cell in cells]
            rows.append(Row((MODELS[model], sampler_label(sampler)), tuple(cells)))
        first = own[samplers[0]]
        rows.append(_map_row(first))
        chosen = "; ".join(
            f"{sampler_label(sampler)}: {named(own[sampler]['best']) if own[sampler]['best'] else 'none'}"
            for sampler in samplers
        )
        said.append(
            f"{MODELS[model]}: {len(first['table'])} runs of {first['seconds']:g} s, tuned with R = "
            f"{first['race_seconds']:g} s: {chosen}."
        )
    return Table(
        name=name,
        title=artifact(name).title,
        caption="Equal seconds by measured costs, without compilation, from the MAP; ± one standard error over runs. "
        "The test of AdamMCMC uses all data.\n"
        + "\n".join(said)
        + "\nBold: best of the samplers, if every other is more than two standard errors away.",
        stub=("Model", "Sampler"),
        columns=tuple(("", METRICS[metric].label) for metric in COLUMNS),
        rows=tuple(rows),
    )
