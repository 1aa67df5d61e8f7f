"""Keys of what is done with the tuned arms: evaluation, regret, and runs of several lengths."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from sgtune.study.config.keys import (
    Ascending,
    Fraction,
    Points,
    SamplerName,
    Seconds,
    Section,
    Several,
    TunerName,
    containing,
    integer,
    number,
)
from sgtune.study.config.tuning import Log10

__all__ = ["Estimates", "Evaluation", "Horizons", "Ladder", "Regret", "Sensitivity", "Widths"]

Curvatures = Literal["axis", "axis-narrow", "rotated", "equicorrelated"]
Width = number("posterior sds", ge=0, le=1_000)
EXACT = containing(1, "the exact draws")


class Curves(Section):
    """KSD and other metrics against time, from the first seconds of the runs behind the tables."""

    seconds: Annotated[Ascending[Seconds], Field(min_length=1)] = [1, 2, 3, 4, 5]
    """Times at which a run's metrics are computed, ascending; the last is at most evaluation.seconds."""
    replicates: integer("runs", 2, 1_000) = 5
    """Runs behind a curve's mean and, from three on, its band of +-2 standard errors. Runs beyond
    evaluation.replicates are only as long as the curve."""
    ksd_points: integer("points", 0, 100_000) = 100
    """Largest number of points of a KSD on a curve, as evaluation.ksd_points. 0 for no KSD."""
    prediction_draws: integer("draws", 0, 1_000_000) = 0
    """Largest number of draws whose predictions are averaged at each time; 0 for no predictions."""


class Evaluation(Section):
    """Runs of the tuned samplers from the MAP (paper Tables 1-3, 6, 8 and 10, Figs. 3-5)."""

    clock: Literal["calibrated", "wall"] = "calibrated"
    """`calibrated`: the run's one cost table converts seconds to steps, so that results do not depend on the
    machine's load; actual seconds are recorded. `wall`: by the clock, alone on the machine."""
    seconds: Seconds = 10
    """Length of the runs behind the tables."""
    replicates: integer("runs", 1, 1_000) = 5
    """Independent runs behind the tables; run r uses the arm that race r of tuning.replicates chose, starting again
    with the first race when all have been used."""
    burn_in: number("fraction of samples", ge=0, lt=1) = 0
    """Share of a run's samples dropped at its start, in tables and curves."""
    kept_draws: integer("draws", 10, 100_000_000) = 1_000_000
    """Largest number of kept draws of a run, spread evenly over it; its results are computed from these."""
    prediction_draws: integer("draws", 1, 1_000_000) = 1_000
    """Largest number of draws whose predictions are averaged, spread evenly over the chain."""
    thin: integer("samples per point", 1, 100_000) = 10
    """Every thin-th sample is a candidate point of the KSD, in tables and curves."""
    ksd_points: integer("points", 0, 100_000) = 1_000
    """Largest number of points of a KSD in a table, a random subset of every thin-th sample, from which the KSD of
    all of these is estimated. 0 for no KSD."""
    curves: Curves = Curves()


class Screen(Section):
    """The screen: every arm of the grid in a few replicates."""

    seconds: Seconds = 1
    """Time of each arm."""
    replicates: integer("runs", 1, 1_000) = 3
    """Independent runs of each arm."""
    oracle_losses: integer("losses", 1, 3) = 1
    """Number of the model's losses, the main one first, that each have an oracle: the race of MAMBA that sees the
    true loss of its own draws. Its arms are what regret is compared with."""


class Regret(Section):
    """How much worse, in expectation, a tuner's arm is than the best finalist of its grid: all arms are screened, and
    the best of them, the finalists, and all chosen arms run again in fresh replicates."""

    screen: Screen = Screen()
    finalists: integer("arms", 1, 1_000) = 6
    """Number of the screen's best arms that run again."""
    seconds: Ascending[Seconds] = [1, 5]
    """Times after which the finalists and the chosen arms are judged, ascending; the last is the length of the runs.
    Empty: no regret, and no screen."""
    replicates: integer("runs", 2, 1_000) = 4
    """Fresh runs of each of these arms."""
    prediction_draws: integer("draws", 0, 1_000_000) = 0
    """Largest number of an arm's draws whose predictions are averaged, spread evenly over its chain; 0 for no
    predictions."""


class Horizons(Section):
    """The arms that mamba and theory choose for runs of several lengths from races of the same mamba.seconds, and the
    errors of these arms in fresh runs, all of the longest length."""

    seconds: Ascending[Seconds] = []
    """Lengths of the planned runs, ascending; an empty list turns this study off. It needs a reference."""
    samplers: Several[SamplerName] = ["sgld"]
    """Samplers to tune, of those that the run has."""
    replicates: integer("runs", 2, 1_000) = 2
    """Fresh runs of each arm."""


class Estimates(Section):
    """The four estimates of a Stein discrepancy (paper Figs. 1 and 2), on SGLD chains."""

    seconds: Seconds = 1
    """Sampling time of each chain."""
    thin: integer("samples per point", 2, 100_000) = 5
    """Every thin-th sample in the two thinned estimates."""
    batch_fraction: Fraction = 0.01
    """Batch size while the step size varies (Fig. 1)."""
    batch_fractions: Several[Fraction] = [1, 0.1, 0.01, 0.001]
    """Batch sizes while the step size is fixed (Fig. 2)."""
    log10_step_size: Log10 = -4.5
    """Step size while the batch size varies (Fig. 2)."""
    log10_step_sizes: Several[Log10] = [-1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5]
    """Step sizes while the batch size is fixed (Fig. 1)."""
    max_points: Points = 5_000
    """Largest number of samples of a chain in "all samples", spread evenly over it."""


class Widths(Section):
    """Discrepancies of draws made too narrow or too wide."""

    points: Points = 500
    """Draws scored at each width."""
    widths: Annotated[Several[Width], EXACT] = [0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 2.5, 3]
    """Widths of the draws; 0 is a point mass at the MAP, 1 the posterior."""


class Ladder(Section):
    """Tuners on Gaussian posteriors of growing dimension, on which theory gives the expected error of every arm."""

    dimensions: Several[integer("parameters", 2, 100_000)] = [10, 100, 1000]
    """Dimensions D; each is a job."""
    kinds: Several[Curvatures] = list(get_args(Curvatures))
    """Kinds of curvatures: over three decades along the axes, a thousand times as large, the first rotated, and all
    parameters correlated by 0.9."""
    samplers: Several[SamplerName] = ["sgld"]
    """Samplers to tune."""
    tuners: Several[TunerName] = [
        "mamba-ksd",
        "mamba-fssd",
        "mamba-ksd-scaled",
        "mamba-psd",
        "mamba",
        "theory",
    ]
    """Tuners to judge; none that judges by predictions, because a Gaussian has none."""
    seconds: number("seconds", gt=0, le=1_000) = 0.05
    """R, the budget of the arm that runs longest, by a given cost and not a measured one: 5 us for a gradient and 0.1
    us for each of its rows. Theory's errors are for a run of this length."""
    points: Points = 500
    """Largest number of points that judge an arm in the first rung, as mamba.points."""
    replicates: integer("races", 1, 1_000) = 1
    """Races of each tuner."""


class Sensitivity(Section):
    """Which errors each discrepancy sees: exact draws of known targets with one error at a time. It uses no model."""

    dimensions: Several[integer("dimensions", 2, 100_000)] = [10, 1000, 50000]
    """Dimensions D of the targets."""
    points: Several[integer("points", 10, 2_000)] = [15, 100, 500]
    """Numbers of draws that a judge uses; in D dimensions at most 5,000,000 / D."""
    replicates: integer("sets of draws", 2, 1_000) = 6
    """Independent sets of draws; their spread is the noise of a value."""
