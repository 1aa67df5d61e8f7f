"""How programs are compiled, and the time that this process has spent on tracing and compiling, which only the first
run of a program needs."""

import os
from time import perf_counter

__all__ = ["OPTIMISATION", "compile_seconds", "compiler_options", "watch_compilation"]

OPTIMISATION = "xla_backend_optimization_level"
"""The flag of XLA, and the option of its compiler, for the level of LLVM's optimisation."""

PHASES = "/jax/core/compile/"
"""JAX's names of the events of tracing, lowering and compiling (or reading from its cache) a program."""

_spans: list[tuple[float, float]] = []
_watched: list[bool] = []


def compiler_options() -> dict[str, int]:
    """LLVM's first level, unless XLA_FLAGS names one: programs compile in half the time and run as fast, because their
    inner loops are products of matrices, gathers and random bits."""
    return {} if OPTIMISATION in os.environ.get("XLA_FLAGS", "") else {OPTIMISATION: 1}


def watch_compilation() -> None:
    """Record every program that JAX compiles from now on; a second call changes nothing."""
    if not _watched:
        import jax

        _watched.append(True)
        jax.monitoring.register_event_duration_secs_listener(_note)


def _note(event: str, seconds: float, **facts: object) -> None:
    if event.startswith(PHASES):
        now = perf_counter()
        _spans.append((now - seconds, now))


def compile_seconds(since: float, until: float) -> float:
    """Seconds between two readings of `time.perf_counter` in which at least one program was being compiled.

    Phases that overlap, because programs are traced within programs and compiled by several threads, count once.
    """
    covered, reached = 0.0, since
    for begins, ends in sorted(_spans):
        begins, ends = max(begins, reached), min(ends, until)
        if ends > begins:
            covered += ends - begins
            reached = ends
    return covered
