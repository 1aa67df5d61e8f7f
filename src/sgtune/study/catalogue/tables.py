"""The tables of the study: who makes each, from what, and what a report says of it."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.catalogue.artifact import Artifact
from sgtune.study.catalogue.tuners import TUNERS

__all__ = ["TABLES"]

# The paper's Tables 1 to 3 leave out what its appendix has of grid search by KSD.
NOT_IN_TEXT = ("grid-ksd",)
NOT_IN_PAPER = tuple(name for name, entry in TUNERS.items() if not entry.in_paper)

TABLES: dict[str, Artifact] = {
    "table4": Artifact(
        "tables:table4",
        ("tuning",),
        title="Table 4. What each tuner tunes",
        caption=(
            "What each tuner tunes (Table 4 of the paper), read off the arms it compared: h step size, n "
            "batch size, L leapfrog steps; in brackets the number of arms. The paper lists the heuristic, "
            "which sets h = 1/N and compares nothing, as tuning the step size."
        ),
    ),
    "tuning_time": Artifact(
        "comparisons:tuning_time",
        ("tuning",),
        title="What tuning costs",
        caption=(
            "What tuning costs (not in the paper), for each sampler and tuner. Warm: wall time once the "
            "programs are compiled, and the parts of it. Cold: what a user waits for who runs this tuner "
            "alone in a new process, start-up and compiling included (programs that are in the cache of the "
            "machine are read and not compiled). Beside them stand the sampling budget T where it is in "
            "seconds, what was spent beyond it, warm time and T over those of MAMBA-KSD, and the data terms "
            "of all gradients. The paper reports that for SGHMC MAMBA-KSD is about 3 times as fast as grid "
            "search on logistic regression, about 2 times on matrix factorisation and 4 to 6 times on the "
            "network, and that grid search by KSD is 1.2 to 2.2 times slower than MAMBA-KSD. Arms of one "
            "shape advance together here, so a tuner's warm time may be less than the budget of its arms one "
            "after another."
        ),
    ),
    "regret": Artifact(
        "regret:regret",
        ("tuning", "sweep"),
        title="Regret of the tuners",
        caption=(
            "Regret of the tuners (not in the paper): the relative error ξ(σ̂) of the arm a tuner chose over "
            "the smallest in the grid, both from one sweep, in which every arm runs equally long, but ten "
            "steps at least; for the network, which has no ground truth, the same of its ECE and of its "
            "log-loss. 1 is the best a tuner can do. The heuristic's step size is not in the grid, so it may "
            "fall below 1."
        ),
    ),
    "published_comparison": Artifact(
        "comparisons:published_comparison",
        ("evaluation", "published"),
        title="Beside the published numbers",
        without=NOT_IN_PAPER,
        caption=(
            "This run beside the paper: results and hyperparameters, ours, as published (Tables 5 to 10), and "
            "the ratio of the two. The published numbers come from other hardware and from code with known "
            "defects, such as an explicit integrator in SGHMC, so equality is not expected. The published "
            'RMSE, ECE and MCE are by definitions of their own; the rows "as published" use the same.'
        ),
    ),
    "xi_by_block": Artifact(
        "tables:xi_by_block",
        ("evaluation",),
        title="Relative error of the standard deviations, by block of the parameters",
        model="pmf",
        needs_reference=True,
        caption=(
            "Probabilistic matrix factorisation: relative error of the posterior standard deviations by block "
            "of the parameters (not in the paper): features of users and items, their means, and the "
            "logarithms of their precisions. Of the 52,580 parameters all but 80 are features, so the error "
            "of all of them says nothing of the rest."
        ),
    ),
    "ood": Artifact(
        "entropies:ood",
        ("evaluation",),
        title="Out-of-distribution images",
        model="bnn",
        caption=(
            "Out-of-distribution images (not in the paper's tables): mean entropy of the network's averaged "
            "predictions on MNIST's test set and on images of no digit, and the AUROC of that entropy as a "
            "detector of the latter. If no source of the second set answered, the table says so."
        ),
    ),
    "modes": Artifact(
        "reference:modes",
        ("reference",),
        title="The modes",
        caption=(
            "The modes (not in the paper): where chains start and control variates are centred. −log π "
            "without constants, norm of its gradient, the Newton step that is left in posterior standard "
            "deviations beside √D, how far draws lie from a mode, steps of the optimisers, and the error of "
            "the mode's predictions on the test set."
        ),
    ),
    "reference": Artifact(
        "reference:reference",
        ("reference",),
        title="How well the reference is sampled",
        needs_reference=True,
        caption=(
            "How well the reference is sampled (not in the paper): NUTS by block of parameters and of what "
            "tuners are judged by, with R-hat, effective sample size and Monte Carlo error. Errors of "
            "standard deviations are against these; they are worth what these are."
        ),
    ),
    "cost": Artifact(
        "timings:cost",
        ("cost",),
        title="What a step costs",
        caption=(
            "What a step costs (not in the paper): milliseconds of one step of a single chain for every "
            "sampler, batch size n and number L of leapfrog steps in the grids, measured alone on the machine "
            "and without compilation. By such costs seconds become steps. If the run was given a cost table, "
            "its costs stand beside those measured here, with the ratio of the two: above 1 this machine is "
            "the slower one. The given table then decides how many steps are made, so that the run gives the "
            "same numbers on another machine."
        ),
    ),
    "timings": Artifact(
        "timings:timings",
        ("data", "reference", "cost", "tuning", "evaluation", "sweep", "estimates", "widths"),
        title="What the run takes",
        caption=(
            "What the run takes (not in the paper), by rule of the workflow: number of jobs, seconds of wall "
            "clock in sum, of the median and of the longest job, the share of start-up and of compilation, "
            "and the most memory that one job held. Jobs that download data and those that make tables and "
            "figures are not counted. Untimed jobs run beside each other, so the run takes less than the sum."
        ),
    ),
    "table1": Artifact(
        "tables:short_table",
        ("evaluation",),
        title="Table 1. Logistic regression: accuracy of the tuned samplers",
        model="logistic",
        options={"model": "logistic"},
        without=NOT_IN_TEXT,
        caption=(
            "Logistic regression: accuracy of the tuned samplers (Table 1 of the paper). Kernel Stein "
            "discrepancy and relative error of the posterior standard deviations, ξ(σ̂) = ‖σ̂ − σ_NUTS‖ / "
            "‖σ_NUTS‖, in hundredths, for each tuner and sampler; mean ± standard deviation over replicates. "
            "Bold: the best of a sampler and metric. MAMBA-KSD scaled is not in the paper."
        ),
    ),
    "table6": Artifact(
        "tables:long_table",
        ("evaluation",),
        title="Table 6. Logistic regression: tuners compared",
        model="logistic",
        options={"model": "logistic"},
        caption=(
            "Logistic regression: all metrics for all tuners (Table 6 of the paper). Relative error of the "
            "posterior standard deviations, KSD with the paper's kernel and in coordinates scaled by the "
            "posterior, accuracy on the test rows, and the number of samples drawn in the time given; mean ± "
            "standard deviation over replicates. Bold: the best of a row; rows in which all print the same, "
            "and the number of samples, have none."
        ),
    ),
    "table5": Artifact(
        "tables:choices_table",
        ("tuning",),
        title="Table 5. Logistic regression: hyperparameters chosen",
        model="logistic",
        options={"model": "logistic"},
        caption=(
            "Logistic regression: hyperparameters that each tuner chose (Table 5 of the paper). Step size h, "
            "batch size τ in % of the training data, leapfrog steps L of SGHMC."
        ),
    ),
    "table2": Artifact(
        "tables:short_table",
        ("evaluation",),
        title="Table 2. PMF: accuracy of the tuned samplers",
        model="pmf",
        options={"model": "pmf"},
        without=NOT_IN_TEXT,
        caption=(
            "Probabilistic matrix factorisation of MovieLens 100K: accuracy of the tuned samplers (Table 2 of "
            "the paper). Kernel Stein discrepancy and relative error of the posterior standard deviations "
            "against NUTS, in hundredths; mean ± standard deviation over replicates. Bold: the best of a "
            "sampler and metric. MAMBA-KSD scaled is not in the paper."
        ),
    ),
    "table8": Artifact(
        "tables:long_table",
        ("evaluation",),
        title="Table 8. PMF: tuners compared",
        model="pmf",
        options={"model": "pmf"},
        caption=(
            "Probabilistic matrix factorisation: all metrics for all tuners (Table 8 of the paper). Relative "
            "error of the posterior standard deviations, KSD with the paper's kernel and in coordinates "
            "scaled by the posterior, RMSE of the mean prediction on the test ratings and, beside it, what "
            "the published code calls RMSE (the mean squared error of single draws), and the number of "
            "samples; mean ± standard deviation over replicates. Bold: the best of a row; rows in which all "
            "print the same, and the number of samples, have none."
        ),
    ),
    "table7": Artifact(
        "tables:choices_table",
        ("tuning",),
        title="Table 7. PMF: hyperparameters chosen",
        model="pmf",
        options={"model": "pmf"},
        caption=(
            "Probabilistic matrix factorisation: hyperparameters that each tuner chose (Table 7 of the "
            "paper). Step size h, batch size τ in % of the training ratings, leapfrog steps L of SGHMC."
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
            "Bayesian neural network on MNIST: calibration of the tuned samplers (Table 3 of the paper). "
            "Expected and maximum calibration error of the averaged probabilities in percent, in 15 equal "
            "bins on [0, 1]; mean ± standard deviation over replicates. Bold: the best of a sampler and "
            "metric. The paper's SGNHT row is of the smaller grid; here both are shown."
        ),
    ),
    "table10": Artifact(
        "tables:long_table",
        ("evaluation",),
        title="Table 10. Neural network: tuners compared",
        model="bnn",
        options={"model": "bnn"},
        caption=(
            "Bayesian neural network: all metrics for all tuners (Table 10 of the paper). Expected and "
            "maximum calibration error by the usual definition and by that of the published code, accuracy "
            "and log-loss on the test images, and the number of samples; mean ± standard deviation over "
            "replicates. Bold: the best of a row; rows in which all print the same, and the number of "
            "samples, have none."
        ),
    ),
    "table9": Artifact(
        "tables:choices_table",
        ("tuning",),
        title="Table 9. Neural network: hyperparameters chosen",
        model="bnn",
        options={"model": "bnn"},
        caption=(
            "Bayesian neural network: hyperparameters that each tuner chose (Table 9 of the paper). Step size "
            "h, batch size τ in % of the training images, leapfrog steps L of SGHMC. With SGNHT the paper's "
            "full grid gave MAMBA-KSD log₁₀(h) = −4.5 and grid search −4, which lost stability in longer "
            "runs, so its table has what the smaller grid gave, −5 for both."
        ),
    ),
}
