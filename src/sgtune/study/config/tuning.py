"""Keys of tuning: the arms, the costs that convert seconds to steps, and each tuner's own section."""

from typing import Literal

from sgtune.study.config.keys import (
    ABSENT,
    Fraction,
    Points,
    SamplerName,
    Seconds,
    Section,
    Several,
    Text,
    Unrepeated,
    integer,
    number,
)

__all__ = ["Calibration", "Grid", "GridKsd", "Grids", "Heuristic", "Log10", "Mamba", "Tuning"]

Log10 = number("log10", ge=-20, le=2)
Races = integer("races", 1, 1_000)


class SmallerGrid(Section):
    """A second grid of step sizes, on which mamba-ksd and grid also run."""

    samplers: Unrepeated[SamplerName] = ABSENT
    """Samplers that use it; an empty list turns it off."""
    log10_step_sizes: Several[Log10] = ABSENT
    """Step sizes e of `theta + e grad log pi + sqrt(2 e) noise`, as log10."""


class Arms(Section):
    """Hyperparameters that tuners compare."""

    log10_step_sizes: Several[Log10] = [-2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5]
    """Step sizes e of `theta + e grad log pi + sqrt(2 e) noise`, as log10."""
    batch_fractions: Several[Fraction] = [1, 0.1, 0.01]
    """Batch sizes as fractions of N; 1 is the exact gradient. Not tuned by grid."""
    n_leapfrogs: Several[integer("leapfrogs", 1, 1_000)] = [5, 10]
    """Leapfrogs L of one sample; SGHMC only."""
    friction: Several[number("per kick", ge=0, le=1)] = ABSENT
    """Frictions a; SGHMC and SGNHT only. Without this key all have 0.01."""
    noise_estimate: Several[number("per kick", ge=0, le=1)] = ABSENT
    """Estimates b of the gradient noise, at most the smallest friction; SGHMC only. Without this key all have 0."""
    smaller: SmallerGrid = ABSENT


class Grids(Section):
    """Hyperparameters that the mamba tuners, grid and grid-ksd compare; one grid per model."""

    logistic: Arms = Arms(
        log10_step_sizes=[-1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5],
        batch_fractions=[1, 0.1, 0.01, 0.001],
    )
    """Grid of the logistic regression (paper App. B.1.2, B.1.3)."""
    pmf: Arms = Arms()
    """Grid of the matrix factorisation (paper App. B.2.2, B.2.3)."""
    bnn: Arms = Arms(smaller={"samplers": ["sgnht"], "log10_step_sizes": [-5, -5.5, -6, -6.5, -7, -7.5]})
    """Grid of the network (paper App. B.3.2, B.3.3)."""


class Calibration(Section):
    """Cost of one step per sampler, batch size and L, which converts seconds to steps: measured alone on the machine,
    or given."""

    table: Text | None = None
    """File of costs that tuning, regret, estimates and evaluation use in place of the measured ones, so that steps
    and decisions are the same on every machine (the rule collect_costs writes such a file); null for the measured
    costs."""
    seconds: number("s", gt=0, le=3_600) = 1
    """Time of each measurement, without compilation."""


class Tuning(Section):
    """How often each tuner tunes, and the data that judges of predictions use."""

    replicates: Races = 5
    """Independent races of each tuner (grid.replicates and grid_ksd.replicates may be fewer); replicate r of the
    evaluation runs the arm that race r chose."""
    validation_fraction: number("fraction of N", ge=0, lt=1) = 0
    """Share of the training data that tuners judging by predictions (grid, mamba-log-loss, ...) hold out and judge
    by. 0: they judge by the test set, on which they are then evaluated, as in the paper."""


class Mamba(Section):
    """Successive halving (paper Algorithm 1), for the tuners mamba and mamba-*. The tuner theory, which runs no arm,
    uses its horizon."""

    seconds: Seconds = 1
    """R, the total sampling time of the arm that runs longest."""
    horizon: Seconds | None = None
    """Length of the planned run, for which theory and the tuners that look ahead (mamba, mamba-psd, mamba-ksd-scaled)
    choose an arm; null for mamba.seconds."""
    pruning_rate: integer("arms per survivor", 2, 1_000) = 3
    """eta; each rung keeps the best 1/eta of its arms."""
    clock: Literal["calibrated", "wall"] = "calibrated"
    """`calibrated`: the measured cost converts seconds to steps, and arms of one shape advance in lockstep. `wall`:
    one arm at a time, by the clock."""
    thin: integer("steps", 1, 100_000) | None = None
    """Every thin-th draw of an arm is used to judge it, but at least ten draws; null for the tuner's own default:
    every tenth draw for the paper's tuners, every draw for those that look ahead."""
    score_fraction: Fraction = 1
    """Share of the data in the scores that judge an arm, corrected at the MAP; 1 is the paper's full batch. Tuners
    that look ahead use score_rows."""
    score_rows: integer("rows", 1, 10_000_000) = 1_000
    """Rows in a score of a tuner that looks ahead, fresh for every draw, with control variates at the MAP."""
    points: Points = 500
    """Largest number of points of an arm that a discrepancy uses in the first rung, a uniformly random subset of its
    draws; pruning_rate times as many in each later rung. The discrepancy of all draws is estimated from them, but an
    FSSD is computed for them alone."""


class Grid(Section):
    """Grid search on the log-loss or RMSE of the test set (paper App. B.1.2, B.2.2, B.3.2)."""

    replicates: Races | None = 3
    """Races of this tuner if they are fewer than tuning.replicates; null for as many."""
    n_steps: integer("steps", 10, 10_000_000) = 5_000
    """Steps of each arm."""
    batch_fraction: Fraction = 0.1
    """Batch size of every arm."""
    start_noise: number("raw coordinates", ge=0, le=1_000) = 0.2
    """Sd of the normal noise added to the MAP where an arm starts; with 0 the smallest step size always wins."""
    points: Points = 50
    """Largest number of an arm's draws whose predictions are averaged, a uniformly random subset of them."""


class GridKsd(Section):
    """Grid search on the KSD."""

    replicates: Races | None = 3
    """Races of this tuner if they are fewer than tuning.replicates; null for as many."""
    seconds: Seconds = 1
    """Sampling time of each arm."""
    clock: Literal["calibrated", "wall"] = "calibrated"
    """As mamba.clock."""
    thin: integer("steps", 1, 100_000) | None = None
    """As mamba.thin; null for every tenth."""
    score_fraction: Fraction = 1
    """As mamba.score_fraction."""
    points: Points = 2_000
    """Largest number of points of an arm that the KSD uses, a uniformly random subset of its draws. The KSD of all
    draws is estimated from them."""


class Heuristic(Section):
    """Step size 1/N; nothing is tuned."""

    batch_fraction: Fraction = 0.1
    """Batch size."""
    n_leapfrog: integer("leapfrogs", 1, 1_000) = 10
    """Leapfrogs L of one sample; SGHMC only."""
