"""The figures of the study: the maker, the inputs and the caption of each."""

# ruff: noqa: RUF001 - captions have Greek letters and signs of mathematics

from sgtune.study.report.artifact import Artifact

__all__ = ["FIGURES"]

AT_TEST_SET = "†: a tuner that judges arms by the test set."
BAND = (
    "mean over replicates (for a KSD the root of the mean of its unbiased square, left out where this mean "
    "is not positive), with a band of two standard errors of this mean to either side if there are three runs or more; "
    "runs that share the arm of one tuning run count as independent, so with few tuning runs the band is too narrow. "
    "Small markers, without a band: means that are less than two standard errors above zero. Where some replicates are "
    "not finite, "
    "the mean is over the others and the panel says so; it also names tuners that found no arm, because "
    "all their arms diverged."
)
DISTURBED = (
    "independent draws from known targets with one error at a time, a column per kind of error, a row per "
    "dimension D with as many draws n as the study's judges have there, and a line per judge: by how much "
    "its value exceeds its value for exact draws, in standard deviations of one value, with a band of two "
    "standard errors. Within the grey band one value does not distinguish them from exact draws. All "
    "widths, "
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
            'ours. "All samples" are at most `estimates.max_points` samples, spread evenly '
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
            "the posterior's standard deviations, their discrepancy over the discrepancy of exact draws "
            "(width 1), for the models with a NUTS reference. At width 0 the chain never moves. On a "
            "posterior much narrower than 1, such a chain has a lower KSD than exact draws in raw "
            "coordinates with the paper's kernel; in coordinates scaled by the posterior the lowest value "
            "should be at width 1. Rings mark the lowest value of each line."
        ),
    ),
    "sensitivity": Artifact(
        "sensitivity_figure:sensitivity",
        ("sensitivity",),
        title="Which errors of a chain's density each discrepancy sees",
        options={"name": "sensitivity", "statistic": "square"},
        caption=(
            f"Which errors of a chain's density each discrepancy sees (not in the paper): {DISTURBED} The "
            "value of a judge is the mean of its terms over pairs of two different draws, an unbiased "
            "estimate of its square, by which the bias of a long chain is estimated; for the virial it is "
            "the jackknife estimate. Of up to 100 draws in 1,000 dimensions or more, KSD with a kernel of width 1 "
            "(in posterior sds) does not see those that are too wide, because no two of them are near each other, "
            "and 100 draws that are too narrow it sees less than in 10 dimensions. With a kernel of width √D it "
            "sees draws that are too narrow still less, because its noise grows with the kernel. Neither sees one "
            "coordinate among many, or a frozen common mode. FSSD sees shifts, and chains that hardly move. "
            "PSD sees widths, shifts and the common mode, but not one coordinate among many. The virial sees "
            "widths in any dimension and large shifts, but above 200 dimensions no correlation. None sees the "
            "weights of modes that are far apart: the scores are the same."
        ),
    ),
    "sensitivity_values": Artifact(
        "sensitivity_figure:sensitivity",
        ("sensitivity",),
        title="Which errors of a few draws each discrepancy sees",
        options={"name": "sensitivity_values", "statistic": "value"},
        caption=(
            f"Which errors of a few draws each discrepancy sees (not in the paper): {DISTURBED} The value "
            "of a judge includes the terms of each draw with itself. In a KSD of few "
            "draws in many dimensions these terms are nearly the whole sum, and they grow with the width "
            "of the draws, for any width of the target: in the orange area at the bottom the judge prefers "
            "draws that are too narrow to exact ones."
        ),
    ),
    "regret_dots": Artifact(
        "regret_figures:regret_dots",
        ("regret",),
        title="Regret of the tuners, by sampler",
        needs_regret=True,
        caption=(
            "Regret of each tuner, a panel per model and a row per sampler: mean loss, in fresh runs, of "
            "the arms that it chose, over the mean loss of the oracle's arms (dashed: 1). The oracle runs "
            "the same race but sees the true loss of its own draws. Bars: two standard errors to either "
            "side. The loss is the main loss of the table. Grey: a random arm (|) and a chain that never "
            "moves (×). The grey strip has tuners whose arms diverged in every fresh run, and tuners that "
            f"found no arm because all their arms diverged. {AT_TEST_SET}"
        ),
    ),
    "gaussian_ladder_dots": Artifact(
        "ladder_figure:gaussian_ladder_dots",
        ("ladder",),
        title="Tuners on Gaussians, by dimension",
        caption=(
            "Expected error of the arms that each tuner chose on Gaussian posteriors, over the oracle's "
            "expected error, by dimension, a panel per kind of curvatures: mean over races with bars of "
            "two standard errors to either side, and the worst race as a small hollow mark (× if its arm "
            "has left the posterior, – if it hardly moves). Dashed: the oracle; dotted: 1.25 times its "
            "error, the bound for a good tuner."
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
            "of the entropy as a detector of images without a digit, with a bar of one standard deviation "
            "over "
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
            f"discrepancy that sees a wrong spread. {AT_TEST_SET}"
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
            "laid out as Fig. 5. It comes first because log-loss is a proper score, and the calibration "
            f"error of that figure is not. {AT_TEST_SET}"
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
