"""The printed labels of names in files, and the order in which they are printed."""

from collections.abc import Iterable
from typing import NamedTuple

from sgtune.study import catalogue
from sgtune.support.axes import AXES


class Metric(NamedTuple):
    """How one number of a table is printed and judged.

    ``form``: "significant" (3 significant digits), "by error" (down to the second digit of the standard error, and no
    more than 5 digits), "general" (3 digits without trailing zeros, for values of a grid), "count" (whole) or
    "printed" (every digit a paper gives). ``best``: `min`, `max`, or None where neither end is a merit.
    ``has_spread``: whether the sd over replicates says something. ``key``: of the number in rows of results, where it
    is from these (a dot leads into an entry of the row), times ``factor``.
    """

    label: str
    form: str = "significant"
    best: object = None
    has_spread: bool = True
    key: str = ""
    factor: int = 1


MODELS = {name: entry.label for name, entry in catalogue.MODELS.items()}
SAMPLERS = {name: entry.label for name, entry in catalogue.SAMPLERS.items()}
COMPARED_ARMS = {
    "oracle": "Oracle",
    "finalist": "Best finalist",
    "random": "Random arm",
    "frozen": "Frozen chain",
}
"""Arms beside the tuners', for comparison; they are printed in the tuners' place."""
TUNERS = {name: entry.label for name, entry in catalogue.TUNERS.items()} | COMPARED_ARMS

# Blocks of the parameters; what the metrics of tuning stand under; clocks; rules with an abbreviation in their names.
DETAILS = {
    "users": "U (users)",
    "items": "V (items)",
    "mean_users": "Mean of U",
    "mean_items": "Mean of V",
    "log_precision_users": "log Λ of U",
    "log_precision_items": "log Λ of V",
    "all": "all",
    "functionals": "What tuners are judged by",
    "budget": "Budget",
    "warm": "Warm",
    "cold": "Cold",
    "to_mamba": "Over MAMBA-KSD",
    "warm_parts": "Warm (s)",
    "cold_parts": "Cold, before that (s)",
    "beyond": "Beyond T",
    "work": "Gradients",
    "calibrated": "by measured costs",
    "wall": "by the wall clock",
    "wall_over_calibrated": "wall / measured",
    "simulate_logistic": "simulate logistic",
    "prepare_movielens": "prepare MovieLens",
    "prepare_mnist": "prepare MNIST",
    "prepare_ood": "prepare OOD",
    "prepare_own": "prepare your model",
    "find_map": "find MAP",
    "sample_nuts": "sample NUTS",
    "combine_nuts": "combine NUTS",
}

METRICS = {
    "ksd": Metric("KSD", best=min, key="ksd"),
    "ksd_se": Metric("KSD, s.e. of the estimate", has_spread=False, key="ksd_se"),
    "ksd_floor": Metric("KSD of exact draws", has_spread=False, key="ksd_floor"),
    "ksd_scaled": Metric("KSD scaled", best=min, key="ksd_scaled"),
    "ksd_scaled_se": Metric("KSD scaled, s.e. of the estimate", has_spread=False, key="ksd_scaled_se"),
    "ksd_scaled_floor": Metric("KSD scaled of exact draws", has_spread=False, key="ksd_scaled_floor"),
    "relative_sd_error_x100": Metric("ξ(σ̂) × 10²", best=min, key="relative_sd_error", factor=100),
    "xi_rel_x100": Metric("ξ relative × 10²", best=min, key="xi_rel", factor=100),
    "xi_white_x100": Metric("ξ whitened × 10²", best=min, key="xi_white", factor=100),
    "functional_error": Metric("Error of functionals", best=min, key="functional_error"),
    "rmse": Metric("RMSE", best=min, key="rmse"),
    "rmse_as_published": Metric("RMSE, as published", best=min, key="rmse_published"),
    "ece_percent": Metric("ECE (%)", best=min, key="ece", factor=100),
    "mce_percent": Metric("MCE (%)", best=min, key="mce", factor=100),
    "ece_as_published_percent": Metric("ECE, as published (%)", best=min, key="ece_published", factor=100),
    "mce_as_published_percent": Metric("MCE, as published (%)", best=min, key="mce_published", factor=100),
    "accuracy_percent": Metric("Pred. acc. (%)", best=max, key="accuracy", factor=100),
    "log_loss": Metric("Log-loss", best=min, key="log_loss"),
    "brier": Metric("Brier score", best=min, key="brier"),
    "n_samples": Metric("# of samples", form="count", key="n_samples"),
    **{axis.name: Metric(axis.symbol, form="general") for axis in AXES.values()},
    "log10_step_size": Metric("log₁₀(h)", form="general"),
    "batch_percent": Metric("τ (%)", form="general"),
    "n_leapfrog": Metric("L", form="count"),
    "n_arms": Metric("Tuned (arms)", form="count"),
    "budget_seconds": Metric("Seconds meant", has_spread=False, key="seconds"),
    "wall_seconds": Metric("Seconds taken", key="wall_seconds"),
    "warm_seconds": Metric("(s)"),
    "sampling_seconds": Metric("sampling"),
    "score_seconds": Metric("scores"),
    "discrepancy_seconds": Metric("judging"),
    "other_seconds": Metric("other"),
    "cold_seconds": Metric("(s)"),
    "compile_seconds": Metric("compiling"),
    "startup_seconds": Metric("start-up"),
    "nominal_seconds": Metric("T (s)"),
    "overrun_percent": Metric("(%)"),
    "warm_per_budget": Metric("/ T"),
    "cold_per_budget": Metric("/ T"),
    "warm_ratio": Metric("warm"),
    "nominal_ratio": Metric("T"),
    "gradient_evaluations_x1e-9": Metric("terms (10⁹)"),
    "jobs": Metric("Jobs", form="count"),
    "total_seconds": Metric("Sum (s)"),
    "median_seconds": Metric("Median (s)"),
    "longest_seconds": Metric("Longest (s)"),
    "startup_percent": Metric("Start-up (%)"),
    "compilation_percent": Metric("Compilation (%)"),
    "peak_memory_gb": Metric("Memory (GiB)"),
    "step_ms": Metric("Here (ms)"),
    "table_step_ms": Metric("Table (ms)"),
    "step_ratio": Metric("Here / table"),
    "entropy_test": Metric("Entropy, test set", key="ood.entropy_test"),
    "entropy_ood": Metric("Entropy, OOD set", key="ood.entropy_ood"),
    "auroc": Metric("AUROC", best=max, key="ood.auroc"),
    "negative_log_posterior": Metric("−log π"),
    "gradient_norm": Metric("|∇ log π|"),
    "distance": Metric("Newton step (sd)"),
    "root_dimension": Metric("√D", form="general"),
    "steps": Metric("Steps", form="count"),
    "converged": Metric("Converged"),
    "block_n": Metric("Parameters", form="count"),
    "block_sd": Metric("Sd"),
    "block_sd_error": Metric("Error of sd"),
    "block_r_hat_max": Metric("R-hat, worst"),
    "block_r_hat_p99": Metric("R-hat, 99%"),
    "block_r_hat_median": Metric("R-hat, median"),
    "block_ess_min": Metric("ESS, worst"),
    "block_ess_median": Metric("ESS, median"),
    "block_trusted": Metric("Trusted"),
    "divergences": Metric("Divergences", form="count"),
    "predicted_x100": Metric("Predicted × 10²"),
    "measured_x100": Metric("Measured × 10²"),
    "measured_over_predicted": Metric("Measured / predicted"),
    "over_longest": Metric("Over the longest's"),
    "over_longest_xi": Metric("Over the longest's, ξ(σ̂)"),
    "over_oracle": Metric("Over the oracle's", form="by error", best=min),
    "ladder_error": Metric("Expected error"),
    "ladder_over_oracle": Metric("Over the oracle's"),
    "ladder_worst": Metric("Worst race"),
    "ladder_over_smallest": Metric("Over the grid's least"),
    "ladder_marginal": Metric("Marginals"),
    "ladder_escaped": Metric("Escaped", form="count"),
    "ladder_frozen": Metric("Frozen", form="count"),
    "square_signal": Metric("Density of the draws", form="by error"),
    "value_signal": Metric("Value of the draws", form="by error"),
}


def _measured(label: str, best: object = None) -> Metric:
    return Metric(label, form="by error", best=best)


# Of the audit.
METRICS |= {
    "ksd_over_exact": _measured("KSD / that of independent draws"),
    "error_over_nuts": _measured("Error / Monte Carlo error of NUTS"),
    "ess_rate_over_nuts": _measured("ESS per second / that of NUTS"),
}

# Of the study of CCAdL. Mean μ and precision γ of a normal.
for _name, _symbol in {"mu": "μ", "gamma": "γ"}.items():
    METRICS |= {
        f"density_rmse_{_name}": _measured(f"RMSE, {_symbol}", best=min),
        f"density_bias_{_name}": _measured(f"Bias, {_symbol}"),
        f"time_{_name}": _measured(f"Time to negative pair, {_symbol}"),
        f"batch_time_{_name}": _measured(f"Time of all lags, {_symbol}"),
        f"time_ratio_{_name}": _measured(f"Time to negative pair / paper, {_symbol}"),
        f"sd_ratio_{_name}": _measured(f"Sd / exact, {_symbol}"),
    }
METRICS |= {
    "density_rmse_paper": Metric("RMSE, paper", form="printed"),
    "time_paper": Metric("Time, paper", form="printed"),
    "crossings": _measured("Steps across γ = 0"),
    "passes_to_reference": _measured("Passes to NUTS", best=min),
    "log_likelihood_end": _measured("Log-likelihood, end", best=max),
    "seconds_per_pass": _measured("Seconds per pass, SGNHT = 1"),
    "clipped_percent": _measured("Clipped (%)"),
    "friction_needed": _measured("A needed"),
    "mean_error_sds": _measured("Error of means (sd)", best=min),
    "error_percent": _measured("Error (%)", best=min),
    "log_loss_end": _measured("Log-loss", best=min),
    "n_train": Metric("Training rows", form="count"),
    "n_test": Metric("Test rows", form="count"),
    "n_classes": Metric("Classes", form="count"),
    "n_features": Metric("Features", form="count"),
    "n_hidden": Metric("Hidden units", form="count"),
    "n_parameters": Metric("Parameters", form="count"),
    "sd_ratio_2": _measured("Sd / NUTS, no. 2"),
    "sd_ratio_5": _measured("Sd / NUTS, no. 5"),
}

# Of the study of AdamMCMC.
METRICS |= {
    "acceptance_rate": _measured("Acceptance"),
    "second_moment": _measured("E x²"),
    "acceptance_percent": Metric("Accepted (%)", key="acceptance_rate", factor=100),
    "ksd_points": Metric("KSD points", form="count", key="n_points"),
}

# Of the study of posteriors of users.
METRICS |= {
    "over_best": _measured("Over the best arm's", best=min),
    "best_xi_white_x100": _measured("Best arm's ξ whitened × 10²"),
    "largest_mean_error_sds": _measured("Largest error of a mean (sd)", best=min),
    "spent_x1e-6": _measured("Gradients of tuning (10⁶)"),
    "unstable_runs": Metric("Unstable runs", form="count"),
}

# Of the check of a run.
METRICS |= {
    "check_sd_ratio": _measured("Sd ratio"),
    "check_virial": Metric("Virial"),
    "check_mean_error": _measured("Mean error (sd)"),
    "check_ess": Metric("ESS", form="count"),
    "check_rhat": Metric("R-hat"),
    "check_mean": Metric("Mean"),
    "check_sd": Metric("Sd"),
    "check_nuts_mean": Metric("NUTS mean"),
    "check_nuts_sd": Metric("NUTS sd"),
    "check_problems": Metric("Problems"),
}

for _metric in (
    *("relative_sd_error_x100", "xi_white_x100", "functional_error"),
    *("rmse", "log_loss", "brier"),
):
    _label = METRICS[_metric].label.removesuffix(" × 10²")
    METRICS[f"{_metric}_over_oracle"] = Metric(f"{_label}, over the oracle's", form="by error", best=min)
    METRICS[f"{_metric}_regret"] = Metric(f"{_label}, regret", form="by error", best=min)


def label(name: str, labels: dict[str, str]) -> str:
    """The printed name; a name that has none yet is shown in capitals."""
    return labels.get(name, name.upper())


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct ``names``: those in ``order`` first, in its order, then the others alphabetically."""
    names, order = set(names), dict.fromkeys(order)
    return [name for name in order if name in names] + sorted(names - set(order))
