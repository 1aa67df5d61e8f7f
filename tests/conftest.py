"""Fixtures that several test files share, one cache of compiled programs for all tests of a run and their jobs, and the
check of every annotated shape while the tests run.

Compilation takes most of the tests' time. A program is compiled once, here or in a subprocess, and then read from the
cache; the next run of the tests starts with an empty cache.
"""

import atexit
import gc
import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import jax
import jaxlib
import jaxtyping
import pytest
from jaxtyping import install_import_hook

from sgtune.support.machine import only_cpu

# No test judges a time, and the examples are the same in every run.
hypothesis.settings.register_profile("sgtune", deadline=None, derandomize=True)
hypothesis.settings.load_profile("sgtune")

PACKAGE = Path(__file__).parents[1] / "src/sgtune"


def _shaped_modules() -> list[str]:
    """The modules that annotate shapes. The others are not checked: a checked call costs a tenth of a millisecond, with
    which the tables, for one, take nine times as long."""
    shaped = [path for path in PACKAGE.rglob("*.py") if "from jaxtyping import" in path.read_text("utf-8")]
    names = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in shaped]
    return [".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in names]


_jaxtyped = jaxtyping.jaxtyped


def _of_modules(**options):
    """The hook's decorator, which leaves a function inside of another alone: it would be compiled anew at each call of
    the outer one, milliseconds each time, and hardly any states shapes."""
    decorate = _jaxtyped(**options)
    return lambda one: one if "<locals>" in getattr(one, "__qualname__", "") else decorate(one)


jaxtyping.jaxtyped = _of_modules

# Before the package is imported. By the numeric tower an int is a float, as everywhere in Python.
install_import_hook(_shaped_modules(), "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

from sgtune.sampling import by_clock, lockstep  # noqa: E402
from sgtune.sampling.lockstep import Lockstep  # noqa: E402

CACHE = "SGTUNE_TESTS_CACHE"
"""The environment variable in which the processes of pytest-xdist find the first one's cache."""

if CACHE not in os.environ:
    os.environ[CACHE] = tempfile.mkdtemp(prefix="sgtune-tests-")
    atexit.register(shutil.rmtree, os.environ[CACHE], ignore_errors=True)
_cache = os.environ[CACHE]
_options = {
    "jax_compilation_cache_dir": _cache,
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
for _name, _value in _options.items():
    jax.config.update(_name, _value)
    os.environ[_name.upper()] = str(_value)
# XLA reads its flags when the first program is compiled; all of these are for CPUs. Level 1 is the flag of the
# pipeline's jobs. With the others, programs compile in two thirds of the time and run almost as fast, and so do the
# tests. XLA stops at a flag that it does not know, and it may drop these.
FLAGS = ["--xla_backend_optimization_level=1"]
JAXLIB = tuple(int(number) for number in jaxlib.__version__.split(".")[:2])
if JAXLIB < (0, 11):
    FLAGS += ["--xla_cpu_use_fusion_emitters=false"]
if JAXLIB < (0, 13):
    FLAGS += ["--xla_cpu_parallel_codegen_split_count=1"]
ONLY_CPU = only_cpu()
if ONLY_CPU:
    os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
# Level 0 in place of 1, for the tests and their jobs: most programs run for less time than they need to be compiled. A
# file with the mark `optimised` has others, and an accelerator has XLA's own level for all.
UNOPTIMISED = "jax_disable_most_optimizations"
os.environ[UNOPTIMISED.upper()] = "1" if ONLY_CPU else "0"
# As in the pipeline's jobs: the processes of the tests run beside each other.
os.environ.setdefault("PJRT_NPROC", "1")


def pytest_collection_modifyitems(items):
    """Files with slow tests first, so that with two workers none runs alone for minutes at the end; and those with the
    mark `optimised` together, so that the level of optimisation changes twice."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    optimised = {item.path for item in items if item.get_closest_marker("optimised")}
    items.sort(key=lambda item: (item.path not in slow, (item.path in slow) == (item.path in optimised)))


def pytest_collection_finish():
    """Hundreds of thousands of objects live until the end: the garbage collector need not look at them each time."""
    gc.collect()
    gc.freeze()


MOST_MAPS = 10_000
"""With more memory maps than these, a process forgets its programs before the next file: each program holds several
maps, of which Linux allows 65,530; beyond this XLA crashes without a message. A file adds up to 3,000."""


@pytest.fixture(scope="module", autouse=True)
def level_of_optimisation(request):
    """Level 1 for the programs of a file with the mark `optimised`, and level 0 for all others.

    Compiled programs stay in memory for the next file, unless they are of the other level, or too many.
    """
    unoptimised = "1" if ONLY_CPU and request.node.get_closest_marker("optimised") is None else "0"
    if os.environ[UNOPTIMISED.upper()] != unoptimised or _memory_maps() > MOST_MAPS:
        lockstep._compiled.clear()
        jax.clear_caches()
        gc.collect()
    jax.config.update(UNOPTIMISED, unoptimised == "1")
    os.environ[UNOPTIMISED.upper()] = unoptimised


def _memory_maps() -> int:
    """How many this process has; 0 where there is no /proc."""
    maps = Path("/proc/self/maps")
    return len(maps.read_bytes().splitlines()) if maps.exists() else 0


@pytest.fixture
def by_steps(monkeypatch):
    """``by_steps(seconds)``: the wall clock of chains and races is one that each step of a chain advances by this many
    seconds, so that a test of it does not depend on the machine's load."""

    def set_clock(seconds_per_step):
        clock = [0.0]
        advance_chunk = Lockstep.advance_chunk

        def advance(self, n_draws, stride=1):
            before = self.steps_done
            draws = advance_chunk(self, n_draws, stride)
            clock[0] += (self.steps_done - before) * seconds_per_step
            return draws

        monkeypatch.setattr(Lockstep, "advance_chunk", advance)
        monkeypatch.setattr(by_clock, "perf_counter", lambda: clock[0])

    return set_clock
