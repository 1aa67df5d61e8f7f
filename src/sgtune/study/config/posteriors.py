"""Keys of the study of posteriors that users bring."""

from typing import Literal

from sgtune.study.config.main import ModelName, Nuts, Section, Several, Unrepeated, integer, number

Case = Literal["raw_columns", "heavy_tails", "groups", "leverage", "diabetes", "cancer", "digits", "counts"]


class Posteriors(Section):
    """Tuners in several coordinates on posteriors that users bring; made by the rule posteriors."""

    cases: Several[Case] = [
        "raw_columns",
        "heavy_tails",
        "groups",
        "leverage",
        "diabetes",
        "cancer",
        "digits",
        "counts",
    ]
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
