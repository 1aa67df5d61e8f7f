"""Small records of the study of CCAdL, for tests of its tables and figures."""

import numpy as np
from workflow_runs import ROOT

PUBLISHED = ROOT / "workflow/resources/ccadl/published.csv"
CELLS = [(0.001, 1), (0.001, 10), (0.01, 1), (0.01, 10)]
LOST = {"diverged": True, "statistics": {}}


def cells_of(settings, replicates):
    """Of each (h, A) of ``settings`` the runs ``replicates(h, A)``, numbered."""
    return [
        {
            "step_size": h,
            "friction": a,
            "replicates": [run | {"replicate": i} for i, run in enumerate(replicates(h, a))],
        }
        for h, a in settings
    ]


def normal_record(method, rmse, times, n=4):
    """Replicates that differ by 0.1%. The times of μ are 21% shorter than ``times``, one for each of `CELLS`."""
    edges, density = np.linspace(0.0, 1.0, 6), np.array([0.5, 1, 2, 1, 0.5])
    by_setting = dict(zip(CELLS, times, strict=True))

    def runs(h, a):
        time = by_setting[h, a]
        for i in range(n):
            own = {"density_rmse": rmse * (1 + 0.001 * i), "batch_means_time": time / 2, "sd_ratio": 1.0}
            clipping = {"clipped_share": 0.25, "friction_needed": 4.0 + i} if method == "sghmc" else {}
            yield {
                **{"diverged": False, "crossings": 0, "statistics": clipping},
                **{"mu": own | {"time": 0.79 * time}, "gamma": own | {"time": time}},
            }

    bias = {"mu": {"value": 0.04, "se": 0.001}, "gamma": {"value": 0.001, "se": 0.001}}
    both = {"mu": density, "gamma": density}
    return {
        **{"method": method, "edges": {"mu": edges, "gamma": edges}, "exact": both},
        "cells": [cell | {"density": both, "bias": bias} for cell in cells_of(CELLS, runs)],
    }


def logistic_records(methods=("sgnht", "ccadl")):
    """The last sampler diverges at the larger h."""
    end, settings = {"sgnht": -0.5, "ccadl": -0.105}, [(0.1, 10), (0.2, 10)]

    errors = {"diverged": False, "xi_white": None, "xi_rel": 0.1, "mean_error": 0.1, "statistics": {}}
    errors["covariance"] = [[4.0, 0.0], [0.0, 1.0]]

    def of_sampler(name, one, lost, **common):
        def runs(h, a):
            return [lost if (name, h) == (methods[-1], 0.2) else one(i) for i in range(3)]

        return {"method": name, "cells": cells_of(settings, runs), **common}

    curves = [
        of_sampler(
            name,
            lambda i, name=name: {"log_likelihoods": [-2, -0.3, end[name], end[name] + 0.001 * i]},
            {"log_likelihoods": [-1, None, None, None]},
            passes=[1.0, 2.0, 3.0, 4.0],
        )
        for name in methods
    ]
    common = {"coordinates": [1, 4], "truth_log_likelihood": -0.1}
    draws = [
        of_sampler(name, lambda i: errors | {"mean": [0.1 * i, 0.0]}, LOST, **common) for name in methods
    ]
    diagnostics = {"chains": 2, "draws": 100, "r_hat": 1.01, "ess_bulk": 90.0}
    reference = {"mean": [0.0] * 5, "sd": [1.0] * 5, "covariance": np.eye(5), "diagnostics": diagnostics}
    return {"logistic_curves": curves, "logistic_draws": draws, "logistic_reference": [reference]}


def drbm_records(missing=("acoustic",)):
    """Of the set letter, where a run diverges at the larger h, and of sets that no source has."""
    runs = [{"errors": [0.5, 0.2 + 0.01 * i], "log_losses": [1.0, 0.5], "statistics": {}} for i in range(3)]
    lost = {"errors": [0.5, None], "log_losses": [1.0, None], "statistics": {}}
    whole = {
        **{"set": "letter", "missing": None, "passes": [1.0, 2.0], "burn_in_passes": 1.0},
        "cells": cells_of([(1, 10), (2, 10)], lambda h, a: runs if h == 1 else [*runs[:2], lost]),
    }
    without = [{"set": name, "missing": "no source has it: not from example.org"} for name in missing]
    sizes = {
        "n_train": 200,
        "n_test": 40,
        "n_classes": 26,
        "n_features": 16,
        "n_hidden": 5,
        "n_parameters": 241,
    }
    at_map = {"set": "letter", "missing": None, "test": {"accuracy": 0.75, "log_loss": 1.0}}
    drbm = [record | {"method": name} for record in [whole, *without] for name in ("sgnht", "ccadl")]
    return {"drbm": drbm, "map": [at_map | sizes, *without]}
