"""The tables and figures of the study of AdamMCMC (Bieringer et al. 2023)."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.report.artifact import Artifact, Study

__all__ = ["FIGURES", "KINDS", "LABEL", "STUDY", "TABLES"]

LABEL = "AdamMCMC"
KINDS = ("costs", "acceptance", "bias", "plane_bias", "distances", "races", "evaluations", "data", "settings")

TABLES: dict[str, Artifact] = {
    "adam_findings": Artifact(
        "findings_table:adam_findings",
        ("acceptance", "costs", "bias", "distances", "races", "evaluations"),
        title="AdamMCMC: findings",
        study="adam_mcmc",
        caption=(
            "What this run shows on the questions that the paper of AdamMCMC leaves open, in sentences that "
            "are made from the records: a difference is claimed only if its 95% interval excludes 0."
        ),
    ),
    "adam_prolate": Artifact(
        "prolate_tables:adam_prolate",
        ("acceptance",),
        title="AdamMCMC: the effect of noise along the update",
        study="adam_mcmc",
        caption=(
            "Acceptance rate of AdamMCMC with and without noise along Adam's update, the second moment of its draws in "
            "posterior sds, and the length of an update, all at one isotropic noise, on "
            "Gaussians of growing dimension D and on the posterior of the logistic regression. The paper claims that "
            "the prolate proposal increases acceptance; the second moment shows the bias of the draws."
        ),
    ),
    "adam_efficiency": Artifact(
        "prolate_tables:adam_efficiency",
        ("acceptance", "costs"),
        title="AdamMCMC: jumps and effective samples per second",
        study="adam_mcmc",
        caption=(
            "Squared jumps and effective sample size per second of AdamMCMC with and without noise along Adam's "
            "update, at one isotropic noise, by the measured costs of a step."
        ),
    ),
    "adam_acceptance": Artifact(
        "acceptance_table:adam_acceptance",
        ("acceptance",),
        title="AdamMCMC: acceptance rate against the noise",
        study="adam_mcmc",
        caption=(
            "Acceptance rate of AdamMCMC by target, by the ratio of its step γ to its isotropic noise s, by its "
            "directional noise s_d, and by s: the numbers behind the figure of acceptance."
        ),
    ),
    "adam_bias": Artifact(
        "bias_table:adam_bias",
        ("bias",),
        title="AdamMCMC: bias of the approximations",
        study="adam_mcmc",
        caption=(
            "Second moment of draws from N(0, I) (exact: 1) for AdamMCMC as in the paper, with "
            "minibatch gradients, with a test on minibatches, and with the correction that makes it exact,"
            " by γ / s and D."
        ),
    ),
    "adam_plane_bias": Artifact(
        "plane_table:adam_plane_bias",
        ("plane_bias",),
        title="AdamMCMC: bias on targets in the plane",
        study="adam_mcmc",
        caption=(
            "Moments of a correlated Gaussian, a banana and a mixture of two Gaussians, over their exact values, for "
            "AdamMCMC as in the paper and with the correction that makes it exact, by γ / s."
        ),
    ),
    "adam_regret": Artifact(
        "regret_table:adam_regret",
        ("races",),
        title="Samplers with a Metropolis test: regret of their tuners",
        study="adam_mcmc",
        caption=(
            "Expected regret on the logistic regression of the arms that the default tuner, MAMBA with "
            "KSD, and the distance of the acceptance rate from its optimum (proposed in Sect. 5.1 of the "
            "MAMBA paper) choose for "
            "AdamMCMC, MALA and HMC, over the best of all arms that ran again, with the acceptance rates of the chosen "
            "arms."
        ),
    ),
    "adam_choices": Artifact(
        "regret_table:adam_choices",
        ("races",),
        title="Samplers with a Metropolis test: hyperparameters chosen",
        study="adam_mcmc",
        caption=(
            "The hyperparameters that each race chose for AdamMCMC, MALA and HMC on the logistic regression: the "
            "choices behind the table of regret."
        ),
    ),
    "adam_evaluation": Artifact(
        "evaluation_table:adam_evaluation",
        ("evaluations",),
        title="AdamMCMC at equal seconds",
        study="adam_mcmc",
        caption=(
            "AdamMCMC against stochastic-gradient samplers without a test, all tuned by the default tuner, at equal"
            " seconds on the logistic regression and on the network for MNIST: samples made, discrepancy, and errors of"
            " posterior sds."
        ),
    ),
    "adam_predictions": Artifact(
        "evaluation_table:adam_predictions",
        ("evaluations",),
        title="AdamMCMC at equal seconds: predictions",
        study="adam_mcmc",
        caption=(
            "Accuracy, calibration and log-loss on the test set of the chains at equal seconds, with the MAP's values "
            "for comparison."
        ),
    ),
    "adam_costs": Artifact(
        "cost_table:adam_costs",
        ("evaluations", "costs"),
        title="AdamMCMC: what a test on all data costs",
        study="adam_mcmc",
        caption=(
            "Measured seconds of a step of AdamMCMC and of the samplers it is compared with, and how many steps of "
            "SGLD a step costs, with the same batch size and with 1% of the data."
        ),
    ),
}
"""By name, in the order of print."""

FIGURES: dict[str, Artifact] = {
    "adam_acceptance_curves": Artifact(
        "acceptance_figure:adam_acceptance_curves",
        ("acceptance", "costs"),
        title="AdamMCMC: acceptance, effective samples and width against the noise",
        study="adam_mcmc",
        caption=(
            "AdamMCMC against its isotropic noise s, in units of the trace T of the curvature to the power −1/2, a "
            "column per target: acceptance rate, squared jump per second, effective sample size per second, and the "
            "mean square of the draws in posterior sds (exact: 1). A stuck chain (acceptance below 0.001) shows only "
            "its acceptance; E x² is shown if the chains moved enough for an estimate after their warm-up, and ESS if "
            "also E x² is near 1 and every chain is long enough. Bars: 95% t intervals."
        ),
    ),
    "adam_bias_curves": Artifact(
        "theory_figures:adam_bias_curves",
        ("bias",),
        title="AdamMCMC: bias against γ / s",
        study="adam_mcmc",
        caption=(
            "Distance of E x² from 1, its value under N(0, I), against the ratio of AdamMCMC's step γ to its noise s, "
            "a panel per dimension. Filled markers: E x² is above 1; open ones: below. By theory the bias of the "
            "paper's approximation vanishes as the ratio goes to 0, but it is not monotone, and without noise along "
            "the update it changes its sign; the bias of a test on minibatches does not vanish. Bars: 95% t intervals "
            "of the chains, after a warm-up; in the shaded area a bias is not distinguished from 0. Points of chains "
            "that are stuck or too slow for an estimate are left out."
        ),
    ),
    "adam_distances": Artifact(
        "theory_figures:adam_distances",
        ("distances",),
        title="Total variation to the target against steps",
        study="adam_mcmc",
        caption=(
            "Total variation to a density with bounded gradients against the number of steps from one point, in log"
            " scale, where the paper's Theorem 2 predicts a straight line: for MALA from its transition "
            "matrix, for MALA and AdamMCMC from histograms of many chains: of θ alone, although AdamMCMC's chain lives "
            "on (θ, m, v). Lines are fitted between the dots, from half of the first distance (with Adam's own b₁ and "
            "b₂ from step 100) down to three times the distance of as many exact draws, or three times the "
            "distance where the curve ends. No rate is shown if the largest misfit in log is above 0.15. Histograms "
            "have a few bins of equal probability, so that their distance is a lower bound. AdamMCMC as in the paper "
            "ends at its bias, which bends its curve: its rate describes the fall, and is not the rate to its own law. "
            "The exact variant with b₁ = 0.5 and b₂ = 0.9 reaches the exact draws. "
            "With Adam's own b₁ = 0.9 and b₂ = 0.999 it falls more slowly once the first hundred steps are over: its "
            "second moment remembers 1,000 steps. A distance of this curve is of the mean law of up to 50 steps, which "
            "has less noise than the law of one."
        ),
    ),
}
"""By name, in the order of print."""

STUDY = Study(LABEL, KINDS, TABLES, FIGURES)
