"""One chain for a budget, or several in one program: `sample` and its results."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from sgtune.mode.coordinates import check_preconditioner, precondition, resolve_preconditioner
from sgtune.mode.find import map_result
from sgtune.mode.modes import Modes, modes_of
from sgtune.model import Model
from sgtune.model.checks import check_saved, saved_facts
from sgtune.model.derived import temper
from sgtune.model.positions import check_position, flatten, from_matrix
from sgtune.model.posterior import Density, density_of, scores
from sgtune.model.preconditioner import Preconditioner
from sgtune.samplers import Sampler, published_name
from sgtune.samplers.gradients import GradientEstimator
from sgtune.samplers.metropolis import remarks_on_acceptance
from sgtune.sampling.arm import Arm, as_saved, check_arm, from_saved, shape_of
from sgtune.sampling.budget import Budget, CostTable, check_budget, check_cost_table
from sgtune.sampling.by_clock import advance_for
from sgtune.sampling.diagnosis import Diagnosis, affordable, as_chains, diagnose, parameter_names
from sgtune.sampling.lockstep import Lockstep, are_finite, data_terms, independent_chains
from sgtune.sampling.starts import given_starts, wide_starts
from sgtune.support.errors import InputError, check_integer
from sgtune.support.files import read_record, write_record
from sgtune.support.randomness import LARGEST_SEED

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import DataTree

__all__ = ["FEWEST_STEPS", "Chain", "Chains", "sample"]


FEWEST_STEPS = 10
"""An arm makes at least this many steps before it is judged, and so does a chain whose steps come from a cost table,
even if they cost more than the budget."""

KEPT_BYTES = 512 * 2**20
"""A call keeps at most this many bytes of draws, of all its chains together."""

LOOKED_AT, LOOKED_AT_BYTES = 200, 32 * 2**20
"""At most so many kept draws, and so many bytes of them, have their log prior looked at."""


SAVED = (
    *("stride", "n_samples", "seconds", "diverged", "clock", "seconds_per_step", "statistics", "warnings"),
    *("sampler", "data_terms", "forecast"),
)
"""What a file of a chain has as it is."""

SAVED_OF_ALL = ("warnings", "seconds", "check_cost")
"""What a file of several chains has beside theirs."""


@dataclass(frozen=True, eq=False, repr=False)
class Chain:
    """The result of `sample`.

    Attributes:
        arm: all hyperparameters, with the ``preconditioner`` of the coordinates that they are for, if there is one:
            ``sample(model, sampler, **chain.arm, budget=...)`` runs a chain like it.
        draws: kept positions, flat: ``(n_kept, D)`` float32, evenly spaced over the chain.
        stride: steps between kept draws.
        n_samples: number of samples (steps) of the chain.
        seconds: wall seconds of sampling, without compilation; of chains in one program, each has an equal share.
        clock: (seconds, steps so far) at the end of each call; empty for budgets that are not in seconds.
        seconds_per_step: from the cost table that converted seconds to steps; None without a table.
        diverged: whether the chain is no longer finite, or has never left a start at which its log density is not.
        statistics: the sampler's diagnostics of the whole run, name -> number. With a Metropolis test:
            ``acceptance_rate``, the share of all proposals that were accepted; ``mean_acceptance_probability``; and
            ``longest_rejection``, the largest number of rejections in a row. ``sghmc-shang``: ``clipped_share`` and
            ``friction_needed`` (`sgtune.samplers.sghmc_shang`). Other samplers have none.
        warnings: a line if the chain accepted nothing for 1,000 steps in a row, or in a whole run of at least 50
            steps, with advice on what to change; and one if draws have a log prior of -inf or NaN. `sample` also
            issues each as a `UserWarning`. `TuningResult.sample` adds what its check finds.
        sampler: the sampler's name.
        data_terms: of the gradients of all its steps (`sgtune.Budget`).
        forecast: the error that tuning expected of it, if `TuningResult.sample` made it for the length that was
            planned; `check` shows it.
        diagnosis: what `TuningResult.sample` found when it checked the chain; not saved.
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
    data_terms: int = 0
    forecast: float | None = None
    diagnosis: Diagnosis | None = field(default=None, repr=False)

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

    def to_arviz(self, **options: Any) -> "InferenceData | DataTree":
        """The chain for ArviZ (`sgtune.bridges.arviz_trees.to_arviz`, which takes several chains, and has the
        ``options``)."""
        return to_arviz([self], **options)

    def check(self, **options: Any) -> Diagnosis:
        """What is wrong with the draws, parameter by parameter (`sgtune.diagnose`, which takes several chains).

        Args:
            options: of `sgtune.diagnose`. ``most_terms`` is what the chain took, unless given, or the least that a
                check takes (`sgtune.sampling.diagnosis.affordable`).

        Raises:
            InputError: fewer than 20 draws are finite, or an option is not allowed.
        """
        return diagnose(self.model, self, **{"most_terms": affordable([self], 1), **options})

    def plot(self, most: int = 4, diagnosis: Diagnosis | None = None) -> np.ndarray:
        """Traces and marginal densities of the ``most`` parameters that are worst by ``diagnosis``, by that of the
        chain, or by `check`; the first ones if there are too few draws for a check.

        Returns:
            ``(most, 2)`` axes.

        Raises:
            InputError: seaborn is not installed.
        """
        return _traces(self, self, most, diagnosis)

    def save(self, path: str | Path) -> None:
        """Write it as an ``.npz`` file, whole or not at all, without its model.

        Raises:
            DataError: ``path`` has another suffix than .npz, or the disk is full.
        """
        record, arrays = self._record()
        write_record(path, "chain", {**saved_facts(self.model), **record}, {"draws": self.draws, **arrays})

    @classmethod
    def load(cls, path: str | Path, model: Model) -> "Chain":
        """The chain that `save` wrote, of ``model``.

        Raises:
            DataError: the file cannot be read, or is of something else.
            InputError: it is a chain of another D, or of other data than the model's. A changed prior is not seen.
        """
        record, arrays = read_record(path, "chain", {"arm", "draws", *SAVED})
        check_saved(path, record, model)
        draws = arrays.pop("draws")
        return cls._of(model, from_saved(path, record["arm"], arrays), record, draws)

    def _record(self) -> tuple[dict, dict[str, np.ndarray]]:
        """What a file has of it, beside its draws."""
        numbers, arrays = as_saved(self.arm)
        return {"arm": numbers, **{name: getattr(self, name) for name in SAVED}}, arrays

    @classmethod
    def _of(cls, model: Model, arm: Arm, record: dict, draws: np.ndarray) -> "Chain":
        """The inverse of `_record`."""
        record["clock"] = [(seconds, steps) for seconds, steps in record["clock"]]
        return cls(model=model, arm=arm, draws=draws, **{name: record[name] for name in SAVED})

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


def _traces(chain: Chain, run: "Chain | Chains", most: int, diagnosis: Diagnosis | None) -> np.ndarray:
    worst = names = parameter_names(chain.model)
    with suppress(InputError):
        worst = (diagnosis or run.diagnosis or run.check()).table.index.tolist()
    worst = worst[:most]
    places = [names.index(name) for name in worst]
    labels = [
        f"{name}\n(unconstrained)" if is_other else name
        for name, is_other in zip(worst, _is_other(chain)[places], strict=True)
    ]
    return plot_chains(as_chains(chain.model, run)[:, :, places], labels, chain.stride)


def _is_other(chain: Chain) -> np.ndarray:
    """Whether what the model calls by a parameter's name is another number than the sampler's, such as its
    exponential."""
    one = chain.draws[:1]
    theirs = constrained(chain.model, one)
    found = []
    for name, ours in constrained(replace(chain.model, constrain=None), one).items():
        same = theirs.get(name, ours)
        is_other = same.shape != ours.shape or not np.allclose(same, ours, equal_nan=True)
        found.append(np.full(ours.size, is_other))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False, repr=False)
class Chains(Sequence[Chain]):
    """Chains of one arm that ran in one program: the result of `sample` with ``chains``, a sequence of `Chain`.

    All have as many draws. Each has its own minibatches and noise. A slice is of the same run, without its check and
    modes, with its share of the seconds; an empty one is (). Draws of the chains may be views of one array.

    Attributes:
        chains: the chains; a chain that diverged is among them.
        warnings: a line that names the modes, if the search found several; one that names the chains that diverged; and
            those of the chains, with the numbers of the chains, from 0. `sample` issues each as a `UserWarning`.
        seconds: wall seconds of the call: the search for modes, compilation, and sampling.
        modes: what the starts of the search for the mode found; None if there was no search.
        tuning: the `sgtune.TuningResult` that chose the arm, if `TuningResult.sample` or `sgtune.tune_and_sample` made
            the chains.
        check_cost: data terms and seconds of the check afterwards, if there was one.
        diagnosis: what it found; not saved.
    """

    chains: tuple[Chain, ...]
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    modes: Modes | None = None
    tuning: Any = None
    check_cost: Mapping[str, float] | None = None
    diagnosis: Diagnosis | None = None

    def __len__(self) -> int:
        return len(self.chains)

    def __getitem__(self, number):
        chosen = self.chains[number]
        if not isinstance(number, slice):
            return chosen
        # Lines about chains have their numbers.
        others = {"warnings": _lines(chosen), "modes": None, "diagnosis": None, "check_cost": None}
        return (
            replace(self, chains=chosen, seconds=self.seconds * len(chosen) / len(self), **others)
            if chosen
            else ()
        )

    @property
    def draws(self) -> np.ndarray:
        """Kept draws, flat: ``(k, n_kept, D)`` float32; a copy of those of the chains."""
        return np.stack([chain.draws for chain in self.chains])

    @property
    def positions(self) -> PyTree:
        """The kept draws as positions of the model, with leading axes k and n_kept."""
        return jax.tree.map(self._split, from_matrix(self.chains[0].model, np.concatenate(self._rows)))

    def constrained(self) -> dict[str, np.ndarray]:
        """The kept draws in the model's own terms, by name: ``(k, n_kept, ...)`` arrays, as `Chain.constrained`."""
        named = constrained(self.chains[0].model, np.concatenate(self._rows))
        return {name: self._split(values) for name, values in named.items()}

    def to_arviz(self, *, tuning: Any = None, **options: Any) -> "InferenceData | DataTree":
        """The chains for ArviZ (`sgtune.bridges.arviz_trees.to_arviz`, which has the ``options``), with the record of
        the tuning.

        Args:
            tuning: None: ``self.tuning``.
        """
        tuning = self.tuning if tuning is None else tuning
        result = to_arviz(self.chains, tuning=tuning, **options)
        result["posterior"].attrs["warnings"] = "\n".join(self.warnings)
        return result

    def check(self, **options: Any) -> Diagnosis:
        """What is wrong with the draws of all chains together (`sgtune.diagnose`), as `Chain.check`."""
        return diagnose(self.chains[0].model, self, **{"most_terms": affordable(self, 1), **options})

    def plot(self, most: int = 4, diagnosis: Diagnosis | None = None) -> np.ndarray:
        """As `Chain.plot`, with a colour for each chain.

        Raises:
            InputError: seaborn is not installed.
        """
        return _traces(self.chains[0], self, most, diagnosis)

    def save(self, path: str | Path) -> None:
        """Write them as one ``.npz`` file, whole or not at all, without the model and the tuning, which can `save`
        itself.

        Raises:
            DataError: ``path`` has another suffix than .npz, or the disk is full.
        """
        records, (arrays, *_) = zip(*(chain._record() for chain in self), strict=True)
        record = {"chains": records, **{name: getattr(self, name) for name in SAVED_OF_ALL}}
        facts = saved_facts(self.chains[0].model)
        arrays = {**arrays, "draws": self.draws, **({} if self.modes is None else self.modes._asdict())}
        write_record(path, "sequence of chains", {**facts, **record}, arrays)

    @classmethod
    def load(cls, path: str | Path, model: Model) -> "Chains":
        """The chains that `save` wrote, of ``model``.

        Raises:
            DataError: the file cannot be read, or is of something else.
            InputError: they are of another D, or of other data than the model's. A changed prior is not seen.
        """
        record, arrays = read_record(path, "sequence of chains", {"chains", "draws", *SAVED_OF_ALL})
        check_saved(path, record, model)
        draws = arrays.pop("draws")
        modes = {name: arrays.pop(name) for name in Modes._fields if name in arrays}
        arm = from_saved(path, record["chains"][0]["arm"], arrays)
        chains = [Chain._of(model, arm, *each) for each in zip(record["chains"], draws, strict=True)]
        others = {name: record[name] for name in SAVED_OF_ALL}
        return cls(tuple(chains), modes=Modes(**modes) if modes else None, **others)

    @property
    def diverged(self) -> tuple[bool, ...]:
        """Whether each chain is no longer finite."""
        return tuple(chain.diverged for chain in self.chains)

    @property
    def data_terms(self) -> int:
        """Data terms of gradients of all chains together."""
        return sum(chain.data_terms for chain in self.chains)

    @property
    def cost(self) -> dict[str, dict[str, float]]:
        """``data_terms`` of gradients and wall ``seconds`` of each part: ``races`` and ``pilots`` of the tuning, if
        there was one, ``chains``, the ``check`` after a run of a tuning's result, and their ``total``. Seconds have
        those of the search for the mode, which is part of the races if there are any, and of compilation; data terms do
        not have those of the search."""
        parts = {"chains": {"data_terms": self.data_terms, "seconds": self.seconds}}
        parts |= {"check": self.check_cost} if self.check_cost else {}
        if self.tuning is not None:
            names = ("data_terms", "seconds")
            pilots = {name: sum(pilot[name] for pilot in self.tuning.pilots) for name in names}
            whole = {"data_terms": self.tuning.gradient_evaluations, "seconds": self.tuning.seconds["total"]}
            parts = {"races": {name: whole[name] - pilots[name] for name in names}, "pilots": pilots, **parts}
        total = {name: sum(part[name] for part in parts.values()) for name in ("data_terms", "seconds")}
        return {**parts, "total": total}

    def __repr__(self) -> str:
        first = self.chains[0]
        n_kept, dimension = first.draws.shape
        lines = [
            f"Chains: {len(self)} of {first.sampler} on {first.model.name!r}, {n_kept:,} draws each of "
            f"{first.n_samples:,} steps, D={dimension}",
            f"{first.arm}",
            *(
                f"{name:<7}{part['data_terms']:>12.3g} data terms {part['seconds']:>9.3g} s"
                for name, part in self.cost.items()
            ),
            *dict.fromkeys([*([] if self.tuning is None else self.tuning.warnings), *self.warnings]),
        ]
        return "\n".join(lines)

    @property
    def _rows(self) -> list[np.ndarray]:
        return [chain.draws for chain in self.chains]

    def _split(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(len(self), -1, *values.shape[1:])


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
    chains: int | None = None,
    n_starts: int | None = None,
    **hyperparameters: float,
) -> Chain | Chains:
    """Run one chain of ``sampler`` for ``budget``, or ``chains`` of them in one program.

    A step is one sample of the chain (``n_leapfrog`` leapfrogs for SGHMC and HMC). ``step_size`` is e in
    theta + e * grad log pi + sqrt(2 e) * noise, h of SGHMC, SGNHT and HMC, and gamma of AdamMCMC. For the samplers
    whose momentum has unit scale (CCAdL, mCCAdL, ``sghmc-shang``, ``sgnht-shang``) it is the h of theta + h * p, the
    square root of such an h.

    Args:
        model: the posterior, from `sgtune.define_model`.
        sampler: a name of `sgtune.samplers.sampler_names`, such as ``sgld`` or ``sghmc-cv``, or the sampler itself.
        gradient: the gradient estimator, such as `sgtune.gradients.control_variate`; what the name says if it is None.
        step_size: see above.
        batch_size: n, from 1 to N. N gives exact gradients; ``mala``, ``hmc`` and ``adam-mcmc-exact`` need n = N.
        n_leapfrog: leapfrogs in a step, for SGHMC and HMC; None for all other samplers.
        budget: seconds of wall clock, steps, or data terms of gradients. Each chain has it: k chains spend k times as
            much, and run k times as many seconds, of which each has its share.
        seed: root seed of all random streams. A chain whose number of steps does not depend on the clock is the same
            for the same arguments.
        replicate: another name gives another chain of the same seed.
        position: the start; None: the MAP, or with ``chains`` a draw for each from the approximation of the posterior
            that the preconditioner is, or else Laplace's, twice as wide as it is (`sgtune.sampling.starts.WIDER`).
            With ``chains`` a start for each may be given, by a leading axis of every leaf.
        centre: the centre of the control variates; for a sampler with a Metropolis test, a position near which the log
            density is exact in float32. None: the MAP. Pass a centre if finding the MAP takes too long.
        kept_draws: the largest number of draws of a chain that are kept, evenly spaced, so that there may be half as
            many; those of all chains take at most 512 MB. Peak memory is twice the memory of the kept draws.
        cost: converts a budget in seconds to steps, at least ten, the same on every machine. None: it runs by the
            wall clock.
        inverse_temperature: lambda of the Gibbs posterior to sample (`sgtune.temper`); None: N, the ordinary posterior.
        preconditioner: the coordinates z in which the chain runs, theta = c + L z: ``none``, ``laplace``
            (`sgtune.mode.coordinates.laplace_preconditioner`), a `Preconditioner`, such as that of a `TuningResult`, or
            the scale L of the posterior about the MAP: D sds, or a lower-triangular matrix. `Preconditioner` has the
            equations. ``step_size``, and all other hyperparameters, are then for z; draws, ``position`` and ``centre``
            are theta. The chain starts, and control variates are centred, where the preconditioner says; an array is
            about ``centre`` if that is given, and no MAP is searched for.
        chains: how many chains to run, with minibatches and noise of their own; None: one, as a `Chain`. A chain that
            diverges is named in a warning; it is not replaced.
        n_starts: starts of the search for the MAP (`sgtune.mode.find.find_map`), each at the cost of one. None: one, or
            ``chains``, but none for a `Preconditioner`, which has a centre. They do not depend on ``seed``. Of several
            modes the MAP is the best; each of ``chains`` starts about the mode that its own search found, and control
            variates are centred there, at ``centre`` if that is given.
        hyperparameters: the sampler's other hyperparameters, such as ``friction``. The chain's noise does not depend on
            them: chains that differ only in them use the same random numbers.

    Returns:
        The chain, or `Chains`. A chain that diverged is returned, too: ``diverged`` and a warning say so.

    Raises:
        InputError: an argument is not allowed, or a sampler with a Metropolis test would start where its log
            density is not finite.
    """
    began = perf_counter()
    sampler = published_name(sampler, gradient)
    check_integer("seed", seed, at_least=0, at_most=LARGEST_SEED)
    check_budget(budget)
    check_cost_table(cost)
    n_chains = 1 if chains is None else check_integer("chains", chains, at_least=1)
    if n_starts is not None:
        check_integer("n_starts", n_starts, at_least=1)
    arm = check_arm(model, sampler, Arm(step_size, batch_size, n_leapfrog), hyperparameters)
    # Random streams are named by ``arm`` alone.
    whole = Arm(**arm, **hyperparameters)
    check_preconditioner(model, preconditioner)
    if inverse_temperature is not None:
        model = temper(model, inverse_temperature)
    given = model
    for name, tree in (("position", position), ("centre", centre)):
        if not all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(tree)):
            raise InputError(f"{name}: holds numbers that are not finite; all must be")
    if centre is not None:
        centre = check_position("centre", given, centre)
    at = None if centre is None else flatten(centre)
    modes = None
    has_centre = isinstance(preconditioner, Preconditioner) or (
        centre is not None and not isinstance(preconditioner, str)
    )
    if chains is not None and position is None and (n_starts is not None or not has_centre):
        modes = modes_of(given, n_starts or n_chains)
    elif n_starts is not None:
        map_result(given, n_starts=n_starts)
    preconditioner = resolve_preconditioner(model, preconditioner, at)
    if preconditioner is not None:
        model = precondition(given, preconditioner)
        if centre is not None:
            centre = preconditioner.coordinates(at[None])[0]
    most_kept = max(1, KEPT_BYTES // (4 * model.dimension * n_chains))
    if kept_draws is not None:
        most_kept = min(most_kept, check_integer("kept_draws", kept_draws, at_least=1))
    options = {"seed": seed, "replicate": replicate, "centre": centre, "overrides": hyperparameters}
    dead = np.zeros(n_chains, bool)
    remarks: list[str] = []
    if chains is None:
        if preconditioner is not None:
            position = (
                preconditioner.start
                if position is None
                else flatten(check_position("position", given, position))
            )
            position = preconditioner.coordinates(position[None])[0]
        ensemble = Lockstep(model, sampler, [arm], position=position, **options)
    else:
        if position is None:
            starts = wide_starts(given, n_chains, preconditioner, modes, seed, replicate)
        else:
            starts = given_starts(given, position, n_chains, preconditioner)
        remarks += starts.remarks
        ensemble = independent_chains(
            model,
            sampler,
            arm,
            starts.positions,
            centres=starts.centres if centre is None else None,
            own_minibatches=True,
            check_start=starts.are_given,
            **options,
        )
        if ensemble.sampler.uses_log_density:
            dead = ~are_finite(ensemble.states)
    seconds_per_step = None
    if budget.seconds is not None and cost is not None:
        seconds_per_step = cost.lookup(*shape_of(sampler, whole))
        budget = Budget(steps=max(FEWEST_STEPS, int(budget.seconds / seconds_per_step)))
    made = run_chains(ensemble, budget, most_kept)
    for number, chain in enumerate(made):
        draws = chain.draws if preconditioner is None else preconditioner.positions(chain.draws)
        diverged = chain.diverged or bool(dead[number])
        warnings = chain.warnings if diverged else [*chain.warnings, *_outside(given, draws)]
        made[number] = replace(
            chain,
            model=given,
            arm=Arm(**whole, preconditioner=preconditioner),
            draws=draws,
            diverged=diverged,
            seconds_per_step=seconds_per_step,
            warnings=warnings,
        )
    result = made[0]
    if chains is None and result.diverged:
        result = replace(
            result,
            warnings=[
                "the chain diverged: give a smaller step_size, or a nearer start by position",
                *result.warnings,
            ],
        )
    if chains is not None:
        warnings = remarks + _lines(made)
        result = Chains(tuple(made), warnings, perf_counter() - began, modes)
    for line in result.warnings:
        warn(line, stacklevel=2)
    return result


def run_chains(ensemble: Lockstep, budget: Budget, most_kept: int) -> list[Chain]:
    """The chains of ``ensemble``, each for ``budget``, with at most ``most_kept`` of its draws."""
    model, arm, width = ensemble.model, ensemble.arms[0], ensemble.width
    terms_per_step = data_terms(model, ensemble.sampler_name, arm)
    clock: list[tuple[float, int]] = []
    if budget.seconds is not None:
        draws, stride, clock = advance_for(ensemble, width * budget.seconds, most_kept)
        clock = [(seconds / width, steps) for seconds, steps in clock]
        seconds = clock[-1][0]
    else:
        n_steps = max(1, int(budget.amount / (1 if budget.steps is not None else terms_per_step)))
        stride = -(-n_steps // most_kept)
        ensemble.advance_chunk(0)
        began = perf_counter()
        draws = ensemble.advance(n_steps, stride)
        seconds = (perf_counter() - began) / width
    # Steps after the last kept draw count, too.
    finite, of_all = ensemble.finite, ensemble.statistics
    made = []
    for number in range(width):
        statistics = {name: float(values[number]) for name, values in of_all.items()}
        remarks = remarks_on_acceptance(
            ensemble.sampler_name,
            ensemble.sampler.when_stuck,
            statistics,
            {name: values.reshape(-1)[0].item() for name, values in ensemble.hyperparameters.items()},
        )
        made.append(
            Chain(
                model=model,
                arm=arm,
                draws=draws[:, number],
                stride=stride,
                n_samples=ensemble.steps_done,
                seconds=seconds,
                diverged=not finite[number],
                clock=clock,
                statistics=statistics,
                sampler=ensemble.sampler_name,
                warnings=remarks,
                data_terms=terms_per_step * ensemble.steps_done,
            )
        )
    return made


def _lines(chains: Sequence[Chain]) -> list[str]:
    """A line that names the chains that diverged, and the chains' own with their numbers."""
    lines = []
    if any(chain.diverged for chain in chains):
        gone = [str(number) for number, chain in enumerate(chains) if chain.diverged]
        lines.append(
            f"chains: {', '.join(gone)} of {len(chains)} diverged; their draws are kept: leave them out, or give a "
            "smaller step_size, or nearer starts by position"
        )
    of_chains: dict[str, list[str]] = {}
    for number, chain in enumerate(chains):
        for line in chain.warnings:
            of_chains.setdefault(line, []).append(str(number))
    return lines + [f"chains {', '.join(numbers)}: {line}" for line, numbers in of_chains.items()]


@jax.jit
def _log_priors(density: Density, positions: PyTree) -> jax.Array:
    return jax.lax.map(density.log_prior, positions)


def _outside(model: Model, draws: np.ndarray) -> list[str]:
    """A line if draws lie where the log prior is -inf, or NaN as log(-1): gradients do not show this border."""
    if not len(draws):
        return []
    # Their number does not depend on the chain, so that chains share a program.
    n_looked = max(1, min(LOOKED_AT, LOOKED_AT_BYTES // (4 * model.dimension)))
    some = draws[np.linspace(0, len(draws) - 1, n_looked).astype(int)]
    priors = np.asarray(_log_priors(density_of(model), jax.tree.map(jnp.asarray, from_matrix(model, some))))
    share = (np.isneginf(priors) | np.isnan(priors)).mean()
    if not share:
        return []
    return [
        f"{100 * share:.2g}% of the draws of {model.name!r} have a log prior of -inf or NaN: gradients do not show a "
        "sampler where the prior ends; transform the parameter so that all values are allowed"
    ]
