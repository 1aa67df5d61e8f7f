"""The paper's tables of each model: accuracy (text), all metrics and chosen hyperparameters (appendix)."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.report.artifact import Artifact

__all__ = ["PAPER_TABLES"]

# The paper's Tables 1 to 3 leave out what its appendix has of grid search by KSD.
NOT_IN_TEXT = ("grid-ksd",)

SPREAD = "mean ± standard deviation over replicates, tuning included"
OURS = "The table's own caption names the tuners that the paper does not have."
BOLD = "Bold: the best of a sampler and metric, if no other is within two standard errors; none with one tuning run."
CHOSEN = (
    "Step size h, batch size τ in % of the training data, leapfrog steps L of SGHMC: the median of the tuning "
    "runs and, where they differ, the lowest and the highest."
)
XIS = "Relative error of the posterior standard deviations in the paper's norm and with equal weights of the parameters"

PAPER_TABLES: dict[str, Artifact] = {
    "table1": Artifact(
        "tables:short_table",
        ("evaluation", "reference", "widths"),
        title="Table 1. Logistic regression: accuracy of the tuned samplers",
        model="logistic",
        options={"model": "logistic"},
        without=NOT_IN_TEXT,
        caption=(
            "Logistic regression: accuracy of the tuned samplers (Table 1 of the paper). Kernel Stein "
            "discrepancy and relative error of the posterior standard deviations, ξ(σ̂) = ‖σ̂ − σ_NUTS‖ / "
            f"‖σ_NUTS‖, in hundredths, for each tuner and sampler; {SPREAD}. {BOLD} {OURS}"
        ),
    ),
    "table6": Artifact(
        "tables:long_table",
        ("evaluation", "reference", "widths"),
        title="Table 6. Logistic regression: tuners compared",
        model="logistic",
        options={"model": "logistic"},
        caption=(
            f"Logistic regression: all metrics for all tuners (Table 6 of the paper). {XIS}, and in whitened "
            "coordinates; KSD with the paper's kernel and in coordinates scaled by the posterior, each with the "
            "standard error of its estimate and with the KSD of exact draws; accuracy on the test rows, and the "
            f"number of samples drawn in the time given; {SPREAD}. {BOLD} {OURS}"
        ),
    ),
    "table5": Artifact(
        "choices:choices_table",
        ("tuning",),
        title="Table 5. Logistic regression: hyperparameters chosen",
        model="logistic",
        options={"model": "logistic"},
        caption=(
            f"Logistic regression: hyperparameters that each tuner chose (Table 5 of the paper). {CHOSEN}"
        ),
    ),
    "table2": Artifact(
        "tables:short_table",
        ("evaluation", "reference", "widths"),
        title="Table 2. PMF: accuracy of the tuned samplers",
        model="pmf",
        options={"model": "pmf"},
        without=NOT_IN_TEXT,
        caption=(
            "Probabilistic matrix factorisation of MovieLens 100K: accuracy of the tuned samplers (Table 2 of "
            "the paper). Kernel Stein discrepancy and relative error of the posterior standard deviations "
            f"against NUTS, in hundredths; {SPREAD}. {BOLD} {OURS}"
        ),
    ),
    "table8": Artifact(
        "tables:long_table",
        ("evaluation", "reference", "widths"),
        title="Table 8. PMF: tuners compared",
        model="pmf",
        options={"model": "pmf"},
        caption=(
            f"Probabilistic matrix factorisation: all metrics for all tuners (Table 8 of the paper). {XIS}; "
            "error of mean and sd of functionals that the data identify; KSD with the paper's kernel and in "
            "coordinates scaled by the posterior, each with the standard error of its estimate and with the KSD "
            "of exact draws; RMSE of the mean prediction on the test ratings and, beside it, what the published "
            f"code calls RMSE (the mean squared error of single draws), and the number of samples; {SPREAD}. "
            f"{BOLD} {OURS}"
        ),
    ),
    "table7": Artifact(
        "choices:choices_table",
        ("tuning",),
        title="Table 7. PMF: hyperparameters chosen",
        model="pmf",
        options={"model": "pmf"},
        caption=(
            "Probabilistic matrix factorisation: hyperparameters that each tuner chose (Table 7 of the paper). "
            f"{CHOSEN}"
        ),
    ),
    "table3": Artifact(
        "tables:short_table",
        ("evaluation",),
        title="Table 3. Neural network: accuracy of the tuned samplers",
        model="bnn",
        options={"model": "bnn"},
        without=NOT_IN_TEXT,
        caption=(
            "Bayesian neural network on MNIST: predictions of the tuned samplers (Table 3 of the paper). "
            "Log-loss and Brier score come first, because they are proper; below them the paper's expected "
            "and maximum calibration errors, which are not proper, of the averaged probabilities in "
            f"percent, in 15 equal bins on [0, 1]; {SPREAD}. {BOLD} {OURS} The paper's SGNHT row is for the "
            "smaller grid; here both are shown."
        ),
    ),
    "table10": Artifact(
        "tables:long_table",
        ("evaluation",),
        title="Table 10. Neural network: tuners compared",
        model="bnn",
        options={"model": "bnn"},
        caption=(
            "Bayesian neural network: all metrics for all tuners (Table 10 of the paper). Log-loss and Brier "
            "score on the test images, expected and maximum calibration error by the usual definition and "
            f"as in the published code, accuracy, and the number of samples; {SPREAD}. {BOLD} {OURS}"
        ),
    ),
    "table9": Artifact(
        "choices:choices_table",
        ("tuning",),
        title="Table 9. Neural network: hyperparameters chosen",
        model="bnn",
        options={"model": "bnn"},
        caption=(
            f"Bayesian neural network: hyperparameters that each tuner chose (Table 9 of the paper). {CHOSEN} "
            "With SGNHT the paper's full grid gave MAMBA-KSD log₁₀(h) = −4.5 and grid search −4, which "
            "became unstable in longer runs, so its table has the values from the smaller grid, −5 for "
            "both."
        ),
    ),
}
