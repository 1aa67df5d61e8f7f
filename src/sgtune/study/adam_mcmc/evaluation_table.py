"""The tables of samplers tuned by the default tuner, at equal seconds."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sgtune.study.adam_mcmc.edges import edges_said
from sgtune.study.adam_mcmc.equal_time import ERRORS, remarks_on_ksd, remarks_on_predictions, remarks_on_steps
from sgtune.study.adam_mcmc.names import sampler_label, samplers_in
from sgtune.study.adam_mcmc.verdicts import estimate_text
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS, MODELS, in_order
from sgtune.study.report.layout import Cell, Row, Table, format_number, mark_best
from sgtune.study.report.means import SOURCES, evaluation_cells
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import roots_said
from sgtune.support.axes import named

__all__ = [
    "adam_evaluation",
    "adam_predictions",
    "by_model_and_sampler",
]

OF_DRAWS = ("n_samples", "acceptance_percent", "ksd", "ksd_floor", "ksd_points", *ERRORS)
HEADINGS = {
    "n_samples": ("Draws", "number"),
    "acceptance_percent": ("Draws", "accepted (%)"),
    "ksd": ("KSD", "of the chain"),
    "ksd_floor": ("KSD", "of Laplace draws"),
    "ksd_points": ("KSD", "points"),
    "relative_sd_error_x100": ("Error of the sds × 10²", "ξ(σ̂)"),
    "xi_white_x100": ("Error of the sds × 10²", "ξ whitened"),
}
"""Columns of the draws: seven of them fit a page if they share headings."""

PREDICTIVE = ("accuracy_percent", "ece_percent", "mce_percent", "log_loss")


def _map_row(record: dict, metrics: Sequence[str], rows: Sequence[Row]) -> Row:
    """Predictions of the mode alone, and the KSD of a chain that stays there, with the digits of the samplers'
    ``rows``."""
    cells = []
    for place, metric in enumerate(metrics):
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


def _in_print(cell: Cell) -> Cell:
    """With its standard error in place of the sd; “stuck” for chains that accepted nothing. Equal counts of all runs
    have no error to print."""
    if cell.metric == "acceptance_percent" and cell.value == 0:
        return replace(cell, text="stuck")
    form = METRICS[cell.metric].form
    if form == "count" and cell.se == 0:
        return replace(cell, sd=None, text=format_number(cell.value, form))
    if cell.se is None or form != "significant" or cell.text is not None:
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


def _rows_of(own: Mapping[str, dict], metrics: Sequence[str]) -> list[Row]:
    """Of one model: a row per sampler, and the MAP; a column per metric."""
    samplers = samplers_in(own.values())
    flat = [cell for sampler in samplers for cell in evaluation_cells(own[sampler], metrics)]
    marked = mark_best(flat, among="sampler")
    rows: list[Row] = []
    for place, sampler in enumerate(samplers):
        cells = marked[place * len(metrics) : (place + 1) * len(metrics)]
        # The network's exact draws are of another law: its KSDs have no floor to compare with.
        cells = [
            _in_print(replace(cell, best=False) if (cell.model, cell.metric) == ("bnn", "ksd") else cell)
            for cell in cells
        ]
        rows.append(Row((MODELS[own[sampler]["model"]], sampler_label(sampler)), tuple(cells)))
    return [*rows, _map_row(own[samplers[0]], metrics, rows)]


def by_model_and_sampler(found: Sequence[dict]) -> dict[str, dict[str, dict]]:
    """The evaluations by model and sampler."""
    return {
        model: {record["sampler"]: record for record in found if record["model"] == model}
        for model in in_order((record["model"] for record in found), MODELS)
    }


def _runs_said(own: Mapping[str, dict]) -> str:
    """How many runs of how many races the numbers of one model are from, and the arms."""
    samplers = samplers_in(own.values())
    first = own[samplers[0]]
    chosen = "; ".join(f"{sampler_label(sampler)}: {_chosen(own[sampler])}" for sampler in samplers)
    n_races = len(first["arms"])
    arms, turns = (
        ("the arm of one race", "") if n_races == 1 else (f"the arms of {n_races} races", " in turn")
    )
    # Records of older versions have no edges.
    edges = {s: edges_said([{"edges": race} for race in own[s].get("edges", ())]) for s in samplers}
    at_edges = "; ".join(f"{sampler_label(sampler)}: {said}" for sampler, said in edges.items() if said)
    return (
        f"{MODELS[first['model']]}: {len(first['table'])} runs of {first['seconds']:g} s with {arms} of "
        f"R = {first['race_seconds']:g} s{turns}: {chosen}."
        + (f" At the edge of the grid, beyond which a better arm may lie: {at_edges}." if at_edges else "")
    )


def _table(found: Sequence[dict], name: str, metrics: Sequence[str], lines: Sequence[str]) -> Table:
    """The caption: ``lines``, a paragraph each, and what bold means."""
    rows = [row for own in by_model_and_sampler(found).values() for row in _rows_of(own, metrics)]
    bold = "Bold: best of the samplers, if every other is more than two standard errors away"
    bold += "; never a KSD below the KSD of Laplace draws." if "ksd" in metrics else "."
    bold += (
        f" The table “{artifact('adam_findings').title}” claims less: differences beyond the 95% t interval."
    )
    return Table(
        name=name,
        title=artifact(name).title,
        caption="\n".join([*lines, bold + roots_said([cell for row in rows for cell in row.cells])]),
        stub=("Model", "Sampler"),
        columns=tuple(HEADINGS.get(metric, ("", METRICS[metric].label)) for metric in metrics),
        rows=tuple(rows),
    )


def adam_evaluation(records: Records) -> Table:
    """The draws, their KSD and their errors: a row per model and sampler, and the MAP."""
    name = "adam_evaluation"
    found = need(records, "evaluations", name)
    lines = [
        "Equal seconds by measured costs, without compilation, from the MAP; ± one standard error over runs, or over "
        "races (means of the runs of a race) if that is larger. With one race it leaves out how much choices vary. A "
        "count without ± is the same in all runs. The test of AdamMCMC uses all data. KSD of Laplace draws: of "
        "independent draws of the Laplace approximation, as many as the KSD of the chain judges, which is thinned. For "
        "the logistic regression they are as good as exact; the network's posterior is another one. In the row of the "
        "MAP the KSD is of a chain that stays there."
    ]
    for own in by_model_and_sampler(found).values():
        lines += [_runs_said(own), *remarks_on_steps(own), *remarks_on_ksd(own)]
    return _table(found, name, OF_DRAWS, lines)


def adam_predictions(records: Records) -> Table:
    """Accuracy, calibration and log-loss on the test set: a row per model and sampler, and the MAP."""
    name = "adam_predictions"
    found = need(records, "evaluations", name)
    lines = [
        "Predictions, on the test set, of the chains of the table "
        f"“{artifact('adam_evaluation').title}”, averaged over draws; ± one standard error over runs, or "
        "over races if that is larger. With one race it leaves out how much choices vary. MAP: predictions of the mode "
        "alone."
    ]
    for own in by_model_and_sampler(found).values():
        lines += remarks_on_predictions(own)
    return _table(found, name, PREDICTIVE, lines)
