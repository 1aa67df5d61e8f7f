"""The expected loss of every arm of a grid and of the arms that tuners chose, from which regret is computed.

All arms are screened; then the best of them, and all chosen arms, run again in fresh replicates. The smallest mean of
the screen is too small, because it is the luckiest of many noisy ones; the means of the fresh runs are unbiased.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgtune import metrics
from sgtune.mode.find import map_position
from sgtune.model import Model
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.chain import FEWEST_STEPS
from sgtune.sampling.lockstep import Lockstep
from sgtune.sampling.thinning import evenly_spaced, random_subset
from sgtune.study.catalogue import cap_of
from sgtune.support.errors import InputError
from sgtune.tuning import AllDivergedError, Halving, Judge, tune
from sgtune.tuning.judges import ArmDraws, Judgement

__all__ = [
    "Losses",
    "best_arms",
    "capped",
    "frozen_losses",
    "oracle_arm",
    "over_replicates",
    "random_arms",
    "run_arms",
    "runs_of",
]


def capped(loss: str, value: float) -> float:
    """``value``, or the cap (`sgtune.study.catalogue.cap_of`) if it is more or not finite."""
    most = cap_of(loss)
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

    def check(self, model: Model) -> None:
        """Raises an `InputError` if something that these losses need is missing."""
        predictive = metrics.predictive_names(model) if self.prediction_draws else ()
        for name in self.names:
            if self.reference is None and name not in predictive:
                raise InputError(
                    f"losses: {name!r} is not allowed for {model.name!r} without a reference and with "
                    f"prediction_draws = {self.prediction_draws}; it must be one of: {', '.join(predictive) or 'none'}"
                )

    def of_draws(self, model: Model, draws: Float[np.ndarray, "n d"]) -> dict[str, float]:
        """The losses of one chain's draws."""
        row = {} if self.reference is None else metrics.reference_errors(model, draws, self.reference)
        if self.prediction_draws:
            row |= metrics.predictive_metrics(model, evenly_spaced(draws, self.prediction_draws))
        return {name: row[name] for name in self.names}

    def judge(self, name: str) -> Judge:
        """The judge of an oracle: the true loss ``name`` of all draws of an arm that a race keeps."""
        own = self._replace(names=(name,))

        def metric(model: Model, arms: list[ArmDraws]) -> Judgement:
            began = perf_counter()
            values = [own.of_draws(model, arm.points)[name] if arm.usable else np.inf for arm in arms]
            return Judgement(values, 0.0, perf_counter() - began, 0)

        return Judge(lambda seed: metric, points=10**9, thin=1)


def run_arms(
    model: Model,
    sampler: str,
    arms: Sequence[Arm],
    *,
    losses: Losses,
    seconds: Sequence[float],
    cost: CostTable,
    replicate: str,
    width: int | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
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

    Raises:
        InputError: there is nothing to judge the arms by.
    """
    losses.check(model)
    found: dict[Arm, list[dict]] = {}
    for group in _groups(model, sampler, arms, width):
        began = perf_counter()
        n_copies = 0 if width is None or model.max_lockstep else width - len(group)
        ensemble = Lockstep.at_mode(
            model, sampler, group + group[-1:] * n_copies, seed=seed, replicate=replicate
        )
        price = cost.lookup(*shape_of(sampler, group[0]))
        steps = [max(FEWEST_STEPS, int(amount / price)) for amount in seconds]
        for arm in group:
            found[arm] = []
        for n_steps, rows in zip(steps, _judged(ensemble, steps, losses), strict=True):
            for arm, row in zip(group, rows, strict=False):
                is_finite = all(isfinite(row[name]) for name in losses.names)
                values = {name: capped(name, row[name]) for name in losses.names}
                record = {"steps": n_steps, "diverged": not is_finite, "losses": values}
                if "acceptance" in row:
                    record["acceptance"] = row["acceptance"]
                found[arm].append(record)
        report(
            f"{replicate}: {len(group)} arms of batch size {group[0].batch_size} ran {steps[-1]} steps; "
            f"{perf_counter() - began:.1f} s"
        )
    return [found[arm] for arm in arms]


def _groups(model: Model, sampler: str, arms: Sequence[Arm], width: int | None) -> list[list[Arm]]:
    shapes: dict[tuple, list[Arm]] = {}
    for arm in dict.fromkeys(arms):
        shapes.setdefault(shape_of(sampler, arm), []).append(arm)
    groups = []
    for members in shapes.values():
        for group in model.abreast(members):
            most = width or len(group)
            groups += [group[start : start + most] for start in range(0, len(group), most)]
    return groups


def _judged(ensemble: Lockstep, steps: Sequence[int], losses: Losses) -> Iterator[list[dict]]:
    """A row of losses for each chain, after each of ``steps``; with ``acceptance`` if the sampler has a test."""
    model, done, kept = ensemble.model, 0, []
    stride = -(-steps[0] // losses.prediction_draws) if losses.prediction_draws else None
    moments = None
    if losses.reference is not None:
        moments = metrics.Moments(model, losses.reference, np.asarray(ensemble.start), ensemble.width)
    for n_steps in steps:
        if moments is None:
            kept.append(ensemble.advance(n_steps - done, stride))
            done = n_steps
        while done < n_steps:
            draws = ensemble.advance_chunk(n_steps - done)
            moments.add(draws)
            if stride:
                kept.append(draws[(-done - 1) % stride :: stride].copy())
            done += len(draws)
        rows = [{} if moments is None else moments.errors(place) for place in range(ensemble.width)]
        if stride:
            draws = np.concatenate(kept)
            for place, row in enumerate(rows):
                row |= metrics.predictive_metrics(
                    model, evenly_spaced(draws[:, place], losses.prediction_draws)
                )
        rates = ensemble.statistics.get("acceptance_rate")
        if rates is not None:
            rows = [{**row, "acceptance": float(rate)} for row, rate in zip(rows, rates, strict=True)]
        yield rows


def oracle_arm(
    model: Model,
    sampler: str,
    *,
    tuner: Halving,
    budget: Budget,
    cost: CostTable,
    seed: int,
    replicate: int,
) -> Arm | None:
    """The choice of successive halving if it could see the true loss: the race of `sgtune.tune` with the same seed
    and replicate, each arm judged by the loss of its own draws so far (`Losses.judge`). None if every arm diverged."""
    try:
        result = tune(model, sampler, tuner=tuner, budget=budget, cost=cost, seed=seed, replicate=replicate)
    except AllDivergedError:
        return None
    return result.best


def frozen_losses(model: Model, losses: Losses) -> dict[str, float]:
    """The losses of a chain that stays at the MAP: exact, without a run."""
    position = map_position(model)
    row = {} if losses.reference is None else metrics.frozen_errors(model, position, losses.reference)
    if losses.prediction_draws:
        row |= metrics.at_position(model, position)
    return {name: capped(name, row[name]) for name in losses.names}


def best_arms(means: Mapping[Arm, float], n: int) -> list[Arm]:
    """The ``n`` arms with the smallest means; ties keep their order."""
    return sorted(means, key=lambda arm: means[arm])[:n]


def random_arms(arms: Sequence[Arm], n: int, seed: int, *names: object) -> list[Arm]:
    """``n`` of ``arms``, uniformly at random without replacement; all of them if there are no more."""
    return [arms[place] for place in random_subset(len(arms), n, seed, "random arms", *names)]


def over_replicates(rows: Sequence[Mapping]) -> dict:
    """Rows of one arm, a row per replicate, as one record."""
    record = {
        "steps": rows[0]["steps"],
        "diverged": [row["diverged"] for row in rows],
        "losses": {name: [row["losses"][name] for row in rows] for name in rows[0]["losses"]},
    }
    if "acceptance" in rows[0]:
        record["acceptance"] = [row["acceptance"] for row in rows]
    return record


def runs_of(replicates: Sequence[Sequence[Sequence[Mapping]]], seconds: Sequence[float]) -> list[dict]:
    """The results of `run_arms` for all replicates, as a record for each arm and each of the ``seconds``."""
    return [
        {"arm": place, "seconds": at, **over_replicates([runs[place][number] for runs in replicates])}
        for place in range(len(replicates[0]))
        for number, at in enumerate(seconds)
    ]
