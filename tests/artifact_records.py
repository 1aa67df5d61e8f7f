"""The result files of a small run, as its jobs write them, for the tests of tables and figures."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sgtune.files import write_json
from sgtune.study.artifacts import TABLES, make_table
from sgtune.study.artifacts.records import load_records

WORKFLOW = Path(__file__).parents[1] / "workflow"
PUBLISHED = WORKFLOW / "resources" / "published.csv"
SAMPLERS = ("sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv")
TUNERS = {
    "logistic": ("mamba-ksd", "mamba-fssd", "mamba-ksd-scaled", "grid", "heuristic", "grid-ksd"),
    "pmf": ("mamba-ksd", "mamba-ksd-scaled", "grid", "heuristic"),
    "bnn": ("mamba-ksd", "mamba-ksd-scaled", "grid", "heuristic"),
}
SMALLER = {("bnn", "sgnht"): ("mamba-ksd-smaller", "grid-smaller")}
MODELS = tuple(TUNERS)
N_DATA = {"logistic": 800_000, "pmf": 80_000, "bnn": 60_000}
BLOCKS = ("users", "items", "mean_users", "mean_items", "log_precision_users", "log_precision_items")
STEP_SIZES = (1e-4, 1e-5, 1e-6, 1e-7)
BATCH_FRACTIONS = (1, 0.1, 0.01, 0.001)
OOD_MISSING = {"name": "fashion-mnist", "missing": "no source of it answered"}
PROVENANCE = {
    "run": "quick",
    "seed": 7,
    "commit": "0123456789" * 4,
    "created": "2026-01-02T03:04:05+00:00",
    "versions": {"jax": "1.2.3"},
    "cpu": "A CPU",
    "cores": 4,
    "load_before": [0.5, 0.4, 0.3],
    "load_after": [1.0, 0.5, 0.3],
    "seconds": 2.0,
    "peak_memory_gb": 0.5,
    "process_seconds": 10.0,
    "startup_seconds": 1.0,
    "compile_seconds": 2.0,
}
NO_ARM_REASON = "step_size: all 16 arms of sgld diverged; the smallest step size tried is 1e-07"


def provenance_of(rule):
    return {"provenance": PROVENANCE | {"rule": rule}}


def tuners_of(model, sampler):
    return TUNERS[model] + SMALLER.get((model, sampler), ())


def studied(models=MODELS):
    """The (model, sampler, tuner) of which there are evaluations."""
    return [(m, s, tuner) for m in models for s in SAMPLERS for tuner in tuners_of(m, s)]


def discrepancies(rng, model):
    ksd = float(rng.lognormal(3))
    return {
        "ksd": ksd,
        "ksd_scaled": ksd / 90,
        "relative_sd_error": None if model == "bnn" else ksd / 100,
    }


def predictions(rng, model):
    """Metrics of predictions on the test set."""
    if model == "pmf":
        rmse = float(rng.uniform(0.93, 1.1))
        return {"rmse": rmse, "rmse_published": rmse**2 + 0.2}
    ece = float(rng.lognormal(-4, 1))
    return {
        "accuracy": 0.939,
        "log_loss": 0.2 + 3 * ece,
        "ece": ece,
        "mce": min(1.0, 9 * ece),
        "ece_published": 1.3 * ece,
        "mce_published": min(1.0, 11 * ece),
    }


def ood_account(rng):
    """Histograms of entropies like those of a network: small on what it knows, larger on what it does not."""
    edges = np.linspace(0, math.log(10), 41)
    shift = rng.uniform(0.5, 1.2)
    samples = {"test": rng.exponential(0.25, 4000), "ood": rng.gamma(3, shift / 3, 4000)}
    densities = {
        f"histogram_{name}": np.histogram(np.minimum(values, edges[-1]), edges, density=True)[0].tolist()
        for name, values in samples.items()
    }
    means = {f"entropy_{name}": float(values.mean()) for name, values in samples.items()}
    auroc = float(np.mean(samples["ood"] > rng.permutation(samples["test"])))
    return (
        {"name": "fashion-mnist", "missing": None, "auroc": auroc, "edges": edges.tolist()}
        | means
        | densities
    )


def evaluation_row(rng, model):
    row = discrepancies(rng, model) | predictions(rng, model)
    if model == "pmf":
        errors = row["relative_sd_error"] * np.linspace(1, 3, len(BLOCKS))
        row["relative_sd_error_by_block"] = dict(zip(BLOCKS, errors.tolist(), strict=True))
    if model == "bnn":
        row["ood"] = ood_account(rng)
    return row


def lost(row):
    """The row of a chain that diverged: the same entries without numbers."""
    return {
        key: lost(value) if isinstance(value, dict) else value if isinstance(value, str) else None
        for key, value in row.items()
    }


def tuning_seconds(rng, tuner):
    """What tuning took. The budget of a grid search is in steps, so it has no nominal seconds."""
    if tuner == "heuristic":
        names = ("sampling", "gradients", "discrepancy", "compilation", "shared_compilation")
        fixed = dict.fromkeys((*names, "nominal", "overrun"), 0.0)
        return fixed | {"total": 1e-4, "warm": 1e-4, "startup": 1.5, "cold": 1.5001}
    names = ("sampling", "gradients", "discrepancy", "compilation", "shared_compilation", "startup")
    seconds = {name: float(rng.uniform(0.5, 10)) for name in names}
    warm = seconds["sampling"] + seconds["gradients"] + seconds["discrepancy"] + 0.01
    total = warm + seconds["compilation"]
    in_steps = tuner.startswith("grid") and tuner != "grid-ksd"
    return seconds | {
        "total": total,
        "warm": warm,
        "cold": seconds["startup"] + total + seconds["shared_compilation"],
        "nominal": None if in_steps else 12.9,
        "overrun": None if in_steps else 0.43,
    }


def arms_of(sampler, n_data):
    """The grid and the heuristic's arm, whose step size is not in the grid."""
    leapfrogs = (5, 10) if "hmc" in sampler else (None,)
    grid = [
        {"step_size": h, "batch_size": round(fraction * n_data), "n_leapfrog": steps}
        for h in STEP_SIZES
        for fraction in BATCH_FRACTIONS
        for steps in leapfrogs
    ]
    return grid, {"step_size": 1 / n_data, "batch_size": n_data // 10, "n_leapfrog": leapfrogs[-1]}


def sweep_record(model, sampler, rng):
    grid, heuristic = arms_of(sampler, N_DATA[model])
    rows = []
    for arm in [*grid, heuristic]:
        error = float(rng.uniform(0.05, 2))
        metrics = {"relative_sd_error": None if model == "bnn" else error} | predictions(rng, model)
        is_heuristic = arm is heuristic
        if is_heuristic:
            metrics |= {key: 0.3 for key in ("relative_sd_error", "ece", "log_loss") if metrics.get(key)}
        diverged = sampler == "sghmc" if is_heuristic else arm["step_size"] == STEP_SIZES[0]
        rows.append(arm | (lost(metrics) if diverged else metrics) | {"is_heuristic": is_heuristic})
    common = {"model": model, "sampler": sampler, "n_data": N_DATA[model]}
    return common | {"rows": rows} | provenance_of("sweep_grid")


def tuning_record(model, sampler, rng):
    """One sampler by all its tuners."""
    n_data = N_DATA[model]
    grid, heuristic = arms_of(sampler, n_data)
    on_grid = [arm for arm in grid if arm["step_size"] != STEP_SIZES[0]]
    tuners = []
    for tuner in tuners_of(model, sampler):
        fixed = tuner == "heuristic"
        compared = [arm for arm in grid if arm["batch_size"] == n_data // 10] if "grid" in tuner else grid
        tuners.append(
            {
                "model": model,
                "sampler": sampler,
                "tuner": tuner,
                "n_data": n_data,
                "best": heuristic if fixed else on_grid[rng.integers(len(on_grid))],
                "reason": "",
                "rungs": [] if fixed else [{"rung": 1} | arm for arm in compared],
                "seconds": tuning_seconds(rng, tuner),
                "gradient_evaluations": 0 if fixed else int(rng.integers(10**8, 10**11)),
            }
        )
    common = {"model": model, "sampler": sampler, "n_data": n_data, "tuners": tuners}
    return common | provenance_of("tune_sampler")


def evaluation_record(tuning, rng, replicates):
    """Every arm that a tuner of ``tuning`` chose, once, whoever chose it."""
    model, sampler = tuning["model"], tuning["sampler"]
    arms = []
    for tuned in tuning["tuners"]:
        if tuned["best"] not in arms:
            arms.append(tuned["best"])
    evaluated = []
    for arm in arms:
        chosen_by = {tuned["tuner"] for tuned in tuning["tuners"] if tuned["best"] == arm}
        n_lost = 1 if replicates > 1 and sampler == "sghmc-cv" and "grid" in chosen_by else 0
        n_lost = replicates if sampler == "sghmc" and "heuristic" in chosen_by else n_lost
        table, curves = [], []
        for i in range(replicates):
            diverged = i < n_lost
            row = evaluation_row(rng, model)
            row = lost(row) if diverged else row
            table.append(row | {"replicate": i, "n_samples": 22_255, "diverged": diverged})
            numbers = {key: value for key, value in row.items() if not isinstance(value, dict)}
            curves += [
                {key: value and value * (1 + 2 / k) for key, value in numbers.items()}
                | {"replicate": i, "seconds": k}
                for k in (1.0, 2.0, 3.0)
            ]
        evaluated.append(arm | {"table": table, "curves": curves})
    common = {"model": model, "sampler": sampler, "n_data": tuning["n_data"], "arms": evaluated}
    chosen = [
        {"tuner": tuned["tuner"], "arm": arms.index(tuned["best"]), "reason": ""}
        for tuned in tuning["tuners"]
    ]
    return common | {"tuners": chosen} | provenance_of("evaluate_sampler")


def choose(files, model, sampler, tuner, like=None):
    """Let ``tuner`` choose the arm of the tuner ``like``, or find none."""
    name = f"{model}/{sampler}"
    for kind, entry in (("tuning", "best"), ("evaluation", "arm")):
        own = {tuned["tuner"]: tuned for tuned in files[kind][name]["tuners"]}
        chosen = own[like][entry] if like else None
        own[tuner].update({entry: chosen, "reason": "" if like else NO_ARM_REASON})
    evaluation = files["evaluation"][name]
    # A file has no arm that nobody chose.
    used = sorted({tuned["arm"] for tuned in evaluation["tuners"] if tuned["arm"] is not None})
    evaluation["arms"] = [evaluation["arms"][arm] for arm in used]
    for tuned in evaluation["tuners"]:
        tuned["arm"] = None if tuned["arm"] is None else used.index(tuned["arm"])


def cost_record(model, rng):
    """What a step takes here, and in a table that was measured elsewhere."""
    shapes = [
        (sampler, arm["batch_size"], arm["n_leapfrog"])
        for sampler in SAMPLERS
        for arm in arms_of(sampler, N_DATA[model])[0]
        if arm["step_size"] == STEP_SIZES[0]
    ]
    names = ("sampler", "batch_size", "n_leapfrog", "seconds_per_step")
    here, elsewhere = (
        [dict(zip(names, (*shape, float(rng.uniform(1e-5, 1e-2))), strict=True)) for shape in shapes]
        for _ in range(2)
    )
    common = {"model": model, "n_data": N_DATA[model], "dimension": 10, "rows": here, "table": elsewhere}
    return common | provenance_of("calibrate_cost")


def estimate_record(model):
    n_data, rows = N_DATA[model], []
    sizes = [round(fraction * n_data) for fraction in BATCH_FRACTIONS]
    varied = [("step_size", h, n_data // 100) for h in STEP_SIZES] + [
        ("batch_size", 10**-4.5, n) for n in sizes
    ]
    for gradients, shift in (("full-batch", 1), ("stochastic", 1.3)):
        for points, noise in (("all", 1), ("thinned", 1.1)):
            how = {"gradients": gradients, "points": points}
            for figure, h, n in varied:
                ksd = None if h == STEP_SIZES[0] else 100 * shift * noise * (h / 1e-5 + 1e-5 / h) * n_data / n
                values = {
                    key: ksd and scale * ksd
                    for key, scale in (("ksd", 1), ("ksd_scaled", 0.01), ("fssd", 0.1))
                }
                rows.append({"figure": figure, "step_size": h, "batch_size": n} | how | values)
    return {"model": model, "n_data": n_data, "rows": rows} | provenance_of("estimate_discrepancies")


def width_record(model):
    rows = []
    for width in np.linspace(0, 3, 13):
        for discrepancy in ("ksd", "fssd"):
            shape = {"identity": math.hypot(3.2, 28 * width), "laplace": math.hypot(0.3, 3.2 * (1 - width))}
            rows += [
                {"width": float(width), "discrepancy": discrepancy, "scale": scale, "value": value}
                for scale, value in shape.items()
            ]
    return {"model": model, "rows": rows} | provenance_of("measure_widths")


def reference_records(model):
    test = {"rmse": 0.987} if model == "pmf" else {"accuracy": 0.95, "log_loss": 0.2}
    mode = {"negative_log_posterior": -12_345.6, "gradient_norm": 78.9, "steps": 24_500, "test": test}
    mode |= {"distance": 1.23, "converged": True}
    mode["laplace_sd"] = [0.5] * 100
    blocks = BLOCKS if model == "pmf" else (model,)
    summary = {
        "n": 20,
        "sd": 0.25,
        "sd_error": 0.034,
        "r_hat_max": 1.23,
        "r_hat_p99": 1.07,
        "r_hat_median": 1.001,
        "ess_min": 12.0,
        "ess_median": 400.0,
    }
    checks = {
        "chains": 2,
        "draws": 500,
        "divergences": 3,
        "n_parameters_stuck": 0,
        "leapfrogs_per_draw": 63.0,
    }
    checks |= {"max_tree_depth_share": 0.25, "e_bfmi": [0.4, 0.5], "draws_lost": 0}
    nuts = {"diagnostics": checks, "blocks": dict.fromkeys(blocks, summary), "sd": [0.25] * 20}
    nuts |= {"trusted": model != "pmf", "monte_carlo_error": {"relative_sd_error": 0.0123, "xi_rel": 0.0456}}
    nuts["functionals"] = {name: value for name, value in summary.items() if name != "sd"}
    if model == "pmf":
        nuts["functionals"] |= {"n": 2, "mean": [3.0, 4.0], "sd": [0.3, 0.4]}
        nuts["monte_carlo_error"]["functional_error"] = 0.0789
    nuts["chains"] = [provenance_of("sample_nuts")["provenance"] for _ in range(2)]
    records = {f"{model}/map": {"model": model} | mode | provenance_of("find_map")}
    if model != "bnn":
        records[f"{model}/nuts"] = {"model": model} | nuts | provenance_of("combine_nuts")
    return records


def make_files(replicates=3, models=MODELS):
    """What a run has written: kind -> name of the file -> what it holds."""
    kinds = ("cost", "tuning", "evaluation", "sweep", "estimates", "widths", "reference")
    files = {kind: {} for kind in kinds}
    for model in models:
        rng = np.random.default_rng(MODELS.index(model))
        for sampler in SAMPLERS:
            name = f"{model}/{sampler}"
            files["sweep"][name] = sweep_record(model, sampler, rng)
            files["tuning"][name] = tuning_record(model, sampler, rng)
            files["evaluation"][name] = evaluation_record(files["tuning"][name], rng, replicates)
        files["cost"][model] = cost_record(model, rng)
        files["estimates"][model] = estimate_record(model)
        files["reference"] |= reference_records(model)
        if model != "bnn":
            files["widths"][model] = width_record(model)
    return files


def write_files(files, folder):
    """Write the files and say where; the published numbers are among them."""
    paths = [PUBLISHED]
    for kind, named in files.items():
        for name, record in named.items():
            paths.append(folder / kind / f"{name}.json")
            write_json(paths[-1], record)
    return paths


def records_of(files):
    """What tables and figures are made from: the files written and read back."""
    with TemporaryDirectory() as folder:
        return load_records(write_files(files, Path(folder)))


def make_records(replicates=3, models=MODELS):
    return records_of(make_files(replicates, models))


def record_of(records, model, sampler, tuner, kind="evaluation"):
    whose = (model, sampler, tuner)
    return next(one for one in records[kind] if (one["model"], one["sampler"], one["tuner"]) == whose)


def make_tables(replicates, folder):
    """Every table of a run in ``folder``, and the files it was made from."""
    paths = write_files(make_files(replicates), folder)
    for name in TABLES:
        make_table(name, paths, **{kind: folder / f"{name}.{kind}" for kind in ("csv", "md", "html")})
    return folder, paths


def cells_by(table, *fields):
    """The cells of a table that are of a tuner, a rule or a step, by these fields."""
    return {tuple(getattr(cell, field) for field in fields): cell for row in table.rows for cell in row.cells}
