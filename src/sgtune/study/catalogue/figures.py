"""The figures of the study: who makes each, from what, and what a report says of it."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.catalogue.artifact import Artifact

__all__ = ["FIGURES"]

AT_TEST_SET = "†: a tuner that judges arms by the test set."
BAND = (
    "mean over replicates (of a KSD the root of the mean of its unbiased square, left out where that is not "
    "positive), with a band of two standard deviations to either side, tuning included, which goes on below the panel "
    "where it reaches zero. Where some replicates are not finite, the mean is of the others and the panel says so; it "
    "also names tuners that found no arm, because all that they tried diverged."
)
DISTURBED = (
    "independent draws of known targets, disturbed in one way at a time, a column per way, a row per "
    "dimension D with as many draws n as the study's judges have there, and a line per judge: by how much "
    "its reading exceeds that of exact draws, in standard deviations of one reading, with a band of two "
    "standard errors. Within the grey band one reading does not tell them from exact draws. All widths, "
    "location, one coordinate: N(0, I). Common mode: every two coordinates correlated by 0.9. Mixture "
    "weights: two Gaussians eight sds apart, of equal weight."
)

FIGURES: dict[str, Artifact] = {
    "figure1": Artifact(
        "figures:figure1",
        ("estimates",),
        title="Figure 1. Discrepancies against the step size",
        caption=(
            "Discrepancies of SGLD samples against the step size (Fig. 1 of the paper, for KSD), a column per "
            "model, each estimated in four ways: with gradients of the whole data or of the minibatches, from "
            "all samples or from a thinned chain. FSSD and the KSD in coordinates scaled by the posterior are "
            'ours. "All samples" are at most as many as the key `estimates.max_points` says, spread evenly '
            'over the chain, and "thinned" every `estimates.thin`-th of them. Points that are not finite are '
            "left out."
        ),
    ),
    "figure2": Artifact(
        "figures:figure2",
        ("estimates",),
        title="Figure 2. Discrepancies against the batch size",
        caption=(
            "Discrepancies of SGLD samples against the batch size in % of the training data, at a fixed step "
            "size (Fig. 2 of the paper, for KSD), a column per model, each estimated in the four ways of Fig. "
            "1."
        ),
    ),
    "widths": Artifact(
        "width_figure:widths",
        ("widths",),
        title="What the discrepancies can see: draws that are too narrow or too wide",
        needs_reference=True,
        caption=(
            "What the discrepancies can see (not in the paper): draws shrunk or stretched to a multiple of "
            "the posterior's standard deviations, their discrepancy over that of exact draws (width 1), for "
            "the models with a NUTS reference. At width 0 the chain never moves. On a posterior much narrower "
            "than 1 it scores better than exact draws in raw coordinates with the paper's kernel; in "
            "coordinates scaled by the posterior the lowest value belongs at width 1. Rings mark the lowest "
            "value of each line."
        ),
    ),
    "sensitivity": Artifact(
        "sensitivity_figure:sensitivity",
        ("sensitivity",),
        title="What each discrepancy sees of the law that draws are from",
        options={"name": "sensitivity", "statistic": "square"},
        caption=(
            f"What each discrepancy sees of the law that draws are from (not in the paper): {DISTURBED} A "
            "judge is read by the mean of its terms over pairs of two different draws, which has no bias "
            "for its square: so the bias of a long chain is estimated; the virial by its jackknife. In many "
            "dimensions KSD with a kernel of "
            "width 1 (in posterior sds) does not see draws that are somewhat too narrow or too wide, for no "
            "two of them are near each other, and with a kernel of width √D it does not see them either, "
            "for its noise grows with the kernel; neither sees one coordinate among many, or a common mode "
            "that is frozen. FSSD sees shifts and little else. PSD sees widths, shifts and the common mode, "
            "but not one coordinate among many. The virial sees widths in any dimension and large shifts, but "
            "above 200 dimensions no correlation. None sees the weights of modes that are far apart: the "
            "scores are the same."
        ),
    ),
    "sensitivity_values": Artifact(
        "sensitivity_figure:sensitivity",
        ("sensitivity",),
        title="What each discrepancy says of a few draws",
        options={"name": "sensitivity_values", "statistic": "value"},
        caption=(
            f"What each discrepancy says of a few draws (not in the paper): {DISTURBED} A judge is read by "
            "its value of these draws, which has the terms of each draw with itself, too. In a KSD of few "
            "draws in many dimensions these are nearly all, and they grow with the width of the draws "
            "whatever that of the target is: in the red area the judge prefers draws that are too narrow to "
            "exact ones."
        ),
    ),
    "regret_dots": Artifact(
        "regret_figures:regret_dots",
        ("regret",),
        title="Regret of the tuners, by sampler",
        caption=(
            "Regret of each tuner, a panel per model and a row per sampler: mean loss of the arms that it "
            "chose, in fresh runs, over that of the arms that the oracle chose (dashed: 1), which runs the same "
            "race but is told the true loss of its own draws; bars of two standard errors to either side. The "
            "loss is the table's headline. Grey: a random arm (|) and a chain that never moves (×). In the grey "
            "strip stand tuners whose arms diverged in every fresh run, and those that found none because all "
            f"that they tried diverged. {AT_TEST_SET}"
        ),
    ),
    "gaussian_ladder_dots": Artifact(
        "ladder_figure:gaussian_ladder_dots",
        ("ladder",),
        title="Tuners on Gaussians, by dimension",
        caption=(
            "Expected error of the arms that each tuner chose on Gaussian posteriors over that of the oracle's "
            "arms, by the dimension, a panel per kind of curvatures: mean over races with bars of two standard "
            "errors to either side, and the worst race as a small hollow mark (× if its arm has left the "
            "posterior, – if it hardly moves). Dashed: the oracle; dotted: 1.25 times its error, the bound that a "
            "good tuner keeps."
        ),
    ),
    "ood_entropy": Artifact(
        "entropy_figure:ood_entropy",
        ("evaluation",),
        title="Entropy on out-of-distribution images",
        model="bnn",
        caption=(
            "Entropy of the network's averaged predictions on MNIST's test set and on out-of-distribution "
            "images, a row per sampler and a line per tuner: densities, mean over replicates, and the AUROC "
            "of the entropy as a detector of images of no digit, with a bar of one standard deviation over "
            "replicates (dashed: 0.5, no detector). If no source of these images answered, the figure says "
            f"so. {AT_TEST_SET}"
        ),
    ),
    "figure3": Artifact(
        "figures:run_time",
        ("evaluation",),
        title="Figure 3. Logistic regression: KSD against run time",
        model="logistic",
        options={"name": "figure3", "metric": "ksd"},
        caption=(
            "Logistic regression: KSD against run time, a panel per sampler and a line per tuner (Fig. 3 of the "
            f"paper): {BAND} {AT_TEST_SET}"
        ),
    ),
    "figure3_scaled": Artifact(
        "figures:run_time",
        ("evaluation",),
        title="Figure 3, scaled. Logistic regression: KSD scaled against run time",
        model="logistic",
        options={"name": "figure3_scaled", "metric": "ksd_scaled"},
        caption=(
            "Logistic regression: KSD in coordinates scaled by the posterior against run time, laid out as Fig. 3: the "
            f"discrepancy that sees whether a sampler has the right spread. {AT_TEST_SET}"
        ),
    ),
    "figure4": Artifact(
        "figures:run_time",
        ("evaluation",),
        title="Figure 4. PMF: KSD against run time",
        model="pmf",
        options={"name": "figure4", "metric": "ksd"},
        caption=(
            "Probabilistic matrix factorisation: KSD against run time, a panel per sampler and a line per tuner "
            f"(Fig. 4 of the paper): {BAND} {AT_TEST_SET}"
        ),
    ),
    "figure4_scaled": Artifact(
        "figures:run_time",
        ("evaluation",),
        title="Figure 4, scaled. PMF: KSD scaled against run time",
        model="pmf",
        options={"name": "figure4_scaled", "metric": "ksd_scaled"},
        caption=(
            "Probabilistic matrix factorisation: KSD in coordinates scaled by the posterior against run time, "
            f"laid out as Fig. 4. {AT_TEST_SET}"
        ),
    ),
    "figure5_log_loss": Artifact(
        "figures:run_time",
        ("evaluation",),
        title="Before Figure 5. Neural network: log-loss against run time",
        model="bnn",
        options={"name": "figure5_log_loss", "metric": "log_loss"},
        caption=(
            "Bayesian neural network: log-loss of the averaged predictions on the test set against run time, "
            "laid out as Fig. 5. It leads because it is a proper score, which the calibration error of that "
            f"figure is not. {AT_TEST_SET}"
        ),
    ),
    "figure5": Artifact(
        "figures:run_time",
        ("evaluation",),
        title="Figure 5. Neural network: ECE (%) against run time",
        model="bnn",
        options={"name": "figure5", "metric": "ece_percent"},
        caption=(
            "Bayesian neural network: expected calibration error in percent against run time, a panel per "
            f"sampler and a line per tuner (Fig. 5 of the paper): {BAND} ECE is not proper: a chain that drifts "
            f"from too little to too much confidence crosses zero on its way. {AT_TEST_SET}"
        ),
    ),
}
