"""Replicates of an experiment, one after the other: those that an unfinished job kept are not made again."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from sgtune.study.config.sections import fingerprint
from sgtune.study.pipeline.parts import Parts, code_digest

__all__ = ["by_cell", "replicated"]


def replicated(
    one: Callable[[int], list[dict]],
    n_replicates: int,
    depends_on: Mapping,
    parts: Parts,
    report: Callable[[str], None],
) -> list[list[dict]]:
    """``one(replicate)`` of each: a record for each setting.

    Args:
        depends_on: all that a replicate depends on beside its number and the code; no number of replicates.
    """
    runs = []
    print_of = fingerprint({**depends_on, "code": code_digest()})
    for replicate in range(n_replicates):
        name = f"replicate {replicate}"
        record = parts.get(name, print_of)
        if record is None:
            began = perf_counter()
            record = {"cells": one(replicate)}
            parts.keep(name, print_of, record)
            report(f"{name}: {perf_counter() - began:.1f} s")
        runs.append(record["cells"])
    return runs


def by_cell(cells: Sequence[tuple[float, float]], runs: Sequence[Sequence[dict]]) -> list[dict]:
    """The replicates of each (h, A)."""
    return [
        {"step_size": step_size, "friction": friction, "replicates": [run[i] for run in runs]}
        for i, (step_size, friction) in enumerate(cells)
    ]
