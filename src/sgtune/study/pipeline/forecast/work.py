"""The seconds of the work that the jobs of one model are made of: gradients, scores, KSDs, steps of arms, races."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sgtune.sampling.arm import shape_of
from sgtune.sampling.chain import FEWEST_STEPS
from sgtune.sampling.thinning import thinning
from sgtune.study.catalogue import MODELS
from sgtune.study.config.sections import model_settings
from sgtune.study.pipeline.forecast.costs import StepCosts
from sgtune.study.pipeline.forecast.last_run import LastRun
from sgtune.study.pipeline.forecast.seen import COMPARABLE, PAIR, PAIR_OF_PARAMETERS, SCORES
from sgtune.tuning.race import Schedule

__all__ = ["WorkOfModel"]


class WorkOfModel:
    """Seconds of pieces of work on one model, by the costs of its steps and by what an earlier run took.

    Attributes:
        settings: the configuration for this model.
        stretch: seconds on this machine per second of a budget.
        unknown: lines for the user, of what could not be foreseen.
    """

    def __init__(self, config: Mapping, model: str, costs: StepCosts, last: LastRun):
        self.config, self.model, self.last = config, model, last
        self.costs = replace(costs, guessed=set())
        self.settings = model_settings(config, model)
        self.n_data = MODELS[model].n_data(self.settings["data"][model])
        self.referenced = self.settings["reference"]["nuts"]
        # A given table fixes the number of steps, so on a slower machine they take longer.
        self.stretch = last.slowness if self.settings["calibration"]["table"] is not None else 1.0
        self.unknown: list[str] = []

    def arm_costs(self, sampler: str, arms: Sequence) -> list[float]:
        """Seconds of a step of each arm, in the clock that converts a budget of seconds to steps."""
        slower = 1.0 if self.settings["calibration"]["table"] is not None else self.last.slowness
        return [slower * self.costs.step(*shape_of(sampler, arm)) for arm in arms]

    def gradients(self, n: float, n_rows: float | None = None) -> float:
        """Seconds of ``n`` gradients of ``n_rows`` data terms (all data by default) on this machine."""
        return n * self.last.slowness * self.costs.gradient(self.n_data if n_rows is None else n_rows)

    def scores(self, n: float, n_rows: float | None = None) -> float:
        """Seconds of ``n`` scores of ``n_rows`` data terms (all data by default) on this machine."""
        n_rows = self.n_data if n_rows is None else n_rows
        share, seen = self.last.scores or (0.0, 0.0)
        near = seen / COMPARABLE <= n_rows <= seen * COMPARABLE
        return (share if near else SCORES.get(self.model, 0.5)) * self.gradients(n, n_rows)

    def ksd(self, n_points: float) -> float:
        return n_points**2 * (PAIR + PAIR_OF_PARAMETERS * self.costs.dimension)

    def race(
        self,
        schedule: Schedule,
        costs: Sequence[float],
        *,
        in_steps: bool = False,
        thin: int = 10,
        at_most: float = float("inf"),
        growth: int = 3,
        by_the_clock: bool = False,
    ) -> tuple[float, list[tuple[float, float]]]:
        """Seconds of sampling, and for each rung the points of all arms and of one arm.

        Surviving arms are assumed to cost as much as the average arm. Each arm makes at least `FEWEST_STEPS` steps.
        """
        serial, points, spent, before = 0.0, [], 0.0, [0.0] * len(costs)
        for number, rung in enumerate(schedule.rungs):
            spent += rung.amount
            ran = [max(spent * cost if in_steps else spent, FEWEST_STEPS * cost) for cost in costs]
            serial += rung.n_arms * _mean([now - then for now, then in zip(ran, before, strict=True)])
            steps = [int(seconds / cost) for seconds, cost in zip(ran, costs, strict=True)]
            each = _mean([min(at_most * growth**number, n // thinning(n, thin)) for n in steps])
            points.append((rung.n_arms * each, each))
            before = ran
        kind = "race" if len(schedule.rungs) > 1 else "single"
        return serial * self.stretch * (1.0 if by_the_clock else self.last.races[kind]), points


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
