"""The study's chains: one of each (h, A) on common minibatches, in replicates; and what a step of a sampler costs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import product
from time import perf_counter

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from sgtune.model import Model
from sgtune.model.positions import flatten
from sgtune.sampling.arm import Arm
from sgtune.sampling.lockstep import Lockstep
from sgtune.study.ccadl.artifacts import METHODS
from sgtune.study.pipeline.parts import Task

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


def replicated(
    judged: Callable[[Lockstep], list[dict]],
    task: Task,
    settings: Mapping,
    start_of: Callable[[int], PyTree],
    name: str,
) -> list[dict]:
    """Of each (h, A) its ``replicates``: what was found of its chain, and the sampler's ``statistics``. Replicates that
    an unfinished job kept are not made again.

    Args:
        judged: of the chains of one replicate after their ``warmup``, one of each (h, A), what was found of each.
        settings: ``step_sizes``, ``frictions``, ``batch_size``, ``replicates``, ``warmup`` (0 where there is none), and
            whatever else ``judged`` depends on beside the data.
        start_of: of a replicate's number, where all of its chains start.
        name: of the random streams; no two replicates share any.
    """
    cells = list(product(settings["step_sizes"], settings["frictions"]))
    warmup = settings.get("warmup", 0)

    def make(replicate: int) -> list[dict]:
        began = perf_counter()
        chains = _chains(task, cells, settings["batch_size"], start_of(replicate), f"{name} {replicate}")
        if warmup:
            chains.advance(warmup, warmup)
        found, statistics = judged(chains), chains.statistics.items()
        task.report(f"replicate {replicate}: {perf_counter() - began:.1f} s")
        of_chains = [{key: float(values[i]) for key, values in statistics} for i in range(len(cells))]
        pairs = zip(found, of_chains, strict=True)
        return [{"replicate": replicate, **own, "statistics": each} for own, each in pairs]

    depends_on = {"sampler": task.sampler, "streams": name, "data": task.model.checksum}
    depends_on["settings"] = {**settings, "replicates": None}
    runs = []
    for i in range(settings["replicates"]):
        start = sha256(flatten(start_of(i)).tobytes()).hexdigest()
        runs.append(task.once(f"replicate {i}", partial(make, i), **depends_on, start=start))
    return [
        {"step_size": h, "friction": friction, "replicates": [run[i] for run in runs]}
        for i, (h, friction) in enumerate(cells)
    ]


def _chains(
    task: Task, cells: Sequence[tuple[float, float]], batch_size: int, start: PyTree, replicate: str
) -> Lockstep:
    """A chain of each (h, A), all from ``start``."""
    arms = [Arm(step_size=h, batch_size=batch_size, friction=friction) for h, friction in cells]
    options = {"position": jax.tree.map(jnp.asarray, start), "seed": task.seed, "replicate": replicate}
    return Lockstep(task.model, task.sampler, arms, **options)


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
    cell = step_size, max(settings["frictions"])
    tasks = {name: Task(model, sampler_of(name, covariance), seed=seed) for name in (BASELINE, method)}
    size = settings["batch_size"]
    chains = {name: _chains(task, [cell], size, start, "ccadl cost") for name, task in tasks.items()}

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
        **{"step_size": cell[0], "friction": cell[1], "batch_size": size, "steps": STEPS},
        "seconds": [one[method] for one in rounds],
        "baseline_seconds": [one[BASELINE] for one in rounds],
    }
