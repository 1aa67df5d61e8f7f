"""The work of one job of the pipeline: a sampler tuned by all its tuners, and what they chose evaluated."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from time import perf_counter

import numpy as np
from jaxtyping import Float

from sgtune.axes import named
from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, CostTable
from sgtune.study.catalogue import TUNERS, method_of
from sgtune.study.config.sections import fingerprint
from sgtune.study.evaluation import EvaluationSettings, evaluate_replicate, in_short
from sgtune.study.parts import Parts, code_digest
from sgtune.tuning import AllDivergedError, Settings, tune

__all__ = ["evaluate_tuned", "evaluation_settings", "tune_sampler", "tuning_arguments"]


def tuning_arguments(settings: Mapping, tuner: str) -> dict:
    """``tuner``, ``budget`` and ``settings`` of `sgtune.tune` from the configuration's sections
    (`settings_of`)."""
    own = dict(settings[TUNERS[tuner].section])
    amounts = {"seconds": own.pop("seconds", None), "steps": own.pop("n_steps", None)}
    budget = Budget(**amounts) if any(amounts.values()) else None
    grid = {name: tuple(values) for name, values in settings["grids"].items()}
    own |= {entry.name: grid.pop(entry.name) for entry in fields(Settings) if entry.name in grid}
    return {"tuner": method_of(tuner), "budget": budget, "settings": Settings(**own, hyperparameters=grid)}


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
    """A record for each tuner of ``settings`` (tuner -> its sections of the configuration), in their order.

    The tuners share compiled programs. Of their seconds ``cold`` is what a user waits for who runs this tuner
    alone in a new process, ``startup`` and all compilation of sampling programs included; ``warm`` has
    neither. A tuner that finds no arm has ``best`` None, and a ``reason``.

    Args:
        inputs: checksums of what the records depend on beside their settings.
        startup: seconds from the start of the process until now.
    """
    records, code = [], code_digest()
    for tuner, own in settings.items():
        depends_on = fingerprint({"settings": own, "inputs": dict(inputs), "seed": seed, "code": code})
        record = parts.get(tuner, depends_on)
        if record is None:
            report(f"{tuner}:")
            reason = ""
            try:
                result = tune(
                    model, sampler, seed=seed, cost=cost, report=report, **tuning_arguments(own, tuner)
                )
            except AllDivergedError as failure:
                result, reason = failure.result, str(failure)
                warn(f"{tuner} found no arm of {sampler} for {model.name}: {reason}")
            record = result.to_dict() | {"tuner": tuner, "reason": reason}
            seconds = record["seconds"]
            seconds["startup"] = startup
            seconds["cold"] = startup + seconds["total"] + seconds["shared_compilation"]
            parts.keep(tuner, depends_on, record)
            report(
                f"{tuner}: best {record['best']}, {seconds['warm']:.1f} s warm, {seconds['cold']:.1f} s cold"
            )
        records.append(record)
    return records


def evaluation_settings(section: Mapping) -> EvaluationSettings:
    """Of the configuration's section ``evaluation``."""
    curves = section["curves"]
    return EvaluationSettings(
        **{name: value for name, value in section.items() if name not in ("replicates", "curves")},
        curve_seconds=curves["seconds"],
        curve_points=curves["ksd_points"],
        curve_prediction_draws=curves["prediction_draws"],
    )


def evaluate_tuned(
    model: Model,
    sampler: str,
    chosen: Mapping[str, Mapping | None],
    section: Mapping,
    *,
    reference_sd: Float[np.ndarray, " d"] | None,
    cost: CostTable | None,
    seed: int,
    parts: Parts,
    depends_on: Mapping,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, list[dict]]:
    """Run each distinct arm that a tuner chose, each replicate once, whoever and however many chose it.

    Args:
        chosen: tuner -> its arm, as a mapping, or None if it found none.
        section: the configuration's section ``evaluation``.
        depends_on: what the rows depend on beside arm, part and replicate.

    Returns:
        ``arms``: for each distinct arm its hyperparameters, the ``table`` rows and the ``curves``;
        ``tuners``: for each its name, and the place of its arm in ``arms``, or None.
    """
    settings, code = evaluation_settings(section), code_digest()
    replicates = {"table": section["replicates"], "curve": section["curves"]["replicates"]}
    arms = list(dict.fromkeys(Arm(**arm) for arm in chosen.values() if arm is not None))
    runs = [(arm, part, i) for arm in arms for part, n in replicates.items() for i in range(n)]
    rows: dict[tuple[Arm, str], list[dict]] = {}
    for number, (arm, part, replicate) in enumerate(runs, start=1):
        name = f"{part} {replicate} of {named(arm)}"
        own = fingerprint(
            {**depends_on, "code": code, "arm": arm.to_record(), "part": part, "replicate": replicate}
        )
        kept = parts.get(name, own)
        if kept is None:
            began = perf_counter()
            kept = {
                "rows": evaluate_replicate(
                    model,
                    sampler,
                    arm,
                    part,
                    replicate,
                    settings=settings,
                    reference_sd=reference_sd,
                    cost=cost,
                    seed=seed,
                )
            }
            parts.keep(name, own, kept)
            last = kept["rows"][-1]
            report(
                f"run {number}/{len(runs)}, {name}: {last['n_samples']} samples, {in_short(last)}; "
                f"{perf_counter() - began:.1f} s"
            )
        rows.setdefault((arm, part), []).extend(kept["rows"])
    return {
        "arms": [
            {**arm.to_record(), "table": rows[arm, "table"], "curves": rows[arm, "curve"]} for arm in arms
        ],
        "tuners": [
            {"tuner": tuner, "arm": None if arm is None else arms.index(Arm(**arm))}
            for tuner, arm in chosen.items()
        ],
    }
