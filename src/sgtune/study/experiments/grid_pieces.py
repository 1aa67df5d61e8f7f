"""A grid search that takes long, in pieces of some step sizes each, so that a killed job loses minutes and not hours.

A grid search is a race of one rung: its arms are judged one by one, so that a piece of the grid decides nothing about
another one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sgtune.model import Model
from sgtune.sampling.arm import Arm, shape_of
from sgtune.sampling.budget import Budget, CostTable
from sgtune.sampling.lockstep import data_terms
from sgtune.study.pipeline.parts import Parts
from sgtune.support.errors import InputError
from sgtune.tuning import GridSearch, tuner_of
from sgtune.tuning.race import all_diverged

__all__ = ["LONGEST", "joined", "pieces_of", "tune_in_pieces"]

LONGEST = 900.0
"""A grid search of more seconds than this is divided. Scores and predictions come on top."""


def pieces_of(model: Model, sampler: str, arguments: Mapping, cost: CostTable) -> list[dict]:
    """``arguments`` of `sgtune.tune`, or those of a search for each piece of the grid.

    A piece takes about `LONGEST` seconds at most by ``cost``, one arm after the other, but has at least one step size.
    Only tuners with one rung can be divided.
    """
    settings = arguments["settings"]
    method = tuner_of(arguments["tuner"], settings)
    if not isinstance(method, GridSearch):
        return [dict(arguments)]
    budget = arguments["budget"] or method.default
    try:
        arms = method.arms(model.n_data, sampler)
        seconds = sum(_seconds(model, sampler, arm, budget, cost) for arm in arms)
    except InputError:
        # A budget in steps needs no costs, and `sgtune.tune` names a bad grid.
        return [dict(arguments)]
    sizes = settings.log10_step_sizes
    n_pieces = min(math.ceil(seconds / LONGEST), len(sizes))
    if n_pieces < 2:
        return [dict(arguments)]
    return [
        {**arguments, "settings": replace(settings, log10_step_sizes=tuple(part.tolist()))}
        for part in np.array_split(np.asarray(sizes), n_pieces)
    ]


def _seconds(model: Model, sampler: str, arm: Arm, budget: Budget, cost: CostTable) -> float:
    if budget.seconds is not None:
        return budget.seconds
    n_steps = budget.steps or budget.gradients / data_terms(model, sampler, arm)
    return n_steps * cost.lookup(*shape_of(sampler, arm))


def tune_in_pieces(
    pieces: Sequence[Mapping],
    tune_once: Callable[[Mapping], dict],
    parts: Parts,
    name: str,
    depends_on: str,
) -> dict:
    """The record of the search of all ``pieces`` (`pieces_of`), each of which ``tune_once`` makes and ``parts`` keeps.

    Args:
        name: of the whole search.
        depends_on: the fingerprint of all that the search depends on.
    """
    if len(pieces) == 1:
        return tune_once(pieces[0])
    found = []
    for number, arguments in enumerate(pieces):
        own = f"{name} piece {number}"
        record = parts.get(own, depends_on)
        if record is None:
            record = tune_once(arguments)
            parts.keep(own, depends_on, record)
        found.append(record)
    return joined(found)


def joined(records: Sequence[Mapping]) -> dict:
    """The record of the whole search from those of its pieces (`TuningResult.to_dict`, with ``reason``)."""
    values = [_best_value(record) for record in records]
    winner = int(np.argmin(values))
    rungs = [
        row if place == winner else _lost(row)
        for place, record in enumerate(records)
        for row in record["rungs"]
    ]
    seconds = _sums([record["seconds"] for record in records])
    # Later pieces share the programs of the first.
    seconds["shared_compilation"] = records[0]["seconds"]["shared_compilation"]
    found_none = records[winner]["best"] is None
    sampler, sizes = records[0]["sampler"], [row["step_size"] for row in rungs]
    return {
        **records[winner],
        "rungs": rungs,
        "rung_seconds": [{"rung": 1, **_sums([_without_rung(record) for record in records])}],
        "seconds": seconds,
        "steps": sum(record["steps"] for record in records),
        "gradient_evaluations": sum(record["gradient_evaluations"] for record in records),
        "warnings": list(dict.fromkeys(line for record in records for line in record["warnings"])),
        "reason": all_diverged(sampler, sizes) if found_none else "",
    }


def _lost(row: Mapping) -> dict:
    """The row of an arm that was the best of its piece only."""
    if row["pruned"]:
        return dict(row)
    return {**row, "pruned": True, "reason": row["reason"] or "higher value than the survivors"}


def _best_value(record: Mapping) -> float:
    """The value of the record's arm; infinite without one."""
    if record["best"] is None:
        return math.inf
    return min(row["discrepancy"] for row in record["rungs"] if row["discrepancy"] is not None)


def _without_rung(record: Mapping) -> dict:
    [rung] = record["rung_seconds"]
    return {name: seconds for name, seconds in rung.items() if name != "rung"}


def _sums(found: Sequence[Mapping]) -> dict:
    """The sum of each entry; None if it is None everywhere."""
    return {name: None if found[0][name] is None else sum(one[name] for one in found) for name in found[0]}
