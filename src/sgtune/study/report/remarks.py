"""Sentences of captions about a table's numbers, from its records: the number of runs, their errors, the reference."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from statistics import median

from sgtune.study import catalogue
from sgtune.study.config.sections import model_settings, tunes_alone
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS, MODELS, TUNERS, in_order, label
from sgtune.study.report.layout import NOISE, Cell, format_number
from sgtune.study.report.means import SOURCES, entry_of
from sgtune.study.report.records import Records, finite, need
from sgtune.study.report.trust import doubted

__all__ = [
    "BOLD",
    "CALIBRATION",
    "FINITE",
    "ONE_TUNING_RUN",
    "beside_said",
    "budgets_said",
    "by_model",
    "counted",
    "floor_said",
    "meanings",
    "not_in_paper_said",
    "reference_said",
    "roots_said",
    "spread_said",
    "tuning_runs_said",
    "unmarked_said",
]

FINITE = (
    "“(k/n)”: mean of the k of n replicates that have an arm and are finite; it is never marked. "
    "“diverged”: no replicate is finite."
)
ONE_TUNING_RUN = "because with one tuning run the error leaves out how much choices vary"
"""Why no tuner is marked."""
BOLD = (
    "Bold: best of a sampler and metric, if every other that is finite in all replicates is more than two "
    "standard errors of the difference away (between tuning runs, if these differ more than replicates "
    "do). Tuners with the same runs are marked together; means of fewer than three runs, and a number that "
    "prints like a competitor's, are never marked."
)
CALIBRATION = (
    "Log-loss and Brier score are proper, so they come first. ECE is not: a chain that drifts from too "
    "little to too much confidence crosses zero on its way; MCE depends on a handful of images. Both are "
    "shown because the paper has them."
)


def meanings(metrics: Iterable[str]) -> str:
    """``metrics`` and what they mean, of those that say so."""
    known = (metric for metric in metrics if METRICS[metric].meaning)
    return "; ".join(f"{METRICS[metric].label}: {METRICS[metric].meaning}" for metric in known)


def by_model(records: Sequence[dict], say: Callable[[list[dict]], str]) -> str:
    """The sentence that ``say`` makes from the records of each model: once if it is the same for all, else with
    names."""
    models = in_order((record["model"] for record in records), MODELS)
    names: dict[str, list[str]] = {}
    for model in models:
        words = say([record for record in records if record["model"] == model])
        names.setdefault(words, []).append(label(model, MODELS))
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{words} ({', '.join(of)})" for words, of in names.items() if words)


def counted(number: int, noun: str) -> str:
    """``2 runs``, ``1 run``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tuning_runs_said(counts: Iterable[tuple[str, int]], at_most: int | None = None) -> str:
    """``5 tuning runs (Grid: 3)``: the most that a tuner has, and the tuners that have fewer. Those without randomness,
    which have one, are left out.

    Args:
        counts: (tuner, its number of tuning runs).
        at_most: larger numbers count as this one.
    """
    numbers = {tuner: min(n, at_most or n) for tuner, n in counts}
    most = max(numbers.values())
    fewer: dict[int, list[str]] = {}
    for tuner in in_order(numbers, TUNERS):
        if numbers[tuner] < most and catalogue.TUNERS[tuner].is_random:
            fewer.setdefault(numbers[tuner], []).append(label(tuner, TUNERS))
    said = " and ".join(f"{', '.join(tuners)}: {n}" for n, tuners in fewer.items())
    return counted(most, "tuning run") + (f" ({said})" if said else "")


def budgets_said(settings: Sequence[dict], models: Iterable[str]) -> str:
    """R, the budget of MAMBA's longest arm, for each of the ``models``."""
    config = settings[0]["configuration"]
    budgets = [{"model": model, "R": model_settings(config, model)["mamba"]["seconds"]} for model in models]
    return by_model(budgets, lambda own: f"R = {own[0]['R']:g} s")


def beside_said(settings: Sequence[dict], models: Iterable[str]) -> str:
    """A sentence of its own line about models whose tuning jobs ran beside other jobs; empty if there are none."""
    config = settings[0]["configuration"]
    if all(tunes_alone(config, model) for model in models):
        return ""
    return (
        "\nA given cost table decided, so tuning jobs ran beside other jobs: alone they would take less time."
    )


def _spread(records: list[dict]) -> str:
    runs = max(len(record["table"]) for record in records)
    if runs == 1:
        return "one run each, without a spread"
    tunings = tuning_runs_said(((record["tuner"], len(record["arms"])) for record in records), runs)
    arms = (
        "all with the arm of one tuning run"
        if tunings == counted(1, "tuning run")
        else f"with the arms of {tunings} in turn, so the sd is of tuning too"
    )
    return f"mean ± sd over n = {runs} replicates, {arms}"


def spread_said(found: Sequence[dict]) -> str:
    """A sentence that says over how many runs the cells of evaluation records are means."""
    words = by_model(found, _spread)
    return f"{words[0].upper()}{words[1:]}."


def reference_said(records: Records, name: str, metrics: Mapping[str, Iterable[str]]) -> str:
    """The Monte Carlo error of the reference itself in each of the ``metrics`` of each model; empty for an artifact
    ``name`` that is not made from references."""
    if "reference" not in artifact(name).kinds:
        return ""
    doubts = doubted(records, name)

    def say(own: list[dict]) -> str:
        model, errors = own[0]["model"], own[0]["monte_carlo_error"]
        numbers = {
            metric: factor * errors[key]
            for metric, (key, factor) in SOURCES.items()
            if metric in metrics[model] and finite(errors.get(key)) is not None
        }
        return ", ".join(
            f"{METRICS[metric].label}: {format_number(number)}"
            + (" (NOT trusted, see its table)" if (model, metric) in doubts else "")
            for metric, number in numbers.items()
        )

    found = [one for one in need(records, "reference", name) if "monte_carlo_error" in one]
    said = by_model([one for one in found if one["model"] in metrics], say)
    return f"\nThe reference's own Monte Carlo error: {said}." if said else ""


def not_in_paper_said(found: Iterable[dict]) -> str:
    """A sentence of its own line that names the tuners of ``found`` that the paper does not have; empty if it has all
    of them."""
    of_paper = {name for name, entry in catalogue.TUNERS.items() if entry.in_paper}
    ours = {record["tuner"] for record in found} - of_paper
    names = ", ".join(label(tuner, TUNERS) for tuner in in_order(ours, TUNERS))
    return f"\nCompared too, but not in the paper: {names}." if names else ""


def unmarked_said(cells: Iterable[Cell], doubts: Set[tuple[str, str]]) -> str:
    """A sentence about the metrics of the cells that are not marked because they are `doubted`; empty if there are
    none."""
    cells = [cell for cell in cells if (cell.model, cell.metric) in doubts]
    metrics = dict.fromkeys(METRICS[cell.metric].label for cell in cells)
    if not metrics:
        return ""
    words = ", ".join(label(model, MODELS) for model in in_order((cell.model for cell in cells), MODELS))
    return f" Never marked, because the reference of {words} is not trusted for it: {', '.join(metrics)}."


def roots_said(cells: Sequence[Cell]) -> str:
    """What ± and “<” mean in the cells of a KSD; empty where there is neither."""
    roots = [cell for cell in cells if cell.square is not None]
    said = []
    if any(cell.sd is not None for cell in roots):
        said.append("“±” of a KSD: the sd of its squares over 2 KSD.")
    if any(cell.upper is not None for cell in roots):
        said.append(
            "“< x” of a KSD: squares are estimated without bias, so noise makes some negative; here it did, and "
            "their mean is not two standard errors above 0. x² is two of them above the mean, or above 0 if that is "
            "negative."
        )
        if any(cell.best for cell in cells):
            said.append("It is marked only if x is below the others' lower ends.")
    if any(cell.missing == NOISE and cell.value is None for cell in cells):
        said.append(f"“{NOISE}”: the square of a single run is not above 0.")
    return f"\n{' '.join(said)}" if said else ""


def floor_said(found: Sequence[dict], key: str = "ksd") -> str:
    """The KSD of as many exact draws, and the standard error of an estimated KSD."""

    def numbers(name: str) -> list[float]:
        values = (entry_of(row, name) for record in found for row in record["table"])
        return [value for value in values if finite(value) is not None]

    floors, errors = numbers(f"{key}_floor"), numbers(f"{key}_se")
    said = []
    if floors:
        ends = dict.fromkeys(format_number(end) for end in (min(floors), max(floors)))
        said.append(f"as many exact draws have a KSD of {' to '.join(ends)}")
    errors = [error for error in errors if error > 0]
    if errors:
        said.append(
            "a KSD that is estimated from a random subset of the draws has a median standard error of "
            f"{format_number(median(errors))} (the long table has both for every cell)"
        )
    words = "; ".join(said)
    unmarked = (
        " No KSD of a sampler is marked where the smallest is below the KSD of exact draws." if floors else ""
    )
    return f"\n{words[0].upper()}{words[1:]}.{unmarked}" if words else ""
