"""The samplers, tables and figures of the study of the covariance-controlled thermostat (Shang et al. 2015)."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from typing import NamedTuple

from sgtune.study.catalogue.tuners import BLUE, GREEN, ORANGE, VERMILION
from sgtune.study.report.artifact import Artifact, Study

__all__ = ["FIGURES", "KINDS", "LABEL", "STUDY", "METHODS", "SETS", "TABLES", "MethodEntry"]

LABEL = "CCAdL"
KINDS = (
    *("normal", "logistic_curves", "logistic_draws", "logistic_reference", "drbm"),
    *("data", "map", "settings", "published"),
)


SETS = {"connect-4": "Connect-4", "letter": "Letter", "acoustic": "SensIT acoustic"}
"""The data sets of the discriminative RBM, in the order of print."""


class MethodEntry(NamedTuple):
    """How a sampler is shown.

    Attributes:
        label: its name in tables and figures.
        style: its colour, marker and line in figures.
        in_paper: whether the paper has it.
    """

    label: str
    style: tuple[str, str, str | tuple]
    in_paper: bool = True


METHODS: dict[str, MethodEntry] = {
    "sghmc": MethodEntry("SGHMC", (ORANGE, "s", (0, (4, 1.2)))),
    "sgnht": MethodEntry("SGNHT", (BLUE, "^", (0, (2, 1)))),
    "ccadl": MethodEntry("CCAdL", (VERMILION, "o", "-")),
    "mccadl": MethodEntry("mCCAdL", (GREEN, "D", (0, (5, 1.5, 1.5, 1.5))), in_paper=False),
}
"""By the name of the configuration, in the order of print."""

TABLES: dict[str, Artifact] = {
    "normal": Artifact(
        "normal_table:normal",
        ("normal", "published"),
        title="Mean and precision of a normal: errors and autocorrelation times",
        study="ccadl",
        caption=(
            "Mean μ and precision γ of a normal, sampled with minibatches of 10 of 100 data, step size h and friction "
            "A (Table 1 of the paper): the root mean square error of the marginal densities against the exact "
            "posterior, and integrated autocorrelation times in steps, beside the paper's."
        ),
    ),
    "normal_order": Artifact(
        "normal_order:normal_order",
        ("normal", "published"),
        title="Mean and precision of a normal: order of the errors",
        study="ccadl",
        caption=(
            "Whether the root mean square error of one sampler is below (<) or above (>) the error of another, by step "
            "size h and friction A, here at two standard errors and in the paper's Table 1."
        ),
    ),
    "normal_details": Artifact(
        "normal_table:normal_details",
        ("normal",),
        title="Mean and precision of a normal: causes of the errors",
        study="ccadl",
        caption=(
            "Causes of the errors of mean μ and precision γ of a normal (not in the paper): the bias of the "
            "densities that remains in long chains, sds relative to the exact sds, the number of steps that crossed "
            "γ = 0, where they are reflected, and how often SGHMC's noise was clipped."
        ),
    ),
    "logistic_convergence": Artifact(
        "logistic_table:logistic_convergence",
        ("logistic_curves", "logistic_draws", "logistic_reference"),
        title="Logistic regression of MNIST's sevens and nines: passes until predictions are good",
        study="ccadl",
        caption=(
            "Logistic regression of MNIST's sevens and nines (the numbers behind Figure 2 of the paper, top row): "
            "passes over the data until the posterior mean so far predicts the test data as well as the mean of NUTS, "
            "the test log-likelihood at the end of the runs, the time of a pass relative to SGNHT's, and how often "
            "SGHMC's noise was clipped."
        ),
    ),
    "logistic_errors": Artifact(
        "logistic_table:logistic_errors",
        ("logistic_draws", "logistic_reference"),
        title="Logistic regression of MNIST's sevens and nines: errors of long chains",
        study="ccadl",
        caption=(
            "Logistic regression of MNIST's sevens and nines (behind Figure 2 of the paper, bottom row): errors of the "
            "standard deviations and means of long chains against NUTS, over all 100 parameters and for the "
            "two of the figure, and how often SGHMC's noise was clipped."
        ),
    ),
    "drbm_sets": Artifact(
        "drbm_table:drbm_sets",
        ("map", "published"),
        title="Discriminative RBM: the data sets",
        study="ccadl",
        caption=(
            "The data sets of the discriminative RBM and the sizes of its model (Table 2 of the paper), as "
            "counted here and as in the paper. A set that no source offers is marked as unavailable."
        ),
    ),
    "drbm_errors": Artifact(
        "drbm_table:drbm_errors",
        ("drbm", "map"),
        title="Discriminative RBM: test errors",
        study="ccadl",
        caption=(
            "Test error and log-loss of the averaged predictions of the discriminative RBM at the end of "
            "the runs (the numbers behind Figure 3 of the paper), by data set, step size h and friction A; "
            "the values of the MAP are in the table's own caption. Each set has its own step sizes."
        ),
    ),
    "ccadl_deviations": Artifact(
        "deviations_table:ccadl_deviations",
        ("settings",),
        title="CCAdL: differences from the paper",
        study="ccadl",
        caption=(
            "Where the study of CCAdL differs from its paper, or the paper does not say, and why: "
            "budgets, step sizes and frictions, priors, starts, the covariance of minibatches without replacement, "
            "and the treatment of steps that leave the posterior's support."
        ),
    ),
}
"""By name, in the order of print."""

FIGURES: dict[str, Artifact] = {
    "normal_densities": Artifact(
        "normal_figure:normal_densities",
        ("normal",),
        title="Mean and precision of a normal: marginal densities",
        study="ccadl",
        caption=(
            "Marginal posterior densities of the mean μ (above) and the precision γ (below) of a normal (Figure 1 of "
            "the paper), a column per step size h and friction A: the mean over chains of their "
            "histograms, and the exact density. The inset shows the peak."
        ),
    ),
    "logistic_regression": Artifact(
        "logistic_figure:logistic_regression",
        ("logistic_curves", "logistic_draws", "logistic_reference"),
        title="Logistic regression of MNIST's sevens and nines: convergence and marginals",
        study="ccadl",
        caption=(
            "Logistic regression of MNIST's sevens and nines, projected to 100 dimensions, a column per step size h "
            "(Figure 2 of the paper, whose h and A the text does not give; these are ours). Above: test log-likelihood "
            "per datum of the posterior mean so far, from the last half of the draws, against passes over the data; "
            "mean over runs, each started at another draw of the prior. After a run has diverged, a thin line is the "
            "mean of the other runs. A missing line is below the panel. Below: ellipses that hold 95% of a Gaussian "
            "with the mean and covariance of the draws of coordinates 2 and 5, at one A, from chains that start at the "
            "MAP; thin, if some chains have diverged. Crosses are means, the circle is the mean of NUTS. At small h a "
            "chain has few independent draws, so that its ellipse also differs by Monte Carlo error. In the paper "
            "SGHMC's contour is outside the plot. Two coordinates can agree with NUTS where the error along all "
            "eigen-directions is large (table of errors). A sampler without a visible ellipse is outside the panel, or "
            "all its chains have diverged."
        ),
    ),
    "drbm_curves": Artifact(
        "drbm_figure:drbm_curves",
        ("drbm", "map"),
        title="Discriminative RBM: test error against passes",
        study="ccadl",
        caption=(
            "Test error of the discriminative RBM against passes over the data (Figure 3 of the paper, whose h and A "
            "the text does not give; these are ours), a row per data set and a column per step size h: for "
            "predictions averaged since the end of the burn-in, and during the burn-in for the newest "
            "draws; mean over runs. The grey line is the MAP. After a run has diverged, a thin line is the "
            "mean of the other runs; a line ends where all have. If no source offers a data set, its row says so."
        ),
    ),
}
"""By name, in the order of print."""

STUDY = Study(LABEL, KINDS, TABLES, FIGURES)
