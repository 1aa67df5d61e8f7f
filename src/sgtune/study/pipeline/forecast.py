"""The expected time of a run: start-up and compilation of its jobs, and their budgets times the overheads (arms in
lockstep take a part of their seconds, scores come on top) in the newest results of the same rule and model."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from sgtune.study.catalogue import MODELS, TUNERS, has_axis, losses_of
from sgtune.study.config.sections import model_settings, settings_of
from sgtune.study.pipeline import plan
from sgtune.support.axes import AXES, STEP_SIZE
from sgtune.support.files import read_json
from sgtune.tuning import halving_schedule
from sgtune.tuning.grid import DECADES, PER_DECADE

UNKNOWN = """Not known:
- what jobs take that no run has results of (-): their budgets are counted, of NUTS a second for each iteration
- downloads, tables, figures and the studies of other papers; the steps of grid searches are in the overhead
- how much jobs slow each other down, which arms several tuners choose (they run once), how fast this machine is"""


class Jobs(NamedTuple):
    """The jobs of one rule and model (empty: of none): their number, and the seconds of their budgets together; of
    NUTS the iterations. ``timed`` jobs have the machine to themselves."""

    rule: str
    model: str
    number: int
    budget: float = 0.0
    timed: bool = False


class Seen(NamedTuple):
    """What a job of one rule and model took in an earlier ``run``: seconds of ``start``-up and compilation, the
    ``rest``, and the rest over its budget, ``overhead`` (None without a budget)."""

    run: str = "-"
    start: float = 0.0
    rest: float = 0.0
    overhead: float | None = 1.0

    def seconds(self, jobs: Jobs) -> float:
        """Of other jobs of the same rule and model; those without a budget take as long as they did."""
        rest = jobs.number * self.rest if self.overhead is None else jobs.budget * self.overhead
        return jobs.number * self.start + rest


def budgets(config: Mapping) -> list[Jobs]:
    """All jobs of MAMBA's study in a valid configuration."""
    found = [jobs for model in config["models"] for jobs in _of_model(config, model)]
    if not any(MODELS[model].in_paper for model in config["models"]):
        return found
    n_ladder = len(config["ladder"]["dimensions"])
    return [*found, Jobs("measure_ladder", "", n_ladder), Jobs("measure_sensitivity", "", 1)]


def _of_model(config: Mapping, model: str) -> list[Jobs]:
    own, samplers, extras = model_settings(config, model), config["samplers"], plan.extras_of(config, model)
    evaluation, regret, estimates, nuts = (own[k] for k in ("evaluation", "regret", "estimates", "reference"))
    curves, n, n_samplers = evaluation["curves"], evaluation["replicates"], len(samplers)
    by_clock = evaluation["clock"] == "wall"
    tuners = {sampler: plan.tuning_settings(config, model, sampler) for sampler in samplers}
    races = {sampler: _race(own["grids"], own["mamba"], sampler) for sampler in samplers}
    tuned = [
        plan.n_races(name, one) * _race(one["grids"], one[TUNERS[name].section], sampler)
        for sampler in samplers
        for name, one in tuners[sampler].items()
        if TUNERS[name].is_random
    ]
    shapes = plan.shapes_of(settings_of(config, "cost", model), MODELS[model].n_data(own["data"][model]))
    of_run = n * evaluation["seconds"] + max(0, curves["replicates"] - n) * curves["seconds"][-1]
    n_chains = len(estimates["log10_step_sizes"]) + len(estimates["batch_fractions"])
    jobs = {
        "find_map": (1, 0.0),
        "calibrate_cost": (1, len(shapes) * own["calibration"]["seconds"], True),
        "tune_sampler": (n_samplers, sum(tuned), plan.tunes_alone(config, model)),
        "evaluate_sampler": (n_samplers, sum(map(len, tuners.values())) * of_run, by_clock),
        "compare_clocks": (1, n * evaluation["seconds"], True),
        "estimate_discrepancies": (1, n_chains * estimates["seconds"]),
    }
    if not MODELS[model].in_paper:
        checked = n_samplers * plan.CHECKED_CHAINS * evaluation["seconds"]
        jobs["check_sampler"] = (n_samplers, checked, by_clock)
    if nuts["nuts"]:
        jobs["combine_nuts"] = (1, 0.0)
        jobs |= {"measure_widths": (1, 0.0)} if MODELS[model].in_paper else {}
        jobs["sample_nuts"] = (nuts["chains"], nuts["chains"] * nuts["n_warmup"] + nuts["n_draws"])
    if "regret" in extras:
        n_losses, screen = len(losses_of(model, nuts["nuts"])), regret["screen"]
        oracles = min(screen["oracle_losses"], n_losses) * own["tuning"]["replicates"]
        each = {s: screen["replicates"] * _race(own["grids"], screen, s) for s in samplers}
        jobs["screen_grid"] = (n_samplers, sum(each[s] + oracles * races[s] for s in samplers))
        chosen = sum(plan.n_races(*one) for s in samplers for one in tuners[s].items())
        n_arms = chosen + n_samplers * (n_losses * regret["finalists"] + oracles + plan.RANDOM_ARMS)
        jobs["rerun_finalists"] = (n_samplers, n_arms * regret["replicates"] * regret["seconds"][-1])
    if "horizons" in extras:
        ahead = settings_of(config, "horizons", model)["horizons"]
        each = {s: races[s] + 2 * ahead["replicates"] * ahead["seconds"][-1] for s in ahead["samplers"]}
        jobs["compare_horizons"] = (1, len(ahead["seconds"]) * sum(each.values()))
    return [Jobs(rule, model, *one) for rule, one in jobs.items()]


def _race(grid: Mapping, section: Mapping, sampler: str) -> float:
    """The seconds of all arms of a grid together: of a race, or of runs as long as each other."""
    listed = [axis for axis in AXES.values() if axis.in_grids in grid and has_axis(sampler, axis.name)]
    n_arms, seconds = prod(len(grid[axis.in_grids]) for axis in listed), section.get("seconds", 0.0)
    n_arms *= 1 if STEP_SIZE.in_grids in grid else DECADES * PER_DECADE + 1
    is_race = "pruning_rate" in section
    return halving_schedule(n_arms, section["pruning_rate"], seconds).total if is_race else n_arms * seconds


def read_seen(folder: Path = Path("results")) -> dict[tuple[str, str], Seen]:
    """By rule and model, from the newest run that has results of them. Runs without their configuration, or with that
    of another version, are left out."""
    seen: dict[tuple[str, str], Seen] = {}
    runs = [(read_json(path), path.parents[1]) for path in folder.glob("*/mamba/settings.json")]
    for record, run in sorted(runs, key=lambda one: one[0]["provenance"]["created"]):
        took: dict[tuple[str, str], list[Mapping]] = {}
        for path in (path for at in ("", "*/", "*/*/") for path in run.glob(f"{at}[!.]*.json")):
            held = read_json(path)
            chains = held.get("chains")
            for about in (*(chains if isinstance(chains, list) else ()), held.get("provenance") or {}):
                took.setdefault((about.get("rule", ""), held.get("model") or ""), []).append(about)
        with suppress(KeyError):
            for jobs in budgets(record["configuration"]):
                of_rule = took.get((jobs.rule, jobs.model))
                if of_rule:
                    start = fmean(about["startup_seconds"] + about["compile_seconds"] for about in of_rule)
                    rest = max(0.0, fmean(about["process_seconds"] for about in of_rule) - start)
                    overhead = rest * jobs.number / jobs.budget if jobs.budget else None
                    seen[jobs.rule, jobs.model] = Seen(run.name, start, rest, overhead)
    return seen


def forecast(config: Mapping, seen: Mapping[tuple[str, str], Seen], n_cores: int) -> Iterator[str]:
    """A line for each rule and model, the hours on ``n_cores``, and what the forecast does not know."""
    yield f"{'Rule':<24}{'Model':<10}{'Jobs':>5}{'Budget (s)':>12}{'Overhead':>10}{'Seconds':>10}  Seen in"
    timed = others = 0.0
    for jobs in budgets(config):
        known = seen.get((jobs.rule, jobs.model), Seen())
        seconds = known.seconds(jobs)
        timed, others = timed + jobs.timed * seconds, others + (not jobs.timed) * seconds
        numbers = f"{jobs.number:>5}{jobs.budget:>12,.1f}{known.overhead or 0:>10.2f}{seconds:>10,.0f}"
        yield f"{jobs.rule:<24}{jobs.model:<10}{numbers}  {known.run}"
    hours = (timed + others / n_cores) / 3600
    yield f"In all {hours:.2f} h: {timed / 3600:.2f} h of timed jobs, one at a time, the others on {n_cores} cores"
    yield UNKNOWN
