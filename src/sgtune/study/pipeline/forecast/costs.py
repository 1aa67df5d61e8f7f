"""Seconds of a step of any shape: from a cost table, interpolated and extrapolated from its neighbours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from sgtune.sampling.budget import CostTable
from sgtune.study.config.sections import model_settings
from sgtune.support.axes import BATCH_SIZE, N_LEAPFROG, STATIC, numbers_of
from sgtune.support.errors import DataError
from sgtune.support.files import read_json

__all__ = ["StepCosts", "read_costs_of"]

SHIPPED = Path("config", "cost", "quick.json")
"""The table that comes with the study, where a run has measured none and was given none."""


@dataclass
class StepCosts:
    """The costs of one model's steps.

    Attributes:
        table: seconds by shape.
        dimension: D of the model.
        origin: where the table is from, in words.
        measured_here: whether the run itself has measured it, on the machine that will continue it.
        n_data: N of the model; None: unknown, and no batch counts as the full batch.
        guessed: requested shapes that are not in the table.
    """

    table: CostTable
    dimension: int
    origin: str = ""
    measured_here: bool = False
    n_data: int | None = None
    guessed: set[tuple] = field(default_factory=set)

    def step(self, sampler: str, *static: object) -> float:
        """Seconds of one step of a shape (`CostTable.lookup`)."""
        known = self.table.seconds_per_step
        if (sampler, *static) not in known:
            self.guessed.add((sampler, *static))
        return known.get((sampler, *static)) or self._told(sampler, static)

    def gradient(self, n_rows: float) -> float:
        """Seconds of a gradient of ``n_rows`` data terms: a step of SGLD with such a batch."""
        return self._told("sgld", (n_rows, None))

    def _told(self, sampler: str, static: tuple) -> float:
        """Between two batch sizes on a straight line of the logarithms, below the smallest the same; above the largest
        as SGLD's grow, and where SGLD has none either in proportion; in proportion to the leapfrogs.

        All data cost what they cost SGLD: a whole batch is not gathered and needs no control variates (within 10% of
        measured steps of the three models). A sampler without costs has SGLD's.
        """
        numbers = numbers_of(static, STATIC)
        size, n_leapfrog = numbers[BATCH_SIZE.name], numbers[N_LEAPFROG.name] or 1
        sgld = self._curve("sgld")
        curve = (sgld if size == self.n_data else self._curve(sampler)) or sgld
        largest = max(curve)
        if size <= largest or not sgld:
            return n_leapfrog * _between(curve, size)
        return n_leapfrog * curve[largest] * _between(sgld, size) / _between(sgld, largest)

    def _curve(self, sampler: str) -> dict[int, float]:
        """Seconds of a leapfrog by batch size, ascending."""
        found: dict[int, list[float]] = {}
        for (of_sampler, *static), seconds in self.table.seconds_per_step.items():
            numbers = numbers_of(tuple(static), STATIC)
            if of_sampler == sampler:
                found.setdefault(numbers[BATCH_SIZE.name], []).append(
                    seconds / (numbers[N_LEAPFROG.name] or 1)
                )
        return {size: median(found[size]) for size in sorted(found)}


def _between(curve: Mapping[int, float], size: float) -> float:
    sizes = list(curve)
    if size <= sizes[0]:
        return curve[sizes[0]]
    if size >= sizes[-1]:
        return curve[sizes[-1]] * size / sizes[-1]
    above = next(place for place, known in enumerate(sizes) if known >= size)
    low, high = sizes[above - 1], sizes[above]
    share = math.log(size / low) / math.log(high / low)
    return math.exp((1 - share) * math.log(curve[low]) + share * math.log(curve[high]))


def read_costs_of(config: Mapping, model: str) -> StepCosts:
    """The costs of ``model``: those that the run has measured, else of the table that it was given, else of `SHIPPED`.

    Raises:
        DataError: there is no such file, or it has no costs of the model.
    """
    own = Path("results", config["run"], "cost", f"{model}.json")
    if own.is_file():
        held, path, about = read_json(own), own, {}
        about = held["provenance"]
    else:
        path = Path(model_settings(config, model)["calibration"]["table"] or SHIPPED)
        about = read_json(path)
        if model not in about.get("models", {}):
            raise DataError(f"{path}: has no costs for {model}")
        held = about["models"][model]
    known = {"cpu", "cores", "created"} <= about.keys()
    origin = (
        f"{about['cpu']}, {about['cores']} cores, {about['created'][:10]}" if known else "unknown machine"
    )
    origin = f"{path} ({origin})"
    table = CostTable.from_rows(held["rows"])
    return StepCosts(table, held["dimension"], origin, path == own, held["n_data"])
