"""The whole configuration of a run, and the values of single models."""

from typing import Annotated

from pydantic import Field

from sgtune.study.config.adam_mcmc import AdamMcmc
from sgtune.study.config.ccadl import Ccadl
from sgtune.study.config.keys import ModelName, SamplerName, Section, Seed, Several, Text, must, partial
from sgtune.study.config.main import Data, Grids, Ladder, OfModels, Sensitivity
from sgtune.study.config.sections import FURTHER_STUDIES

__all__ = ["Configuration", "PerModel"]

FOLDERS = ("published", "saved", "downloads")
NO_FOLDER = must(f"be another name: results/ has {', '.join(FOLDERS)}", lambda run: run not in FOLDERS)
NO_STUDY = must("be another name: it is that of a further study", lambda name: name not in FURTHER_STUDIES)


class OfRun(Section):
    """What a run is, and what it studies."""

    run: Annotated[str, Field(pattern="^[a-z][a-z0-9_-]*$"), NO_FOLDER]
    """Name of the run. Its files are in results/{run}/, and every artifact names it. `published` is not allowed."""
    published_as: Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$"), NO_STUDY] = "tuning"
    """Folder in results/published/ to which the rule publish copies tables and figures."""
    artifacts: Several[Text] | None = None
    """Names of the main study's tables and figures to make, with only the jobs that they need; null for all."""
    seed: Seed = 0
    """Root seed from which every random key is derived, by name."""
    models: Several[ModelName] = ["logistic", "pmf", "bnn"]
    """Models to study, in the order of the report."""
    samplers: Several[SamplerName] = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
    """Samplers to tune, in the order of the tables' columns; `-cv` is the control-variate gradient estimator."""
    data: Data = Data()
    grids: Grids = Grids()


# The network and the factorisation have tens of thousands of parameters: their points, draws and shares of the data in
# a score are bounded so that a job stays within a few GB and a tuner near its budget.
LARGE = {"tuners": ["mamba-ksd", "mamba", "grid", "heuristic"], "tuning": {"replicates": 1}}
REGRET = {"finalists": 3, "screen": {"seconds": 0.5, "replicates": 1}, "seconds": [10], "replicates": 2}
ESTIMATES = {
    "log10_step_sizes": [-2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5],
    "batch_fractions": [1, 0.1, 0.01],
}
Values = partial(OfModels)


class PerModel(Section):
    """Values for one model, which override those of tuners, map, reference, calibration, tuning, mamba, grid, grid_ksd,
    heuristic, evaluation, regret, horizons, estimates and widths; every key of these may be given. They take precedence
    even if the section's value is from another file or the command line."""

    logistic: Values = Values()
    """For the logistic regression."""
    pmf: Values = Values(
        **LARGE,
        reference={"n_warmup": 500, "n_draws": 3_500},
        mamba={"seconds": 10, "points": 50},
        grid={"n_steps": 2_000, "start_noise": 1},
        evaluation={
            "seconds": 20,
            "replicates": 5,
            "burn_in": 0.1,
            "kept_draws": 2_000,
            "ksd_points": 300,
            "curves": {"seconds": [2, 4, 6, 8, 10], "replicates": 5, "ksd_points": 100},
        },
        regret=REGRET,
        estimates={**ESTIMATES, "max_points": 200},
    )
    """For the matrix factorisation."""
    bnn: Values = Values(
        **LARGE,
        map={"tolerance": 0.05},
        reference={"nuts": False},
        mamba={"seconds": 10, "points": 15},
        grid={"n_steps": 1_000, "start_noise": 1},
        evaluation={
            "seconds": 300,
            "replicates": 1,
            "burn_in": 0.1,
            "kept_draws": 1_000,
            "prediction_draws": 200,
            "ksd_points": 70,
            "curves": {"seconds": [2, 4, 6, 8, 10], "replicates": 3, "ksd_points": 0, "prediction_draws": 20},
        },
        regret={**REGRET, "prediction_draws": 20},
        estimates={**ESTIMATES, "max_points": 50},
    )
    """For the network."""


class Configuration(OfModels, OfRun):
    """One schema for every run. Defaults are the paper's values, so an empty configuration with a name is the paper's
    study; config/config.yaml lowers the budgets. A section holds for all models; `per_model` overrides it for a single
    model."""

    ladder: Ladder = Ladder()
    sensitivity: Sensitivity = Sensitivity()
    ccadl: Ccadl = Ccadl()
    adam_mcmc: AdamMcmc = AdamMcmc()
    per_model: PerModel = PerModel()
