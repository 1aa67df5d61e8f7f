"""The parts of a small run's result files: names, a configuration, and rows of random numbers."""

import math
from pathlib import Path

import numpy as np

WORKFLOW = Path(__file__).parents[1] / "workflow"
PUBLISHED = WORKFLOW / "resources" / "published.csv"
SAMPLERS = ("sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv")
TUNERS = {
    "logistic": ("mamba-ksd", "mamba-fssd", "mamba-ksd-scaled", "grid", "heuristic", "grid-ksd", "theory"),
    "pmf": ("mamba-ksd", "mamba-ksd-scaled", "grid", "heuristic"),
    "bnn": ("mamba-ksd", "mamba-ksd-scaled", "grid", "heuristic"),
}
SMALLER = {("bnn", "sgnht"): ("mamba-ksd-smaller", "grid-smaller")}
MODELS = tuple(TUNERS)
N_DATA = {"logistic": 800_000, "pmf": 80_000, "bnn": 60_000}
BLOCKS = ("users", "items", "mean_users", "mean_items", "log_precision_users", "log_precision_items")
LOSSES = {
    "logistic": ("xi_white", "relative_sd_error"),
    "pmf": ("functional_error", "relative_sd_error"),
    "bnn": ("log_loss", "brier"),
}
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
CONFIG = {
    "run": "quick",
    "models": list(MODELS),
    "samplers": list(SAMPLERS),
    "tuners": list(TUNERS["logistic"]),
    "data": {
        "ood": "fashion-mnist",
        "logistic": {"n_rows": 1_000_000, "n_train": 800_000, "dimension": 10, "seed": 42},
        "pmf": {"simulated": None, "seed": 0},
        "bnn": {"simulated": 300},
    },
    "reference": {"nuts": True, "chains": 2, "n_warmup": 60, "n_draws": 300, "max_tree_depth": 10},
    "grids": {
        model: {
            "log10_step_sizes": [-4, -5, -6, -7],
            "batch_fractions": list(BATCH_FRACTIONS),
            "n_leapfrogs": [5, 10],
        }
        for model in MODELS
    },
    "mamba": {"seconds": 1, "horizon": None, "pruning_rate": 3, "clock": "calibrated", "thin": 10}
    | {"points": 100, "score_fraction": 0.1},
    "grid": {"n_steps": 5000, "batch_fraction": 0.1, "start_noise": 0.2, "points": 50},
    "grid_ksd": {"seconds": 1, "clock": "calibrated", "thin": 10, "points": 500, "score_fraction": 0.1},
    "heuristic": {"batch_fraction": 0.1, "n_leapfrog": 10},
    "calibration": {"table": None, "seconds": 1},
    "tuning": {"replicates": 2, "validation_fraction": 0},
    "evaluation": {"seconds": 10, "replicates": 3, "clock": "wall", "burn_in": 0.1, "kept_draws": 1_000_000}
    | {"prediction_draws": 20, "ksd_points": 100, "curves": {"replicates": 10}},
    "estimates": {"seconds": 1, "thin": 5, "batch_fraction": 0.01, "log10_step_size": -4.5}
    | {"max_points": 300},
    "per_model": {
        "pmf": {"tuners": list(TUNERS["pmf"]), "mamba": {"seconds": 10}},
        "bnn": {"tuners": list(TUNERS["bnn"]), "mamba": {"seconds": 10}, "reference": {"nuts": False}}
        | {"evaluation": {"ksd_points": 0}},
    },
}
NO_ARM_REASON = "step_size: all 16 arms of sgld diverged; the smallest step size tried is 1e-07"


def provenance_of(rule):
    return {"provenance": PROVENANCE | {"rule": rule}}


def tuners_of(model, sampler):
    return TUNERS[model] + SMALLER.get((model, sampler), ())


def discrepancies(rng, model, quality):
    """KSDs and errors against the reference. ``quality`` multiplies both, so larger is worse."""
    ksd = 20 * quality * float(rng.lognormal(0, 0.1))
    row = {"ksd": ksd, "ksd_se": 0.25, "ksd_floor": 2.8}
    row |= {"ksd_scaled": ksd / 90, "ksd_scaled_se": 0.0025, "ksd_scaled_floor": 0.14}
    names = ("relative_sd_error", "xi_rel", "xi_white", "functional_error")
    errors = {name: quality * float(rng.lognormal(-1.5, 0.1)) for name in names}
    absent = {"logistic": ("functional_error",), "pmf": ("xi_white",), "bnn": names}[model]
    return row | errors | dict.fromkeys(absent)


def predictions(rng, model, quality):
    """Metrics of predictions on the test set."""
    if model == "pmf":
        rmse = 0.93 + 0.05 * quality * float(rng.lognormal(0, 0.1))
        return {"rmse": rmse, "rmse_published": rmse**2 + 0.2}
    ece = min(0.2, 0.02 * quality * float(rng.lognormal(0, 0.3)))
    return {
        "accuracy": 0.94 - 0.01 * quality,
        "log_loss": 0.2 + 3 * ece,
        "brier": 0.09 + ece,
        "ece": ece,
        "mce": min(1.0, 9 * ece),
        "ece_published": 1.3 * ece,
        "mce_published": min(1.0, 11 * ece),
    }


def ood_account(rng):
    """Histograms of entropies as for a network: small on known inputs, larger on others."""
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


def evaluation_row(rng, model, quality):
    row = discrepancies(rng, model, quality) | predictions(rng, model, quality)
    if model == "pmf":
        errors = row["relative_sd_error"] * np.linspace(1, 3, len(BLOCKS))
        row["relative_sd_error_by_block"] = dict(zip(BLOCKS, errors.tolist(), strict=True))
    if model == "bnn":
        row["ood"] = ood_account(rng)
    return row | {"seconds": 10.0, "wall_seconds": 10.1 + float(rng.uniform(0, 0.1)), "n_samples": 22_255}


def lost(row):
    """The row of a chain that diverged: the same entries without numbers."""
    return {
        key: lost(value) if isinstance(value, dict) else value if isinstance(value, str) else None
        for key, value in row.items()
    }


def tuning_seconds(rng, tuner):
    """The seconds of tuning. The budget of a grid search is in steps, so it has no nominal seconds."""
    if tuner in ("heuristic", "theory"):
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
