"""Differences from the paper or its code that no key of the configuration sets."""

from collections.abc import Sequence
from typing import NamedTuple

from sgtune.study.mamba.paper_settings import HMC, MAMBA, NOT_SAID

__all__ = ["OTHERWISE", "Otherwise"]


class Otherwise(NamedTuple):
    """A difference that no key sets: its subject, the paper's way, ours, and the reason; for one model or for all."""

    what: str
    paper: str
    ours: str
    why: str
    model: str | None = None
    of_tuners: Sequence[str] = ()
    of_samplers: Sequence[str] = ()


CODE = "in its code "

OTHERWISE = (
    Otherwise(
        "Minibatches",
        f"without replacement; {CODE}with",
        "without replacement; arms of one shape share them",
        "arms that advance together are compared on the same data, and are faster",
    ),
    Otherwise(
        "Arms in a race",
        "one after another, by the clock",
        "arms of one shape in lockstep, for the steps that their seconds buy at the measured cost of a step",
        "the same choices from the same seed, in less time; the table of clocks compares the two",
    ),
    Otherwise(
        "Shortest run of an arm",
        NOT_SAID,
        "ten steps, even if they cost more than its budget",
        "a discrepancy of fewer draws is only noise",
        of_tuners=MAMBA,
    ),
    Otherwise(
        "MAMBA: what a survivor keeps",
        f"state and draws (Algorithm 1); {CODE}a new momentum is drawn and only the last rung's draws judge",
        "state and draws",
        "Algorithm 1",
        of_tuners=MAMBA,
    ),
    Otherwise(
        "FSSD",
        f"Eq. (4); {CODE}a U-statistic that may be negative, whose most negative arm wins",
        "Eq. (4)",
        "its sign is noise",
        of_tuners=("mamba-fssd",),
    ),
    Otherwise(
        "Control variates and starts",
        f"at the mode; {CODE}in the evaluation, at the true parameters",
        "at the mode",
        "nobody knows the true parameters",
    ),
    Otherwise(
        "SGHMC: order of updates",
        f"{CODE}a kick by the gradient from before the drift (explicit Euler)",
        "leapfrog",
        "the explicit order is unstable: the paper's heuristic has a KSD of 53,972 and ξ of 30",
        of_samplers=HMC,
    ),
    Otherwise(
        "Heuristic",
        f"h = 1/N; {CODE}1/1,000,000, though 800,000 rows train",
        "h = 1/N",
        "as the paper says",
        "logistic",
        of_tuners=("heuristic",),
    ),
    Otherwise(
        "RMSE",
        f"{CODE}without the root, for single draws",
        "of the mean prediction; the paper's beside it",
        "a published 1.13 is a mean squared error of single draws",
        "pmf",
    ),
    Otherwise(
        "ECE and MCE",
        f"{CODE}averaged log-probabilities, 10 bins over the range of the data, the last one open",
        "averaged probabilities, 15 equal bins on [0, 1]; the paper's beside it",
        "the usual definition",
        "bnn",
    ),
    Otherwise(
        "Out-of-distribution images",
        f"{CODE}MNIST's own test images",
        "images without digits",
        "a detector cannot be tested on the set that the network knows",
        "bnn",
    ),
    Otherwise(
        "Machine",
        "a laptop's CPU, the published SGMCMCJax in a Python loop",
        "as in the footer, compiled loops",
        "seconds buy other numbers of steps",
    ),
)
