"""Small records of a run, for the tests of tables and figures."""

import math
from pathlib import Path

import numpy as np

from sgtune.artifacts.records import KINDS, load_records
from sgtune.files import write_json

WORKFLOW = Path(__file__).parents[1] / "workflow"
PUBLISHED = WORKFLOW / "resources" / "published.csv"
SAMPLERS = ("sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv")
TUNERS = ("mamba-ksd", "mamba-fssd", "mamba-ksd-scaled", "grid", "heuristic", "grid-ksd")
N_DATA = 800_000
STEP_SIZES = (1e-4, 1e-5, 1e-6, 1e-7)
BATCHES = (800_000, 80_000, 8_000, 800)
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


def sampler_records(model, sampler, rng, replicates):
    leapfrogs = (5, 10) if "hmc" in sampler else (None,)
    arms = [
        {"step_size": h, "batch_size": n, "n_leapfrog": steps}
        for h in STEP_SIZES
        for n in BATCHES
        for steps in leapfrogs
    ]
    heuristic = {"step_size": 1 / N_DATA, "batch_size": 80_000, "n_leapfrog": leapfrogs[-1]}
    common = {"model": model, "run": "quick", "sampler": sampler, "n_data": N_DATA, "provenance": PROVENANCE}
    errors = [None if arm["step_size"] == STEP_SIZES[0] else float(rng.uniform(0.05, 2)) for arm in arms]
    rows = [
        arm | {"relative_sd_error": e, "is_heuristic": False} for arm, e in zip(arms, errors, strict=True)
    ]
    rows.append(heuristic | {"relative_sd_error": None if sampler == "sghmc" else 0.3, "is_heuristic": True})
    records = {"sweep": [common | {"rows": rows}], "tuning": [], "evaluation": []}
    on_grid = [arm for arm, error in zip(arms, errors, strict=True) if error is not None]
    for tuner in TUNERS:
        fixed = tuner == "heuristic"
        common |= {"tuner": tuner, "best": heuristic if fixed else on_grid[rng.integers(len(on_grid))]}
        compared = [arm for arm in arms if arm["batch_size"] == 80_000] if tuner == "grid" else arms
        records["tuning"].append(
            common
            | {
                "rungs": [{"rung": 0} | arm for arm in ([heuristic] if fixed else compared)],
                "seconds": {"total": float(rng.uniform(1, 30)), "nominal": 0.0 if fixed else 12.9},
                "gradient_evaluations": int(rng.integers(10**8, 10**11)),
            }
        )
        lost = replicates if (tuner, sampler) == ("heuristic", "sghmc") else 0
        lost = lost or (replicates > 1 and (tuner, sampler) == ("grid", "sghmc-cv"))
        table, curves = [], []
        for i in range(replicates):
            ksd, diverged = float(rng.lognormal(3)), i < lost
            numbers = {"ksd": ksd, "ksd_scaled": ksd / 90, "relative_sd_error": ksd / 100, "accuracy": 0.939}
            numbers = dict.fromkeys(numbers) if diverged else numbers
            table.append(numbers | {"replicate": i, "n_samples": 22_255, "diverged": diverged})
            curves += [
                {key: value and value / k for key, value in numbers.items()} | {"replicate": i, "seconds": k}
                for k in (1.0, 2.0, 3.0)
            ]
        records["evaluation"].append(common | {"table": table, "curves": curves})
    return records


def estimate_record(model):
    rows = []
    for gradients in ("full-batch", "stochastic"):
        for points in ("all", "thinned"):
            how = {"gradients": gradients, "points": points}
            for figure, h, n in [("step_size", h, 8_000) for h in STEP_SIZES] + [
                ("batch_size", 10**-4.5, n) for n in BATCHES
            ]:
                ksd = None if h == STEP_SIZES[0] else 1e8 * h / n
                values = {
                    key: ksd and scale * ksd
                    for key, scale in (("ksd", 1), ("ksd_scaled", 0.01), ("fssd", 0.1))
                }
                rows.append({"figure": figure, "step_size": h, "batch_size": n} | how | values)
    return {"model": model, "n_data": N_DATA, "rows": rows, "provenance": PROVENANCE}


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


def make_records(replicates=3, models=("logistic",)):
    rng = np.random.default_rng(0)
    records = {kind: [] for kind in KINDS}
    for model in models:
        for sampler in SAMPLERS:
            for kind, found in sampler_records(model, sampler, rng, replicates).items():
                records[kind] += found
        records["estimates"].append(estimate_record(model))
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
