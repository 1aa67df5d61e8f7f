"""The study of AdamMCMC (Bieringer et al. 2023): its tables and figures in print."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.catalogue.artifact import Artifact

__all__ = ["FIGURES", "KINDS", "LABEL", "SHOWN", "TABLES"]

LABEL = "AdamMCMC"
KINDS = ("costs", "acceptance", "bias", "distances", "races", "evaluations", "data", "settings")

TABLES: dict[str, Artifact] = {
    "adam_prolate": Artifact(
        "acceptance_table:adam_prolate",
        ("acceptance", "costs"),
        title="AdamMCMC: what noise along the update does",
        study="adam_mcmc",
        caption=(
            "Acceptance rate of AdamMCMC with and without noise along Adam's update, the second moment of its draws"
            " in posterior sds, and effective sample size per second, on Gaussians of growing dimension D and on "
            "the posterior of the logistic regression. The paper claims that the prolate proposal raises "
            "acceptance; the second moment tells what that is worth."
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
            "Second moment of draws of N(0, I), 1 if they are right, of AdamMCMC as the paper has it, with "
            "minibatches in its gradients, with a test on minibatches, and with the correction that makes it exact,"
            " by γ / s and D."
        ),
    ),
    "adam_regret": Artifact(
        "regret_table:adam_regret",
        ("races",),
        title="Samplers with a Metropolis test: regret of their tuners",
        study="adam_mcmc",
        caption=(
            "Expected regret on the logistic regression of what the default tuner, MAMBA with KSD, and the distance"
            " of the acceptance rate from its optimum (proposed in Sect. 5.1 of the MAMBA paper) choose for "
            "AdamMCMC, MALA and HMC."
        ),
    ),
    "adam_choices": Artifact(
        "regret_table:adam_choices",
        ("races",),
        title="Samplers with a Metropolis test: what was chosen",
        study="adam_mcmc",
        caption=(
            "The hyperparameters that each race chose for AdamMCMC, MALA and HMC on the logistic regression: what "
            "is behind the table of regret."
        ),
    ),
    "adam_evaluation": Artifact(
        "evaluation_table:adam_evaluation",
        ("evaluations",),
        title="AdamMCMC at equal seconds",
        study="adam_mcmc",
        caption=(
            "AdamMCMC against stochastic-gradient samplers without a test, all tuned by the default tuner, at equal"
            " seconds on the logistic regression and on the network for MNIST: samples made, discrepancy, errors of"
            " posterior sds, accuracy, calibration and log-loss, and those of the MAP."
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
            "column per target: acceptance rate, effective sample size per second of the law that the chain has, "
            "and the mean square of its draws in posterior sds, 1 where they are right. Bars: two standard errors."
        ),
    ),
    "adam_bias_curves": Artifact(
        "theory_figures:adam_bias_curves",
        ("bias",),
        title="AdamMCMC: bias against γ / s",
        study="adam_mcmc",
        caption=(
            "Second moment of draws of N(0, I) against the ratio of AdamMCMC's step γ to its noise s, a panel per "
            "dimension: the bias of the paper's approximation falls with the ratio, that of a test on minibatches "
            "does not, and the exact variant has none. Bars: two standard errors."
        ),
    ),
    "adam_distances": Artifact(
        "theory_figures:adam_distances",
        ("distances",),
        title="Total variation to the target against steps",
        study="adam_mcmc",
        caption=(
            "Total variation to a density with bounded gradients against the number of steps from one point, in log"
            " scale, where the paper's Theorem 2 has a straight line: of MALA from its transition matrix, and of "
            "MALA and AdamMCMC from histograms of many chains, down to what as many exact draws would have, or to "
            "the sampler's bias."
        ),
    ),
}
"""By name, in the order of print."""

SHOWN = (
    "adam_acceptance_curves",
    "adam_prolate",
    "adam_bias_curves",
    "adam_distances",
    "adam_regret",
    "adam_evaluation",
)
