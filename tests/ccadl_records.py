"""Small records of the study of CCAdL, for tests of its tables and figures."""

import numpy as np
from workflow_runs import ROOT

PUBLISHED = ROOT / "workflow/resources/ccadl/published.csv"
CELLS = [(0.001, 1), (0.001, 10), (0.01, 1), (0.01, 10)]
PROVENANCE = {"run": "mine", "seed": 0, "commit": "c" * 40, "created": "2026-01-02T03:04:05", "versions": {}}


def run_of(replicate, *, rmse, time, method):
    own = {
        **{"density_rmse": rmse, "time": time, "lags": 10, "batch_means_time": time / 2},
        **{"mean_error": 0.0, "sd_ratio": 1.0},
    }
    statistics = {"clipped_share": 0.25, "friction_needed": 4.0 + replicate} if method == "sghmc" else {}
    # The times of μ are 21% too short, so only the time that is 47% too long for γ is within 20% of the paper's.
    both = {"mu": own | {"time": 0.79 * time}, "gamma": own}
    return {"replicate": replicate, "diverged": False, "crossings": 0, **both, "statistics": statistics}


def normal_record(method, rmse, times, n=4):
    """Replicates that differ by 0.1%, or not at all where the sd is 0."""
    edges, density = np.linspace(0.0, 1.0, 6), np.array([0.5, 1, 2, 1, 0.5])
    cells = [
        {
            "step_size": h,
            "friction": a,
            "density": {"mu": density, "gamma": density},
            "bias": {"mu": {"value": 0.04, "se": 0.001}, "gamma": {"value": 0.001, "se": 0.001}},
            "replicates": [
                run_of(i, rmse=rmse * (1 + 0.001 * i), time=time, method=method) for i in range(n)
            ],
        }
        for (h, a), time in zip(CELLS, times, strict=True)
    ]
    record = {
        "method": method,
        "data": {"n": 100, "mean": 0.0, "variance": 1.0},
        "steps": 1000,
        "cells": cells,
    }
    both = {"mu": edges, "gamma": edges}
    return record | {"edges": both, "exact": {"mu": density, "gamma": density}, "provenance": PROVENANCE}


def cells_of(table):
    return {(c.sampler, c.metric, c.detail): c for row in table.rows for c in row.cells}


def logistic_records(methods=("sgnht", "ccadl")):
    passes, end = [1.0, 2.0, 3.0, 4.0], {"sgnht": -0.5, "ccadl": -0.105}
    curves = [
        {
            "method": method,
            "passes": passes,
            "cells": [
                {
                    "step_size": h,
                    "friction": 10,
                    "replicates": [
                        {
                            "replicate": i,
                            "log_likelihoods": [-2, -0.3, end[method], end[method] + 0.001 * i],
                            "statistics": {},
                        }
                        for i in range(3)
                    ],
                }
                for h in (0.1, 0.2)
            ],
        }
        for method in methods
    ]
    draws = [
        {
            "method": method,
            "steps": 100,
            "coordinates": [1, 4],
            "truth_log_likelihood": -0.1,
            "cells": [
                {
                    "step_size": h,
                    "friction": 10,
                    "replicates": [
                        {
                            **{
                                "replicate": i,
                                "diverged": False,
                                "xi_white": None,
                                "xi_rel": 0.1,
                                "mean_error": 0.1,
                            },
                            **{"mean": [0.1 * i, 0.0], "covariance": [[4.0, 0.0], [0.0, 1.0]]},
                        }
                        for i in range(3)
                    ],
                }
                for h in (0.1, 0.2)
            ],
        }
        for method in methods
    ]
    curves[-1]["cells"][1]["replicates"] = [
        {"replicate": i, "log_likelihoods": [-1, None, None, None], "statistics": {}} for i in range(3)
    ]
    draws[-1]["cells"][1]["replicates"] = [{"replicate": i, "diverged": True} for i in range(3)]
    diagnostics = {"chains": 2, "draws": 100, "r_hat": 1.01, "ess_bulk": 90.0}
    reference = {"mean": [0.0] * 5, "sd": [1.0] * 5, "covariance": np.eye(5), "diagnostics": diagnostics}
    found = {"logistic_curves": curves, "logistic_draws": draws, "logistic_reference": [reference]}
    return {kind: [record | {"provenance": PROVENANCE} for record in own] for kind, own in found.items()}
