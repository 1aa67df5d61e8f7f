"""The tuners: objects that make arms and either race them (`sgtune.tuning.race`) or choose one by a rule.

============== =================================== ==================== =========================================
name           short for                           judged by            paper
============== =================================== ==================== =========================================
mamba-*        `Halving`                           ksd, fssd, ...       Algorithm 1, Sects. 3.2, 3.3.3
grid-ksd       `GridSearch`, by seconds            ksd                  Sect. 4.1, App. B.1
grid           `GridSearch`, by steps              log-loss, RMSE       Sect. 3.4.1, Apps. B.1.2, B.2.2, B.3.2
heuristic      `Heuristic`: h = 1/N                                     Sect. 3.4.1 (Brosse et al. 2018)
theory         `Theory`                            expected error       none: `sgtune.theory`, arXiv 2606.00293
============== =================================== ==================== =========================================
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from sgtune.model import Model
from sgtune.samplers import resolve_sampler
from sgtune.sampling.budget import Budget, batch_size_of
from sgtune.support.axes import Arm
from sgtune.support.errors import InputError, check_choice, check_integer, check_number
from sgtune.theory.recursions import check_known
from sgtune.tuning.foresight import Choice, foresee
from sgtune.tuning.grid import (
    LEAPFROGS,
    check_listed,
    check_names,
    default_fractions,
    fitted_step_sizes,
    make_arms,
    remarks_on_default,
)
from sgtune.tuning.horizon import at_horizon
from sgtune.tuning.judges import Judge, predictive, stein
from sgtune.tuning.race import Schedule, halving_schedule, single_rung

__all__ = ["TUNERS", "Grid", "GridSearch", "Halving", "Heuristic", "Theory", "Tuner"]


@dataclass(frozen=True)
class Grid:
    """The arms that a tuner chooses from: all combinations.

    Attributes:
        log10_step_sizes: log10 of the step sizes; None: those that fit the sampler, the batch and the posterior
            (`sgtune.tuning.grid.fitted_step_sizes`). The paper's are `sgtune.tuning.grid.LOG10_STEP_SIZES`.
        batch_fractions: shares of the data in a batch; None: 1, and of 0.1, 0.01, 0.001 those that give batches of ten
            rows or more.
        n_leapfrogs: numbers of leapfrogs, for samplers that have them.
        hyperparameters: further axes by name, such as ``{"friction": (0.01, 0.1)}``, for samplers that have them.
    """

    log10_step_sizes: Sequence[float] | None = None
    batch_fractions: Sequence[float] | None = None
    n_leapfrogs: Sequence[int] = LEAPFROGS
    hyperparameters: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def arms(self, n_data: int, sampler: str, curvature: float = 1.0) -> list[Arm]:
        """Every combination of the axes that the sampler has; ``curvature``: the largest of -log pi."""
        numbers = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        further = numbers.pop("hyperparameters")
        if self.log10_step_sizes is not None:
            return make_arms(n_data, sampler, **further, **numbers)
        fractions = self.batch_fractions
        if fractions is None:
            fractions = (1.0,) if resolve_sampler(sampler)[0].needs_all_data else default_fractions(n_data)
        check_listed("batch_fractions", fractions)
        arms = []
        for fraction in fractions:
            batch_size_of(fraction, n_data)
            numbers["batch_fractions"] = (fraction,)
            numbers["log10_step_sizes"] = fitted_step_sizes(sampler, fraction, curvature)
            arms += make_arms(n_data, sampler, **further, **numbers)
        return arms

    def remarks(self, n_data: int) -> list[str]:
        """On the batch fractions that the default grid omits."""
        return remarks_on_default(n_data) if self.batch_fractions is None else []


class Tuner:
    """The interface of a tuner: derive one from it, and pass an object to `sgtune.tune`.

    Attributes:
        name: in results.
        default: the budget, unless one is given.
        judge: of the arms of a race; None for a tuner that runs no arm.
        choose: of a tuner that runs no arm, ``(model, sampler, arms, n_steps, report) -> Choice``, where ``n_steps``
            are the steps of each arm that the horizon pays for. A tuner without judge and ``choose`` makes one arm.
        clock: of a race, ``calibrated`` or ``wall``.
        validation_fraction: of judges by predictions.
        growth: each rung of a race has this factor more points per arm than the last.
    """

    name = "tuner"
    default = Budget(seconds=1.0)
    judge: Judge | None = None
    choose: Callable[[Model, str, list[Arm], list[int], Callable[[str], None]], Choice] | None = None
    clock = "calibrated"
    thin: int | None = None
    points: int | None = None
    validation_fraction = 0.0
    start_noise = 0.0
    growth = 1
    restarts = False
    grid = Grid()

    def arms(self, n_data: int, sampler: str, curvature: float = 1.0) -> list[Arm]:
        """The arms, for ``n_data`` data and the largest ``curvature`` of -log pi."""
        return self.grid.arms(n_data, sampler, curvature)

    def remarks(self, n_data: int) -> list[str]:
        """On the arms, for the result's warnings."""
        return self.grid.remarks(n_data)

    def schedule(self, n_arms: int, amount: float) -> Schedule:
        """The rungs of the race; ``amount`` is the budget."""
        return single_rung(n_arms, amount)

    def __post_init__(self):
        """Check the settings, or raise an `InputError` that names one."""
        # Of a tuner that has none it is an attribute of the class.
        if "judge" in vars(self) and not isinstance(self.judge, Judge):
            raise InputError(
                f"judge: {self.judge!r} is not allowed; it must be a Judge, such as stein('ksd')"
            )
        if not isinstance(self.grid, Grid):
            raise InputError(f"grid: {self.grid!r} is not allowed; it must be a Grid")
        check_choice("clock", self.clock, ("calibrated", "wall"))
        for name in ("points", "thin"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), at_least=1)
        check_number("start_noise", self.start_noise, at_least=0)
        check_names(self.grid.hyperparameters)

    @property
    def tasks(self) -> tuple[str, ...] | None:
        """The tasks of the models that it can judge, if it judges by predictions."""
        return None if self.judge is None else self.judge.tasks


def _one_fraction(sampler: str, fraction: float) -> float:
    """The share of the data in a batch, where it is not tuned: 1 for samplers that need all data."""
    return 1.0 if resolve_sampler(sampler)[0].needs_all_data else fraction


@dataclass(frozen=True)
class Halving(Tuner):
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
            the judge is `predictive`; 0 for none. Costs and records are those of the model with all rows.
        clock: ``calibrated`` (lockstep, reproducible) or ``wall`` (one arm at a time, by the clock).
        restarts: for the audit of published results: in every rung an arm has fresh momenta at the position where it
            is, and only the rung's own draws judge it. Algorithm 1 keeps the whole state and all draws.
    """

    judge: Judge = field(default_factory=at_horizon)
    pruning_rate: int = 3
    grid: Grid = Grid()
    thin: int | None = None
    points: int | None = None
    validation_fraction: float = 0.0
    clock: str = "calibrated"
    restarts: bool = False

    name = "halving"

    def __post_init__(self):
        check_integer("pruning_rate", self.pruning_rate, at_least=2)
        super().__post_init__()

    @property
    def growth(self) -> int:
        return self.pruning_rate

    def schedule(self, n_arms: int, amount: float) -> Schedule:
        return halving_schedule(n_arms, self.pruning_rate, amount)


@dataclass(frozen=True)
class GridSearch(Tuner):
    """Every arm runs for the same budget, and the best one is chosen (paper Sect. 3.4.1).

    ``grid`` is ``GridSearch()``; ``grid-ksd`` is ``GridSearch(judge=stein("ksd"), batch_fraction=None, start_noise=0.0,
    points=2_000)``.

    Attributes:
        judge: as in `Halving`.
        grid: the arms.
        batch_fraction: the share of the data in the batches of all arms; None: the fractions of the grid.
        start_noise: chains start at the MAP plus Gaussian noise of this sd, in the coordinates that arms run in: with a
            preconditioner in about posterior sds, without one in units of the position.
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

    @property
    def default(self) -> Budget:
        return Budget(seconds=1.0) if self.judge.tasks is None else Budget(steps=5_000)

    def arms(self, n_data: int, sampler: str, curvature: float = 1.0) -> list[Arm]:
        if self.batch_fraction is None:
            return self.grid.arms(n_data, sampler, curvature)
        fraction = _one_fraction(sampler, self.batch_fraction)
        return replace(self.grid, batch_fractions=(fraction,)).arms(n_data, sampler, curvature)

    def remarks(self, n_data: int) -> list[str]:
        return self.grid.remarks(n_data) if self.batch_fraction is None else []


@dataclass(frozen=True)
class Heuristic(Tuner):
    """h = 1 / N (paper Sect. 3.4.1; Brosse et al. 2018); no arm is run. ``heuristic`` is ``Heuristic()``.

    1 / N is the square of the step size where the momentum has unit scale, or the step size that of a position.

    Attributes:
        batch_fraction, n_leapfrog: the chosen arm's values; they are not tuned.
    """

    batch_fraction: float = 0.1
    n_leapfrog: int = 10

    name = "heuristic"
    default = Budget(steps=1)

    def arms(self, n_data: int, sampler: str, curvature: float = 1.0) -> list[Arm]:
        method, _ = resolve_sampler(sampler)
        step_size = (1.0 / n_data) ** (1 / method.step_size_power)
        batch_size = batch_size_of(_one_fraction(sampler, self.batch_fraction), n_data)
        return [Arm(step_size, batch_size, self.n_leapfrog if method.has_leapfrog else None)]

    def remarks(self, n_data: int) -> list[str]:
        return []


@dataclass(frozen=True)
class Theory(Tuner):
    """The arm with the smallest expected error at the horizon, for posteriors close to Gaussian; no arm is run.

    The horizon of `sgtune.tune` (by default its budget) is the budget of a chain of the chosen arm. The expected errors
    are computed by `sgtune.theory`, for SGLD, SGHMC and SGNHT. The result has a warning if the chosen arm is predicted
    to leave the neighbourhood of the mode in which the theory holds. ``theory`` is ``Theory()``.

    Attributes:
        grid: the arms.
        clock: ``calibrated``: the theory needs costs.
    """

    grid: Grid = Grid()
    clock: str = "calibrated"

    name = "theory"
    choose = staticmethod(foresee)

    def arms(self, n_data: int, sampler: str, curvature: float = 1.0) -> list[Arm]:
        check_known(sampler)
        return self.grid.arms(n_data, sampler, curvature)


TUNERS: dict[str, Tuner] = {
    "mamba-ksd": Halving(stein("ksd")),
    "mamba-fssd": Halving(stein("fssd")),
    "mamba": Halving(),
    "mamba-psd": Halving(at_horizon("psd")),
    "mamba-ksd-scaled": Halving(at_horizon("ksd")),
    "grid": GridSearch(),
    "grid-ksd": GridSearch(stein("ksd"), batch_fraction=None, start_noise=0.0, points=2_000),
    "heuristic": Heuristic(),
    **{f"mamba-{name}": Halving(predictive(name)) for name in ("log-loss", "accuracy", "ece", "mce")},
    "theory": Theory(),
}
"""By name; your own entries are added here. With another number: ``dataclasses.replace(TUNERS["grid"], points=20)``."""
