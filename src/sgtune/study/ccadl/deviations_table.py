"""The differences of the study from its paper, and the reasons."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from collections.abc import Iterator, Mapping

from sgtune.study.ccadl.artifacts import METHODS, SETS
from sgtune.study.mamba.settings_said import listed, number
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.layout import Cell, Row, Table
from sgtune.study.report.records import Records, need

__all__ = ["ccadl_deviations"]

COLUMNS = {"paper": "The paper", "run": "This run", "why": "Why"}
WORDS = tuple[str, str, str, str, str]
"""Experiment, setting, the paper's value, this run's value, and the reason."""

ALL, NORMAL, LOGISTIC, DRBM = "All", "Normal", "Logistic regression", "Discriminative RBM"

ALWAYS: tuple[WORDS, ...] = (
    (
        ALL,
        "Covariance of the gradient noise",
        "Σ = N² V / n (Eq. 17)",
        "Σ = (N² / n) (1 − n / N) V",
        "Minibatches are drawn without replacement, so that the noise vanishes at n = N.",
    ),
    (
        ALL,
        "Where A I − h Σ / 2 is not positive semi-definite",
        "not said",
        "its negative eigenvalues are set to 0, and the share of such steps is reported",
        "SGHMC (Eq. 14) has no noise of negative variance to add.",
    ),
    (
        NORMAL,
        "A step below γ = 0",
        "not said",
        "reflected: the density is continued evenly, and |γ| is kept",
        "The posterior has no density there. For a continuous path reflection would change nothing.",
    ),
    (
        NORMAL,
        "Prior of μ",
        "N(μ | 0, γ), γ the variance",
        "γ the precision",
        "The paper's own gradients and posterior are for a precision.",
    ),
    (
        LOGISTIC,
        "Random projection",
        "100 dimensions; neither scale nor seed is given",
        "entries from N(0, 1 / 100), pixels from 0 to 1, one seed",
        "h and A depend on the scale of the inputs.",
    ),
    (
        LOGISTIC,
        "Start of the curves",
        "not said",
        "a draw of the prior, another one for each run",
        "The curves show how fast chains converge from there.",
    ),
    (
        LOGISTIC,
        "Start of the long chains",
        "where the test log-likelihood stabilises, after a burn-in",
        "the MAP, then a warm-up that is not kept",
        "The start is the same for all samplers, and none has to be judged to be stable.",
    ),
    (
        LOGISTIC,
        "SGHMC's contour",
        "beyond the figure, and left out",
        "drawn; how often its noise is clipped is in the table of errors",
        "The paper does not say what its SGHMC does where A I − h Σ / 2 is not positive semi-definite.",
    ),
    (
        LOGISTIC,
        "Posterior mean so far",
        "the paper does not say of which draws",
        "of the last half of the draws",
        "A mean of all draws would always include the transient from the start.",
    ),
    (
        LOGISTIC,
        "Ground truth",
        "standard HMC, 10 runs",
        "NUTS, with R-hat and effective sample sizes",
        "It tunes itself, and the table of errors shows its accuracy.",
    ),
    (
        DRBM,
        "Test error",
        "“using posterior mean”",
        "of class probabilities averaged over draws, not of the mean of the parameters",
        "Hidden units can change places, so that a mean of parameters need not be a model.",
    ),
    (
        DRBM,
        "Prior",
        "not said",
        "N(0, 1) for every weight and bias",
        "A prior is needed; this is the prior of the logistic regression.",
    ),
    (
        DRBM,
        "Connect-4's training rows",
        "54,046; the paper does not say which",
        "54,046 by a seeded shuffle",
        "LIBSVM's file is not split.",
    ),
)

H_AND_A = "The paper's values are only in a figure, and would differ for inputs of another scale."


def _settings(section: Mapping) -> Iterator[WORDS]:
    """The differences that the configuration sets."""
    normal, logistic, drbm = section["normal"], section["logistic"], section["drbm"]
    if normal["steps"] != 1_000_000:
        budget = "Less of it takes less time."
        yield (
            NORMAL,
            "Draws",
            "1,000,000",
            f"{normal['steps']:,} in each of {normal['replicates']} chains",
            budget,
        )
    else:
        several = "Errors of a single run hardly show which sampler is better."
        yield NORMAL, "Runs", "not said", f"{normal['replicates']}, of 1,000,000 draws each", several
    if normal["standardised"]:
        luck = "Times in steps then do not depend on the draw of the data set."
        yield NORMAL, "Data", "draws of N(0, 1)", "shifted and scaled to mean 0 and variance 1", luck
    yield LOGISTIC, "h", "not in the text", listed(logistic["step_sizes"]), H_AND_A
    frictions = f"{listed(logistic['frictions'])}; ellipses {number(logistic['draws']['friction'])}"
    yield LOGISTIC, "A", "not in the text; ellipses 10", frictions, H_AND_A
    draws = logistic["draws"]
    total = draws["steps"] * draws["replicates"]
    words = f"{total:,} of {draws['replicates']} chains"
    yield LOGISTIC, "Draws behind an ellipse", "1,000,000", words, "Several chains show the accuracy."
    if "sghmc" in logistic["samplers"]:
        yield (
            LOGISTIC,
            "Root of the noise in SGHMC's long chains",
            "not said",
            "recomputed after 1% of the running covariance's memory; in the curves in every step",
            "Where noise is clipped it needs the eigenvectors of a 100 × 100 matrix.",
        )
    sizes = "; ".join(f"{SETS[name]} {listed(drbm['step_sizes'][name])}" for name in drbm["sets"])
    yield DRBM, "h", "not in the text", sizes, H_AND_A
    yield DRBM, "A", "not in the text", listed(drbm["frictions"]), H_AND_A
    draws = f"{drbm['draws_per_reading']} between two of {drbm['readings']} readings of the error"
    yield (
        DRBM,
        "Draws behind a prediction",
        "not said",
        draws,
        "A prediction for all test data costs many steps.",
    )
    yield DRBM, "Minibatch", "500 to 1,000", number(drbm["batch_size"]), "One size for all sets."
    yield DRBM, "Passes", "not in the text", number(drbm["passes"]), "They are on the axis of a figure."
    if drbm["burn_in"] != 0.2:
        yield (
            DRBM,
            "Burn-in",
            "20% of the passes",
            f"{100 * drbm['burn_in']:g}%",
            "It is set by the configuration.",
        )
    named = {*normal["samplers"], *logistic["samplers"], *drbm["samplers"]}
    if ours := [METHODS[name].label for name in METHODS if name in named and not METHODS[name].in_paper]:
        later = "A symmetric splitting of the same dynamics (after Wei and Shang, arXiv 2512.24515)."
        yield ALL, "Further samplers", "none", ", ".join(ours), later
    if section["data"]["simulated"] is not None:
        quick = "For tests: no download."
        yield (
            ALL,
            "Data sets",
            "MNIST, LIBSVM's",
            f"{section['data']['simulated']:,} simulated rows of each",
            quick,
        )


def ccadl_deviations(records: Records) -> Table:
    """The differences of the study from its paper: by its configuration, and in every run."""
    section = need(records, "settings", "ccadl_deviations")[0]["configuration"]["ccadl"]
    order = [ALL, NORMAL, LOGISTIC, DRBM]
    found = sorted([*_settings(section), *ALWAYS], key=lambda row: order.index(row[0]))
    return Table(
        name="ccadl_deviations",
        title=artifact("ccadl_deviations").title,
        caption="Where this study differs from its paper (Shang et al. 2015), or the paper does not say, "
        "and why: for each experiment first the differences that its configuration sets.",
        stub=("Experiment", "What"),
        columns=tuple(("", heading) for heading in COLUMNS.values()),
        rows=tuple(
            Row(
                (experiment, what),
                tuple(
                    Cell("", "", "", column, detail=what, text=text)
                    for column, text in zip(COLUMNS, words, strict=True)
                ),
            )
            for experiment, what, *words in found
        ),
        is_prose=True,
    )
