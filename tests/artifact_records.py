"""Small records of a run, for the tests of tables and figures."""

import math
from pathlib import Path

import numpy as np

from sgtune.artifacts import TABLES, make_table
from sgtune.artifacts.records import KINDS, load_records
from sgtune.files import write_json

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
}


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


def sampler_records(model, sampler, rng, replicates):
    leapfrogs = (5, 10) if "hmc" in sampler else (None,)
    n_data = N_DATA[model]
    arms = [
        {"step_size": h, "batch_size": round(fraction * n_data), "n_leapfrog": steps}
        for h in STEP_SIZES
        for fraction in BATCH_FRACTIONS
        for steps in leapfrogs
    ]
    heuristic = {"step_size": 1 / n_data, "batch_size": n_data // 10, "n_leapfrog": leapfrogs[-1]}
    common = {"model": model, "run": "quick", "sampler": sampler, "n_data": n_data, "provenance": PROVENANCE}
    rows = []
    for arm in [*arms, heuristic]:
        error = float(rng.uniform(0.05, 2))
        metrics = {"relative_sd_error": None if model == "bnn" else error} | predictions(rng, model)
        is_heuristic = arm is heuristic
        if is_heuristic:
            metrics |= {key: 0.3 for key in ("relative_sd_error", "ece", "log_loss") if metrics.get(key)}
        diverged = sampler == "sghmc" if is_heuristic else arm["step_size"] == STEP_SIZES[0]
        rows.append(arm | (lost(metrics) if diverged else metrics) | {"is_heuristic": is_heuristic})
    records = {"sweep": [common | {"rows": rows}], "tuning": [], "evaluation": []}
    on_grid = [arm for arm in arms if arm["step_size"] != STEP_SIZES[0]]
    for tuner in tuners_of(model, sampler):
        fixed = tuner == "heuristic"
        common |= {"tuner": tuner, "best": heuristic if fixed else on_grid[rng.integers(len(on_grid))]}
        compared = [arm for arm in arms if arm["batch_size"] == n_data // 10] if "grid" in tuner else arms
        records["tuning"].append(
            common
            | {
                "rungs": [{"rung": 0} | arm for arm in ([heuristic] if fixed else compared)],
                "seconds": {"total": float(rng.uniform(1, 30)), "nominal": 0.0 if fixed else 12.9},
                "gradient_evaluations": int(rng.integers(10**8, 10**11)),
            }
        )
        n_lost = replicates if (tuner, sampler) == ("heuristic", "sghmc") else 0
        n_lost = n_lost or (replicates > 1 and (tuner, sampler) == ("grid", "sghmc-cv"))
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
        records["evaluation"].append(common | {"table": table, "curves": curves})
    return records


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
    return {"model": model, "n_data": n_data, "rows": rows, "provenance": PROVENANCE}


def width_record(model):
    rows = []
    for width in np.linspace(0, 3, 13):
        for discrepancy in ("ksd", "fssd"):
            shape = {"identity": math.hypot(3.2, 28 * width), "laplace": math.hypot(0.3, 3.2 * (1 - width))}
            rows += [
                {"width": float(width), "discrepancy": discrepancy, "scale": scale, "value": value}
                for scale, value in shape.items()
            ]
    return {"model": model, "rows": rows, "provenance": PROVENANCE}


def reference_records(model):
    test = {"rmse": 0.987} if model == "pmf" else {"accuracy": 0.95, "log_loss": 0.2}
    mode = {"negative_log_posterior": -12_345.6, "gradient_norm": 78.9, "steps": 24_500, "test": test}
    mode |= {"distance": 1.23, "converged": True}
    mode["laplace_sd"] = [0.5] * 100
    blocks = BLOCKS if model == "pmf" else (model,)
    summary = {
        "n": 20,
        "sd": 0.25,
        "r_hat_max": 1.23,
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
    checks |= {"max_tree_depth_share": 0.25, "e_bfmi": [0.4, 0.5]}
    records = [mode]
    if model != "bnn":
        records.append({"diagnostics": checks, "blocks": dict.fromkeys(blocks, summary)})
    return [{"model": model, "provenance": PROVENANCE} | record for record in records]


def make_records(replicates=3, models=MODELS):
    records = {kind: [] for kind in KINDS}
    for i, model in enumerate(models):
        rng = np.random.default_rng(i)
        for sampler in SAMPLERS:
            for kind, found in sampler_records(model, sampler, rng, replicates).items():
                records[kind] += found
        records["estimates"].append(estimate_record(model))
        records["reference"] += reference_records(model)
        if model != "bnn":
            records["widths"].append(width_record(model))
    records["published"] = load_records([PUBLISHED])["published"]
    return records


def write_records(records, folder):
    paths = [PUBLISHED]
    for kind in set(KINDS) - {"published"}:
        for i, record in enumerate(records[kind]):
            paths.append(folder / kind / f"{i}.json")
            write_json(paths[-1], record)
    return paths


def make_tables(replicates, folder):
    """Every table of a run in ``folder``, and the files it was made from."""
    paths = write_records(make_records(replicates), folder)
    for name in TABLES:
        make_table(name, paths, **{kind: folder / f"{name}.{kind}" for kind in ("csv", "md", "html")})
    return folder, paths
