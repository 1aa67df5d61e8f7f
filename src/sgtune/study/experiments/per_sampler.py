"""The work of one job of the pipeline: a sampler is tuned by all its tuners, and their choices are evaluated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from time import perf_counter

from sgtune.metrics import Reference
from sgtune.mode.find import map_result
from sgtune.model import Model
from sgtune.model.derived import hold_out
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.catalogue import TUNERS, method_of
from sgtune.study.config.sections import fingerprint, n_races
from sgtune.study.experiments.evaluation import EvaluationSettings, evaluate_run, in_short
from sgtune.study.experiments.grid_pieces import pieces_of, tune_in_pieces
from sgtune.study.pipeline.parts import Parts, code_digest
from sgtune.support.axes import named
from sgtune.tuning import TUNERS as METHODS
from sgtune.tuning import AllDivergedError, Settings, tune

__all__ = [
    "chosen_arms",
    "compare_clocks",
    "evaluate_tuned",
    "evaluation_settings",
    "facts_of",
    "tune_sampler",
    "tuning_arguments",
]


def tuning_arguments(settings: Mapping, tuner: str) -> dict:
    """``tuner``, ``budget``, ``horizon`` and ``settings`` of `sgtune.tune` from the configuration's sections
    (`settings_of`)."""
    own = dict(settings[TUNERS[tuner].section])
    own.pop("replicates", None)
    amounts = {"seconds": own.pop("seconds", None), "steps": own.pop("n_steps", None)}
    budget = Budget(**amounts) if any(amounts.values()) else None
    ahead = own.pop("horizon", None)
    if METHODS[method_of(tuner)].choose is not None:
        # It runs no arm and needs no clock: costs give the number of steps that the horizon buys.
        own.pop("clock", None)
    grid = {name: tuple(values) for name, values in settings["grids"].items()}
    own |= {entry.name: grid.pop(entry.name) for entry in fields(Settings) if entry.name in grid}
    own |= {"validation_fraction": settings["tuning"]["validation_fraction"]}
    return {
        "tuner": method_of(tuner),
        "budget": budget,
        "horizon": None if ahead is None else Budget(seconds=ahead),
        "settings": Settings(**own, hyperparameters=grid),
    }


def tune_sampler(
    model: Model,
    sampler: str,
    settings: Mapping[str, Mapping],
    *,
    cost: CostTable,
    seed: int,
    parts: Parts,
    inputs: Mapping[str, str],
    startup: float = 0.0,
    report: Callable[[str], None] = lambda line: None,
    warn: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """A record for each tuner of ``settings`` (tuner -> its sections of the configuration) and tuning replicate.

    The tuners, in their order, share compiled programs, and within a replicate the random streams of an arm. A tuner
    without randomness has one replicate. In a record's seconds, ``cold`` is the time that a user waits who runs this
    tuner alone in a new process, including ``startup`` and all compilation of sampling programs; ``warm`` has neither.
    A tuner that finds no arm has ``best`` None, and a ``reason``.

    Args:
        inputs: checksums of the inputs that the records depend on besides their settings.
        startup: seconds from the start of the process until now.
    """
    records, code = [], code_digest()
    for tuner, own in settings.items():
        by_predictions = METHODS[method_of(tuner)].tasks is not None
        fraction = own["tuning"]["validation_fraction"] if by_predictions else 0
        if fraction:
            # The mode is found before a tuner's time begins, as for the model with all rows.
            map_result(hold_out(model, fraction), **own["map"])
        n_replicates = n_races(tuner, own)
        for replicate in range(n_replicates):
            depends_on = fingerprint(
                {"settings": own, "inputs": dict(inputs), "seed": seed, "replicate": replicate, "code": code}
            )
            name = f"{tuner} {replicate}"
            record = parts.get(name, depends_on)
            if record is None:
                report(f"{tuner}, replicate {replicate + 1}/{n_replicates}:")
                arguments = tuning_arguments(own, tuner) | {"seed": seed, "cost": cost}
                record = tune_in_pieces(
                    pieces_of(model, sampler, arguments, cost),
                    lambda piece, replicate=replicate: _tune_once(model, sampler, replicate, piece, report),
                    parts,
                    name,
                    depends_on,
                )
                if record["reason"]:
                    warn(f"{tuner} found no arm of {sampler} for {model.name}: {record['reason']}")
                record |= {"tuner": tuner, "replicate": replicate, "validation_fraction": fraction}
                seconds = record["seconds"]
                seconds["startup"] = startup
                seconds["cold"] = startup + seconds["total"] + seconds["shared_compilation"]
                parts.keep(name, depends_on, record)
                report(
                    f"{tuner}: best {record['best']}, {seconds['warm']:.1f} s warm, {seconds['cold']:.1f} s cold"
                )
            records.append(record)
    return records


def _tune_once(
    model: Model, sampler: str, replicate: int, arguments: Mapping, report: Callable[[str], None]
) -> dict:
    """The record of one race, also of one in which no arm stays finite: then with a ``reason``."""
    reason = ""
    try:
        result = tune(model, sampler, replicate=replicate, report=report, **arguments)
    except AllDivergedError as failure:
        result, reason = failure.result, str(failure)
    return result.to_dict() | {"reason": reason}


def chosen_arms(records: Iterable[Mapping]) -> dict[str, list[Mapping | None]]:
    """From `tune_sampler`'s records: tuner -> its arm, or None, in each tuning replicate."""
    chosen: dict[str, list] = {}
    for record in records:
        chosen.setdefault(record["tuner"], []).append(record["best"])
    return chosen


def facts_of(records: Iterable[Mapping]) -> dict[str, dict]:
    """From `tune_sampler`'s records: tuner -> remarks on its results: ``validation_fraction``, and the first ``reason``
    why it found no arm."""
    facts: dict[str, dict] = {}
    for record in records:
        known = facts.setdefault(record["tuner"], {"reason": ""})
        known["validation_fraction"] = record["validation_fraction"]
        known["reason"] = known["reason"] or record["reason"]
    return facts


def evaluation_settings(section: Mapping) -> EvaluationSettings:
    """Of the configuration's section ``evaluation``."""
    curves = section["curves"]
    return EvaluationSettings(
        **{name: value for name, value in section.items() if name not in ("replicates", "curves", "clock")},
        curve_seconds=curves["seconds"],
        curve_points=curves["ksd_points"],
        curve_prediction_draws=curves["prediction_draws"],
    )


def evaluate_tuned(
    model: Model,
    sampler: str,
    chosen: Mapping[str, Sequence[Mapping | None]],
    section: Mapping,
    *,
    reference: Reference | None,
    cost: CostTable | None,
    seed: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """Replicate r runs what a tuner chose in its tuning replicate r, so that their spread covers the tuning, too.

    If there are fewer tuning replicates, they repeat. Each (arm, replicate) is run once, even if several tuners chose
    it. The first ``curves.replicates`` runs have curves; runs beyond ``replicates`` are only as long as a curve.

    Args:
        chosen: tuner -> its arm, as a mapping, or None, in each tuning replicate.
        section: the configuration's section ``evaluation``.
        cost: converts seconds to steps; None: by the wall clock.
        depends_on: everything that the rows depend on besides arm and replicate.

    Returns:
        ``clock``; ``runs``: of `evaluate_run`; ``tuners``: for each its name, its ``arms``, and the place in ``runs``
        of each of its replicates, or None.
    """
    settings, code = evaluation_settings(section), code_digest()
    n_tables, n_curves = section["replicates"], section["curves"]["replicates"]
    arms = {
        tuner: [None if arm is None else Arm(**arm) for arm in of_replicates]
        for tuner, of_replicates in chosen.items()
    }
    wanted = {
        tuner: [(of_replicates[r % len(of_replicates)], r) for r in range(max(n_tables, n_curves))]
        for tuner, of_replicates in arms.items()
    }
    distinct = [run for runs in wanted.values() for run in runs if run[0] is not None]
    places = {run: place for place, run in enumerate(dict.fromkeys(distinct))}
    runs = []
    for arm, replicate in places:
        name = f"{replicate} of {named(arm)}"
        own = fingerprint({**depends_on, "code": code, "arm": arm.to_record(), "replicate": replicate})
        run = parts.get(name, own)
        if run is None:
            began = perf_counter()
            run = evaluate_run(
                model,
                sampler,
                arm,
                replicate,
                settings=settings,
                has_table=replicate < n_tables,
                has_curve=replicate < n_curves,
                reference=reference,
                cost=cost,
                seed=seed,
            )
            parts.keep(name, own, run)
            last = run["table"] or run["curves"][-1]
            report(
                f"run {len(runs) + 1}/{len(places)}, {name}: {last['n_samples']} samples, {in_short(last)}; "
                f"{perf_counter() - began:.1f} s"
            )
        runs.append(run)
    tuners = [
        {
            "tuner": tuner,
            "arms": [None if arm is None else arm.to_record() for arm in arms[tuner]],
            "runs": [None if arm is None else places[arm, replicate] for arm, replicate in wanted[tuner]],
        }
        for tuner in chosen
    ]
    return {"clock": "wall" if cost is None else "calibrated", "runs": runs, "tuners": tuners}


def compare_clocks(
    model: Model,
    sampler: str,
    evaluated: Mapping,
    section: Mapping,
    *,
    reference: Reference | None,
    cost: CostTable,
    seed: int,
    report: Callable[[str], None] = lambda line: None,
) -> dict:
    """The table's runs of the first tuner that found an arm, repeated with the other clock.

    Args:
        evaluated: the result of `evaluate_tuned`.

    Returns:
        ``tuner``, its ``arm`` in the first replicate, and for each clock, ``wall`` and ``calibrated``, the rows of a
        table; no rows, and None for the arm, if no tuner found one. Both start in the same states with the same random
        streams: the steps that both make are identical.
    """
    settings = evaluation_settings(section)
    first = next((one for one in evaluated["tuners"] if None not in one["runs"]), None)
    if first is None:
        return {"tuner": evaluated["tuners"][0]["tuner"], "arm": None, "wall": [], "calibrated": []}
    runs = [evaluated["runs"][place] for place in first["runs"]]
    runs = [run for run in runs if run["table"] is not None]
    other = "wall" if evaluated["clock"] == "calibrated" else "calibrated"
    rows = []
    for run in runs:
        again = evaluate_run(
            model,
            sampler,
            Arm(**run["arm"]),
            run["replicate"],
            settings=settings,
            has_curve=False,
            reference=reference,
            cost=cost if other == "calibrated" else None,
            seed=seed,
        )
        rows.append(again["table"])
        report(
            f"{other}, replicate {run['replicate']}: {rows[-1]['n_samples']} samples, {in_short(rows[-1])}"
        )
    found = {evaluated["clock"]: [run["table"] for run in runs], other: rows}
    return {"tuner": first["tuner"], "arm": first["arms"][0], **found}
