"""What names in files are called in print, and the order in which they are printed."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Iterable
from typing import NamedTuple

from sgtune.study import catalogue

__all__ = ["DETAILS", "METRICS", "MODELS", "OOD_SETS", "SAMPLERS", "TUNERS", "Metric", "in_order", "label"]

MODELS = {name: entry.label for name, entry in catalogue.MODELS.items()}
SAMPLERS = {name: entry.label for name, entry in catalogue.SAMPLERS.items()}
TUNERS = {name: entry.label for name, entry in catalogue.TUNERS.items()} | {"oracle": "Best of the grid"}

# Blocks of the parameters; what the metrics of tuning stand under; rules whose names have an abbreviation in them.
DETAILS = {
    "users": "U (users)",
    "items": "V (items)",
    "mean_users": "Mean of U",
    "mean_items": "Mean of V",
    "log_precision_users": "log Λ of U",
    "log_precision_items": "log Λ of V",
    "all": "all",
    "functionals": "What tuners are judged by",
    "warm": "Warm (s)",
    "cold": "Cold (s)",
    "budget": "Budget",
    "to_mamba": "Over MAMBA-KSD",
    "work": "Gradients",
    "simulate_logistic": "simulate logistic",
    "prepare_movielens": "prepare MovieLens",
    "prepare_mnist": "prepare MNIST",
    "prepare_ood": "prepare OOD",
    "find_map": "find MAP",
    "sample_nuts": "sample NUTS",
    "combine_nuts": "combine NUTS",
}

OOD_SETS = {"fashion-mnist": "Fashion-MNIST", "notmnist": "notMNIST"}


class Metric(NamedTuple):
    """How one number of a table is printed and judged.

    ``form``: "significant" (3 significant digits), "general" (the same without trailing zeros, for values of
    a grid), "count" (whole) or "printed" (every digit a paper gives). ``best``: `min`, `max`, or None where
    neither end is a merit. ``meaning``: what a caption says of it.
    """

    label: str
    meaning: str = ""
    form: str = "significant"
    best: object = None


METRICS = {
    "ksd": Metric("KSD", "kernel Stein discrepancy with the paper's kernel", best=min),
    "ksd_scaled": Metric("KSD scaled", "KSD in coordinates scaled by the posterior", best=min),
    "relative_sd_error_x100": Metric(
        "ξ(σ̂) × 10²", "relative error of the posterior standard deviations, in hundredths", best=min
    ),
    "rmse": Metric("RMSE", "of the mean prediction on the test set", best=min),
    "rmse_as_published": Metric(
        "RMSE, as published",
        "by the published definition (mean squared error of single draws, no root)",
        best=min,
    ),
    "ece_percent": Metric(
        "ECE (%)",
        "expected calibration error of the averaged probabilities, 15 equal bins on [0, 1]",
        best=min,
    ),
    "mce_percent": Metric("MCE (%)", "the error of the worst of these bins", best=min),
    "ece_as_published_percent": Metric(
        "ECE, as published (%)",
        "by the published definition (averaged log-probabilities, 10 bins over the range of the data)",
        best=min,
    ),
    "mce_as_published_percent": Metric("MCE, as published (%)", "the worst of its bins", best=min),
    "accuracy_percent": Metric("Pred. acc. (%)", "predictive accuracy on the test set", best=max),
    "log_loss": Metric("Log-loss", "mean of −log p of the true class on the test set, in nats", best=min),
    "n_samples": Metric(
        "# of samples",
        "drawn in the time given (ten at least, where a cost table gives it), any burn-in included",
        "count",
    ),
    "log10_step_size": Metric("log₁₀(h)", form="general"),
    "batch_percent": Metric("τ (%)", form="general"),
    "n_leapfrog": Metric("L", form="count"),
    "friction": Metric("a", "friction", form="general"),
    "noise_estimate": Metric("b", "estimate of the gradient noise", form="general"),
    "n_arms": Metric("Tuned (arms)", form="count"),
    "warm_seconds": Metric("all"),
    "sampling_seconds": Metric("sampling"),
    "score_seconds": Metric("scores"),
    "discrepancy_seconds": Metric("judging"),
    "other_seconds": Metric("other"),
    "cold_seconds": Metric("all"),
    "compile_seconds": Metric("compiling"),
    "startup_seconds": Metric("start-up"),
    "nominal_seconds": Metric("T (s)"),
    "overrun_percent": Metric("overrun (%)"),
    "warm_per_budget": Metric("warm / T"),
    "cold_per_budget": Metric("cold / T"),
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
    "entropy_test": Metric("Entropy, test set"),
    "entropy_ood": Metric("Entropy, OOD set"),
    "auroc": Metric("AUROC", best=max),
    "negative_log_posterior": Metric("−log π"),
    "gradient_norm": Metric("|∇ log π|"),
    "distance": Metric("Newton step (sd)"),
    "root_dimension": Metric("√D", form="general"),
    "steps": Metric("Steps", form="count"),
    "block_n": Metric("Parameters", form="count"),
    "block_sd": Metric("Sd"),
    "block_sd_error": Metric("Error of sd"),
    "block_r_hat_max": Metric("R-hat, worst", form="general"),
    "block_r_hat_p99": Metric("R-hat, 99%", form="general"),
    "block_r_hat_median": Metric("R-hat, median", form="general"),
    "block_ess_min": Metric("ESS, worst"),
    "block_ess_median": Metric("ESS, median"),
    "block_trusted": Metric("Trusted"),
}

for _metric, _label in {
    "relative_sd_error_x100": "ξ(σ̂)",
    "ece_percent": "ECE",
    "log_loss": "log-loss",
}.items():
    METRICS[f"{_metric}_regret"] = Metric(f"Regret in {_label}", best=min)


def label(name: str, labels: dict[str, str]) -> str:
    """The printed name; a name that has none yet is shown in capitals."""
    return labels.get(name, name.upper())


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct ``names``: those of ``order`` first, in its order, then the others by the alphabet."""
    names, order = set(names), list(order)
    return [name for name in order if name in names] + sorted(names - set(order))
