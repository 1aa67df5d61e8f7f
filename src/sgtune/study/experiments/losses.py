"""The losses of arms: runs of many arms in lockstep, judged after given seconds, in replicates that are pooled.

Screens, fresh runs of finalists and the comparison of horizons are made of these runs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.chain import FEWEST_STEPS
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced
from sgtune.study import catalogue
from sgtune.study.pipeline.parts import Task
from sgtune.study.report.records import grouped
from sgtune.tuning import AllDivergedError, Judge, tune
from sgtune.tuning.judges import ArmDraws, Judgement

WORTH_COMPILING = 10.0
"""If one chain runs for at least this many seconds in all, a program for fewer chains saves more than its compilation
costs, a few seconds. In lockstep with others, superfluous chains cost a third of their seconds or less."""


def capped(loss: str, value: float) -> float:
    """``value``, or the cap (`sgtune.study.catalogue.cap_of`) if it is more or not finite."""
    most = catalogue.cap_of(loss)
    return min(value, most) if isfinite(value) else most


class Losses(NamedTuple):
    """The losses of arms.

    Attributes:
        names: errors against ``reference`` (`sgtune.metrics.reference_errors`) or metrics of the averaged predictions;
            the first is the main one.
        reference: moments of the posterior; None if they are unknown.
        prediction_draws: predictions are averaged over at most this many draws of a run, evenly spaced; 0 for none.
    """

    names: tuple[str, ...]
    reference: metrics.Reference | None = None
    prediction_draws: int = 0

    def of_draws(self, model: Model, draws: Float[np.ndarray, "n d"]) -> dict[str, float]:
        """The losses of one chain's draws."""
        row = {} if self.reference is None else metrics.reference_errors(model, draws, self.reference)
        if self.prediction_draws:
            row |= metrics.predictive_metrics(model, evenly_spaced(draws, self.prediction_draws))
        return {name: row[name] for name in self.names}

    def judge(self, name: str) -> Judge:
        """The judge of an oracle (`true_loss_judge`) that sees the loss ``name``."""
        own = self._replace(names=(name,))
        return true_loss_judge(lambda model, draws: own.of_draws(model, draws)[name])


def true_loss_judge(loss: Callable[[Model, np.ndarray], float]) -> Judge:
    """The judge of an oracle: the true ``loss`` (of a model and draws) of all draws of an arm that a race keeps."""

    def metric(model: Model, arms: list[ArmDraws]) -> Judgement:
        began = perf_counter()
        values = [loss(model, arm.points) if arm.usable else np.inf for arm in arms]
        return Judgement(values, 0.0, perf_counter() - began, 0)

    return Judge(lambda seed: metric, points=10**9, thin=1)


def losses_of(task: Task, prediction_draws: int) -> Losses:
    """The losses for the tuners of a model of the study.

    With a reference without a covariance (many parameters or few draws), errors along eigenvectors are left out.
    """
    names = catalogue.losses_of(task.model.name, task.reference is not None)
    if task.reference is not None and task.reference.covariance is None:
        names = tuple(name for name in names if name != "xi_white")
    return Losses(names, task.reference, prediction_draws)


def run_arms(
    task: Task,
    arms: Sequence[Arm],
    *,
    losses: Losses,
    seconds: Sequence[float],
    replicate: str,
    width: int | None = None,
) -> list[list[dict]]:
    """One replicate of every arm from the MAP, judged after each of ``seconds``, ascending, converted to steps.

    Arms of one shape advance in lockstep, at most ``model.max_lockstep`` at a time: they share their minibatches,
    replicates do not. Errors against the reference are over all draws; predictions are averaged over draws of the same
    spacing. Memory of W chains of D parameters: float64 chunks of `sgtune.sampling.lockstep.CHUNK_BYTES`, and 4 W D
    bytes for each draw that predicts.

    Args:
        width: the number of chains in every ensemble, at most ``model.max_lockstep``: ensembles are filled up with
            copies of the last chain, so that few programs serve all; None: the number of arms of a shape.

    Returns:
        for each arm, for each of ``seconds``: ``steps``, ``diverged``, ``losses``, capped (`capped`), and
        ``acceptance``, the share of proposals accepted so far, if the sampler has a Metropolis test.
    """
    found: dict[Arm, list[dict]] = {}
    shapes = grouped(dict.fromkeys(arms), partial(shape_of, task.sampler)).values()
    abreast = [group for members in shapes for group in task.model.abreast(members)]
    parts = [(group, range(0, len(group), width or len(group))) for group in abreast]
    for group in (own[at : at + starts.step] for own, starts in parts for at in starts):
        began = perf_counter()
        n_copies = 0 if width is None or task.model.max_lockstep else width - len(group)
        filled = group + group[-1:] * n_copies
        ensemble = Lockstep(task.model, task.sampler, filled, seed=task.seed, replicate=replicate)
        price = task.cost.lookup(*shape_of(task.sampler, group[0]))
        steps = [max(FEWEST_STEPS, int(amount / price)) for amount in seconds]
        found |= {arm: [] for arm in group}
        for records in _judged(ensemble, steps, losses):
            # The copies come last.
            for arm, record in zip(group, records, strict=False):
                found[arm].append(record)
        task.report(
            f"{replicate}: {len(group)} arms of batch size {group[0].batch_size} ran {steps[-1]} steps; "
            f"{perf_counter() - began:.1f} s"
        )
    return [found[arm] for arm in arms]


def run_replicates(
    task: Task, arms: Sequence[Arm], name: str, n: int, *, losses: Losses, seconds: Sequence[float]
) -> list[dict]:
    """`run_arms` in ``n`` replicates of this ``name``, each a piece of the job.

    Returns:
        for each arm and each of ``seconds``: the place of the ``arm``, ``seconds``, ``steps``, and lists over
        replicates of ``diverged``, of each of the ``losses``, and of ``acceptance``, if there is one.
    """
    width = len(task.grid.get("log10_step_sizes", ()))
    width = width if 0 < width * seconds[-1] * n < WORTH_COMPILING else None
    run = partial(run_arms, task, arms, losses=losses, seconds=seconds, width=width)
    own, records = [arm.to_record() for arm in arms], []
    runs = [
        task.once(f"{task.sampler} {name} {i}", partial(run, replicate=f"{name} {i}"), arms=own)
        for i in range(n)
    ]
    for (place, _), (number, at) in product(enumerate(arms), enumerate(seconds)):
        rows = [run[place][number] for run in runs]
        record = {"arm": place, "seconds": at, "steps": rows[0]["steps"]}
        record["losses"] = {loss: [row["losses"][loss] for row in rows] for loss in losses.names}
        lists = ("diverged", "acceptance") if "acceptance" in rows[0] else ("diverged",)
        records.append(record | {each: [row[each] for row in rows] for each in lists})
    return records


def _judged(ensemble: Lockstep, steps: Sequence[int], losses: Losses) -> Iterator[list[dict]]:
    """A record for each chain, after each of ``steps`` (`run_arms`)."""
    model, done, kept = ensemble.model, 0, []
    stride = -(-steps[0] // losses.prediction_draws) if losses.prediction_draws else None
    moments = None
    if losses.reference is not None:
        moments = metrics.Moments(model, losses.reference, np.asarray(ensemble.start), ensemble.width)
    for n_steps in steps:
        # Every stride-th draw of the whole run predicts, wherever a chunk begins, or the way to a further judgement.
        if moments is None:
            wanted = stride * np.arange(done // stride + 1, n_steps // stride + 1)
            kept.append(ensemble.advance_to(n_steps, wanted))
            done = n_steps
        while done < n_steps:
            draws = ensemble.advance_chunk(n_steps - done)
            moments.add(draws)
            if stride:
                kept.append(draws[(-done - 1) % stride :: stride].copy())
            done += len(draws)
        rates, records = ensemble.statistics.get("acceptance_rate"), []
        spaced = np.concatenate(kept) if stride else None
        for place in range(ensemble.width):
            row = {} if moments is None else moments.errors(place)
            if stride:
                own = evenly_spaced(spaced[:, place], losses.prediction_draws)
                row |= metrics.predictive_metrics(model, own)
            is_finite = all(isfinite(row[name]) for name in losses.names)
            values = {name: capped(name, row[name]) for name in losses.names}
            records.append({"steps": n_steps, "diverged": not is_finite, "losses": values})
            if rates is not None:
                records[-1]["acceptance"] = float(rates[place])
        yield records


def raced_arm(task: Task, **options: object) -> Arm | None:
    """The choice of `sgtune.tune` with these ``options``; None if every arm diverged. An oracle's is that of a race
    by the true losses of an arm's own draws so far (`Losses.judge`)."""
    options |= {"preconditioner": "none", "cost": task.cost, "seed": task.seed}
    try:
        return tune(task.model, task.sampler, **options).best
    except AllDivergedError:
        return None


def frozen_losses(model: Model, losses: Losses) -> dict[str, float]:
    """The losses of a chain that stays at the MAP: exact, without a run."""
    at_mode = losses.of_draws(model, flatten(map_position(model))[None])
    return {name: capped(name, value) for name, value in at_mode.items()}
