"""The result files of one sampler on one model, as its jobs write them: tuning, evaluation, regret, clocks."""

import math

from artifact_parts import (
    LOSSES,
    MODELS,
    N_DATA,
    NO_ARM_REASON,
    SAMPLERS,
    STEP_SIZES,
    arms_of,
    evaluation_row,
    lost,
    provenance_of,
    tuners_of,
    tuning_seconds,
)


def studied(models=MODELS):
    """The (model, sampler, tuner) that have evaluations."""
    return [(m, s, tuner) for m in models for s in SAMPLERS for tuner in tuners_of(m, s)]


def tuning_record(model, sampler, rng, tunings):
    """One sampler tuned by all its tuners, each this many times.

    The heuristic and theory are deterministic: they choose the same arm each time.
    """
    n_data = N_DATA[model]
    grid, heuristic = arms_of(sampler, n_data)
    on_grid = [arm for arm in grid if arm["step_size"] != STEP_SIZES[0]]
    tuners = []
    for tuner in tuners_of(model, sampler):
        fixed = tuner in ("heuristic", "theory")
        compared = [arm for arm in grid if arm["batch_size"] == n_data // 10] if "grid" in tuner else grid
        tuners += [
            {
                "model": model,
                "sampler": sampler,
                "tuner": tuner,
                "replicate": replicate,
                "n_data": n_data,
                "best": heuristic if fixed else on_grid[rng.integers(len(on_grid))],
                "reason": "",
                "rungs": rungs_of(tuner, compared, heuristic),
                "seconds": tuning_seconds(rng, tuner),
                "gradient_evaluations": 0 if fixed else int(rng.integers(10**8, 10**11)),
            }
            for replicate in range(1 if fixed else tunings)
        ]
    common = {"model": model, "sampler": sampler, "n_data": n_data, "tuners": tuners}
    return common | provenance_of("tune_sampler")


def rungs_of(tuner, compared, chosen):
    """The heuristic has no rungs; theory predicts an error of 0.2 for its chosen arm, and more for the others."""
    if tuner == "heuristic":
        return []
    if tuner == "theory":
        errors = [(chosen, 0.2), *((arm, 0.5) for arm in compared)]
        return [{"rung": 1} | arm | {"discrepancy": error} for arm, error in errors]
    return [{"rung": 1} | arm for arm in compared]


def chosen_in(tuning):
    """The arms of each tuner of a tuning record, one per tuning run."""
    arms = {}
    for tuned in tuning["tuners"]:
        arms.setdefault(tuned["tuner"], []).append(tuned["best"])
    return arms


def evaluation_record(tuning, rng, replicates):
    """Every arm that a tuner of ``tuning`` chose, once in each replicate, also if several tuners chose it."""
    model, sampler, chosen = tuning["model"], tuning["sampler"], chosen_in(tuning)
    runs, places, qualities = [], {}, {}
    tuners = [
        {"tuner": tuner, "reason": "", "arms": arms, "runs": [None] * replicates}
        for tuner, arms in chosen.items()
    ]
    for i in range(replicates):
        for own in tuners:
            arm = own["arms"][i % len(own["arms"])]
            if (i, str(arm)) in places:
                own["runs"][i] = places[i, str(arm)]
                continue
            by = {tuner for tuner, arms in chosen.items() if arms[i % len(arms)] == arm}
            diverged = (sampler == "sghmc" and "heuristic" in by) or (
                sampler == "sghmc-cv" and "grid" in by and replicates > 1 and i == 0
            )
            row = evaluation_row(rng, model, qualities.setdefault(str(arm), float(rng.lognormal(0, 0.5))))
            row = lost(row) if diverged else row
            numbers = {key: value for key, value in row.items() if not isinstance(value, dict)}
            curves = [
                {key: value and value * (1 + 2 / k) for key, value in numbers.items()}
                | {"replicate": i, "seconds": k}
                for k in (1.0, 2.0, 3.0)
            ]
            table = row | {"replicate": i, "n_samples": 22_255, "diverged": diverged}
            own["runs"][i] = places[i, str(arm)] = len(runs)
            runs.append({"arm": arm, "replicate": i, "table": table, "curves": curves})
    common = {"model": model, "sampler": sampler, "n_data": tuning["n_data"], "task": "", "clock": "wall"}
    return common | {"runs": runs, "tuners": tuners} | provenance_of("evaluate_sampler")


def regret_record(tuning, rng, replicates=4):
    """Fresh runs of all arms that tuners of ``tuning`` or the oracle chose, and of the finalists."""
    model, sampler, chosen = tuning["model"], tuning["sampler"], chosen_in(tuning)
    losses = LOSSES[model]
    grid, heuristic = arms_of(sampler, N_DATA[model])
    arms = [arm for arm in grid if arm["step_size"] != STEP_SIZES[0]] + [heuristic]
    means = [0.02 * 3 ** abs(math.log10(arm["step_size"]) + 5.5) * rng.uniform(1, 2) for arm in arms]
    tunings = max(map(len, chosen.values()))
    places = {
        tuner: [None if arm is None else arms.index(arm) for arm in own] for tuner, own in chosen.items()
    }
    runs = []
    for seconds in (1.0, 10.0):
        shared = rng.lognormal(0, 0.1, replicates)
        for place, mean in enumerate(means):
            diverged = [
                (sampler == "sghmc" and arms[place] is heuristic)
                or (sampler == "sghmc-cv" and place in places["grid"] and i == 0)
                for i in range(replicates)
            ]
            values = mean * shared * rng.lognormal(0, 0.1, replicates) * seconds**-0.3
            of_losses = {
                loss: [
                    (2.0 if loss == "brier" else 10.0) if lost else float(factor * value)
                    for value, lost in zip(values, diverged, strict=True)
                ]
                for factor, loss in enumerate(losses, 1)
            }
            runs.append({"arm": place, "seconds": seconds, "steps": 100, "diverged": diverged})
            runs[-1]["losses"] = of_losses
    order = sorted(range(len(arms)), key=lambda place: means[place])
    unstable = {run["arm"] for run in runs if any(run["diverged"])}
    good = [place for place in order if place not in unstable]
    return {
        "model": model,
        "sampler": sampler,
        "n_data": N_DATA[model],
        "losses": list(losses),
        "trusted": None if model == "bnn" else True,
        "screen": {
            "seconds": 1.0,
            "replicates": 2,
            "n_arms": len(grid),
            "diverged": [arm for arm in grid if arm["step_size"] == STEP_SIZES[0]],
        },
        "random": order[-3:],
        "arms": arms,
        "runs": runs,
        "finalists": dict.fromkeys(losses, good[:4]),
        "chosen": [{"tuner": tuner, "arms": own} for tuner, own in places.items()],
        "oracles": {loss: [good[i % 2] for i in range(tunings)] for loss in losses[:1]},
        "frozen": dict.fromkeys(losses, 1.0),
    } | provenance_of("rerun_finalists")


def clocks_record(tuning, rng):
    """The first arm of the first tuner under both clocks; under the wall clock it has fewer samples."""
    model, own = tuning["model"], tuning["tuners"][0]
    rows = {
        clock: [
            evaluation_row(rng, model, 1.0) | {"replicate": i, "n_samples": n, "diverged": False}
            for i in range(3)
        ]
        for clock, n in (("wall", 20_000), ("calibrated", 25_000))
    }
    common = {"model": model, "sampler": tuning["sampler"], "tuner": own["tuner"], "arm": own["best"]}
    return common | rows | {"losses": list(LOSSES[model])} | provenance_of("compare_clocks")


def choose(files, model, sampler, tuner, like=None, tunings=(0, 1)):
    """Let ``tuner`` choose the arms of the tuner ``like`` in these of its tuning runs, or find none."""
    name = f"{model}/{sampler}"

    def swap(mine, others):
        return [
            (others[i % len(others)] if like else None) if i in tunings else arm for i, arm in enumerate(mine)
        ]

    arms = chosen_in(files["tuning"][name])
    arms = swap(arms[tuner], arms.get(like))
    for tuned in files["tuning"][name]["tuners"]:
        if tuned["tuner"] == tuner:
            tuned.update(best=arms[tuned["replicate"]], reason="" if like else NO_ARM_REASON)
    evaluation = files["evaluation"][name]
    own = {tuned["tuner"]: tuned for tuned in evaluation["tuners"]}
    n = len(own[tuner]["arms"])
    own[tuner]["runs"] = [
        (own[like]["runs"][i] if like else None) if i % n in tunings else place
        for i, place in enumerate(own[tuner]["runs"])
    ]
    own[tuner].update(arms=arms, reason="" if like else NO_ARM_REASON)
    # Files have runs of chosen arms only.
    used = sorted({place for tuned in evaluation["tuners"] for place in tuned["runs"] if place is not None})
    evaluation["runs"] = [evaluation["runs"][place] for place in used]
    for tuned in evaluation["tuners"]:
        tuned["runs"] = [None if place is None else used.index(place) for place in tuned["runs"]]
    own = {tuned["tuner"]: tuned for tuned in files["regret"][name]["chosen"]}
    own[tuner]["arms"] = swap(own[tuner]["arms"], like and own[like]["arms"])
