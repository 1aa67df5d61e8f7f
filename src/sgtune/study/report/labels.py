"""The printed labels of names in files, and the order in which they are printed."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Iterable

from sgtune.study import catalogue
from sgtune.study.report.ccadl_metrics import METRICS as CCADL
from sgtune.study.report.metric import Metric

__all__ = [
    "DETAILS",
    "METRICS",
    "MODELS",
    "OOD_SETS",
    "READ_BY",
    "SAMPLERS",
    "TUNERS",
    "Metric",
    "in_order",
    "label",
]

MODELS = {name: entry.label for name, entry in catalogue.MODELS.items()}
SAMPLERS = {name: entry.label for name, entry in catalogue.SAMPLERS.items()}
# Arms for comparison with the regret of tuners; they are printed in the tuners' place.
READ_BY = {
    "oracle": "Oracle",
    "finalist": "Best finalist",
    "random": "Random arm",
    "frozen": "Frozen chain",
}
TUNERS = {name: entry.label for name, entry in catalogue.TUNERS.items()} | READ_BY

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
    "find_map": "find MAP",
    "sample_nuts": "sample NUTS",
    "combine_nuts": "combine NUTS",
}

OOD_SETS = {"fashion-mnist": "Fashion-MNIST", "notmnist": "notMNIST"}


METRICS = {
    "ksd": Metric(
        "KSD",
        "kernel Stein discrepancy with the paper's kernel (root of the mean of unbiased squares)",
        best=min,
    ),
    "ksd_se": Metric(
        "KSD, s.e. of the estimate",
        "standard error of the KSD from choosing a random subset of the draws, mean over replicates",
        has_spread=False,
    ),
    "ksd_floor": Metric(
        "KSD of exact draws",
        "root mean square of the KSD of as many independent exact draws (up to 200 parameters by the Laplace "
        "approximation, above by draws of NUTS)",
        has_spread=False,
    ),
    "ksd_scaled": Metric("KSD scaled", "KSD in coordinates scaled by the posterior", best=min),
    "ksd_scaled_se": Metric("KSD scaled, s.e. of the estimate", has_spread=False),
    "ksd_scaled_floor": Metric("KSD scaled of exact draws", has_spread=False),
    "relative_sd_error_x100": Metric(
        "ξ(σ̂) × 10²", "relative error of the posterior standard deviations, in hundredths", best=min
    ),
    "xi_rel_x100": Metric(
        "ξ relative × 10²",
        "root mean square of sd / reference's sd − 1 over the parameters, in hundredths",
        best=min,
    ),
    "xi_white_x100": Metric(
        "ξ whitened × 10²",
        "root mean square of sd / reference's sd − 1 over the eigen-directions of the reference's covariance, "
        "which does not depend on rotations or a common unit, in hundredths",
        best=min,
    ),
    "functional_error": Metric(
        "Error of functionals",
        "root mean square over functionals that the data identify of the distance of their mean and sd from the "
        "reference's, in its sds (2-Wasserstein, between Gaussians)",
        best=min,
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
    "brier": Metric(
        "Brier score",
        "mean over the test set of the squared distance of the probabilities from the true class, 0 to 2",
        best=min,
    ),
    "n_samples": Metric(
        "# of samples",
        "drawn within the budget (at least ten with a cost table), including any burn-in",
        "count",
    ),
    "log10_step_size": Metric("log₁₀(h)", form="general"),
    "batch_percent": Metric("τ (%)", form="general"),
    "n_leapfrog": Metric("L", form="count"),
    "friction": Metric("a", "friction", form="general"),
    "noise_estimate": Metric("b", "estimate of the gradient noise", form="general"),
    "kappa": Metric("κ", "least weight of the newest minibatch in the running covariance", form="general"),
    "drift": Metric("γ", "factor of the gradient in MALA's proposal", form="general"),
    "noise_sd": Metric("s", "sd of the proposal's isotropic noise", form="general"),
    "directional_noise": Metric("s_d", "noise along the update, in units of it", form="general"),
    "b1": Metric("β₁", "decay of the first moment", form="general"),
    "b2": Metric("β₂", "decay of the second moment", form="general"),
    "eps": Metric("δ", "constant added to the root of the second moment", form="general"),
    "momentum_noise": Metric("ρ₁", "sd of the first moment's noise", form="general"),
    "second_moment_noise": Metric("ρ₂", "sd of the second moment's noise", form="general"),
    "n_arms": Metric("Tuned (arms)", form="count"),
    "budget_seconds": Metric("Seconds meant", has_spread=False),
    "wall_seconds": Metric("Seconds taken"),
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
    "foreseen_x100": Metric("Predicted × 10²"),
    "measured_x100": Metric("Measured × 10²"),
    "measured_over_foreseen": Metric("Measured / predicted"),
    "over_longest": Metric("Over the longest's"),
    "over_longest_xi": Metric("Over the longest's, ξ(σ̂)"),
    "over_oracle": Metric("Over the oracle's", form="by error", best=min),
    "ladder_error": Metric(
        "Expected error",
        "root of the mean over the eigen-directions of the expected (sd of the draws / the posterior's − 1)², mean "
        "over races; 1 for a chain that never moves",
    ),
    "ladder_over_oracle": Metric("Over the oracle's"),
    "ladder_worst": Metric(
        "Worst race", "the largest ratio of one race's error to the oracle's in the same race"
    ),
    "ladder_over_smallest": Metric("Over the grid's least"),
    "ladder_marginal": Metric("Marginals", "the same error of the expected sds of single parameters"),
    "ladder_escaped": Metric("Escaped", "races whose arm has an expected error above 10", form="count"),
    "ladder_frozen": Metric(
        "Frozen",
        "races whose arm is too narrow by an error above 0.9, where the grid has one that is not",
        form="count",
    ),
}

METRICS |= CCADL

# Of the study of AdamMCMC.
METRICS |= {
    "acceptance_rate": Metric("Acceptance"),
    "acceptance_gain": Metric("Acceptance gained"),
    "second_moment": Metric("E x²"),
    "ess_per_second": Metric("ESS per second", best=max),
    "jump_per_second": Metric("Squared jump per second", best=max),
    "acceptance_percent": Metric("Accepted (%)", "share of the proposals of a run that were accepted"),
    "ksd_points": Metric("KSD points", "draws that the KSD is estimated from", "count"),
    "seconds_per_step": Metric("Seconds per step"),
    "cost_ratio": Metric("Cost ratio"),
}

for _metric, _label in {
    "relative_sd_error_x100": "ξ(σ̂)",
    "xi_rel_x100": "ξ relative",
    "xi_white_x100": "ξ whitened",
    "functional_error": "Error of functionals",
    "ece_percent": "ECE",
    "rmse": "RMSE",
    "log_loss": "Log-loss",
    "brier": "Brier score",
}.items():
    METRICS[f"{_metric}_over_oracle"] = Metric(f"{_label}, over the oracle's", form="by error", best=min)
    METRICS[f"{_metric}_regret"] = Metric(f"{_label}, regret", form="by error", best=min)


def label(name: str, labels: dict[str, str]) -> str:
    """The printed name; a name that has none yet is shown in capitals."""
    return labels.get(name, name.upper())


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct ``names``: those in ``order`` first, in its order, then the others alphabetically."""
    names, order = set(names), list(order)
    return [name for name in order if name in names] + sorted(names - set(order))
