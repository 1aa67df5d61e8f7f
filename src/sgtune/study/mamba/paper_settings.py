"""The paper's settings (Sect. 4, App. B) for which the configuration has keys, in words, to compare with a run's."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sgtune.study.mamba.settings_said import (
    data_said,
    every,
    listed,
    number,
    of_nuts_said,
    percent,
    points_said,
    smaller_said,
    tunings_said,
    validation_said,
)

__all__ = ["HMC", "MAMBA", "NOT_SAID", "SETTINGS", "Setting"]

NOT_SAID = "not said"


class Setting(NamedTuple):
    """A setting of the configuration.

    Attributes:
        what: its name.
        ours: its value in words, from `model_settings` and the model's name; None if it does not concern the run.
        paper: the paper's value in words, for each model or for all; a model that is left out is not compared.
        why: the reason why ours differs.
        of_tuners: it concerns only runs with one of these tuners.
        of_samplers: it concerns only runs with samplers whose names start with one of these.
    """

    what: str
    ours: Callable[[Mapping, str], str | None]
    paper: Mapping[str, str] | str
    why: str = ""
    of_tuners: Sequence[str] = ()
    of_samplers: Sequence[str] = ()


SEVERAL = {"logistic": "−1 to −7.5 by 0.5", "pmf": "−2 to −7.5 by 0.5", "bnn": "−2 to −7.5 by 0.5"}
HMC, KSDS = ("sghmc",), ("mamba-ksd", "mamba-fssd")
MAMBA = (*KSDS, "mamba-ece", "mamba-mce", "mamba-accuracy", "mamba-log-loss")
BY_TEST_SET = ("grid", "mamba-ece", "mamba-mce", "mamba-accuracy", "mamba-log-loss")
OWN_THIN = 10
"""Of the paper's tuners, where the configuration leaves it to them (`sgtune.tuning.Tuner.thin`)."""
BUDGET, MEMORY = "the budget of this run", "time and memory of a job"
STAND_FOR = f"{MEMORY}; the KSD of all draws is estimated from them"

SETTINGS = (
    Setting(
        "Data",
        data_said,
        {
            "logistic": "1,000,000 rows, 800,000 of them train, D = 10",
            "pmf": "MovieLens 100K",
            "bnn": "MNIST",
        },
        "the size of this run",
    ),
    Setting(
        "NUTS: draws",
        of_nuts_said(lambda nuts: f"{nuts['n_draws']:,}"),
        {"logistic": "20,000", "pmf": "10,000", "bnn": "no reference"},
        BUDGET,
    ),
    Setting(
        "NUTS: warm-up",
        of_nuts_said(lambda nuts: f"{nuts['n_warmup']:,}"),
        {"logistic": "1,000", "pmf": "1,000", "bnn": "no reference"},
        BUDGET,
    ),
    Setting(
        "NUTS: chains",
        of_nuts_said(lambda nuts: f"{nuts['chains']}"),
        {"logistic": "1", "pmf": "1", "bnn": "no reference"},
        "R-hat needs several chains",
    ),
    Setting(
        "NUTS: greatest tree depth",
        of_nuts_said(lambda nuts: f"{nuts['max_tree_depth']}"),
        {"logistic": "10", "pmf": "10", "bnn": "no reference"},
        BUDGET,
    ),
    Setting(
        "Grid: log₁₀(h)",
        lambda s, m: listed(s["grids"]["log10_step_sizes"]),
        SEVERAL,
        "the arms that this run can afford",
    ),
    Setting(
        "Grid: batches (% of N)",
        lambda s, m: listed([100 * fraction for fraction in s["grids"]["batch_fractions"]]),
        {"logistic": "100, 10, 1, 0.1", "pmf": "100, 10, 1", "bnn": "100, 10, 1"},
        "every arm makes ten steps, and ten steps with whole batches take longer than a small budget",
    ),
    Setting(
        "Grid: leapfrog steps L",
        lambda s, m: listed(s["grids"]["n_leapfrogs"]),
        "5, 10",
        BUDGET,
        of_samplers=HMC,
    ),
    Setting(
        "Grid: friction a",
        lambda s, m: listed(s["grids"].get("friction", [0.01])),
        "0.01",
        "a further axis",
        of_samplers=(*HMC, "sgnht"),
    ),
    Setting(
        "Grid: estimate of the gradient noise b",
        lambda s, m: listed(s["grids"].get("noise_estimate", [0])),
        "0",
        "a further axis",
        of_samplers=HMC,
    ),
    Setting(
        "Smaller grid of step sizes",
        smaller_said,
        {"logistic": "none", "pmf": "none", "bnn": "SGNHT: −5 to −7.5 by 0.5"},
        "the arms that this run can afford",
    ),
    Setting(
        "MAMBA: R",
        lambda s, m: f"{s['mamba']['seconds']:g} s",
        {"logistic": "1 s", "pmf": "10 s", "bnn": "10 s"},
        BUDGET,
        MAMBA,
    ),
    Setting("MAMBA: pruning rate η", lambda s, m: f"{s['mamba']['pruning_rate']}", "3", of_tuners=MAMBA),
    Setting(
        "MAMBA: clock",
        lambda s, m: s["mamba"]["clock"],
        "wall",
        "the steps that seconds buy by the run's one cost table are the same wherever that table is given",
        MAMBA,
    ),
    Setting(
        "MAMBA: draws that judge",
        lambda s, m: every(s["mamba"]["thin"] or OWN_THIN),
        {"logistic": "one in 10"},
        BUDGET,
        MAMBA,
    ),
    Setting(
        "MAMBA: number of draws that judge",
        points_said("mamba", " in the first rung, {pruning_rate} times as many in each later"),
        "all",
        STAND_FOR,
        MAMBA,
    ),
    Setting(
        "MAMBA: data in a score",
        lambda s, m: percent(s["mamba"]["score_fraction"]),
        "100%",
        "time; the subset's scores are corrected at the mode",
        KSDS,
    ),
    Setting(
        "Grid search: steps of an arm",
        lambda s, m: f"{s['grid']['n_steps']:,}",
        {"logistic": "5,000", "pmf": "2,000", "bnn": "1,000"},
        BUDGET,
        ("grid",),
    ),
    Setting(
        "Grid search: batch", lambda s, m: percent(s["grid"]["batch_fraction"]), "10%", BUDGET, ("grid",)
    ),
    Setting(
        "Grid search: noise added to the mode (sd)",
        lambda s, m: f"{s['grid']['start_noise']:g}",
        {"logistic": "0.2", "pmf": "1", "bnn": "1"},
        of_tuners=("grid",),
    ),
    Setting("Grid search: draws that predict", points_said("grid"), NOT_SAID, MEMORY, ("grid",)),
    Setting(
        "Grid-KSD: time of an arm",
        lambda s, m: f"{s['grid_ksd']['seconds']:g} s",
        {"logistic": "1 s"},
        BUDGET,
        ("grid-ksd",),
    ),
    Setting(
        "Grid-KSD: clock",
        lambda s, m: s["grid_ksd"]["clock"],
        {"logistic": "wall"},
        "as for MAMBA",
        ("grid-ksd",),
    ),
    Setting(
        "Grid-KSD: number of draws that judge",
        points_said("grid_ksd"),
        {"logistic": "all"},
        STAND_FOR,
        ("grid-ksd",),
    ),
    Setting(
        "Grid-KSD: data in a score",
        lambda s, m: percent(s["grid_ksd"]["score_fraction"]),
        {"logistic": "100%"},
        "as for MAMBA",
        ("grid-ksd",),
    ),
    Setting(
        "Heuristic: batch",
        lambda s, m: percent(s["heuristic"]["batch_fraction"]),
        "10%",
        BUDGET,
        ("heuristic",),
    ),
    Setting(
        "Heuristic: leapfrog steps L",
        lambda s, m: f"{s['heuristic']['n_leapfrog']}",
        "10",
        BUDGET,
        ("heuristic",),
        HMC,
    ),
    Setting(
        "Tuning runs of a tuner",
        lambda s, m: tunings_said(s),
        "1",
        "choices are random, and their spread belongs to a tuner",
    ),
    Setting(
        "Data on which arms are judged by predictions",
        validation_said,
        "the test data",
        "a tuner that judges by the test data has seen them before the evaluation",
        BY_TEST_SET,
    ),
    Setting(
        "Evaluation: length of a run",
        lambda s, m: f"{s['evaluation']['seconds']:g} s",
        {"logistic": "10 s", "pmf": "20 s", "bnn": "300 s"},
        BUDGET,
    ),
    Setting(
        "Evaluation: runs behind a table",
        lambda s, m: f"{s['evaluation']['replicates']}",
        "1",
        "one run has no spread",
    ),
    Setting(
        "Evaluation: runs behind a curve",
        lambda s, m: f"{s['evaluation']['curves']['replicates']}",
        "10",
        BUDGET,
    ),
    Setting(
        "Evaluation: clock",
        lambda s, m: s["evaluation"]["clock"],
        "wall",
        "the steps that seconds buy by the run's one cost table are the same wherever that table is given",
    ),
    Setting(
        "Evaluation: burn-in",
        lambda s, m: (
            f"the first {percent(s['evaluation']['burn_in'])}" if s["evaluation"]["burn_in"] else "none"
        ),
        {"logistic": "none", "pmf": "removed; the paper does not say how much", "bnn": "what is visible"},
        "a rule for all tuners alike",
    ),
    Setting(
        "Evaluation: draws kept",
        lambda s, m: f"{s['evaluation']['kept_draws']:,} at most, evenly spaced",
        "all",
        MEMORY,
    ),
    Setting(
        "Evaluation: points of a KSD",
        lambda s, m: (
            f"{s['evaluation']['ksd_points']:,} at most" if s["evaluation"]["ksd_points"] else "no KSD"
        ),
        {"logistic": NOT_SAID, "pmf": NOT_SAID, "bnn": "no KSD"},
        "the same for all tuners; the KSD of all draws is estimated from them",
    ),
    Setting(
        "Evaluation: draws that predict",
        lambda s, m: f"{s['evaluation']['prediction_draws']:,} at most",
        NOT_SAID,
        MEMORY,
    ),
    Setting("Figs. 1, 2: length of a chain", lambda s, m: f"{s['estimates']['seconds']:g} s", "1 s", BUDGET),
    Setting("Figs. 1, 2: thinning", lambda s, m: every(s["estimates"]["thin"]), "one in 5"),
    Setting("Fig. 1: batch", lambda s, m: percent(s["estimates"]["batch_fraction"]), "1%"),
    Setting("Fig. 2: log₁₀(h)", lambda s, m: number(s["estimates"]["log10_step_size"]), "−4.5"),
    Setting(
        "Figs. 1, 2: “all samples”",
        lambda s, m: f"{s['estimates']['max_points']:,} at most",
        "all",
        "a KSD is quadratic in them",
    ),
)
