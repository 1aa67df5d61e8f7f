"""The tables and figures of the study of AdamMCMC (Bieringer et al. 2023)."""

from sgtune.study.report.artifact import Artifact, Study

__all__ = ["NAMES", "STUDY"]

NAMES = {
    **{"adam-mcmc": "AdamMCMC", "mala": "MALA", "hmc": "HMC", "map": "MAP"},
    **{"isotropic": "s_d = 0", "prolate": "s_d = 1", "prolate-batch": "s_d = 1, minibatch gradients"},
    **{"minibatch-test": "s_d = 1, minibatch test", "exact": "s_d = 1, exact"},
    **{"finalist": "Best arm", "acceptance": "Acceptance", "chosen": "Arm of each race"},
    **{f"gaussian-{d}": f"N(0, I), D = {d:,}" for d in (2, 10, 50, 100, 1_000, 10_000)},
}
"""Printed names that only this study has, in the order of print; targets for the configurations that are tracked."""

STUDY = Study(
    label="AdamMCMC",
    kinds=("acceptance", "bias", "distances", "races", "evaluations", "data"),
    tables={
        "adam_acceptance": Artifact(
            "tables:adam_acceptance",
            ("acceptance",),
            title="AdamMCMC: acceptance with and without noise along the update",
            rows=("ratio", "along"),
            columns=("metric", "scale"),
            stub={"model": "Target", "ratio": "γ / s", "along": "s_d"},
            parts=("ratio", "along", "scale"),
        ),
        "adam_bias": Artifact(
            "tables:adam_bias",
            ("bias",),
            title="AdamMCMC: bias of the approximations",
            rows=("sampler", "metric"),
            columns=("detail",),
            stub={"model": "Target", "sampler": "Variant", "metric": "γ / s ="},
        ),
        "adam_regret": Artifact(
            "tables:adam_regret",
            ("races",),
            title="Samplers with a Metropolis test: regret of their tuners",
            rows=("sampler", "tuner"),
            columns=("metric",),
            stub={"tuner": "Chosen by"},
        ),
        "adam_choices": Artifact(
            "tables:adam_choices",
            ("races",),
            title="Samplers with a Metropolis test: hyperparameters chosen",
            rows=("sampler", "tuner"),
            columns=("metric",),
            stub={"tuner": "Judge"},
            is_prose=True,
        ),
        "adam_evaluation": Artifact(
            "tables:adam_evaluation",
            ("evaluations",),
            title="AdamMCMC at equal seconds",
            rows=("sampler",),
            columns=("metric",),
        ),
    },
    figures={
        "adam_acceptance_curves": Artifact(
            "figures:adam_acceptance_curves",
            ("acceptance",),
            title="AdamMCMC: acceptance and width against the noise",
        ),
        "adam_bias_curves": Artifact(
            "figures:adam_bias_curves", ("bias",), title="AdamMCMC: bias against γ / s"
        ),
        "adam_distances": Artifact(
            "figures:adam_distances", ("distances",), title="Total variation to the target against steps"
        ),
    },
    names=NAMES,
)
