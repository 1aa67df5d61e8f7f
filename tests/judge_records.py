"""The result files without tuners' choices: costs, discrepancies of given draws, Gaussians, horizons."""

import math

import numpy as np
from artifact_parts import BATCH_FRACTIONS, LOSSES, N_DATA, SAMPLERS, STEP_SIZES, arms_of, provenance_of


def cost_record(model, rng):
    """Costs of a step here, and in a table from another machine."""
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
                | {"n_points": 100}
                for scale, value in shape.items()
            ]
    return {"model": model, "rows": rows} | provenance_of("measure_widths")


LADDER_TUNERS = ("oracle", "mamba-ksd", "mamba-ksd-scaled")


def ladder_record(dimension):
    """Two races of SGLD on two kinds.

    The arms of MAMBA-KSD have 1 and 2 times the oracle's error of 0.2. The other tuner chooses the oracle's arm if D is
    small. If D is large, its arm escapes in the first race and is frozen in the second.
    """
    errors = {"oracle": (0.2, 0.2), "mamba-ksd": (0.2, 0.4), "mamba-ksd-scaled": (0.2, 0.2)}
    if dimension > 10:
        errors["mamba-ksd-scaled"] = (10.0, 0.95)
    runs = [
        {
            **{"tuner": tuner, "replicate": i, "arm": 0, "error": error, "marginal": 0.5 * error},
            **{"oracle_error": 0.2, "oracle_marginal": 0.1, "escaped": error > 9, "frozen": 0.9 < error < 1},
        }
        for tuner, own in errors.items()
        for i, error in enumerate(own)
    ]
    gaussians = [
        {"kind": kind, "dimension": dimension, "sampler": "sgld", "arms": [], "smallest": 0.16, "runs": runs}
        for kind in ("axis", "rotated")
    ]
    record = {"dimension": dimension, "n_data": 1_000, "seconds": 0.1, "gaussians": gaussians}
    return record | provenance_of("gaussian_ladder")


def horizons_record(model):
    """Two horizons of SGLD: theory chooses one arm, MAMBA chooses another for the longer one, with half the error."""
    n_data = N_DATA[model]
    arms = [{"step_size": h, "batch_size": n_data // 100, "n_leapfrog": None} for h in (1e-5, 1e-6)]
    chosen = [
        {"tuner": tuner, "horizon": seconds, "foreseen": 0.25, "arm": place}
        for tuner, places in (("mamba", (0, 1)), ("theory", (0, 0)))
        for seconds, place in zip((1, 10), places, strict=True)
    ]
    runs = [
        {
            **{"arm": place, "seconds": seconds, "steps": 100, "diverged": [False, False]},
            "losses": {loss: [error, 1.5 * error] for loss in LOSSES[model]},
        }
        for place, errors in enumerate(((0.4, 0.2), (0.6, 0.1)))
        for seconds, error in zip((1, 10), errors, strict=True)
    ]
    of_sampler = {"sampler": "sgld", "arms": arms, "chosen": chosen, "runs": runs}
    about = {"model": model, "n_data": n_data, "trusted": True, "seconds": [1, 10], "race_seconds": 1}
    return (
        about | {"losses": list(LOSSES[model]), "samplers": [of_sampler]} | provenance_of("compare_horizons")
    )


def sensitivity_record():
    """Two dimensions; PSD and virial see widths in both, a KSD by its value prefers narrow draws in the larger one."""
    sizes = {"width": (1.0, 0.0, 0.5, 1.5, 2.0), "shift": (0.0, 0.1, 1.0), "coordinate": (1.0, 0.0, 2.0)}
    sizes |= {"direction": (1.0, 0.0, 0.5), "weights": (0.5, 0.7, 1.0)}
    rows = []
    for dimension, counts in ((10, (15, 500)), (1_000, (15, 100))):
        for n in counts:
            for disturbance, (exact, *others) in sizes.items():
                for judge, seen in (
                    ("ksd", 0.1),
                    ("ksd_wide", 0.05),
                    ("fssd", 0.0),
                    ("psd", 1.0),
                    ("virial", 0.5),
                ):
                    for size in (exact, *others):
                        signal = seen * n * abs(size - exact)
                        against = -1 if judge.startswith("ksd") and dimension > 100 and size < exact else 1
                        row = {"perturbation": disturbance, "size": size, "dimension": dimension}
                        row |= {"points": n, "judge": judge, "value": 1.0, "value_se": 0.1}
                        row |= {"square": 1.0, "square_se": 0.1}
                        error = 0.0 if size == exact else 0.3
                        row |= {"value_signal": against * signal, "value_signal_se": error}
                        rows.append(row | {"square_signal": signal, "square_signal_se": error})
    return {"rows": rows} | provenance_of("measure_sensitivity")
