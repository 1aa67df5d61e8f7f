"""What this process may use of its machine, how fast the machine is, and how and how long programs are compiled.

Only the first run of a program needs the time of tracing and compiling.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from importlib.metadata import entry_points
from threading import Lock
from time import perf_counter

__all__ = [
    "OPTIMISATION",
    "compile_seconds",
    "compiler_options",
    "cores",
    "full_precision",
    "only_cpu",
    "product_seconds",
    "quick_jit",
    "watch_compilation",
]

SIZE, REPEATS = 1_000, 5
"""Rows and columns of the matrices of `product_seconds`, and how often they are multiplied."""


def cores() -> int | None:
    """The number of cores that this process may use, which may be less than the machine has; None if unknown."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def product_seconds() -> float:
    """A fixed benchmark, by which machines are compared: the least time in which NumPy multiplies two 1,000 x 1,000
    float64 matrices, of five times."""
    import numpy as np  # the workflow itself asks for `cores`, and needs no NumPy

    matrix = np.random.default_rng(0).standard_normal((SIZE, SIZE))
    times = []
    for _ in range(REPEATS):
        began = perf_counter()
        matrix @ matrix
        times.append(perf_counter() - began)
    return min(times)


OPTIMISATION = "xla_backend_optimization_level"
"""The flag of XLA, and the option of its compiler, for the level of LLVM's optimisation."""

EMITTERS = "xla_cpu_use_fusion_emitters"
"""The option for XLA's newer way to write loops that fuse several operations, by MLIR."""

PHASES = "/jax/core/compile/"
"""JAX's names of the events of tracing, lowering and compiling (or reading from its cache) a program."""

_spans: list[tuple[float, float]] = []
_first_calls = Lock()


def only_cpu() -> bool:
    """Whether JAX can run on nothing but a CPU, known without importing it: it has no plugin for an accelerator, or
    JAX_PLATFORMS names the CPU alone."""
    return os.environ.get("JAX_PLATFORMS") == "cpu" or not entry_points(group="jax_plugins")


def compiler_options() -> dict[str, int]:
    """On a CPU LLVM's first level, unless XLA_FLAGS names one: programs compile in half the time and run as fast,
    because their inner loops are products of matrices, gathers and random bits."""
    import jax

    if jax.default_backend() != "cpu" or OPTIMISATION in os.environ.get("XLA_FLAGS", ""):
        return {}
    return {OPTIMISATION: 1}


@cache
def _quick_options() -> dict[str, int | bool]:
    """`compiler_options`, and on a CPU without the emitters of fused loops, which take 40% of the time that is left
    and do not make sums over rows faster. A later version of XLA may not know the option."""
    import jax

    options = compiler_options()
    if not options:
        return {}
    try:
        jax.jit(lambda: 0, compiler_options={EMITTERS: False}).lower().compile()
    except (RuntimeError, ValueError):
        return options
    return {**options, EMITTERS: False}


def quick_jit(function: Callable, **options: object) -> Callable:
    """`jax.jit` for programs that run a few times, with options of the compiler that shorten its work. They depend on
    the device, which JAX chooses at the first call, not when a module is imported."""
    import jax

    jitted = cache(lambda: jax.jit(function, compiler_options=_quick_options(), **options))

    @wraps(function)
    def call(*args):
        with _first_calls:
            program = jitted()
        return program(*args)

    return call


def full_precision(function: Callable) -> Callable:
    """``function`` with products of matrices in full float32.

    By default an accelerator rounds the factors to three digits. The posterior of 800,000 data has sds in the fourth
    digit of a position: its gradients would be steps. On a CPU nothing changes.
    """
    import jax

    @wraps(function)
    def precisely(*args, **options):
        with jax.default_matmul_precision("highest"):
            return function(*args, **options)

    return precisely


@cache
def watch_compilation() -> None:
    """Record every program that JAX compiles from now on; a second call changes nothing."""
    import jax

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
