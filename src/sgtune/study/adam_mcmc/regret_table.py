"""The table of expected regret of judges' choices for the samplers with a Metropolis test."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Mapping, Sequence

import numpy as np

from sgtune.axes import named
from sgtune.study.adam_mcmc.names import JUDGES, sampler_label, samplers_in
from sgtune.study.artifacts.labels import METRICS
from sgtune.study.artifacts.layout import Cell, Row, Table, mark_best
from sgtune.study.artifacts.means import SOURCES, metric_of
from sgtune.study.artifacts.records import Records, need
from sgtune.study.artifacts.regret_estimates import best_of, chosen_losses, over_loss, ratio
from sgtune.study.artifacts.remarks import counted
from sgtune.study.artifacts.studies import artifact

__all__ = ["adam_choices", "adam_regret"]


def _rows_of(record: Mapping, seconds: float, keys: Sequence[str]) -> list[Row]:
    """The sampler's rows: the best finalist, judges, and arms for comparison; a column per loss."""
    own = record["regret"]
    runs = {run["arm"]: run for run in own["runs"] if run["seconds"] == seconds}
    label = sampler_label(record["sampler"])
    chosen = {one["tuner"]: one["arms"] for one in own["chosen"]}
    cells: dict[str, list[Cell]] = {name: [] for name in (*chosen, "oracle", "random", "frozen")}
    finalist = []
    for key in keys:
        losses = np.array([runs[arm]["losses"][key] for arm in range(len(own["arms"]))], float).T
        best = best_of(losses, own["finalists"][key])
        smallest = losses[:, [best]]
        metric, factor = metric_of(key), SOURCES[metric_of(key)][1]
        least = ratio(factor * smallest, np.ones((len(losses), 1)))
        finalist.append(
            Cell("logistic", record["sampler"], "finalist", metric, value=least.value, se=least.se)
        )
        read_by = {"oracle": own["oracles"].get(key), "random": own["random"]}
        for name, arms in {**chosen, **read_by}.items():
            estimate = ratio(chosen_losses(losses, arms, key), smallest) if arms else None
            cells[name].append(
                Cell(
                    "logistic",
                    record["sampler"],
                    name,
                    f"{metric}_regret",
                    value=estimate and estimate.value,
                    se=estimate and estimate.se,
                )
            )
        frozen = over_loss(own["frozen"][key], smallest)
        cells["frozen"].append(
            Cell(
                "logistic", record["sampler"], "frozen", f"{metric}_regret", value=frozen.value, se=frozen.se
            )
        )
    of_judges = [cell for name in chosen for cell in cells[name]]
    marked = iter(mark_best(of_judges))
    rows = [Row((label, JUDGES[name]), tuple(next(marked) for _ in keys)) for name in chosen]
    rows += [Row((label, JUDGES[name]), tuple(cells[name])) for name in ("oracle", "random", "frozen")]
    return [Row((label, "Best finalist: ξ × 10²"), tuple(finalist)), *rows]


def adam_regret(records: Records) -> Table:
    """The mean loss of the chosen arms over the mean loss of the best finalist."""
    name = "adam_regret"
    by_sampler = {record["sampler"]: record for record in need(records, "races", name)}
    found = [by_sampler[sampler] for sampler in samplers_in(by_sampler.values())]
    seconds = max(run["seconds"] for run in found[0]["regret"]["runs"])
    keys = [key for key in found[0]["regret"]["losses"] if all(key in r["regret"]["losses"] for r in found)]
    n_runs = len(found[0]["regret"]["runs"][0]["diverged"])
    n_races = max(race["replicate"] for race in found[0]["races"]) + 1
    arms = "; ".join(f"{sampler_label(r['sampler'])} {r['races'][0]['n_arms']}" for r in found)
    doubt = "" if all(r.get("trusted") for r in found) else "\nThe reference of this run is not trusted."
    return Table(
        name=name,
        title=artifact(name).title,
        caption=f"Logistic regression, N = {found[0]['n_data']:,}: errors of the sds after {seconds:g} s (by measured "
        f"costs), mean of {counted(n_runs, 'fresh run')} of the arms that {counted(n_races, 'race')} of R "
        "= "
        f"{found[0]['seconds']:g} s chose, over the mean of the best finalist; ± one standard error "
        f"(jackknife). Arms: {arms}. Acceptance: the arm whose rate is nearest to the theoretical optimum; "
        "it judges only samplers whose step size alone is tuned. Oracle: the same race judged by the true "
        "error. Frozen: a chain that stays at "
        f"the MAP.{doubt}\nBold: best of the judges, if every other is more than two standard errors away.",
        stub=("Sampler", "Chosen by"),
        columns=tuple(("", METRICS[metric_of(key)].label) for key in keys),
        rows=tuple(row for record in found for row in _rows_of(record, seconds, keys)),
    )


def adam_choices(records: Records) -> Table:
    """The choice of each race."""
    name = "adam_choices"
    by_sampler = {record["sampler"]: record for record in need(records, "races", name)}
    rows = []
    for sampler in samplers_in(by_sampler.values()):
        races = by_sampler[sampler]["races"]
        for judge in dict.fromkeys(race["judge"] for race in races):
            arms = [race["best"] for race in races if race["judge"] == judge]
            text = "; ".join("none" if arm is None else named(arm) for arm in arms)
            cell = Cell("logistic", sampler, judge, "", text=text)
            rows.append(Row((sampler_label(sampler), JUDGES[judge]), (cell,)))
    return Table(
        name=name,
        title=artifact(name).title,
        caption="Logistic regression: the arm that each race chose; h is AdamMCMC's γ, n the batch size.",
        stub=("Sampler", "Judge"),
        columns=(("", "Chosen"),),
        rows=tuple(rows),
        is_prose=True,
    )
