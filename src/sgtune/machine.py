"""What this process may use of its machine."""

import os

__all__ = ["cores"]


def cores() -> int | None:
    """The number of cores that this process may use, which may be less than the machine has; None if unknown."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
