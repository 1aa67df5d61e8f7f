"""The whole configuration of a run, and the values of single models."""

from typing import Annotated, get_type_hints

from pydantic import Field, create_model

from sgtune.study.config.adam_mcmc import AdamMcmc
from sgtune.study.config.ccadl import Ccadl
from sgtune.study.config.keys import (
    ABSENT,
    ModelName,
    SamplerName,
    Section,
    Seed,
    Several,
    Text,
    is_section,
    must,
)
from sgtune.study.config.main import Data, Grids, Ladder, OfModels, Sensitivity
from sgtune.study.config.sections import FURTHER_STUDIES

__all__ = ["Configuration", "PerModel"]

FOLDERS = ("published", "saved", "downloads")
NO_FOLDER = must(f"be another name: results/ has {', '.join(FOLDERS)}", lambda run: run not in FOLDERS)
NO_STUDY = must("be another name: it is that of a further study", lambda name: name not in FURTHER_STUDIES)


def _partial(section: type[Section]) -> type[Section]:
    """``section`` without defaults: a configuration has only those of its keys that are given."""
    types = get_type_hints(section, include_extras=True)
    fields = {
        name: (_partial(types[name]) if is_section(types[name]) else types[name], ABSENT)
        for name in section.model_fields
    }
    return create_model(
        section.__name__, __base__=section, __module__=section.__module__, __doc__=section.__doc__, **fields
    )


Values = _partial(OfModels)


class PerModel(Section):
    """Values for one model, which override those of tuners, map, reference, calibration, tuning, mamba, grid, grid_ksd,
    heuristic, evaluation, regret, horizons, estimates and widths; every key of these may be given. They take precedence
    even if the section's value is from another file or the command line."""

    logistic: Values = Values()
    """For the logistic regression."""
    pmf: Values = Values()
    """For the matrix factorisation."""
    bnn: Values = Values()
    """For the network."""


class Configuration(OfModels):
    """One schema for every run. Defaults are the paper's values for the logistic regression; config/paper.yaml has
    those of the other models. A section holds for all models; `per_model` overrides it for a single model."""

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
    ladder: Ladder = Ladder()
    sensitivity: Sensitivity = Sensitivity()
    ccadl: Ccadl = Ccadl()
    adam_mcmc: AdamMcmc = AdamMcmc()
    per_model: PerModel = PerModel()
