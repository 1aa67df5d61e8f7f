"""The tables of samplers tuned by the default tuner, at equal seconds."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from collections.abc import Sequence
from dataclasses import replace

from sgtune.axes import named
from sgtune.study.adam_mcmc.names import sampler_label, samplers_in
from sgtune.study.adam_mcmc.verdicts import estimate_text
from sgtune.study.artifacts.labels import METRICS, MODELS, in_order
from sgtune.study.artifacts.layout import Cell, Row, Table, format_number, mark_best
from sgtune.study.artifacts.means import SOURCES, evaluation_cells
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.remarks import counted, roots_said
from sgtune.study.artifacts.studies import artifact

__all__ = ["adam_evaluation", "remarks_on"]

ERRORS = ("relative_sd_error_x100", "xi_white_x100")
PREDICTIVE = ("accuracy_percent", "ece_percent", "mce_percent", "log_loss")
COLUMNS = ("n_samples", "acceptance_percent", "ksd", "ksd_floor", "ksd_points", *ERRORS, *PREDICTIVE)


def _map_row(record: dict, rows: Sequence[Row]) -> Row:
    """Predictions of the mode alone, and the KSD of a chain that stays there, with the digits of the samplers'
    ``rows``."""
    cells = []
    for place, metric in enumerate(COLUMNS):
        key, factor = SOURCES[metric]
        value = record["map"].get(key)
        value = None if value is None else factor * value
        text = None if value is None else _as_above(value, [row.cells[place].shown for row in rows])
        cells.append(Cell(record["model"], "map", "", metric, value=value, text=text))
    return Row((MODELS[record["model"]], "MAP"), tuple(cells))


def _as_above(value: float, texts: Sequence[str]) -> str | None:
    """``value`` with the decimals of the texts ``number ± error`` that have the most; None if there is no such text,
    or if one has a power of ten."""
    numbers = [text.partition(" ± ")[0] for text in texts if " ± " in text]
    if not numbers or any("×" in text for text in texts):
        return None
    return f"{value:,.{max(len(number.partition('.')[2]) for number in numbers)}f}"


def _without_false_best(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of one sampler; a KSD below the KSD of exact draws is not marked as the best: it is no merit."""
    floor = next((cell.value for cell in cells if cell.metric == "ksd_floor"), None)
    return [
        replace(cell, best=False)
        if cell.metric == "ksd" and None not in (cell.value, floor) and cell.value < floor
        else cell
        for cell in cells
    ]


def _in_print(cell: Cell) -> Cell:
    """With its standard error in place of the sd; “stuck” for chains that accepted nothing."""
    if cell.metric == "acceptance_percent" and cell.value == 0:
        return replace(cell, text="stuck")
    if cell.se is None or METRICS[cell.metric].form != "significant" or cell.text is not None:
        return replace(cell, sd=None) if cell.se is not None else cell
    text = estimate_text(cell.value, cell.se) or format_number(cell.value)
    return replace(cell, sd=None, text=text)


def _chosen(record: dict) -> str:
    """The arm of each race, with the races that chose it if they differ."""
    races: dict[str, list[int]] = {}
    for place, arm in enumerate(record["arms"]):
        races.setdefault("none" if arm is None else named(arm), []).append(place + 1)
    if len(races) == 1:
        return next(iter(races))
    return ", ".join(f"{arm} (race {' and '.join(map(str, own))})" for arm, own in races.items())


def remarks_on(own: dict[str, dict]) -> list[str]:
    """On one model's numbers that are easily misread: a KSD below its floor, and predictions of the MAP."""
    lines = []
    for sampler, record in own.items():
        label, model = sampler_label(sampler), MODELS[record["model"]]
        ksd, floor, log_loss = evaluation_cells(record, ("ksd", "ksd_floor", "log_loss"))
        if None not in (ksd.value, floor.value, ksd.se) and floor.value - ksd.value > 2 * ksd.se:
            lines.append(
                f"{model}, {label}: the KSD, {ksd.value:.3g}, is below {floor.value:.3g}, the KSD of exact draws. "
                "Draws cannot be better than exact ones: here a small KSD is no merit; compare ξ."
            )
        at_map = record["map"].get("log_loss")
        known = None not in (at_map, log_loss.value, log_loss.se) and record["model"] == "bnn"
        if known and abs(log_loss.value - at_map) + 2 * log_loss.se < NEAR * at_map:
            lines.append(
                f"{model}, {label}: the log-loss differs from the MAP's by less than {100 * NEAR:g}%, within two "
                "standard errors: the chain hardly left the MAP."
            )
    return lines


NEAR = 0.01
"""Of a log-loss: a chain whose predictions are nearer to those of the MAP has hardly left it."""


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
        of_model: list[Row] = []
        for place, sampler in enumerate(samplers):
            cells = marked[place * len(COLUMNS) : (place + 1) * len(COLUMNS)]
            cells = [_in_print(cell) for cell in _without_false_best(cells)]
            of_model.append(Row((MODELS[model], sampler_label(sampler)), tuple(cells)))
        first = own[samplers[0]]
        rows += [*of_model, _map_row(first, of_model)]
        chosen = "; ".join(f"{sampler_label(sampler)}: {_chosen(own[sampler])}" for sampler in samplers)
        said.append(
            f"{MODELS[model]}: {len(first['table'])} runs of {first['seconds']:g} s with the arms of "
            f"{counted(len(first['arms']), 'race')} of R = {first['race_seconds']:g} s in turn: {chosen}."
        )
        said += remarks_on(own)
    return Table(
        name=name,
        title=artifact(name).title,
        caption="Equal seconds by measured costs, without compilation, from the MAP; ± one standard error over runs, "
        "or over races (means of the runs of a race) if that is larger. The test of AdamMCMC uses all data. KSD of "
        "exact draws: of as many draws as the chain's, independent, from the Laplace approximation, which for the "
        "network is not the posterior. In the row of the MAP the KSD is of a chain that "
        "stays there.\n"
        + "\n".join(said)
        + "\nBold: best of the samplers, if every other is more than two standard errors away; never a KSD "
        f"below the KSD of exact draws.{roots_said([cell for row in rows for cell in row.cells])}",
        stub=("Model", "Sampler"),
        columns=tuple(("", METRICS[metric].label) for metric in COLUMNS),
        rows=tuple(rows),
    )
