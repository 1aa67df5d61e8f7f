"""The table of expected regret of judges' choices for the samplers with a Metropolis test."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from sgtune.study.adam_mcmc.edges import edges_said
from sgtune.study.adam_mcmc.intervals import is_beyond, n_independent, together
from sgtune.study.adam_mcmc.names import JUDGES, sampler_label, samplers_in
from sgtune.study.adam_mcmc.verdicts import estimate_text
from sgtune.study.mamba.regret_estimates import Estimate, best_of, chosen_losses, over_loss, ratio
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import METRICS
from sgtune.study.report.layout import DASH, Cell, Row, Table, format_number, mark_best
from sgtune.study.report.means import SOURCES, metric_of
from sgtune.study.report.records import Records, need
from sgtune.study.report.remarks import counted
from sgtune.support.axes import named

__all__ = ["adam_choices", "adam_regret", "regret_findings"]

BEST_ARM = "Best arm, its own error"
"""The row of the denominators: errors, and not ratios as in the rows below it."""

REGRET = "Regret (error / best arm's error)"


def _rows_of(record: Mapping, seconds: float, keys: Sequence[str]) -> list[Row]:
    """The sampler's rows: the best arm, judges, and arms for comparison; a column per loss, and acceptance."""
    own = record["regret"]
    runs = {run["arm"]: run for run in own["runs"] if run["seconds"] == seconds}
    label = sampler_label(record["sampler"])
    chosen = {one["tuner"]: one["arms"] for one in own["chosen"]}
    cells: dict[str, list[Cell]] = {name: [] for name in (*chosen, "oracle", "random", "frozen")}
    finalist = []
    for key in keys:
        losses = np.array([runs[arm]["losses"][key] for arm in range(len(own["arms"]))], float).T
        # The best of all arms that ran again, because the best finalist of a short screen need not be the best of them.
        best = best_of(losses, range(len(own["arms"])))
        smallest = losses[:, [best]]
        metric, factor = metric_of(key), SOURCES[metric_of(key)][1]
        least = ratio(factor * smallest, np.ones((len(losses), 1)))
        finalist.append(
            Cell(
                "logistic",
                record["sampler"],
                "finalist",
                metric,
                value=least.value,
                se=least.se,
                text=f"ξ × 10² = {estimate_text(least.value, least.se) or format_number(least.value)}",
            )
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
    rates = {name: _rates(record, runs, arms) for name, arms in chosen.items()}
    rates["oracle"] = _rates(record, runs, own["oracles"].get(keys[0]) or [])
    rates["random"] = _rates(record, runs, own["random"], "arm")
    rates["frozen"] = _rates(record, runs, [])
    of_each = {name: [next(marked) for _ in keys] for name in chosen}
    of_each |= {name: cells[name] for name in ("oracle", "random", "frozen")}
    rows = [
        Row((label, JUDGES[name]), (*map(_in_print, own_cells), rates[name]))
        for name, own_cells in of_each.items()
    ]
    return [Row((label, BEST_ARM), (*finalist, _rates(record, runs, []))), *rows]


def _in_print(cell: Cell) -> Cell:
    """With the digits that the standard error allows; a regret without spread has no error in print."""
    if cell.value is None:
        return cell
    return replace(cell, text=estimate_text(cell.value, cell.se) or format_number(cell.value))


def _rates(
    record: Mapping, runs: Mapping[int, Mapping], arms: Sequence[int | None], each: str = "race"
) -> Cell:
    """The share of proposals accepted in the fresh runs of each arm chosen; “stuck” where it is 0. Equal texts stand
    once, with their number.

    Args:
        each: what an entry of ``arms`` is counted as.
    """
    found = [None if arm is None else runs[arm].get("acceptance") for arm in arms]
    if all(rates is None for rates in found):
        return Cell("logistic", record["sampler"], "", "acceptance_percent")
    times = Counter("none" if rates is None else _percent(fmean(rates)) for rates in found)
    texts = [text if n == 1 else f"{text} ({counted(n, each)})" for text, n in times.items()]
    return Cell("logistic", record["sampler"], "", "acceptance_percent", text="; ".join(texts))


def _percent(rate: float) -> str:
    return "stuck" if rate == 0 else format_number(100 * rate, "general")


def acceptance_against_mamba(found: Sequence[Mapping], seconds: float, keys: Sequence[str]) -> list[str]:
    """Of each loss, and each sampler that both judges tuned: whether the regrets of the acceptance rate and of MAMBA
    differ, by intervals that together hold."""
    compared = []
    for key in keys:
        for record in found:
            own = record["regret"]
            chosen = {one["tuner"]: one["arms"] for one in own["chosen"]}
            if not {"mamba", "acceptance"} <= chosen.keys():
                continue
            runs = {run["arm"]: run for run in own["runs"] if run["seconds"] == seconds}
            losses = np.array([runs[arm]["losses"][key] for arm in range(len(own["arms"]))], float).T
            quotient = _quotient(losses, chosen["acceptance"], chosen["mamba"], key)
            if quotient.se is not None:
                n_least = n_independent(len(chosen["mamba"]), len(losses))
                compared.append((record["sampler"], key, quotient, n_least))
    lines = []
    for sampler, key, quotient, n_least in compared:
        differs = is_beyond(quotient.value - 1, quotient.se, n_least, together(len(compared)))
        verdict = "smaller" if quotient.value < 1 else "larger"
        text = estimate_text(quotient.value, quotient.se) or f"{quotient.value:.3g}, the same arms"
        lines.append(
            f"{sampler_label(sampler)}, {_loss_label(key)}: the error of the arms chosen by |acceptance − "
            f"optimum| over the error of the arms chosen by {JUDGES['mamba']} is {text}: "
            + (
                f"{verdict}, by t intervals that together hold with 95%."
                if differs
                else "no difference is shown."
            )
        )
    return lines


def _quotient(losses: np.ndarray, arms: list, others: list, key: str) -> Estimate:
    """The ratio of the mean losses of two judges' arms. Races of one seed are pairs, but three of them may agree by
    chance: the standard error is the largest of all pairings of the races in turn."""
    pairings = [
        ratio(chosen_losses(losses, arms, key), chosen_losses(losses, others[i:] + others[:i], key))
        for i in range(len(others))
    ]
    return max(pairings, key=lambda own: -1.0 if own.se is None else own.se)


def regret_findings(records: Records) -> list[str]:
    """`acceptance_against_mamba` of every loss at the longest runs, and the judges whose choices were stuck."""
    by_sampler = {record["sampler"]: record for record in records.get("races") or []}
    found = [by_sampler[sampler] for sampler in samplers_in(by_sampler.values())]
    if not found:
        return []
    seconds = max(run["seconds"] for run in found[0]["regret"]["runs"])
    lines = acceptance_against_mamba(found, seconds, found[0]["regret"]["losses"])
    for record in found:
        runs = {run["arm"]: run for run in record["regret"]["runs"] if run["seconds"] == seconds}
        for one in record["regret"]["chosen"]:
            rates = [runs[arm].get("acceptance") for arm in one["arms"] if arm is not None]
            stuck = sum(own is not None and max(own) == 0 for own in rates)
            if stuck:
                lines.append(
                    f"{sampler_label(record['sampler'])}: {JUDGES[one['tuner']]} chose an arm that accepted nothing in "
                    f"any fresh run in {stuck} of {counted(len(one['arms']), 'race')}."
                )
    return lines


def _loss_label(key: str) -> str:
    """A loss without the factor that its errors are printed with: a ratio has none."""
    return METRICS[metric_of(key)].label.removesuffix(" × 10²")


def adam_regret(records: Records) -> Table:
    """The mean loss of the chosen arms over the mean loss of the best arm."""
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
        caption=" ".join(regret_findings(records))
        + f"\nLogistic regression, N = {found[0]['n_data']:,}: errors of the sds after {seconds:g} s (by measured "
        f"costs), mean of {counted(n_runs, 'fresh run')} of the arms that {counted(n_races, 'race')} of R "
        "= "
        f"{found[0]['seconds']:g} s chose, over the mean of the best of "
        "all arms that ran again (finalists of a screen, chosen and random arms), which is somewhat "
        "too small, because the best is found by the same runs; ± one standard error (jackknife). The row of the best "
        "arm has its error, the denominator, and not a ratio. "
        f"Arms: {arms}. Acceptance: the arm whose rate is nearest to the theoretical optimum; "
        "it judges MALA and HMC; among HMC's arms it also chooses L, on which the rate hardly depends. Oracle: the "
        "same race judged by the true error in the first column. Frozen: a chain that stays at "
        "the MAP. Accepted: the share of proposals, for the arm of each race; “stuck”: none in any "
        f"fresh run.{doubt}\nBold: best of the judges, if every other is more than two standard errors away.",
        stub=("Sampler", "Chosen by"),
        columns=(
            *((REGRET, _loss_label(key)) for key in keys),
            ("", METRICS["acceptance_percent"].label),
        ),
        rows=tuple(row for record in found for row in _rows_of(record, seconds, keys)),
    )


def _stuck_in_race(by_sampler: Mapping[str, Mapping]) -> list[str]:
    """A line for each judge whose races chose arms that accepted nothing in the race, with the tuner's advice."""
    lines = []
    for sampler in samplers_in(by_sampler.values()):
        warned: dict[str, list[tuple[str, str]]] = {}
        for race in by_sampler[sampler]["races"]:
            for line in race.get("warnings", ()):
                if "no proposal was accepted" in line and race["best"] is not None:
                    advice = line.rpartition("; ")[2]
                    warned.setdefault(race["judge"], []).append((named(race["best"]), advice))
        for judge, own in warned.items():
            arms = ", ".join(dict.fromkeys(arm for arm, _ in own))
            lines.append(
                f"{sampler_label(sampler)}, {JUDGES[judge]}: in {counted(len(own), 'race')} the choice ({arms}) "
                f"accepted nothing for many steps in a row; {own[0][1]}."
            )
    return lines


def adam_choices(records: Records) -> Table:
    """The choice of each race."""
    name = "adam_choices"
    by_sampler = {record["sampler"]: record for record in need(records, "races", name)}
    rows = []
    for sampler in samplers_in(by_sampler.values()):
        races = by_sampler[sampler]["races"]
        for judge in dict.fromkeys(race["judge"] for race in races):
            own = [race for race in races if race["judge"] == judge]
            chosen = "; ".join("none" if race["best"] is None else named(race["best"]) for race in own)
            texts = {"chosen": chosen, "edges": edges_said(own) or DASH}
            cells = tuple(Cell("logistic", sampler, judge, name, text=text) for name, text in texts.items())
            rows.append(Row((sampler_label(sampler), JUDGES[judge]), cells))
    return Table(
        name=name,
        title=artifact(name).title,
        caption="\n".join(
            [
                "Logistic regression: the arm that each race chose. h is AdamMCMC's γ, MALA's drift step e (its noise "
                "has the variance 2 e), and HMC's squared leapfrog step; n is the batch size. At the edge: the "
                "numbers of a choice that are the smallest or the largest of the grid, so that a better arm may lie "
                "beyond it. n, L and numbers with fewer than three values in the grid are left out; s_d = 0 does not "
                "count.",
                *_stuck_in_race(by_sampler),
            ]
        ),
        stub=("Sampler", "Judge"),
        columns=(("", "Chosen"), ("", "At the edge of the grid")),
        rows=tuple(rows),
        is_prose=True,
    )
