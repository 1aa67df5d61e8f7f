"""What captions say of regret: its biases, oracles, references that are not trusted, and models without it."""

from collections.abc import Iterable, Sequence, Set

from sgtune.study.report.labels import METRICS, MODELS, SAMPLERS, in_order, label
from sgtune.study.report.layout import AT_CAP, NOT_TRUSTED, Cell
from sgtune.study.report.means import metric_of
from sgtune.study.report.records import Records
from sgtune.support.axes import named

__all__ = ["BIASES", "diverged_said", "doubts", "left_out", "oracles_said", "unknown_said"]

BIASES = (
    "Four biases of regret remain: the smallest of the finalists' noisy means is too small, so that the truly best of "
    "several arms that are nearly as good has a regret above 1; an arm that the screen missed may be better than every "
    "finalist; a ratio of noisy means is too large on average, by about the square of its denominator's relative "
    "error; and the reference's own error is in every loss, which moves ratios of small losses towards 1."
)
"""In captions."""


def oracles_said(found: Sequence[dict]) -> str:
    """In captions, after the meaning of the oracle."""
    several = any(len(record["oracles"]) > 1 for record in found)
    return "; each loss has its own oracle" if several else ""


def unknown_said(cells: Iterable[Cell]) -> str:
    """In captions, why ratios of ``cells`` are not known; empty if all are."""
    if not any(cell.value is None and cell.missing == AT_CAP for cell in cells):
        return ""
    return (
        f" “{AT_CAP}”: not known, because a run of the oracle's arms, or of the best finalist, diverged or is at the "
        "cap."
    )


def doubts(found: Sequence[dict], not_trusted: Set[tuple[str, str]] = frozenset()) -> str:
    """The models whose numbers are not printed, or the losses that are ``not_trusted``, and the reason."""
    names = in_order((record["model"] for record in found if record["trusted"] is False), MODELS)
    others = {
        (record["model"], metric)
        for record in found
        for metric in map(metric_of, record["losses"])
        if record["model"] not in names and (record["model"], metric) in not_trusted
    }
    said = ""
    if names:
        words = ", ".join(label(name, MODELS) for name in names)
        said = f" “{NOT_TRUSTED}”: not printed, because the reference of {words} is not trusted"
    if others:
        words = ", ".join(
            f"{METRICS[metric].label} ({label(model, MODELS)})" for model, metric in sorted(others)
        )
        said += f"{'; left' if said else ' Left'} out, because the reference is not trusted for it: {words}"
    return (
        f"{said} (R-hats are too large or effective sample sizes too small, see its table)." if said else ""
    )


def diverged_said(found: Sequence[dict]) -> str:
    """Lines of their own: the arms, of those chosen and of the finalists, that diverged in a fresh run, by name; and
    how many arms diverged in the screen."""
    models, samplers = (list(dict.fromkeys(record[key] for record in found)) for key in ("model", "sampler"))
    places = [*in_order(models, MODELS), *in_order(samplers, SAMPLERS)]
    fresh, screened = [], []
    for record in sorted(found, key=lambda one: (places.index(one["model"]), places.index(one["sampler"]))):
        whose = f"{label(record['model'], MODELS)}, {label(record['sampler'], SAMPLERS)}"
        lost: dict[int, int] = {}
        for run in record["runs"]:
            lost[run["arm"]] = max(lost.get(run["arm"], 0), sum(run["diverged"]))
        n = len(record["runs"][0]["diverged"])
        arms = [f"{named(record['arms'][arm])} ({k} of {n})" for arm, k in lost.items() if k]
        fresh += [f"{whose}: {', '.join(arms)}"] if arms else []
        screen = record["screen"]
        screened += (
            [f"{whose}: {len(screen['diverged'])} (grid: {screen['n_arms']})"] if screen["diverged"] else []
        )
    said = f"\nDiverged in fresh runs: {'; '.join(fresh)}." if fresh else ""
    return said + (f"\nArms that diverged in the screen: {'; '.join(screened)}." if screened else "")


def left_out(records: Records, found: Sequence[dict]) -> str:
    """The models of the run whose arms did not run again, for captions."""
    judged = {record["model"] for record in found}
    others = {record["model"] for record in records.get("reference") or []} - judged
    words = ", ".join(label(name, MODELS) for name in in_order(others, MODELS))
    return f" Without fresh runs, and so without regret, in this run: {words}." if others else ""
