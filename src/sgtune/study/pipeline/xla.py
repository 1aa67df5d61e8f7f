"""How XLA compiles and runs the programs of a job: environment variables, which it reads at the first program. What
the user has set is kept."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from zlib import crc32

from sgtune.support.machine import OPTIMISATION

__all__ = ["compile_quickly", "share_compiled_programs", "use_threads"]


def compile_quickly() -> None:
    """LLVM's first level of optimisation: programs compile in half the time, and run as fast (measured for all three
    models), because their inner loops are products of matrices, gathers and random bits.

    A program is compiled in one part. Parts would be compiled on several threads, which the other jobs use: together
    five jobs of the default run take 4% less time (measured on two cores; not measured for a job that runs alone). XLA
    does not start if it does not know a flag, and a later XLA may drop this one, so it is set only where it is known.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    wanted = {OPTIMISATION: 1}
    if tuple(int(number) for number in version("jaxlib").split(".")[:2]) < (0, 11):
        wanted["xla_cpu_parallel_codegen_split_count"] = 1
    ours = [f"--{name}={number}" for name, number in wanted.items() if name not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *ours]).strip()


def use_threads(number: int) -> None:
    """As many threads of XLA as the job's rule has. With one for every core in each of two jobs that run beside each
    other, steps of cheap arithmetic take up to 1.7 times as long (measured on two cores)."""
    os.environ.setdefault("PJRT_NPROC", str(number))


def share_compiled_programs(folder: Path) -> None:
    """JAX's persistent cache: the hundredth job does not compile what the first one did.

    There is one folder for each kind of processor: on a shared file system, programs for another processor may not run.
    """
    folder = folder / _processor()
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder.resolve()))
    # Small programs are cached, too: a job has dozens, and each takes a twentieth of a second.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.processor() or platform.machine()
    return f"{crc32(features.encode()):08x}"
