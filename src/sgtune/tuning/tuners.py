"""The tuners: each is a schedule, a metric and a start for the engine in `sgtune.tuning.race`; or a rule, with no race.

============== ======================= ==================== ==========================================
name           schedule                judged by            paper
============== ======================= ==================== ==========================================
mamba-*        successive halving      ksd, fssd, ...       Algorithm 1, Sects. 3.2, 3.3.3
grid-ksd       one rung, by seconds    ksd                  Sect. 4.1, App. B.1
grid           one rung, by steps      log-loss, RMSE       Sect. 3.4.1, Apps. B.1.2, B.2.2, B.3.2
heuristic      none: h = 1/N                                Sect. 3.4.1 (Brosse et al. 2018)
theory         none                    expected error       none: `sgtune.theory`, arXiv 2606.00293
============== ======================= ==================== ==========================================
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sgtune.metrics import PREDICTIVE
from sgtune.samplers import resolve_sampler
from sgtune.sampling.arm import Arm
from sgtune.sampling.budget import Budget, batch_size_of
from sgtune.theory.recursions import check_known
from sgtune.tuning.foresight import Choice, foresee
from sgtune.tuning.grid import LEAPFROGS, LOG10_STEP_SIZES, make_arms, remarks_on_default
from sgtune.tuning.halving import Schedule, halving_schedule, single_rung
from sgtune.tuning.horizon import SCORE_ROWS, horizon_metric
from sgtune.tuning.judges import GRID_METRICS, Metric, predictive_metric, stein_metric

__all__ = [
    "TUNERS",
    "Settings",
    "Tuner",
    "full_grid",
    "grid_at_one_batch_size",
    "halving",
    "heuristic_arm",
    "left_out",
    "one_rung",
    "theory",
]


@dataclass(frozen=True)
class Settings:
    """The settings of all tuners; each uses those that concern it. Defaults are the paper's (App. B.1), except
    ``score_fraction``.

    Attributes:
        log10_step_sizes, batch_fractions, n_leapfrogs: the grid of arms. Fractions None: 1, and of 0.1, 0.01,
            0.001 those that give batches of ten rows or more.
        hyperparameters: further axes of the grid by name, such as ``{"friction": (0.01, 0.1)}``; samplers without
            such a hyperparameter ignore it.
        pruning_rate: eta of successive halving.
        thin: every thin-th draw of an arm is used to judge it, but at least ten draws; None for the tuner's own
            default: 10 for the paper's tuners, 1 for those that look ahead.
        points: the largest number of points that judge an arm in the first rung, and eta times as many in each later
            rung; None for the tuner's own default: 500; 2,000 for grid-ksd; 50 for judges of predictions; for tuners
            that look ahead 500, and fewer in many dimensions (`sgtune.tuning.horizon.enough_points`).
        score_fraction: the share of the data in a score (`sgtune.samplers.gradients.subset_scores`); 1 is the paper's
            full batch.
        score_rows: rows of the data in a score, fresh for every draw, for judges that look ahead.
        validation_fraction: the share of the training rows that is held out for tuners that judge by predictions: they
            race on the posterior of the other rows, start at its mode, and never see the test set. 0: they judge by the
            test set. Costs are looked up, and arms recorded, under the model with all rows.
        clock: ``calibrated`` (lockstep, reproducible) or ``wall`` (one arm at a time, by the clock).
        batch_fraction: of grid and heuristic, which do not tune it.
        n_leapfrog: of the heuristic, which does not tune it.
        start_noise: grid search starts chains at the MAP plus Gaussian noise of this sd.
    """

    log10_step_sizes: tuple[float, ...] = LOG10_STEP_SIZES
    batch_fractions: tuple[float, ...] | None = None
    n_leapfrogs: tuple[int, ...] = LEAPFROGS
    hyperparameters: Mapping[str, Sequence[float]] = field(default_factory=dict)
    pruning_rate: int = 3
    thin: int | None = None
    points: int | None = None
    score_fraction: float = 0.1
    score_rows: int = SCORE_ROWS
    validation_fraction: float = 0.0
    clock: str = "calibrated"
    batch_fraction: float = 0.1
    n_leapfrog: int = 10
    start_noise: float = 0.2


@dataclass(frozen=True)
class Tuner:
    """How arms are made, scheduled, started and judged. ``default`` is the budget of the paper; ``tasks`` are the
    tasks of models that it can judge, if it judges by predictions on test data or held-out rows, otherwise None;
    ``remarks`` are on the arms that it makes. ``looks_ahead``: it judges by `horizon_metric`. A tuner with ``choose``,
    ``(model, sampler, arms, n_steps, report) -> Choice``, runs no arm: ``n_steps`` are the steps of each arm that
    the horizon pays for. With ``needs_test`` it can judge only samplers with a Metropolis test."""

    arms: Callable[[int, str, Settings], list[Arm]]
    schedule: Callable[[int, Settings, float], Schedule]
    metric: Callable[[int, Settings], Metric] | None
    default: Budget
    start_noise: Callable[[Settings], float] = field(default=lambda settings: 0.0)
    tasks: tuple[str, ...] | None = None
    points: int | None = 500
    thin: int = 10
    remarks: Callable[[int, Settings], list[str]] = field(default=lambda n_data, settings: [])
    choose: Callable[..., Choice] | None = None
    looks_ahead: bool = False
    needs_test: bool = False


def full_grid(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    """Every combination of the grid's axes that the sampler has: the ``arms`` of most tuners, for ``n_data`` data."""
    return make_arms(
        n_data,
        sampler,
        log10_step_sizes=settings.log10_step_sizes,
        batch_fractions=settings.batch_fractions,
        n_leapfrogs=settings.n_leapfrogs,
        **settings.hyperparameters,
    )


def left_out(n_data: int, settings: Settings) -> list[str]:
    return remarks_on_default(n_data) if settings.batch_fractions is None else []


def _one_fraction(sampler: str, settings: Settings) -> float:
    """The share of the data in a batch, where it is not tuned: 1 for samplers that need all data."""
    return 1.0 if resolve_sampler(sampler)[0].needs_all_data else settings.batch_fraction


def grid_at_one_batch_size(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    return full_grid(n_data, sampler, replace(settings, batch_fractions=(_one_fraction(sampler, settings),)))


def heuristic_arm(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    """e = 1 / N, which is the square of the step size where the momentum has unit scale."""
    method, _ = resolve_sampler(sampler)
    n_leapfrog = settings.n_leapfrog if method.has_leapfrog else None
    return [
        Arm(
            step_size=(1.0 / n_data) ** (1 / method.step_size_power),
            batch_size=batch_size_of(_one_fraction(sampler, settings), n_data),
            n_leapfrog=n_leapfrog,
        )
    ]


def _foreseeable_grid(n_data: int, sampler: str, settings: Settings) -> list[Arm]:
    check_known(sampler)
    return full_grid(n_data, sampler, settings)


def halving(n_arms: int, settings: Settings, amount: float) -> Schedule:
    return halving_schedule(n_arms, settings.pruning_rate, amount)


def one_rung(n_arms: int, settings: Settings, amount: float) -> Schedule:
    """A single rung, in which every arm spends ``amount``: the ``schedule`` of tuners without a race."""
    return single_rung(n_arms, amount)


def _mamba(metric: Callable[[int, Settings], Metric], **options) -> Tuner:
    return Tuner(full_grid, halving, metric, Budget(seconds=1.0), remarks=left_out, **options)


theory = Tuner(_foreseeable_grid, one_rung, None, Budget(seconds=1.0), remarks=left_out, choose=foresee)


def _stein(discrepancy: str, scale: str) -> Callable[[int, Settings], Metric]:
    return lambda seed, settings: stein_metric(discrepancy, scale, seed, settings.score_fraction)


def _ahead(discrepancy: str) -> Tuner:
    """MAMBA that judges by the discrepancy expected at the horizon."""
    return _mamba(
        lambda seed, settings: horizon_metric(discrepancy, seed, settings.score_rows),
        points=None,
        thin=1,
        looks_ahead=True,
    )


def _predictive(name: str | dict[str, str]) -> Callable[[int, Settings], Metric]:
    return lambda seed, settings: predictive_metric(name)


def _mamba_by_predictions(name: str) -> Tuner:
    return _mamba(_predictive(name), tasks=(PREDICTIVE[name].task,), points=50)


TUNERS: dict[str, Tuner] = {
    "mamba-ksd": _mamba(_stein("ksd", "identity")),
    "mamba-fssd": _mamba(_stein("fssd", "identity")),
    "mamba": _ahead("by dimension"),
    "mamba-psd": _ahead("psd"),
    "mamba-ksd-scaled": _ahead("ksd"),
    "grid": Tuner(
        grid_at_one_batch_size,
        one_rung,
        _predictive(GRID_METRICS),
        Budget(steps=5_000),
        lambda settings: settings.start_noise,
        tasks=tuple(GRID_METRICS),
        points=50,
    ),
    "grid-ksd": Tuner(
        full_grid,
        one_rung,
        _stein("ksd", "identity"),
        Budget(seconds=1.0),
        points=2_000,
        remarks=left_out,
    ),
    "heuristic": Tuner(heuristic_arm, one_rung, None, Budget(steps=1)),
    **{f"mamba-{name}": _mamba_by_predictions(name) for name in ("log-loss", "accuracy", "ece", "mce")},
    "theory": theory,
}
"""By name; each is short for an object (`sgtune.tuning.methods`), and your own entries are added here."""
