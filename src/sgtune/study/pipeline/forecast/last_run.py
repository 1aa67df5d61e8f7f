"""The seconds and shares of an earlier run, which the forecast of another run uses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from sgtune.sampling.budget import shape_of_row
from sgtune.study.config.sections import model_settings
from sgtune.study.pipeline.forecast.costs import StepCosts
from sgtune.support.axes import AXES, STATIC
from sgtune.support.errors import DataError
from sgtune.support.files import read_json
from sgtune.tuning import TUNERS

__all__ = ["LastRun", "read_last_run"]

RESULTS = Path("results")

LOCKSTEP = {"logistic": (0.6, 0.2), "pmf": (1.0, 1.0), "bnn": (1.0, 0.9)}
"""`LastRun.lockstep`, measured on two cores (for the network with a batch of 10%); (1, 1) for any other model."""


@dataclass
class LastRun:
    """Measurements of one model from the newest run that tuned it on as much data; the defaults if there is none.

    Attributes:
        origin: a description of the run; empty if there is none.
        config: its configuration, if it recorded one.
        slowness: seconds of a step on this machine over the seconds in the cost table: the median over the steps that
            the run measured.
        lockstep: of jobs that run one ensemble after the other, for ``race`` (arms of several batch sizes) and
            ``single`` (one), the seconds of sampling over the seconds of the same arms run one after the other.
        races: the same of races of several rungs and of one, which run ensembles on several cores: those of this run.
        scores: the cost of a score that judges an arm, in SGLD's gradients of as many data terms; and the number of
            terms.
        overhead: by rule, the median seconds of start-up and compilation of a job.
        seconds: by rule, the median seconds of a job.
        total: by rule, the seconds of all its jobs.
        leapfrogs_per_draw, seconds_per_leapfrog: of NUTS.
        cut_short: the share of NUTS trajectories that reached the greatest tree depth.
        lbfgs_steps: the number of steps to the mode; None if L-BFGS did not converge.
        map_tolerance: the tolerance that these steps reached.
    """

    origin: str = ""
    config: dict | None = None
    slowness: float = 1.0
    lockstep: dict[str, float] = field(default_factory=dict)
    races: dict[str, float] = field(default_factory=dict)
    scores: tuple[float, float] | None = None
    overhead: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    total: dict[str, float] = field(default_factory=dict)
    leapfrogs_per_draw: float | None = None
    seconds_per_leapfrog: float | None = None
    cut_short: float = 0.0
    lbfgs_steps: int | None = None
    map_tolerance: float = 0.0


def read_last_run(model: str, n_data: int, costs: StepCosts) -> LastRun:
    """The newest of ``results/*`` and ``results/saved/*`` that has tuned ``model`` with N = ``n_data``."""
    race, single = LOCKSTEP.get(model, (1.0, 1.0))
    defaults = {"race": race, "single": single}
    found = max(_runs_of(model, n_data), default=None, key=lambda run: run[0])
    if found is None:
        return LastRun(lockstep=defaults, races=defaults)
    created, folder, tunings = found
    about = tunings[0]["provenance"]
    last = LastRun(f"{folder} ({about['cpu']}, {about['cores']} cores, {created[:10]})")
    last.config = _read(folder / "mamba/settings.json").get("configuration")
    last.slowness = _slowness(_read(folder / "cost" / f"{model}.json"), costs)
    last.lockstep, last.races = defaults, dict(defaults)
    _add_shares(last, tunings, costs)
    _add_seconds(last, folder, model)
    _add_reference(last, folder, model, n_data)
    return last


def _runs_of(model: str, n_data: int) -> Iterator[tuple[str, Path, list[dict]]]:
    """(time, folder, tuning records) of each run; a run precedes its saved copy, which has fewer files."""
    for folder in (*sorted(RESULTS.glob("*")), *sorted(RESULTS.glob("saved/*"))):
        tunings = [_read(path) for path in sorted(folder.glob(f"tuning/{model}/[!.]*.json"))]
        tunings = [
            record for record in tunings if record.get("n_data") == n_data and record.get("provenance")
        ]
        if tunings:
            yield max(record["provenance"]["created"] for record in tunings), folder, tunings


def _read(path: Path) -> dict:
    """A record; empty if it is missing or damaged, so that the forecast uses its defaults."""
    try:
        record = read_json(path)
    except DataError:
        return {}
    return record if isinstance(record, dict) else {}


def _slowness(measured: Mapping, costs: StepCosts) -> float:
    known = costs.table.seconds_per_step
    ratios = [
        row["seconds_per_step"] / known[shape_of_row(row)]
        for row in measured.get("rows", ())
        if shape_of_row(row) in known
    ]
    return median(ratios) if ratios and not costs.measured_here else 1.0


def _add_shares(last: LastRun, tunings: list[dict], costs: StepCosts) -> None:
    """Set ``last.races`` and ``last.scores`` from the recorded races."""
    took, serial = dict.fromkeys(("race", "single"), 0.0), dict.fromkeys(("race", "single"), 0.0)
    scoring = n_scores = n_terms = 0.0
    races = [(record["sampler"], tuner) for record in tunings for tuner in record["tuners"]]
    for sampler, tuner in races:
        rungs, seconds = tuner["rungs"], tuner["seconds"]
        arms: dict[tuple, tuple[int, dict]] = {}
        for row in rungs:
            # Steps are counted from the start of the chain, so the last rung of an arm has the total.
            arms[tuple(row.get(name) for name in AXES)] = (row["steps"], row)
        if not rungs:
            continue
        kind = "race" if rungs[-1]["rung"] > 1 else "single"
        took[kind] += seconds["sampling"]
        costly = sum(n * costs.step(*shape_of_row(_bare(sampler, row))) for n, row in arms.values())
        serial[kind] += last.slowness * costly
        entry = TUNERS.get(tuner.get("tuner"))
        # Judges that forecast the horizon score one draw at a time, which costs more.
        if seconds["gradients"] > 0 and not (entry and entry.looks_ahead):
            sampled = sum(n * row["batch_size"] * (row["n_leapfrog"] or 1) for n, row in arms.values())
            n_terms += tuner["gradient_evaluations"] - sampled * (2 if sampler.endswith("-cv") else 1)
            n_scores += sum(row["points"] for row in rungs)
            scoring += seconds["gradients"]
    last.races |= {kind: took[kind] / serial[kind] for kind in took if min(took[kind], serial[kind]) > 0}
    if n_scores > 0 and n_terms > 0:
        each = n_terms / n_scores
        last.scores = (scoring / n_scores / (last.slowness * costs.gradient(each)), each)


def _bare(sampler: str, row: Mapping) -> dict:
    return {"sampler": sampler, **{axis.name: row[axis.name] for axis in STATIC}}


def _add_seconds(last: LastRun, folder: Path, model: str) -> None:
    jobs: dict[str, list[dict]] = {}
    for path in folder.rglob("[!.]*.json"):
        record = _read(path) if "tables" not in path.parts and "jobs" not in path.parts else {}
        if record.get("model") == model:
            for about in (*record.get("chains", ()), record.get("provenance") or {}):
                if about.get("rule"):
                    jobs.setdefault(about["rule"], []).append(about)
    for rule, of_rule in jobs.items():
        seconds = [about["process_seconds"] for about in of_rule]
        last.seconds[rule], last.total[rule] = median(seconds), sum(seconds)
        last.overhead[rule] = median(about["startup_seconds"] + about["compile_seconds"] for about in of_rule)


def _add_reference(last: LastRun, folder: Path, model: str, n_data: int) -> None:
    of_model = None if last.config is None else model_settings(last.config, model)
    summary = _read(folder / "reference" / model / "nuts.json")
    checks = summary.get("diagnostics")
    if checks:
        # Leapfrogs of the warm-up are not recorded; the same number per iteration is assumed.
        warmup = of_model["reference"]["n_warmup"] if of_model else 0
        iterations = 1 + warmup / checks["draws"]
        compilation = sum(chain.get("compile_seconds", 0.0) for chain in summary.get("chains", ()))
        last.leapfrogs_per_draw = checks["leapfrogs_per_draw"]
        last.seconds_per_leapfrog = (checks["seconds"] - compilation) / (checks["leapfrogs"] * iterations)
        last.cut_short = checks["max_tree_depth_share"]
    mode = _read(folder / "reference" / model / "map.json")
    if of_model and mode.get("converged"):
        last.map_tolerance = of_model["map"]["tolerance"]
        last.lbfgs_steps = max(0, mode["steps"] - of_model["map"]["epochs"] * -(-n_data // 1_000))
