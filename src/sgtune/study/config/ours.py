"""Keys of the studies that are of no paper: posteriors that users bring, and the audit of the code behind MAMBA's."""

from typing import Literal, get_args

from sgtune.study.config.main import (
    ModelName,
    Nuts,
    SamplerName,
    Section,
    Several,
    Unrepeated,
    integer,
    number,
)

Case = Literal["raw_columns", "heavy_tails", "groups", "leverage", "diabetes", "cancer", "digits", "counts"]


class Posteriors(Section):
    """Tuners in several coordinates on posteriors that users bring; made by the rule posteriors."""

    cases: Several[Case] = list(get_args(Case))
    """Posteriors; a job each, for every sampler."""
    samplers: Several[Literal["sgld-cv", "sghmc-cv"]] = ["sgld-cv", "sghmc-cv"]
    """Samplers."""
    gradients: number("data terms of gradients", gt=0, le=1e12) = 500_000
    """R, the budget of the arm that runs longest."""
    horizon: number("data terms of gradients", gt=0, le=1e12) = 5_000_000
    """Length of the planned runs, which are judged."""
    replicates: integer("races", 1, 1_000) = 5
    """Tuning runs of each tuner in each of its coordinates, with a fresh chain each."""
    finals: integer("runs", 1, 1_000) = 5
    """Fresh runs of the best arm."""
    reference: Nuts = Nuts(chains=4, n_warmup=1_500, n_draws=12_000)
    """The ground truth, as in the section `reference`; its first chain gives directions, so it needs two."""
    models: Unrepeated[ModelName] = ["logistic", "pmf", "bnn"]
    """Models of the main study that are sampled with and without a preconditioner, by the run's samplers and tuning
    runs, for the seconds of mamba and evaluation."""


class Audit(Section):
    """The defects of the code behind the paper, one at a time, on the logistic regression; made by the rule audit. All
    other settings are those of the main study, so that its results are those without a defect."""

    samplers: Unrepeated[SamplerName] = ["sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
    """Samplers; those that the run has."""
