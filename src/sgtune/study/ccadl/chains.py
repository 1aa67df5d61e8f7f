"""The study's chains: one of each (h, A) on common minibatches, in replicates; and what a step of a sampler costs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from sgtune.model import Model
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.artifacts import METHODS
from sgtune.study.pipeline.parts import Parts

__all__ = ["chains_of", "measure_cost", "replicated", "sampler_of"]

BASELINE = "sgnht"
ROUNDS = (3, 9)
"""At least so many, and at most."""

STEPS = 50
"""Of a round."""

SECONDS = 2.0
"""After these no further round begins, so that a loaded machine does not hold up the job."""


def sampler_of(method: str, covariance: str) -> str:
    """The name in `sgtune.samplers` of a sampler of the study with the "full" or the "diagonal" covariance."""
    name = METHODS[method].sampler
    # SGNHT has none.
    return f"{name}-diagonal" if covariance == "diagonal" and method != "sgnht" else name


def chains_of(
    model: Model,
    sampler: str,
    cells: Sequence[tuple[float, float]],
    batch_size: int,
    *,
    start: PyTree,
    seed: int,
    replicate: str,
) -> Lockstep:
    """A chain of ``sampler``, a name of `sgtune.samplers`, for each (h, A) of ``cells``, all from ``start``.

    Args:
        replicate: names their random streams: chains of two replicates share none.
    """
    arms = [Arm(step_size=h, batch_size=batch_size, friction=friction) for h, friction in cells]
    position = jax.tree.map(jnp.asarray, start)
    return Lockstep.at_mode(model, sampler, arms, position=position, seed=seed, replicate=replicate)


def replicated(
    one: Callable[[int], tuple[Lockstep, list[dict]]],
    n_replicates: int,
    cells: Sequence[tuple[float, float]],
    depends_on: Mapping,
    parts: Parts,
) -> list[dict]:
    """Of each (h, A) of ``cells`` its ``replicates``: what was found of its chain, and the sampler's ``statistics``.
    Replicates that an unfinished job kept are not made again.

    Args:
        one: of a replicate's number its chains, and what was found of each.
        depends_on: all that a replicate depends on beside its number and the code; no number of replicates.
    """

    def make(replicate: int) -> list[dict]:
        began = perf_counter()
        chains, found = one(replicate)
        statistics = chains.statistics
        parts.report(f"replicate {replicate}: {perf_counter() - began:.1f} s")
        return [
            {
                "replicate": replicate,
                **own,
                "statistics": {name: float(values[i]) for name, values in statistics.items()},
            }
            for i, own in enumerate(found)
        ]

    runs = [
        parts.once(f"replicate {replicate}", depends_on, partial(make, replicate))
        for replicate in range(n_replicates)
    ]
    return [
        {"step_size": h, "friction": friction, "replicates": [run[i] for run in runs]}
        for i, (h, friction) in enumerate(cells)
    ]


def measure_cost(
    method: str, covariance: str, model: Model, settings: Mapping, *, start: PyTree, seed: int
) -> dict:
    """Seconds of `STEPS` steps of one chain, in up to `ROUNDS` rounds in turn with as many steps of SGNHT.

    The chains have the middle one of the ``step_sizes`` of ``settings``, and the largest of its ``frictions``. Both
    programs are compiled, and have run once, before the first round. Other jobs may run at the same time. They slow
    both samplers down alike, because the two take turns.

    Returns:
        ``step_size``, ``friction``, ``batch_size`` and ``steps`` of a round; ``seconds`` and ``baseline_seconds`` of
        each round, which of SGNHT itself are the same.
    """
    step_size = sorted(settings["step_sizes"])[len(settings["step_sizes"]) // 2]
    cell, batch_size = (step_size, max(settings["frictions"])), settings["batch_size"]
    options = {"start": start, "seed": seed, "replicate": "ccadl cost"}
    chains = {
        name: chains_of(model, sampler_of(name, covariance), [cell], batch_size, **options)
        for name in dict.fromkeys((BASELINE, method))
    }

    def timed(name: str) -> float:
        began = perf_counter()
        chains[name].advance(STEPS, STEPS)
        return perf_counter() - began

    for name in chains:
        timed(name)
    rounds, began = [], perf_counter()
    while len(rounds) < ROUNDS[0] or (len(rounds) < ROUNDS[1] and perf_counter() - began < SECONDS):
        rounds.append({name: timed(name) for name in chains})
    return {
        **{"step_size": cell[0], "friction": cell[1], "batch_size": batch_size, "steps": STEPS},
        "seconds": [one[method] for one in rounds],
        "baseline_seconds": [one[BASELINE] for one in rounds],
    }
