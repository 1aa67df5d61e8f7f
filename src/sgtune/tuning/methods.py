"""Tuners as objects, with all their settings. The names in `TUNERS` are short for some of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from sgtune.sampling.budget import Budget
from sgtune.support.errors import InputError
from sgtune.tuning.grid import LEAPFROGS, LOG10_STEP_SIZES
from sgtune.tuning.horizon import at_horizon
from sgtune.tuning.judges import Judge, predictive
from sgtune.tuning.tuners import (
    Settings,
    Tuner,
    full_grid,
    grid_at_one_batch_size,
    halving,
    heuristic_arm,
    left_out,
    one_rung,
    theory,
)

__all__ = ["Grid", "GridSearch", "Halving", "Heuristic", "Theory"]


@dataclass(frozen=True)
class Grid:
    """The arms that a tuner chooses from: all combinations. Defaults are the paper's (App. B.1).

    Attributes:
        log10_step_sizes: log10 of the step sizes.
        batch_fractions: shares of the data in a batch; None: 1, and of 0.1, 0.01, 0.001 those that give batches of ten
            rows or more.
        n_leapfrogs: numbers of leapfrogs, for samplers that have them.
        hyperparameters: further axes by name, such as ``{"friction": (0.01, 0.1)}``, for samplers that have them.
    """

    log10_step_sizes: Sequence[float] = LOG10_STEP_SIZES
    batch_fractions: Sequence[float] | None = None
    n_leapfrogs: Sequence[int] = LEAPFROGS
    hyperparameters: Mapping[str, Sequence[float]] = field(default_factory=dict)


def _settings(method: object) -> Settings:
    """The fields of ``method`` and of its grid that are settings, under the same names; None leaves the default."""
    known = {entry.name for entry in fields(Settings)}
    numbers = {}
    for part in (getattr(method, "grid", None), method):
        for entry in fields(part) if part is not None else ():
            value = getattr(part, entry.name)
            if entry.name in known and value is not None:
                numbers[entry.name] = tuple(value) if isinstance(value, list) else value
    return Settings(**numbers)


def _check(method: object) -> None:
    """Raise an `InputError` if the judge or the grid of ``method`` is of another type."""
    judge, grid = getattr(method, "judge", None), getattr(method, "grid", None)
    if judge is not None and not isinstance(judge, Judge):
        raise InputError(f"judge: {judge!r} is not allowed; it must be a Judge, such as stein('ksd')")
    if grid is not None and not isinstance(grid, Grid):
        raise InputError(f"grid: {grid!r} is not allowed; it must be a Grid")


@dataclass(frozen=True)
class Halving:
    """Successive halving (MAMBA, paper Algorithm 1): all arms run briefly, the best of them longer, and so on.

    ``mamba`` is ``Halving()``, ``mamba-ksd`` is ``Halving(judge=stein("ksd"))``, ``mamba-psd`` is
    ``Halving(judge=at_horizon("psd"))``. The budget of `sgtune.tune` is R, the budget of the arm that runs longest.

    Attributes:
        judge: made by `at_horizon` (the default tuner's), `stein`, `predictive` or `acceptance`.
        pruning_rate: eta: each rung keeps one in eta arms.
        grid: the arms.
        thin: every thin-th draw of an arm is used to judge it, but at least ten draws; None: the judge's default.
        points: the largest number of points that judge an arm in the first rung, and eta times as many in each later
            rung; None: the judge's default.
        validation_fraction: the share of the training rows that is held out to judge arms in place of the test set, if
            the judge is `predictive`; 0 for none.
        clock: ``calibrated`` (lockstep, reproducible) or ``wall`` (one arm at a time, by the clock).
    """

    judge: Judge = field(default_factory=at_horizon)
    pruning_rate: int = 3
    grid: Grid = Grid()
    thin: int | None = None
    points: int | None = None
    validation_fraction: float = 0.0
    clock: str = "calibrated"

    name = "halving"

    def __post_init__(self):
        _check(self)

    def as_tuner(self) -> tuple[Tuner, Settings]:
        """How `sgtune.tune` runs it."""
        return (
            Tuner(
                full_grid,
                halving,
                lambda seed, settings: self.judge.metric(seed),
                Budget(seconds=1.0),
                tasks=self.judge.tasks,
                points=self.judge.points,
                thin=self.judge.thin,
                needs_test=self.judge.needs_test,
                remarks=left_out,
            ),
            _settings(self),
        )


@dataclass(frozen=True)
class GridSearch:
    """Every arm runs for the same budget, and the best one is chosen (paper Sect. 3.4.1).

    ``grid`` is ``GridSearch()``; ``grid-ksd`` is ``GridSearch(judge=stein("ksd"), batch_fraction=None, start_noise=0.0,
    points=2_000)``.

    Attributes:
        judge: as in `Halving`.
        grid: the arms.
        batch_fraction: the share of the data in the batches of all arms; None: the fractions of the grid.
        start_noise: chains start at the MAP plus Gaussian noise of this sd, in units of the position.
        thin, points, validation_fraction, clock: as in `Halving`.
    """

    judge: Judge = field(default_factory=predictive)
    grid: Grid = Grid()
    batch_fraction: float | None = 0.1
    start_noise: float = 0.2
    thin: int | None = None
    points: int | None = None
    validation_fraction: float = 0.0
    clock: str = "calibrated"

    name = "grid search"

    def __post_init__(self):
        _check(self)

    def as_tuner(self) -> tuple[Tuner, Settings]:
        """How `sgtune.tune` runs it."""
        varied = self.batch_fraction is None
        return (
            Tuner(
                full_grid if varied else grid_at_one_batch_size,
                one_rung,
                lambda seed, settings: self.judge.metric(seed),
                Budget(seconds=1.0) if self.judge.tasks is None else Budget(steps=5_000),
                lambda settings: settings.start_noise,
                tasks=self.judge.tasks,
                points=self.judge.points,
                thin=self.judge.thin,
                needs_test=self.judge.needs_test,
                **({"remarks": left_out} if varied else {}),
            ),
            _settings(self),
        )


@dataclass(frozen=True)
class Heuristic:
    """h = 1 / N (paper Sect. 3.4.1; Brosse et al. 2018); no arm is run. ``heuristic`` is ``Heuristic()``.

    Attributes:
        batch_fraction, n_leapfrog: the chosen arm's values; they are not tuned.
    """

    batch_fraction: float = 0.1
    n_leapfrog: int = 10

    name = "heuristic"

    def as_tuner(self) -> tuple[Tuner, Settings]:
        """How `sgtune.tune` runs it."""
        return Tuner(heuristic_arm, one_rung, None, Budget(steps=1)), _settings(self)


@dataclass(frozen=True)
class Theory:
    """The arm with the smallest expected error at the horizon, for posteriors close to Gaussian; no arm is run.

    The horizon of `sgtune.tune` (by default its budget) is the budget of a chain of the chosen arm. The expected errors
    are computed by `sgtune.theory`, for SGLD, SGHMC and SGNHT. The result has a warning if the chosen arm is predicted
    to leave the neighbourhood of the mode in which the theory holds. ``theory`` is ``Theory()``.

    Attributes:
        grid: the arms.
    """

    grid: Grid = Grid()

    name = "theory"

    def __post_init__(self):
        _check(self)

    def as_tuner(self) -> tuple[Tuner, Settings]:
        """How `sgtune.tune` runs it."""
        return theory, _settings(self)
