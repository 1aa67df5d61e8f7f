"""Tuners as objects: what they do and their numbers in one place. The names of `TUNERS` are short for some of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from sgtune.sampling.budget import Budget
from sgtune.tuning.grid import LEAPFROGS, LOG10_STEP_SIZES
from sgtune.tuning.judges import Judge, predictive, stein
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
        log10_step_sizes: of the step sizes.
        batch_fractions: of the data in a batch; None: 1, and of 0.1, 0.01, 0.001 those that leave ten rows or more.
        n_leapfrogs: for samplers that make leapfrogs.
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


@dataclass(frozen=True)
class Halving:
    """Successive halving (MAMBA, paper Algorithm 1): all arms run briefly, the best of them longer, and so on.

    ``mamba-ksd`` is ``Halving()``, ``mamba-psd`` is ``Halving(judge=at_horizon("psd"))``. The budget
    of `sgtune.tune` is R, what the longest arm may spend.

    Attributes:
        judge: made by `stein`, `predictive`, `at_horizon` or `acceptance`.
        pruning_rate: eta: in each rung one of so many arms survives.
        grid: of the arms.
        thin: every thin-th draw of an arm judges it, but thinned no further than to ten; None: as the judge says.
        points: at most so many points judge an arm in the first rung, eta times as many in each later one; None: as
            the judge says.
        validation_fraction: of the training rows, held out to judge by in place of the test set, if the judge is
            `predictive`; 0 for none.
        clock: ``calibrated`` (lockstep, reproducible) or ``wall`` (one arm at a time, by the clock).
    """

    judge: Judge = field(default_factory=stein)
    pruning_rate: int = 3
    grid: Grid = Grid()
    thin: int | None = None
    points: int | None = None
    validation_fraction: float = 0.0
    clock: str = "calibrated"

    name = "halving"

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
    """Every arm runs for the same budget, and the best one is taken (paper Sect. 3.4.1).

    ``grid`` is ``GridSearch()``; ``grid-ksd`` is ``GridSearch(judge=stein("ksd"), batch_fraction=None, start_noise=0.0,
    points=2_000)``.

    Attributes:
        judge: as of `Halving`.
        grid: of the arms.
        batch_fraction: of the data in all arms' batches; None: those of the grid.
        start_noise: sd of the Gaussian noise around the MAP where chains start.
        thin, points, validation_fraction, clock: as of `Halving`.
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
    """h = 1 / N (paper Sect. 3.4.1; Brosse et al. 2018): runs nothing. ``heuristic`` is ``Heuristic()``.

    Attributes:
        batch_fraction, n_leapfrog: which it does not tune.
    """

    batch_fraction: float = 0.1
    n_leapfrog: int = 10

    name = "heuristic"

    def as_tuner(self) -> tuple[Tuner, Settings]:
        """How `sgtune.tune` runs it."""
        return Tuner(heuristic_arm, one_rung, None, Budget(steps=1)), _settings(self)


@dataclass(frozen=True)
class Theory:
    """The arm of least expected error at the horizon, for posteriors close to Gaussian: runs nothing.

    The horizon of `sgtune.tune`, its budget if there is none, is what a chain of the chosen arm will be given.
    `sgtune.theory` has what it knows, of SGLD, SGHMC and SGNHT. The result warns where the chosen arm is foreseen to
    leave the neighbourhood in which that holds. ``theory`` is ``Theory()``.

    Attributes:
        grid: of the arms.
    """

    grid: Grid = Grid()

    name = "theory"

    def as_tuner(self) -> tuple[Tuner, Settings]:
        """How `sgtune.tune` runs it."""
        return theory, _settings(self)
