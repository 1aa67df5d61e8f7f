"""One chain for a budget: `sample` and its result."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from warnings import warn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from sgtune.bridges.arviz_trees import constrained, to_arviz
from sgtune.bridges.plots import plot_chains
from sgtune.mode.coordinates import precondition, resolve_preconditioner
from sgtune.model import Model
from sgtune.model.checks import check_saved, saved_facts
from sgtune.model.derived import temper
from sgtune.model.positions import flatten, from_matrix
from sgtune.model.posterior import Density, density_of, scores
from sgtune.model.preconditioner import Preconditioner
from sgtune.samplers import Sampler, published_name
from sgtune.samplers.gradients import GradientEstimator
from sgtune.samplers.metropolis import remarks_on_acceptance
from sgtune.sampling.arm import Arm, check_position, shape_of
from sgtune.sampling.budget import Budget, CostTable, check_budget
from sgtune.sampling.by_clock import advance_for
from sgtune.sampling.diagnosis import Diagnosis, as_chains, diagnose, parameter_names
from sgtune.sampling.lockstep import Lockstep, data_terms
from sgtune.support.errors import check_integer
from sgtune.support.files import read_record, write_record
from sgtune.support.randomness import LARGEST_SEED

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import DataTree

__all__ = ["FEWEST_STEPS", "Chain", "sample"]


FEWEST_STEPS = 10
"""An arm makes at least this many steps before it is judged, and so does a chain whose steps come from a cost table,
even if they cost more than the budget."""

KEPT_BYTES = 512 * 2**20
"""A chain keeps at most this many bytes of draws."""

LOOKED_AT, LOOKED_AT_BYTES = 200, 32 * 2**20
"""At most so many kept draws, and so many bytes of them, have their log prior looked at."""


SAVED = (
    *("stride", "n_samples", "seconds", "diverged", "clock", "seconds_per_step", "statistics", "warnings"),
    "sampler",
)
"""What a file of a chain has as it is."""


@dataclass(frozen=True, repr=False)
class Chain:
    """The result of `sample`.

    Attributes:
        draws: kept positions, flat: ``(n_kept, D)`` float32, evenly spaced over the chain.
        stride: steps between kept draws.
        n_samples: number of samples (steps) of the chain.
        seconds: wall seconds of sampling, without compilation.
        clock: (seconds, steps so far) at the end of each call; empty for budgets that are not in seconds.
        seconds_per_step: from the cost table that converted seconds to steps; None without a table.
        diverged: whether the chain is no longer finite.
        statistics: the sampler's diagnostics of the whole run, name -> number. With a Metropolis test:
            ``acceptance_rate``, the share of all proposals that were accepted; ``mean_acceptance_probability``; and
            ``longest_rejection``, the largest number of rejections in a row. ``sghmc-shang``: ``clipped_share`` and
            ``friction_needed`` (`sgtune.samplers.sghmc_shang`). Other samplers have none.
        warnings: a line if the chain accepted nothing for 1,000 steps in a row, or in a whole run of at least 50
            steps, with advice on what to change; and one if draws have a log prior of -inf. `sample` also issues each
            as a `UserWarning`. `TuningResult.sample` adds what its check finds.
        sampler: the sampler's name.
    """

    model: Model = field(repr=False)
    arm: Arm
    draws: np.ndarray = field(repr=False)
    stride: int
    n_samples: int
    seconds: float
    diverged: bool
    clock: list[tuple[float, int]] = field(default_factory=list, repr=False)
    seconds_per_step: float | None = None
    statistics: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    sampler: str = ""

    @property
    def positions(self) -> PyTree:
        """The kept draws as positions of the model, with a leading axis n_kept."""
        return from_matrix(self.model, self.draws)

    def scores(self, model: Model | None = None) -> PyTree:
        """Full-data scores at the kept draws, in the structure of ``positions``."""
        model = model or self.model
        return from_matrix(model, scores(model, self.draws))

    def constrained(self) -> dict[str, np.ndarray]:
        """The kept draws in the model's own terms, by name: ``(n_kept, ...)`` arrays of ``model.constrain``, or the
        leaves of ``positions``."""
        return constrained(self.model, self.draws)

    def to_arviz(self, *, log_likelihood: bool = False, tuning: Any = None) -> "InferenceData | DataTree":
        """The chain for ArviZ (`sgtune.bridges.arviz_trees.to_arviz`, which takes several chains)."""
        return to_arviz([self], log_likelihood=log_likelihood, tuning=tuning)

    def check(self, **options: Any) -> Diagnosis:
        """What is wrong with the draws, parameter by parameter (`sgtune.diagnose`, which takes several chains).

        Args:
            options: of `sgtune.diagnose`.
        """
        return diagnose(self.model, self, **options)

    def plot(self, most: int = 4, diagnosis: Diagnosis | None = None) -> np.ndarray:
        """Traces and marginal densities of the ``most`` parameters that are worst by ``diagnosis``, or by `check`.

        Returns:
            ``(most, 2)`` axes.

        Raises:
            InputError: seaborn is not installed.
        """
        worst = (diagnosis or self.check()).table.index[:most].tolist()
        places = [parameter_names(self.model).index(name) for name in worst]
        return plot_chains(as_chains(self.model, self)[:, :, places], worst, self.stride)

    def save(self, path: str | Path) -> None:
        """Write it as an ``.npz`` file, whole or not at all, without its model."""
        others = {name: getattr(self, name) for name in SAVED}
        record = {**saved_facts(self.model), "arm": dict(self.arm), **others}
        write_record(path, "chain", record, {"draws": self.draws})

    @classmethod
    def load(cls, path: str | Path, model: Model) -> "Chain":
        """The chain that `save` wrote, of ``model``.

        Raises:
            DataError: the file cannot be read, or is of something else.
            InputError: it is a chain of another model.
        """
        record, arrays = read_record(path, "chain", {"arm", *SAVED})
        check_saved(path, record, model)
        record["clock"] = [(seconds, steps) for seconds, steps in record["clock"]]
        others = {name: record[name] for name in SAVED}
        return cls(
            model=model, arm=Arm(**record["arm"]), draws=as_chains(model, arrays["draws"])[0], **others
        )

    def __repr__(self) -> str:
        n_kept, dimension = self.draws.shape
        state = ", diverged" if self.diverged else ""
        return (
            f"Chain({self.sampler} on {self.model.name!r}: {n_kept:,} draws of {self.n_samples:,} steps, "
            f"D={dimension}, {self.seconds:.3g} s{state}, {self.arm})"
        )

    def made_by(self, seconds: float) -> int:
        """How many samples the chain had made ``seconds`` after its start (0 without a clock or a cost table)."""
        if self.seconds_per_step is not None:
            return min(self.n_samples, int(seconds / self.seconds_per_step))
        return max((steps for at, steps in self.clock if at <= seconds), default=0)


def sample(
    model: Model,
    sampler: str | Sampler,
    *,
    gradient: GradientEstimator | None = None,
    step_size: float,
    batch_size: int,
    n_leapfrog: int | None = None,
    budget: Budget,
    seed: int = 0,
    replicate: int | str = 0,
    position: PyTree | None = None,
    centre: PyTree | None = None,
    kept_draws: int | None = None,
    cost: CostTable | None = None,
    inverse_temperature: float | None = None,
    preconditioner: str | Preconditioner | ArrayLike = "none",
    **hyperparameters: float,
) -> Chain:
    """Run one chain of ``sampler`` for ``budget``.

    A step is one sample of the chain (``n_leapfrog`` leapfrogs for SGHMC and HMC). ``step_size`` is e in
    theta + e * grad log pi + sqrt(2 e) * noise, h of SGHMC, SGNHT and HMC, and gamma of AdamMCMC. For the samplers
    whose momentum has unit scale (CCAdL, mCCAdL, ``sghmc-shang``, ``sgnht-shang``) it is the h of theta + h * p, the
    square root of such an h.

    Args:
        model: the posterior, from `sgtune.define_model` or `sgtune.study.load_model`.
        sampler: a name of `sgtune.samplers.sampler_names`, such as ``sgld`` or ``sghmc-cv``, or the sampler itself.
        gradient: the gradient estimator, such as `sgtune.gradients.control_variate`; what the name says if it is None.
        step_size: see above.
        batch_size: n, from 1 to N. N gives exact gradients; ``mala``, ``hmc`` and ``adam-mcmc-exact`` need n = N.
        n_leapfrog: leapfrogs in a step, for SGHMC and HMC; None for all other samplers.
        budget: seconds of wall clock, steps, or data terms of gradients.
        seed: root seed of all random streams. A chain whose number of steps does not depend on the clock is the same
            for the same arguments.
        replicate: another name gives another chain of the same seed.
        position: the start; None: the MAP.
        centre: the centre of the control variates; for a sampler with a Metropolis test, a position near which the log
            density is exact in float32. None: the MAP. Pass a centre if finding the MAP takes too long.
        kept_draws: the largest number of draws that are kept, evenly spaced; they take at most 512 MB. Peak memory is
            twice the memory of the kept draws.
        cost: converts a budget in seconds to steps, at least ten, the same on every machine. None: it runs by the
            wall clock.
        inverse_temperature: lambda of the Gibbs posterior to sample (`sgtune.temper`); None: N, the ordinary posterior.
        preconditioner: the coordinates z in which the chain runs, theta = c + L z: ``none``, ``laplace``
            (`sgtune.mode.coordinates.laplace_preconditioner`), a `Preconditioner`, such as that of a `TuningResult`, or
            the scale L of the posterior about the MAP: D sds, or a lower-triangular matrix. `Preconditioner` has the
            equations. ``step_size``, and all other hyperparameters, are then for z; draws, ``position`` and ``centre``
            are theta. The chain starts, and control variates are centred, where the preconditioner says; an array is
            about ``centre`` if that is given, and no MAP is searched for.
        hyperparameters: the sampler's other hyperparameters, such as ``friction``. The chain's noise does not depend on
            them: chains that differ only in them use the same random numbers.

    Returns:
        The chain. A chain that diverged is returned, too: ``diverged`` says so.

    Raises:
        InputError: an argument is not allowed, or a sampler with a Metropolis test would start where its log
            density is not finite.
    """
    sampler = published_name(sampler, gradient)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    check_budget(budget)
    if inverse_temperature is not None:
        model = temper(model, inverse_temperature)
    given = model
    if centre is not None:
        centre = check_position("centre", given, centre)
    at = None if centre is None else flatten(centre)
    preconditioner = resolve_preconditioner(model, preconditioner, at)
    if preconditioner is not None:
        model = precondition(given, preconditioner)
        position = (
            preconditioner.start if position is None else flatten(check_position("position", given, position))
        )
        position = preconditioner.coordinates(position[None])[0]
        if centre is not None:
            centre = preconditioner.coordinates(at[None])[0]
    most_kept = max(1, KEPT_BYTES // (4 * model.dimension))
    if kept_draws is not None:
        most_kept = min(most_kept, check_integer("kept_draws", kept_draws, at_least=1))
    ensemble = Lockstep.at_mode(
        model,
        sampler,
        [Arm(step_size, batch_size, n_leapfrog)],
        seed=seed,
        replicate=replicate,
        position=position,
        centre=centre,
        overrides=hyperparameters,
    )
    if budget.seconds is None or cost is None:
        chain = run_chain(ensemble, budget, most_kept)
    else:
        seconds_per_step = cost.lookup(*shape_of(sampler, ensemble.arms[0]))
        steps = max(FEWEST_STEPS, int(budget.seconds / seconds_per_step))
        chain = replace(
            run_chain(ensemble, Budget(steps=steps), most_kept), seconds_per_step=seconds_per_step
        )
    if preconditioner is not None:
        chain = replace(chain, model=given, draws=preconditioner.positions(chain.draws))
    if not chain.diverged:
        chain = replace(chain, warnings=[*chain.warnings, *_outside(given, chain.draws)])
    for line in chain.warnings:
        warn(line, stacklevel=2)
    return chain


def run_chain(ensemble: Lockstep, budget: Budget, most_kept: int) -> Chain:
    """The first chain of ``ensemble`` for ``budget``, with at most ``most_kept`` of its draws."""
    model, arm = ensemble.model, ensemble.arms[0]
    gradients_per_step = data_terms(model, ensemble.sampler_name, arm)
    clock: list[tuple[float, int]] = []
    if budget.seconds is not None:
        draws, stride, clock = advance_for(ensemble, budget.seconds, most_kept)
        seconds = clock[-1][0]
    else:
        n_steps = max(
            1, budget.steps_for(budget.amount, seconds_per_step=None, gradients_per_step=gradients_per_step)
        )
        stride = -(-n_steps // most_kept)
        ensemble.advance_chunk(0)
        began = perf_counter()
        draws = ensemble.advance(n_steps, stride)
        seconds = perf_counter() - began
    draws = draws[:, 0]
    statistics = {name: float(values[0]) for name, values in ensemble.statistics.items()}
    return Chain(
        model=model,
        arm=arm,
        draws=draws,
        stride=stride,
        n_samples=ensemble.steps_done,
        seconds=seconds,
        # Steps after the last kept draw count, too.
        diverged=not all(np.isfinite(leaf[0]).all() for leaf in jax.tree.leaves(ensemble.states.position)),
        clock=clock,
        statistics=statistics,
        sampler=ensemble.sampler_name,
        warnings=remarks_on_acceptance(
            ensemble.sampler_name,
            ensemble.sampler.when_stuck,
            statistics,
            {name: values.reshape(-1)[0].item() for name, values in ensemble.hyperparameters.items()},
        ),
    )


@jax.jit
def _log_priors(density: Density, positions: PyTree) -> jax.Array:
    return jax.lax.map(density.log_prior, positions)


def _outside(model: Model, draws: np.ndarray) -> list[str]:
    """A line if draws lie where the log prior is -inf: gradients do not show a sampler this border."""
    if not len(draws):
        return []
    # Their number does not depend on the chain, so that chains share a program.
    n_looked = max(1, min(LOOKED_AT, LOOKED_AT_BYTES // (4 * model.dimension)))
    some = draws[np.linspace(0, len(draws) - 1, n_looked).astype(int)]
    priors = np.asarray(_log_priors(density_of(model), jax.tree.map(jnp.asarray, from_matrix(model, some))))
    share = np.isneginf(priors).mean()
    if not share:
        return []
    return [
        f"{100 * share:.2g}% of the draws of {model.name!r} have a log prior of -inf: gradients do not show a sampler "
        "where the prior ends; transform the parameter so that all values are allowed"
    ]
