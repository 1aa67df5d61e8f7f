"""The forecast of a whole run."""

from collections.abc import Mapping

from sgtune.study.experiments.sensitivity import PERTURBATIONS, numbers_of_points
from sgtune.study.pipeline.forecast.costs import StepCosts
from sgtune.study.pipeline.forecast.jobs import StudyOfModel
from sgtune.study.pipeline.forecast.ladder import ladder_seconds
from sgtune.study.pipeline.forecast.last_run import LastRun
from sgtune.study.pipeline.forecast.report import Forecast, Row
from sgtune.study.pipeline.forecast.seen import PLAIN
from sgtune.study.pipeline.forecast.wanted import wanted_rules
from sgtune.study.studies import MAIN, artifacts_of_run, form_of

__all__ = ["forecast"]

READING, OF_NUMBER, OF_PAIR = 3e-3, 1.5e-7, 1.5e-7
"""Seconds of all judges for one set of draws, as seen on one core: at least, for each of its n D numbers, and for each
pair of the largest set."""

START_UP = 8.0
"""Of the job that reads them, compilation included."""


def forecast(config: Mapping, costs: Mapping[str, StepCosts], last: Mapping[str, LastRun]) -> Forecast:
    """The expected time of the run of a valid configuration: of the jobs behind its artifacts.

    Of the runs of evaluation and regret some are wanted twice, as when two tuners choose one arm: shares seen elsewhere
    are counted.

    Args:
        costs, last: by model; costs of a step, and what an earlier run took.
    """
    rows, sources, unknown = [], [], []
    for model in config["models"]:
        study = StudyOfModel(config, model, costs[model], last[model])
        known = last[model].seconds.items()
        data = [seconds for rule, seconds in known if rule.startswith(("prepare", "simulate"))]
        rows += [Row("data", model, data or [PLAIN["data"]]), *study.rows()]
        sources += _sources(study)
        unknown += study.unknown
    rows.append(Row("gaussian_ladder", "", ladder_seconds(config["ladder"])))
    rows.append(Row("measure_sensitivity", "", [_sensitivity(config["sensitivity"])]))
    wanted = wanted_rules(config)
    rows = [row for row in rows if (row.rule, row.model) in wanted]
    for form, rule in (("table", "make_table"), ("figure", "make_figure")):
        names = [name for name in artifacts_of_run(config, MAIN) if form_of(name) == form]
        rows.append(Row(rule, "", [PLAIN[form]] * len(names)))
    unknown += [
        "how long downloads take",
        "which arms several tuners choose, which are run once, and which diverge and take less than is counted",
        "how much jobs that run beside each other slow each other down: two are counted to take about twice as long",
    ]
    return Forecast(config["run"], rows, sources, unknown)


def _sensitivity(section: Mapping) -> float:
    """Seconds of the study of disturbed draws."""
    n_sets = sum(1 + len(disturbed.sizes) for disturbed in PERTURBATIONS.values())
    each = 0.0
    for dimension in section["dimensions"]:
        counts = numbers_of_points(dimension, section["points"])
        each += sum(READING + OF_NUMBER * n * dimension for n in counts) + OF_PAIR * max(counts) ** 2
    return START_UP + section["replicates"] * n_sets * each


def _sources(study: StudyOfModel) -> list[str]:
    model, costs, last = study.model, study.costs, study.last
    slower = "" if costs.measured_here else f", times {last.slowness:.2f} for this machine"
    lines = [f"{model}: seconds of a step of {costs.origin}{slower}"]
    if costs.guessed:
        lines.append(
            f"{model}: {len(costs.guessed)} shapes of a step are not in that table, and estimated from others"
        )
    shares = " and ".join(f"{share:.2f} ({kind})" for kind, share in last.races.items())
    seen = f"seen in {last.origin}" if last.origin else "as seen elsewhere: no run has tuned it here"
    lines.append(f"{model}: arms of a race take {shares} of one after the other, {seen}")
    if last.config is not None:
        again = StudyOfModel(last.config, model, costs, last).rows()
        expected = sum(row.seconds for row in again if row.rule in last.total)
        took = sum(last.total.get(row.rule, 0.0) for row in again)
        lines.append(f"{model}: in this way that run would take {expected:,.0f} s; it took {took:,.0f} s")
    return lines
