"""Keys of the study of AdamMCMC."""

from typing import Annotated, Literal

from pydantic import Field

from sgtune.study.config.main import (
    Draws,
    Finals,
    Log10,
    Races,
    Screen,
    Seconds,
    Section,
    Several,
    Times,
    integer,
    must,
    number,
)

Tested = Literal["adam-mcmc", "mala", "hmc"]
Samplers = Literal["adam-mcmc", "mala", "hmc", "sgld", "sgld-cv", "sghmc", "sghmc-cv", "sgnht", "sgnht-cv"]
ShareOfData = number("of the data", gt=0, le=1)
Directional = number("of the update", ge=0, le=1_000_000)
ISOTROPIC = must("contain 0, the isotropic proposal, and one that is not 0", lambda noises: 0 in noises)
Drift = number("of s", gt=0, le=1_000_000)
Scale = number("of that", gt=0, le=1_000_000)
Dimension = integer("parameters", 1, 1_000_000)
Steps = integer("steps", 100, 100_000_000)
Chains = integer("chains", 1, 1_000)


class Costs(Section):
    """Measured costs of a step."""

    seconds: number("s", gt=0, le=600) = 0.2
    """As calibration.seconds."""
    repeats: integer("passes", 1, 1_000) = 5
    """Passes over all shapes; the smallest cost of a shape counts."""


class FewDimensions(Section):
    """Chains on Gaussians of few dimensions, where steps are cheap."""

    up_to: integer("dimensions", 0, 1_000_000) = 100
    """The largest of these dimensions."""
    replicates: Chains = 24
    """Independent chains of each setting there."""
    steps_per_dimension: integer("steps", 0, 1_000_000) = 500
    """The number `steps_per_dimension` there."""


class Acceptance(Section):
    """Acceptance rate, and E x^2, against s."""

    dimensions: Several[Dimension] = [10, 100, 1000, 10000]
    """Dimensions D of the Gaussians N(0, I), a job each."""
    drifts: Several[Drift] = [0.001, 0.01, 0.1, 1]
    """Ratios gamma / s."""
    directional_noises: Annotated[Several[Directional], Field(min_length=2), ISOTROPIC] = [0, 1]
    """Values of s_d, including 0."""
    scales: Several[Scale] = [0.35, 0.7, 1.4, 2.8]
    """Values of s, in units of the trace of the curvature to the power -1/2; this is s sqrt(D) for N(0, I)."""
    steps: Steps = 12_000
    """Steps of a chain on a Gaussian."""
    steps_per_dimension: integer("steps", 0, 1_000_000) = 64
    """Most steps for each dimension of chains on a Gaussian at the s nearest to 2.4 / √T, where a random walk moves
    fastest; they end earlier when they are stuck, too slow for an estimate, or settled."""
    most_steps: integer("steps", 0, 1_000_000_000) = 180_000
    """No chain on a Gaussian is longer for its dimension's sake."""
    long_up_to: integer("dimensions", 0, 1_000_000) = 1_000
    """The largest dimension in which chains at all other s are as long, too; above it half as many, but at least 4."""
    few_dimensions: FewDimensions = FewDimensions()
    warmup: integer("steps", 0, 100_000_000) = 2_000
    """Steps of the burn-in on a Gaussian."""
    replicates: Chains = 6
    """Independent chains of each setting."""
    posterior_steps: integer("steps", 20, 100_000_000) = 2400
    """Steps of a chain on the logistic posterior."""
    posterior_replicates: Chains = 4
    """Independent chains of each setting on the logistic posterior."""
    posterior_long: integer("steps", 0, 100_000_000) = 4800
    """As steps_per_dimension: most steps of chains at the s nearest to 2.4 / √T on the logistic posterior."""
    posterior_warmup: integer("steps", 0, 100_000_000) = 300
    """Steps of the burn-in on the logistic posterior."""
    posterior_drifts: Several[Drift] = [0.1, 1]
    """Ratios gamma / s on the logistic posterior, where a step costs a pass over all data."""
    posterior_scales: Several[Scale] = [0.7, 2.8]
    """Values of s on the logistic posterior, in the units of scales."""
    batch_fraction: ShareOfData = 0.01
    """Share of the data in the minibatches of the gradients on the logistic posterior."""


class Bias(Section):
    """Bias of the approximations on N(0, I)."""

    dimensions: Several[Dimension] = [2, 10, 50]
    """Dimensions D."""
    ratios: Several[Drift] = [0.01, 0.03, 0.1, 0.3, 1]
    """Ratios gamma / s."""
    scale: number("of 1", gt=0, le=1_000) = 0.7
    """s sqrt(D)."""
    exact_up_to: Dimension = 50
    """The largest D for the exact variant."""
    steps: Steps = 12_000
    """Steps of a chain after the burn-in."""
    warmup: integer("steps", 1, 100_000_000) = 2_000
    """Steps of the burn-in."""
    chains: integer("chains", 8, 100_000) = 24
    """Chains of each setting; the exact variant has eight times as many."""


class Distances(Section):
    """Total variation to the target against the number of steps."""

    chains: integer("chains", 100, 100_000_000) = 500_000
    """Number of chains behind a histogram."""
    steps: integer("steps", 10, 100_000) = 100
    """Number of steps."""
    slow_chains: integer("chains", 100, 100_000_000) = 100_000
    """The same for the curve with Adam's own decay rates, which needs thousands of steps."""
    slow_steps: integer("steps", 10, 1_000_000) = 5_000
    """Number of steps of this curve."""
    bins: integer("bins", 3, 1_000) = 20
    """Number of bins, of equal probability."""


class RaceRegret(Finals):
    """As the section `regret`."""

    screen: Screen = Screen(seconds=0.7, replicates=1)
    seconds: Times = [2]
    """As regret.seconds."""


class Race(Section):
    """Races on the logistic regression, and the expected regret of their choices."""

    samplers: Several[Tested] = ["adam-mcmc", "mala", "hmc"]
    """Samplers, a job each."""
    judges: Several[Literal["mamba", "mamba-ksd", "acceptance"]] = ["mamba", "mamba-ksd", "acceptance"]
    """Judges of the arms; acceptance is for mala and hmc."""
    seconds: Seconds = 2
    """R, the sampling time of the arm that runs longest."""
    pruning_rate: integer("arms", 2, 100) = 3
    """As mamba.pruning_rate."""
    replicates: Races = 3
    """Tuning runs of each judge."""
    regret: RaceRegret = RaceRegret(finalists=4)


class Evaluation(Draws):
    """Samplers tuned by the default tuner, at equal seconds, on the logistic regression."""

    samplers: Several[Samplers] = ["adam-mcmc", "mala", "hmc", "sgld", "sghmc", "sgnht"]
    """Samplers, a job each; those without a grid in adam_mcmc.grids have the main study's."""
    race_seconds: Seconds = 2
    """Budget R of the default tuner's race."""
    races: Races = 3
    """Tuning runs."""
    seconds: number("s", gt=0, le=864_000) = 6
    """Length of a run, converted to steps by the measured costs."""
    replicates: integer("runs", 1, 1_000) = 6
    """Number of runs."""


class AdamArms(Section):
    """Arms of adam-mcmc."""

    log10_step_sizes: Several[Log10] = [-6, -5, -4, -3]
    """Step sizes gamma, as log10."""
    batch_fractions: Several[ShareOfData] = [0.1, 0.01]
    """Batch sizes as fractions of N."""
    noise_sd: Several[number("of a position", gt=0, le=1_000_000)] = [0.001, 0.003, 0.01]
    """Values of s."""
    directional_noise: Several[Directional] = [0, 1, 3]
    """Values of s_d."""


class MalaArms(Section):
    """Arms of mala."""

    log10_step_sizes: Several[Log10] = [-7, -6.5, -6, -5.5, -5.25, -5, -4.75, -4.5, -4.25, -4]
    """Step sizes, as log10."""


class HmcArms(MalaArms):
    """Arms of hmc."""

    n_leapfrogs: Several[integer("leapfrogs", 1, 1_000)] = [5, 10]
    """Numbers of leapfrogs."""


class Grids(Section):
    """Arms of the samplers with a Metropolis test, at most 81 of each; the other samplers have the main study's."""

    adam_mcmc: AdamArms = Field(AdamArms(), alias="adam-mcmc")
    mala: MalaArms = MalaArms()
    hmc: HmcArms = HmcArms(log10_step_sizes=[-7, -6.5, -6, -5.5, -5, -4.5, -4])


class AdamMcmc(Section):
    """The study of AdamMCMC, which its own paper (Bieringer et al. 2023) leaves to future work; made by the rule
    adam_mcmc. gamma is the step size, s the sd of the proposal's isotropic noise, and s_d the sd of the noise along
    the update, in units of the update."""

    costs: Costs = Costs()
    acceptance: Acceptance = Acceptance()
    bias: Bias = Bias()
    distances: Distances = Distances()
    race: Race = Race()
    evaluation: Evaluation = Evaluation()
    grids: Grids = Grids()
