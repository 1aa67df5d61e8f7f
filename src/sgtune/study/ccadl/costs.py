"""What a step of a sampler costs beside a step of SGNHT, measured in the job that samples."""

from collections.abc import Sequence
from time import perf_counter

from jaxtyping import PyTree

from sgtune.model import Model
from sgtune.study.ccadl.ensembles import ensemble_of
from sgtune.study.ccadl.methods import sampler_of

__all__ = ["BASELINE", "measure_cost"]

BASELINE = "sgnht"
ROUNDS = (3, 9)
"""At least so many, and at most."""

STEPS = 50
"""Of a round."""

SECONDS = 2.0
"""After these no further round begins, so that a loaded machine does not hold up the job."""


def measure_cost(
    method: str,
    form: str,
    model: Model,
    *,
    step_sizes: Sequence[float],
    frictions: Sequence[float],
    batch_size: int,
    start: PyTree,
    seed: int = 0,
) -> dict:
    """Seconds of `STEPS` steps of one chain, in up to `ROUNDS` rounds in turn with as many steps of SGNHT.

    The chains have the middle one of ``step_sizes`` and the largest of ``frictions``. Both programs are compiled, and
    have run once, before the first round. Other jobs may run at the same time. They slow both samplers down alike,
    because the two take turns.

    Args:
        form: of the covariance, "full" or "diagonal".
        start: where both chains start.

    Returns:
        ``step_size``, ``friction``, ``batch_size`` and ``steps`` of a round; ``seconds`` and ``baseline_seconds`` of
        each round, which of SGNHT itself are the same.
    """
    step_size, friction = sorted(step_sizes)[len(step_sizes) // 2], max(frictions)
    chains = {
        name: ensemble_of(
            model,
            sampler_of(name, form),
            [(step_size, friction)],
            batch_size=batch_size,
            start=start,
            seed=seed,
            replicate="ccadl cost",
        )
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
        **{"step_size": step_size, "friction": friction, "batch_size": batch_size, "steps": STEPS},
        "seconds": [one[method] for one in rounds],
        "baseline_seconds": [one[BASELINE] for one in rounds],
    }
