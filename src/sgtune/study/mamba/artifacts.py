"""The tables and figures of the study of MAMBA (Coullon et al. 2023). Imports nothing heavy."""

from sgtune.study.catalogue import MODELS, TUNERS
from sgtune.study.report.artifact import Artifact, Study

JUDGES = {"ksd": "KSD", "ksd_wide": "KSD, wide", "fssd": "FSSD", "psd": "PSD", "virial": "Virial"}
"""The discrepancies of `sgtune.study.experiments.discrepancies`; the wide KSD has a kernel of width √D."""

KINDS = {
    "axis": "Along the axes",
    "axis-narrow": "Along the axes, narrow",
    "rotated": "Rotated",
    "equicorrelated": "Equicorrelated",
}
"""The curvatures of the ladder of Gaussians, in the order of print."""

XI = "relative_sd_error_x100"
CALIBRATION = ("ece_percent", "mce_percent")
KSDS = ("ksd_se", "ksd_floor", "ksd_scaled", "ksd_scaled_se", "ksd_scaled_floor")
FURTHER = {
    "logistic": ("xi_rel_x100", "xi_white_x100", *KSDS),
    "pmf": ("xi_rel_x100", "functional_error", *KSDS, "rmse_as_published"),
    "bnn": ("log_loss", "brier", "ece_as_published_percent", "mce_as_published_percent"),
}
"""Metrics of each model that are in no table of the paper."""

NOT_IN_PAPER = tuple(name for name, entry in TUNERS.items() if not entry.in_paper)
ALL_BUT_THEORY = tuple(name for name in TUNERS if name != "theory")
BY_SAMPLER = {"rows": ("origin", "tuner", "metric"), "columns": ("sampler",)}
BY_TUNER = {"rows": ("origin", "sampler", "metric"), "columns": ("tuner",)}
OF_ARMS = ("evaluation", "reference", "widths")
OF_TUNING = {"kinds": ("tuning",), "rows": ("sampler", "tuner"), "columns": ("detail", "metric")}
OF_ESTIMATES = {"maker": "figures:estimates", "kinds": ("estimates",)}

TABLES = {
    "table4": Artifact(
        maker="comparison:tuned",
        kinds=("tuning",),
        title="Table 4. What each tuner tunes",
        rows=("origin", "sampler"),
        columns=("tuner",),
    ),
    "deviations": Artifact(
        maker="comparison:deviations",
        kinds=("settings", "paper_settings"),
        title="Differences from the paper",
        rows=("metric", "model"),
        columns=("detail",),
        stub={"metric": "Key"},
        is_prose=True,
        needs=("paper",),
    ),
    "tuning_time": Artifact(
        maker="costs:tuning", title="What tuning costs", options={"what": "time"}, **OF_TUNING
    ),
    "tuning_parts": Artifact(
        maker="costs:tuning", title="Where the time of tuning goes", options={"what": "parts"}, **OF_TUNING
    ),
    "clocks": Artifact(
        maker="comparison:clocks",
        kinds=("clocks", "reference"),
        title="Seconds by measured costs and by the wall clock",
        rows=("metric",),
        columns=("detail",),
    ),
    "headline": Artifact(
        maker="regret:headline",
        kinds=("regret", "reference"),
        title="Regret in short",
        rows=("tuner",),
        columns=("model", "detail"),
        needs=("regret",),
    ),
    "regret": Artifact(
        maker="regret:regret",
        kinds=("regret", "reference"),
        title="Regret of the tuners",
        rows=("detail", "tuner", "metric"),
        columns=("sampler",),
        stub={"detail": "Runs"},
        needs=("regret",),
    ),
    "theory": Artifact(
        maker="theory:theory",
        kinds=("tuning", "regret", "settings", "reference"),
        title="Predicted and measured errors of the tuner theory",
        rows=("sampler",),
        without=ALL_BUT_THEORY,
        needs=("reference", "regret", "xi_white"),
    ),
    "horizons": Artifact(
        maker="theory:horizons",
        kinds=("horizons", "reference"),
        title="Arms chosen for short and for long runs",
        rows=("sampler", "tuner", "detail"),
        stub={"detail": "Chosen for"},
        needs=("reference", "horizons"),
    ),
    "gaussian_ladder": Artifact(
        maker="theory:gaussian_ladder",
        kinds=("ladder",),
        title="Tuners on Gaussians of growing dimension",
        rows=("dimension", "kind", "tuner"),
        stub={"kind": "Curvatures"},
        parts=("kind", "dimension"),
        needs=("paper",),
    ),
    "published_comparison": Artifact(
        maker="comparison:published_comparison",
        kinds=("evaluation", "published", "reference"),
        title="Comparison with the published numbers",
        rows=("table", "tuner", "sampler"),
        columns=("metric", "whose"),
        parts=("table", "whose"),
        without=NOT_IN_PAPER,
        needs=("paper",),
    ),
    "further_metrics": Artifact(
        maker="accuracy:of_metrics",
        kinds=OF_ARMS,
        title="Further metrics of the tuned samplers",
        options={"metrics": FURTHER},
        rows=("model", "origin", "sampler", "metric"),
        columns=("tuner",),
        needs=("paper",),
    ),
    "signal_of_width": Artifact(
        maker="theory:signal_of_width",
        kinds=("sensitivity",),
        title="How well the discrepancies see a wrong width",
        rows=("width", "metric", "judge"),
        columns=("dimension", "draws"),
        stub={"metric": "By"},
        parts=("judge", "width", "dimension", "draws"),
        needs=("paper",),
    ),
    "xi_by_block": Artifact(
        maker="accuracy:xi_by_block",
        kinds=("evaluation", "reference"),
        title="Relative error of the standard deviations, by block of the parameters",
        rows=("tuner", "detail"),
        columns=("sampler",),
        stub={"detail": "Block"},
        model="pmf",
        needs=("reference",),
    ),
    "ood": Artifact(
        maker="accuracy:of_metrics",
        kinds=("evaluation",),
        title="Out-of-distribution images",
        model="bnn",
        options={"metrics": {"bnn": ("entropy_test", "entropy_ood", "auroc")}},
        **BY_SAMPLER,
    ),
    "modes": Artifact(maker="reference:modes", kinds=("reference",), title="The modes", rows=("model",)),
    "reference": Artifact(
        maker="reference:reference",
        kinds=("reference",),
        title="How well the reference is sampled",
        rows=("model", "detail"),
        stub={"detail": "Block"},
        needs=("reference",),
    ),
    "cost": Artifact(
        maker="costs:cost",
        kinds=("cost",),
        title="What a step costs",
        rows=("model", "sampler", "detail"),
        stub={"detail": "Step"},
    ),
    "timings": Artifact(
        maker="costs:timings",
        kinds=(
            *("data", "reference", "cost", "tuning", "evaluation", "checks", "screen", "regret", "clocks"),
            *("estimates", "widths", "horizons", "ladder", "sensitivity"),
        ),
        title="The cost of the run",
        rows=("detail",),
        stub={"detail": "Rule"},
    ),
}

# Of the model of a user's file.
TABLES |= {
    "own_errors": Artifact(
        maker="accuracy:own_errors",
        kinds=("evaluation", "reference"),
        title="Your model: tuners compared",
        model="own",
        **BY_TUNER,
    ),
    "own_choices": Artifact(
        maker="comparison:chosen",
        kinds=("tuning",),
        title="Your model: hyperparameters chosen",
        model="own",
        **BY_TUNER,
    ),
    "own_check": Artifact(
        maker="accuracy:own_check",
        kinds=("checks",),
        title="Your model: check of the chains, by parameter",
        rows=("sampler", "detail"),
        stub={"detail": "Parameter"},
        model="own",
    ),
}

# Of each model the paper has a table of accuracy in its text, a longer one and one of choices in its appendix.
for model, kinds, (short, of_short), (long, of_long), choices in (
    ("logistic", OF_ARMS, (1, ("ksd", XI)), (6, (XI, "ksd", "accuracy_percent", "n_samples")), 5),
    ("pmf", OF_ARMS, (2, ("ksd", XI)), (8, (XI, "ksd", "rmse", "n_samples")), 7),
    ("bnn", ("evaluation",), (3, CALIBRATION), (10, (*CALIBRATION, "accuracy_percent", "n_samples")), 9),
):
    name = MODELS[model].label
    TABLES |= {
        f"table{short}": Artifact(
            maker="accuracy:of_metrics",
            kinds=kinds,
            title=f"Table {short}. {name}: accuracy of the tuned samplers",
            model=model,
            options={"metrics": {model: of_short}},
            without=("grid-ksd",),  # the paper's text leaves it out
            **BY_SAMPLER,
        ),
        f"table{long}": Artifact(
            maker="accuracy:of_metrics",
            kinds=kinds,
            title=f"Table {long}. {name}: tuners compared",
            model=model,
            options={"metrics": {model: of_long}},
            **BY_TUNER,
        ),
        f"table{choices}": Artifact(
            maker="comparison:chosen",
            kinds=("tuning",),
            title=f"Table {choices}. {name}: hyperparameters chosen",
            model=model,
            **BY_TUNER,
        ),
    }

FIGURES = {
    "figure1": Artifact(
        title="Figure 1. KSD against the step size", options={"varied": "step_size"}, **OF_ESTIMATES
    ),
    "figure2": Artifact(
        title="Figure 2. KSD against the batch size", options={"varied": "batch_size"}, **OF_ESTIMATES
    ),
    "widths": Artifact(
        ("widths",),
        title="What the discrepancies can see: draws that are too narrow or too wide",
        needs=("reference", "paper"),
    ),
    "sensitivity": Artifact(
        ("sensitivity",),
        title="Which errors of a chain's density each discrepancy sees",
        options={"statistic": "square", "disturbances": ("width", "direction")},
        needs=("paper",),
    ),
    "sensitivity_values": Artifact(
        maker="figures:sensitivity",
        kinds=("sensitivity",),
        title="Which widths of a few draws each discrepancy sees",
        options={"statistic": "value", "disturbances": ("width",)},
        needs=("paper",),
    ),
    "regret_dots": Artifact(("regret",), title="Regret of the tuners, by sampler", needs=("regret",)),
}

# The paper's figures of a metric against run time with its tuners, and our tuners beside its main one.
LINES = {
    "logistic": ("mamba-ksd", "mamba-fssd", "grid", "heuristic", "grid-ksd"),
    "pmf": ("mamba-ksd", "grid", "heuristic"),
    "bnn": ("mamba-ksd", "mamba-ksd-smaller", "grid", "grid-smaller", "heuristic"),
}
OURS = ("mamba-ksd", "mamba", "mamba-psd", "mamba-ksd-scaled", "theory")

for name, model, metric, kept, title in (
    ("figure3", "logistic", "ksd", LINES["logistic"], "Figure 3. Logistic regression: KSD"),
    ("figure3_ours", "logistic", "ksd", OURS, "Figure 3, our tuners. Logistic regression: KSD"),
    ("figure3_scaled", "logistic", "ksd_scaled", OURS, "Figure 3, scaled. Logistic regression: KSD scaled"),
    ("figure4", "pmf", "ksd", LINES["pmf"], "Figure 4. PMF: KSD"),
    ("figure5", "bnn", "ece_percent", LINES["bnn"], "Figure 5. Neural network: ECE (%)"),
    ("own_curves", "own", "ksd_scaled", OURS, "Your model: KSD scaled"),
):
    FIGURES[name] = Artifact(
        maker="figures:run_time",
        kinds=("evaluation",),
        title=f"{title} against run time",
        model=model,
        options={"metric": metric},
        without=tuple(tuner for tuner in TUNERS if tuner not in kept),
    )

STUDY = Study("MAMBA", TABLES, FIGURES, names=JUDGES | KINDS)
