"""The expected seconds of the jobs of the ladder of Gaussians, which use no model and given costs."""

from collections.abc import Mapping

from sgtune.samplers import resolve_sampler
from sgtune.study.experiments.ladder_runs import N_DATA, grid_of, seconds_per_step
from sgtune.study.pipeline.forecast.seen import LINEAR, PAIR, PAIR_OF_PARAMETERS
from sgtune.tuning import TUNERS, make_arms
from sgtune.tuning.race import halving_schedule

__all__ = ["ladder_seconds"]

START, PROGRAMS = 5.0, 8.0
"""Seconds of a job until it begins, and of compilation for each kind and sampler; as seen on two cores."""

GRADIENT, GRADIENT_OF_PARAMETERS = 3e-6, 6e-8
"""Seconds of one gradient of a chain in lockstep: at least, and for each parameter."""

PRUNING_RATE = 3


def ladder_seconds(section: Mapping) -> list[float]:
    """Of the job of each dimension; ``section``: ``ladder`` of a valid configuration."""
    return [_job(section, dimension) for dimension in section["dimensions"]]


def _job(section: Mapping, dimension: int) -> float:
    seconds = START
    for sampler in section["samplers"]:
        arms = make_arms(N_DATA, sampler, **grid_of())
        schedule = halving_schedule(len(arms), PRUNING_RATE, section["seconds"])
        prices = [seconds_per_step(sampler, arm.batch_size, arm.get("n_leapfrog")) for arm in arms]
        leapfrogs = arms[0].n_leapfrog if resolve_sampler(sampler)[0].has_leapfrog else 1
        gradients = schedule.total * leapfrogs * sum(1 / price for price in prices) / len(prices)
        sampling = gradients * (GRADIENT + GRADIENT_OF_PARAMETERS * dimension)
        # Points grow as arms get fewer.
        pairs = sum(
            rung.n_arms * (section["points"] * PRUNING_RATE**number) ** 2
            for number, rung in enumerate(schedule.rungs)
        )
        judging = pairs * (PAIR + PAIR_OF_PARAMETERS * dimension)
        running = [name for name in section["tuners"] if TUNERS[name].judge is not None]
        by_pairs = [name for name in running if name not in LINEAR]
        races = section["replicates"] * (sampling * (1 + len(running)) + judging * len(by_pairs))
        seconds += len(section["kinds"]) * (PROGRAMS + races)
    return seconds
