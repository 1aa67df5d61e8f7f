"""The tables of the study: the maker, the inputs and the caption of each."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.catalogue import TUNERS
from sgtune.study.mamba.catalogue_paper import PAPER_TABLES
from sgtune.study.report.artifact import Artifact

__all__ = ["EVERYTHING", "TABLES"]

EVERYTHING = "all of these"
"""The last row of the table of timings, from which a published run has the time of its jobs."""

NOT_IN_PAPER = tuple(name for name, entry in TUNERS.items() if not entry.in_paper)

TABLES: dict[str, Artifact] = {
    "table4": Artifact(
        "choices:table4",
        ("tuning",),
        title="Table 4. What each tuner tunes",
        caption=(
            "What each tuner tunes (Table 4 of the paper), according to the arms it compared: h step size, n "
            "batch size, L leapfrog steps; in brackets the number of arms. The paper lists the heuristic, "
            "which sets h = 1/N and compares nothing, as tuning the step size."
        ),
    ),
    "deviations": Artifact(
        "deviations:deviations",
        ("settings",),
        title="Differences from the paper",
        caption=(
            "Where this run differs from the paper, and why: budgets, caps, clocks, burn-in and so on, "
            "which its configuration sets, and differences of every run of this package, such as the order "
            "of updates in SGHMC. Results that the paper does not have at all are not listed."
        ),
    ),
    "tuning_time": Artifact(
        "tuning_costs:tuning_time",
        ("tuning", "settings"),
        title="What tuning costs",
        caption=(
            "What tuning costs (not in the paper), for each sampler and tuner, mean over tuning runs: the "
            "sampling budget T where it is in seconds; wall time once the programs are compiled (warm "
            "time); the wait of a user who runs this tuner alone in a new process, start-up and compiling "
            "included; and warm time and T over MAMBA-KSD's. The paper reports that for SGHMC MAMBA-KSD is "
            "about 3 times as "
            "fast as grid search on logistic regression, about 2 times on matrix factorisation and 4 to 6 times "
            "on the network, and that grid search by KSD is 1.2 to 2.2 times slower than MAMBA-KSD. Arms of one "
            "shape advance together here, so a tuner's warm time may be less than the budget of its arms one "
            "after another."
        ),
    ),
    "tuning_parts": Artifact(
        "tuning_costs:tuning_parts",
        ("tuning", "settings"),
        title="Where the time of tuning goes",
        caption=(
            "Where the time of tuning goes (not in the paper): sampling, scores and judging once the "
            "programs are compiled; compiling and start-up before that; the time of arms beyond the budget "
            "T; and "
            "the data terms of all gradients. Mean over tuning runs."
        ),
    ),
    "clocks": Artifact(
        "comparisons:clocks",
        ("clocks", "reference"),
        title="Seconds by measured costs and by the wall clock",
        caption=(
            "The same arm of a sampler, one per model, run for the same seconds in two ways (not in the paper): "
            "for the steps that these buy at the measured cost of a step, and by the wall clock, as the "
            "paper "
            "does. Time taken, samples made and losses, mean ± standard deviation over runs, and the ratios of "
            "the means."
        ),
    ),
    "headline": Artifact(
        "headline:headline",
        ("regret", "reference"),
        needs_regret=True,
        title="Regret in short",
        caption=(
            "Mean loss of the arms that a tuner chose over the mean loss of an oracle's arms; mean over "
            "the samplers, ± one standard error (not in the paper). The oracle runs the same race but sees "
            "the true loss of its own draws. 1: as good as the oracle. The table of regret has the "
            "samplers one by one."
        ),
    ),
    "regret": Artifact(
        "regret:regret",
        ("regret", "settings", "reference"),
        title="Regret of the tuners",
        needs_regret=True,
        caption=(
            "Regret of the tuners (not in the paper): mean loss, in fresh runs, of the arms that a tuner "
            "chose, over the smallest mean loss of the finalists, the best arms of a screen of the whole "
            "grid; and, the headline, over the mean loss of the oracle's arms. The oracle runs the same "
            "race but sees the true loss of its own draws. ± one standard error. For comparison: the "
            "oracle, a random arm, and a chain that never moves. The loss is the error of the posterior "
            "standard deviations in whitened coordinates (ξ whitened) and in the paper's (ξ); for the "
            "matrix factorisation the error of identified functionals and ξ; for the network log-loss and "
            "Brier score. Nothing is printed where the reference is not trusted. The table's own caption names the "
            "biases that remain."
        ),
    ),
    "theory": Artifact(
        "foreseen:theory",
        ("tuning", "regret", "settings", "reference"),
        title="Predicted and measured errors of the tuner theory",
        needs_reference=True,
        needs_loss="xi_white",
        needs_regret=True,
        without=tuple(name for name in TUNERS if name != "theory"),
        caption=(
            "The error of the posterior standard deviations (ξ whitened) that theory predicts for the arm "
            "that it chooses, without a chain; the error in fresh runs as long as the planned one; and "
            "their ratio (not in the paper). The theory assumes a Gaussian posterior: where an arm leaves "
            "the neighbourhood of the mode, or the posterior is far from Gaussian, the ratio is far from 1."
        ),
    ),
    "horizons": Artifact(
        "foreseen:horizons",
        ("horizons", "reference"),
        title="Arms chosen for short and for long runs",
        needs_reference=True,
        needs_horizons=True,
        caption=(
            "The arms that MAMBA (default) and theory choose for runs of several lengths from the same tuning budget "
            "(not in the paper), the errors that they predict, and the error of each choice in fresh runs "
            "of the longest length: the benefit of knowing how long the run will be."
        ),
    ),
    "gaussian_ladder": Artifact(
        "ladder:gaussian_ladder",
        ("ladder",),
        title="Tuners on Gaussians of growing dimension",
        caption=(
            "Tuners on Gaussian posteriors of growing dimension (not in the paper), on which exact linear theory "
            "gives every arm's expected error without a run: the error of the arm that a tuner chose, its "
            "ratio to the error of the oracle's arm and to the least error in the grid, the worst race, "
            "the error of the marginal standard deviations, and how often the chosen arm has left the "
            "posterior or hardly moves. A good tuner stays below 1.25 times the oracle's error and never "
            "chooses such arms."
        ),
    ),
    "published_comparison": Artifact(
        "comparisons:published_comparison",
        ("evaluation", "published", "reference"),
        title="Comparison with the published numbers",
        without=NOT_IN_PAPER,
        caption=(
            "This run beside the paper: results and hyperparameters, ours, as published (Tables 5 to 10), and "
            "the ratio of the two. The published numbers come from other hardware and from code with known "
            "defects, such as an explicit integrator in SGHMC, so equality is not expected. The published "
            'RMSE, ECE and MCE are by definitions of their own; the rows "as published" use the same.'
        ),
    ),
    "signal_of_width": Artifact(
        "sensitivity_table:signal_of_width",
        ("sensitivity",),
        title="How well the discrepancies see a wrong width",
        caption=(
            "How well the discrepancies see a wrong width (not in the paper): by how much the value for "
            "draws half or one and a half times as wide as the target exceeds the value for exact draws, "
            "in standard deviations of one value, by dimension D and number n of draws. Above 2 one value "
            "distinguishes them from exact draws; below 0 the judge prefers them."
        ),
    ),
    "xi_by_block": Artifact(
        "tables:xi_by_block",
        ("evaluation", "reference"),
        title="Relative error of the standard deviations, by block of the parameters",
        model="pmf",
        needs_reference=True,
        caption=(
            "Probabilistic matrix factorisation: relative error of the posterior standard deviations by block "
            "of the parameters (not in the paper): features of users and items, their means, and the "
            "logarithms of their precisions. Of the 52,580 parameters all but 80 are features, so the error "
            "of all of them says nothing about the rest."
        ),
    ),
    "ood": Artifact(
        "entropies:ood",
        ("evaluation",),
        title="Out-of-distribution images",
        model="bnn",
        caption=(
            "Out-of-distribution images (not in the paper's tables): mean entropy of the network's averaged "
            "predictions on MNIST's test set and on images without a digit, and the AUROC of this entropy as a "
            "detector of the latter. If no source of the second set answered, the table says so."
        ),
    ),
    "modes": Artifact(
        "reference:modes",
        ("reference",),
        title="The modes",
        caption=(
            "The modes (not in the paper): where chains start and control variates are centred. −log π "
            "without constants, norm of its gradient, the length of the remaining Newton step in posterior "
            "standard deviations beside √D, the distance of draws from a mode; steps of the optimisers; "
            "and the error of "
            "the mode's predictions on the test set."
        ),
    ),
    "reference": Artifact(
        "reference:reference",
        ("reference",),
        title="How well the reference is sampled",
        needs_reference=True,
        caption=(
            "How well the reference is sampled (not in the paper): NUTS by block of parameters and of the "
            "quantities that tuners are judged by, with R-hat, effective sample size and Monte Carlo "
            "error. Errors of standard deviations are against this reference, and can only be as accurate "
            "as it is."
        ),
    ),
    "cost": Artifact(
        "timings:cost",
        ("cost",),
        title="What a step costs",
        caption=(
            "What a step costs (not in the paper): milliseconds of one step of a single chain for every "
            "sampler, batch size n and number L of leapfrog steps in the grids, measured alone on the machine "
            "and without compilation. These costs convert seconds to steps. If the run was given a cost "
            "table, its costs are shown beside the costs measured here, with their ratio: above 1 this "
            "machine is slower. The number of steps then comes from the given table, so the run gives the "
            "same numbers on another machine."
        ),
    ),
    "timings": Artifact(
        "timings:timings",
        (
            *("data", "reference", "cost", "tuning", "evaluation", "screen", "regret", "clocks"),
            *("estimates", "widths", "horizons", "ladder", "sensitivity"),
        ),
        title="The cost of the run",
        caption=(
            "The cost of the run (not in the paper), by rule of the workflow: number of jobs; seconds of "
            "wall clock of all jobs, of the median job and of the longest job; the share of start-up and "
            "of compilation; and the peak memory of a job. Jobs that download data and jobs that make "
            "tables and figures are not counted. Untimed jobs run in parallel, so the run takes less time "
            "than the sum."
        ),
    ),
} | PAPER_TABLES
