"""The result files of a small run, as its jobs write them, for the tests of tables and figures."""

import math
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np
from config_files import valid

from sgtune.study import catalogue
from sgtune.study.config.sections import tuners_of
from sgtune.study.report.records import load_records
from sgtune.study.report.records import records_of as own_records
from sgtune.study.studies import STUDIES, artifact, maker_of
from sgtune.support.files import write_json

PUBLISHED = Path(__file__).parents[1] / "workflow/resources/published.csv"
CONFIG = valid(mamba__seconds=1)
MODELS, SAMPLERS = CONFIG["models"], CONFIG["samplers"]
N_DATA = {model: catalogue.MODELS[model].n_data(CONFIG["data"][model]) for model in MODELS}
BLOCKS = ("users", "items", "mean_users", "mean_items", "log_precision_users", "log_precision_items")
LOSSES = {name: entry.losses for name, entry in catalogue.MODELS.items()}
SECONDS = ("sampling", "gradients", "discrepancy", "compilation", "shared_compilation", "startup")
SECONDS += ("total", "warm", "cold", "nominal", "overrun")
STEP_SIZES = (1e-4, 1e-5, 1e-6, 1e-7)
BATCH_FRACTIONS = (1, 0.1, 0.01, 0.001)
PROVENANCE = {
    **{"run": "quick", "seed": 7, "commit": "0123456789" * 4, "created": "2026-01-02T03:04:05+00:00"},
    **{"versions": {"jax": "1.2.3"}, "cpu": "A CPU", "cores": 4, "seconds": 2.0, "peak_memory_gb": 0.5},
    **{"load_before": [0.5, 0.4, 0.3], "load_after": [1.0, 0.5, 0.3]},
    **{"process_seconds": 10.0, "startup_seconds": 1.0, "compile_seconds": 2.0},
}


def generator(*names):
    """A generator of random numbers that depends on these names only."""
    return np.random.default_rng(crc32(repr(names).encode()))


def evaluation_row(rng, model, quality=1.0):
    """KSDs, errors against the reference and metrics of predictions, which ``quality`` multiplies: larger is worse."""

    def about(mean):
        return mean * quality * float(rng.lognormal(0, 0.1))

    row = {"seconds": 10.0, "wall_seconds": 10.1, "n_samples": 22_255}
    row |= {"ksd": about(20), "ksd_se": 0.25, "ksd_floor": 2.8}
    row |= {"ksd_scaled": about(0.2), "ksd_scaled_se": 0.0025, "ksd_scaled_floor": 0.14}
    if model != "bnn":
        row |= {name: about(0.2) for name in dict.fromkeys((*LOSSES[model], "relative_sd_error", "xi_rel"))}
    if model == "pmf":
        errors = row["relative_sd_error"] * np.linspace(1, 3, len(BLOCKS))
        row["relative_sd_error_by_block"] = dict(zip(BLOCKS, errors.tolist(), strict=True))
        rmse = 0.93 + about(0.05)
        return row | {"rmse": rmse, "rmse_published": rmse**2 + 0.2}
    ece = about(0.02)
    row |= {"ece": ece, "mce": 9 * ece, "ece_published": 1.3 * ece, "mce_published": 11 * ece}
    row |= {"accuracy": 0.94 - 0.01 * quality, "log_loss": 0.2 + 3 * ece, "brier": 0.09 + ece}
    if model == "bnn":
        row["ood"] = {"entropy_test": about(0.2), "entropy_ood": about(0.9), "auroc": 1 - about(0.1)}
    return row


def arms_of(sampler, n_data):
    """The grid and the heuristic's arm, whose step size is not in the grid."""
    leapfrogs = (5, 10) if "hmc" in sampler else (None,)
    sizes = [round(fraction * n_data) for fraction in BATCH_FRACTIONS]
    axes = ("step_size", "batch_size", "n_leapfrog")
    grid = [dict(zip(axes, arm, strict=True)) for arm in product(STEP_SIZES, sizes, leapfrogs)]
    return grid, {"step_size": 1 / n_data, "batch_size": n_data // 10, "n_leapfrog": leapfrogs[-1]}


def estimate_record(model):
    """The largest step size has no finite value."""
    n_data, rows = N_DATA[model], []
    varied = [("step_size", h, n_data // 100) for h in STEP_SIZES]
    varied += [("batch_size", 10**-4.5, round(fraction * n_data)) for fraction in BATCH_FRACTIONS]
    for gradients, points in product(("full-batch", "stochastic"), ("all", "thinned")):
        factor = {"full-batch": 1, "stochastic": 1.3}[gradients] * {"all": 1, "thinned": 1.1}[points]
        for figure, h, n in varied:
            ksd = None if h == STEP_SIZES[0] else 100 * factor * (h / 1e-5 + 1e-5 / h) * n_data / n
            row = {"figure": figure, "step_size": h, "batch_size": n, "ksd": ksd}
            rows.append(row | {"gradients": gradients, "points": points})
    return {"model": model, "n_data": n_data, "rows": rows}


def width_record(model):
    rows = []
    for width, discrepancy in product(np.linspace(0, 3, 13), ("ksd", "fssd")):
        shape = {"identity": math.hypot(3.2, 28 * width), "laplace": math.hypot(0.3, 3.2 * (1 - width))}
        own = {"width": float(width), "discrepancy": discrepancy, "n_points": 100}
        rows += [own | {"scale": scale, "value": value} for scale, value in shape.items()]
    return {"model": model, "rows": rows}


def ladder_record(dimension):
    """Two races of SGLD on two kinds.

    The arms of MAMBA-KSD have 1 and 2 times the oracle's error of 0.2. The other tuner chooses the oracle's arm if D is
    small. If D is large, its arm escapes in the first race and is frozen in the second.
    """
    errors = {"oracle": (0.2, 0.2), "mamba-ksd": (0.2, 0.4)}
    errors["mamba-ksd-scaled"] = (10.0, 0.95) if dimension > 10 else (0.2, 0.2)
    runs = [
        {"tuner": tuner, "replicate": i, "error": error, "marginal": 0.5 * error, "oracle_error": 0.2}
        | {"escaped": error > 9, "frozen": 0.9 < error < 1}
        for tuner, own in errors.items()
        for i, error in enumerate(own)
    ]
    about = {"dimension": dimension, "sampler": "sgld", "smallest": 0.16, "runs": runs}
    return {"dimension": dimension, "gaussians": [about | {"kind": kind} for kind in ("axis", "rotated")]}


def horizons_record(model):
    """Two horizons of SGLD: theory chooses one arm, MAMBA chooses another for the longer one, with half the error."""
    arms = [{"step_size": h, "batch_size": 100, "n_leapfrog": None} for h in (1e-5, 1e-6)]
    chosen = [
        {"tuner": tuner, "horizon": seconds, "predicted": 0.25, "arm": place}
        for tuner, places in (("mamba", (0, 1)), ("theory", (0, 0)))
        for seconds, place in zip((1, 10), places, strict=True)
    ]
    runs = [
        {"arm": place, "seconds": seconds, "diverged": [False, False]}
        | {"losses": {loss: [error, 1.5 * error] for loss in LOSSES[model]}}
        for (place, seconds), error in zip(product((0, 1), (1, 10)), (0.4, 0.2, 0.6, 0.1), strict=True)
    ]
    about = {"model": model, "n_data": N_DATA[model], "trusted": True, "losses": list(LOSSES[model])}
    of_sampler = {"sampler": "sgld", "arms": arms, "chosen": chosen, "runs": runs}
    return about | {"seconds": [1, 10], "samplers": [of_sampler]}


def sensitivity_record():
    """Two dimensions; PSD and virial see widths in both, a KSD by its value prefers narrow draws in the larger one. The
    first size of each disturbance is that of exact draws."""
    sizes = {"width": (1.0, 0.0, 0.5, 1.5, 2.0), "direction": (1.0, 0.0, 0.5)}
    seen = {"ksd": 0.1, "ksd_wide": 0.05, "fssd": 0.0, "psd": 1.0, "virial": 0.5}
    points, rows = ((10, 15), (10, 500), (1_000, 15), (1_000, 100)), []
    for (dimension, n), judge, (disturbance, own) in product(points, seen, sizes.items()):
        for size in own:
            signal, error = seen[judge] * n * abs(size - own[0]), 0.0 if size == own[0] else 0.3
            misled = judge.startswith("ksd") and dimension > 100 and size < own[0]
            row = {"perturbation": disturbance, "size": size, "dimension": dimension, "points": n}
            row |= {"judge": judge, "square_signal": signal, "square_signal_se": error}
            rows.append(row | {"value_signal": -signal if misled else signal, "value_signal_se": error})
    return {"rows": rows}


def tuning_record(model, sampler, tunings, lost=()):
    """One sampler tuned by all its tuners, each this many times; the tuners ``lost`` find no arm.

    The heuristic and theory are deterministic: they choose the same arm each time.
    """
    n_data, rng, tuners = N_DATA[model], generator(model, sampler), []
    grid, heuristic = arms_of(sampler, n_data)
    on_grid = [arm for arm in grid if arm["step_size"] != STEP_SIZES[0]]
    for tuner in tuners_of(CONFIG, model, sampler):
        fixed = tuner in ("heuristic", "theory")
        compared = [arm for arm in grid if arm["batch_size"] == n_data // 10] if "grid" in tuner else grid
        own = {"tuner": tuner, "rungs": rungs_of(tuner, compared, heuristic)}
        own |= {"seconds": dict.fromkeys(SECONDS, 0.0 if fixed else 1.0)}
        own |= {"gradient_evaluations": 0 if fixed else 10**9}
        for replicate in range(1 if fixed else tunings):
            best = heuristic if fixed else on_grid[rng.integers(len(on_grid))]
            tuners.append(own | {"replicate": replicate, "best": None if tuner in lost else best})
    return {"model": model, "sampler": sampler, "n_data": n_data, "tuners": tuners}


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


def is_lost(sampler, arm, chosen, replicate):
    """The heuristic's arm diverges with SGHMC, and in one replicate the grid's first one with SGHMC-CV."""
    once = sampler == "sghmc-cv" and replicate == 0 and arm == chosen["grid"][0]
    return once or (sampler == "sghmc" and arm in chosen["heuristic"])


def evaluation_record(tuning, replicates):
    """Every arm that a tuner of ``tuning`` chose, once in each replicate, also if several tuners chose it. Arms that
    are lost in one replicate are so only if there are several."""
    model, sampler, chosen = tuning["model"], tuning["sampler"], chosen_in(tuning)
    runs, places = [], {}
    for i, arms in product(range(replicates), chosen.values()):
        arm = arms[i % len(arms)]
        if arm is None or (i, str(arm)) in places:
            continue
        quality = float(generator(model, sampler, arm).lognormal(0, 0.5))
        row = evaluation_row(generator(model, sampler, arm, i), model, quality)
        diverged = is_lost(sampler, arm, chosen, i if replicates > 1 else 1)
        row = dict.fromkeys(row) if diverged else row
        numbers = {key: value for key, value in row.items() if not isinstance(value, dict)}
        curves = [
            {key: value and value * (1 + 2 / k) for key, value in numbers.items()}
            | {"replicate": i, "seconds": k}
            for k in (1.0, 2.0, 3.0)
        ]
        places[i, str(arm)] = len(runs)
        table = row | {"replicate": i, "diverged": diverged}
        runs.append({"arm": arm, "replicate": i, "table": table, "curves": curves})
    of_tuners = {
        tuner: [places.get((i, str(arms[i % len(arms)]))) for i in range(replicates)]
        for tuner, arms in chosen.items()
    }
    tuners = [{"tuner": tuner, "arms": chosen[tuner], "runs": own} for tuner, own in of_tuners.items()]
    about = {"model": model, "sampler": sampler, "n_data": tuning["n_data"]}
    return about | {"runs": runs, "tuners": tuners}


def regret_record(tuning):
    """Four fresh runs of all arms that tuners of ``tuning`` or the oracle chose, and of the finalists."""
    model, sampler, chosen = tuning["model"], tuning["sampler"], chosen_in(tuning)
    losses, rng = LOSSES[model], generator("regret", model, sampler)
    grid, heuristic = arms_of(sampler, N_DATA[model])
    arms = [arm for arm in grid if arm["step_size"] != STEP_SIZES[0]] + [heuristic]
    means = [0.02 * 3 ** abs(math.log10(arm["step_size"]) + 5.5) * rng.uniform(1, 2) for arm in arms]
    runs = []
    for seconds in (1.0, 10.0):
        shared = rng.lognormal(0, 0.1, 4)
        for place, arm in enumerate(arms):
            diverged = [is_lost(sampler, arm, chosen, i) for i in range(4)]
            values = means[place] * shared * rng.lognormal(0, 0.1, 4) * seconds**-0.3
            of_losses = {
                loss: np.where(diverged, catalogue.cap_of(loss), factor * values).tolist()
                for factor, loss in enumerate(losses, 1)
            }
            runs.append({"arm": place, "seconds": seconds, "diverged": diverged, "losses": of_losses})
    order = sorted(range(len(arms)), key=lambda place: means[place])
    unstable = {run["arm"] for run in runs if any(run["diverged"])}
    good = [place for place in order if place not in unstable]
    places = {tuner: [arm and arms.index(arm) for arm in own] for tuner, own in chosen.items()}
    about = {"model": model, "sampler": sampler, "n_data": N_DATA[model], "losses": list(losses)}
    about |= {"trusted": None if model == "bnn" else True, "random": order[-3:], "arms": arms, "runs": runs}
    return about | {
        "finalists": dict.fromkeys(losses, good[:4]),
        "chosen": [{"tuner": tuner, "arms": own} for tuner, own in places.items()],
        "oracles": {losses[0]: [good[i % 2] for i in range(max(map(len, chosen.values())))]},
        "frozen": dict.fromkeys(losses, 1.0),
    }


def clocks_record(tuning):
    """Three runs of the first arm of the first tuner under both clocks."""
    model, own = tuning["model"], tuning["tuners"][0]
    about = {"model": model, "sampler": tuning["sampler"], "tuner": own["tuner"], "arm": own["best"]}
    about["losses"] = list(LOSSES[model])
    for clock in ("wall", "calibrated"):
        rows = [evaluation_row(generator(clock, i), model) for i in range(3)]
        about[clock] = [row | {"replicate": i, "diverged": False} for i, row in enumerate(rows)]
    return about


def reference_records(model):
    """Of the mode, and of NUTS."""
    test = {"rmse": 0.987} if model == "pmf" else {"accuracy": 0.95, "log_loss": 0.2}
    mode = {"negative_log_posterior": -12_345.6, "gradient_norm": 78.9, "steps": 24_500, "test": test}
    mode |= {"distance": 1.23, "converged": True, "laplace_sd": [0.5] * 100}
    records = {f"{model}/map": {"model": model} | mode}
    if model == "bnn":
        return records
    summary = {"n": 20, "sd": 0.25, "sd_error": 0.034, "r_hat_max": 1.23, "r_hat_p99": 1.04}
    summary |= {"r_hat_median": 1.001, "ess_min": 12.0, "ess_median": 400.0}
    nuts = {"diagnostics": {"divergences": 3}, "sd": [0.25] * 20, "trusted": True}
    nuts["blocks"] = dict.fromkeys(BLOCKS if model == "pmf" else (model,), summary)
    nuts["functionals"] = {name: value for name, value in summary.items() if name != "sd"}
    nuts["monte_carlo_error"] = {"relative_sd_error": 0.012, "xi_rel": 0.013}
    nuts["monte_carlo_error"] |= {"functional_error": 0.015} if model == "pmf" else {"xi_white": 0.014}
    if model == "pmf":
        nuts["functionals"] |= {"n": 2, "mean": [3.0, 4.0], "sd": [0.3, 0.4]}
    return records | {f"{model}/nuts": {"model": model} | nuts}


def make_files(replicates=3, models=MODELS, tunings=2, lost=()):
    """The files of a run: kind -> name of the file -> its contents. ``lost``: tuners that find no arm of SGLD."""
    kinds = ("tuning", "evaluation", "regret", "clocks", "estimates", "widths", "reference", "horizons")
    files = {kind: {} for kind in kinds}
    settings = {"configuration": CONFIG | {"models": list(models)}}
    files[""] = {"settings": settings, "sensitivity": sensitivity_record()}
    files["ladder"] = {str(dimension): ladder_record(dimension) for dimension in (10, 100)}
    for model in models:
        for sampler in SAMPLERS:
            name = f"{model}/{sampler}"
            tuning = tuning_record(model, sampler, tunings, lost if sampler == "sgld" else ())
            files["tuning"][name] = tuning
            files["evaluation"][name] = evaluation_record(tuning, replicates)
            files["regret"][name] = regret_record(tuning)
        files["clocks"][model] = clocks_record(files["tuning"][f"{model}/sgld"])
        files["estimates"][model] = estimate_record(model)
        files["reference"] |= reference_records(model)
        if model != "bnn":
            files["widths"][model] = width_record(model)
    files["horizons"]["logistic"] = horizons_record("logistic")
    for record in (record for named in files.values() for record in named.values()):
        record["provenance"] = PROVENANCE
    return files


def records_of(files):
    """The records of tables and figures: the files, and the paper's numbers and settings, written and read back."""
    paths = [PUBLISHED, PUBLISHED.with_name("paper_settings.yaml")]
    with TemporaryDirectory() as folder:
        for kind, named in files.items():
            for name, record in named.items():
                paths.append(Path(folder) / kind / f"{name}.json")
                write_json(paths[-1], record)
        return load_records(paths, STUDIES["mamba"].kinds)


def make_records(*arguments, **options):
    return records_of(make_files(*arguments, **options))


def make(name, records):
    """The cells of a table, or the figure, of the main study."""
    about = artifact(name)
    return maker_of(name)(own_records(records, about), **about.options)


def record_of(records, *whose):
    """The record of evaluation of a model, sampler and tuner."""
    found = records["evaluation"]
    return next(one for one in found if (one["model"], one["sampler"], one["tuner"]) == whose)


def cells_by(cells, *fields):
    """The cells of a table for one tuner, rule or step, by these fields."""
    return {tuple(getattr(cell, field) for field in fields): cell for cell in cells}
