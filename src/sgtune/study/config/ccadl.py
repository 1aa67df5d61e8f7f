"""Keys of the study of CCAdL."""

from typing import Literal, get_args

from pydantic import Field

from sgtune.study.config.main import Map, Nuts, Section, Several, integer, number

Method = Literal["sghmc", "sgnht", "ccadl", "mccadl"]
StepSizes = Several[number("of time", gt=0, le=1)]
Friction = number("per time", gt=0, le=1_000_000)


class Data(Section):
    """The data sets, of which some sources may be unavailable; the study then continues without them."""

    simulated: integer("rows", 50, 100_000) | None = None
    """Training rows of each set to simulate instead; null for the real data."""


class Experiment(Section):
    """What all experiments have."""

    samplers: Several[Method] = list(get_args(Method))
    """Samplers, the paper's and mccadl; a job each, for every data set."""
    frictions: Several[Friction] = [1, 10]
    """Frictions A."""


class Chains(Section):
    """Long chains."""

    steps: integer("steps", 100, 100_000_000) = 1_000_000
    """Steps of a chain after the burn-in; every draw counts."""
    warmup: integer("steps", 0, 100_000_000) = 10_000
    """Steps of the burn-in."""
    replicates: integer("chains", 1, 1_000) = 10
    """Independent chains of each setting."""


class Normal(Chains, Experiment):
    """Mean and precision of a normal against the exact posterior (its Sect. 4.1, Figure 1, Table 1)."""

    step_sizes: StepSizes = [0.001, 0.01]
    """Step sizes h; each with every friction."""
    n_data: integer("rows", 4, 1_000_000) = 100
    """Number of data, draws of N(0, 1)."""
    standardised: bool = False
    """Whether the data are shifted and scaled to mean 0 and variance 1; in the paper they are not."""
    batch_size: integer("rows", 2, 1_000_000) = 10
    """Batch size; at most n_data."""
    bins: integer("bins", 10, 10_000) = 200
    """Bins of the densities' histograms, over the exact central 99.9%."""


class LogisticCurves(Section):
    """Test log-likelihood of the posterior mean so far against passes over the data."""

    passes: number("passes", gt=0, le=100_000) = 200
    """Length of a run."""
    points: integer("points", 2, 10_000) = 100
    """Number of times, evenly spaced, at which the log-likelihood is computed."""
    replicates: integer("runs", 1, 1_000) = 5
    """Independent runs of each setting, each started at another draw of the prior."""


class LogisticDraws(Chains):
    """Long chains from the MAP at one friction, by default of 10^6 draws in all, against NUTS; 95% ellipses in two
    coordinates."""

    friction: Friction = 10
    """Friction A."""


class Logistic(Experiment):
    """Logistic regression of nines against sevens of MNIST (its Sect. 4.2, Figure 2); the full covariance."""

    step_sizes: StepSizes = [0.0005, 0.001, 0.002, 0.004]
    """Step sizes h; each with every friction."""
    batch_size: integer("rows", 2, 12_214) = 500
    """Batch size."""
    curves: LogisticCurves = LogisticCurves()
    draws: LogisticDraws = LogisticDraws(steps=250_000, replicates=4)
    reference: Nuts = Nuts(n_warmup=500)
    """The ground truth, as in the section `reference`."""


class DrbmStepSizes(Section):
    """Step sizes h; each with every friction."""

    connect_4: StepSizes = Field([0.0005, 0.001, 0.002], alias="connect-4")
    """Step sizes for connect-4."""
    letter: StepSizes = [0.002, 0.005, 0.01]
    """Step sizes for letter."""
    acoustic: StepSizes = [0.0005, 0.001, 0.002]
    """Step sizes for acoustic."""


class Drbm(Experiment):
    """The discriminative RBM on three data sets (its Sect. 4.3, Figure 3, Table 2); the diagonal covariance."""

    sets: Several[Literal["connect-4", "letter", "acoustic"]] = ["connect-4", "letter", "acoustic"]
    """Data sets; one that is unavailable is marked so in the artifacts."""
    step_sizes: DrbmStepSizes = DrbmStepSizes()
    batch_size: integer("rows", 2, 10_500) = 500
    """Batch size."""
    passes: number("passes", gt=0, le=100_000) = 100
    """Length of a run."""
    burn_in: number("of all passes", ge=0, le=0.9) = 0.2
    """Share of the passes whose draws are not in the averaged prediction."""
    readings: integer("times", 2, 10_000) = 50
    """Number of times, evenly spaced, at which a run predicts the test data."""
    draws_per_reading: integer("draws", 1, 1_000) = 2
    """Number of draws since the last such time whose predictions are added to the average."""
    replicates: integer("runs", 1, 1_000) = 2
    """Independent runs of each setting, each with another start."""


class Ccadl(Section):
    """The study of CCAdL, the covariance-controlled thermostat, after its own paper (Shang et al. 2015); made by the
    rule ccadl. As in this paper, h is the step size for momenta of unit scale and A the friction."""

    data: Data = Data()
    map: Map = Map(epochs=100, tolerance=0.05, max_steps=1_000)
    """The modes of the models, as in the section `map`."""
    normal: Normal = Normal()
    logistic: Logistic = Logistic()
    drbm: Drbm = Drbm()
