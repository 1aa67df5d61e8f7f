"""Progress bars (tqdm) of what may take long: in a terminal or a notebook unless `show_progress` says otherwise, and
not in logs and pipes."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

__all__ = ["progress_bar", "show_progress", "tracked"]

DELAY = 0.5
"""Work of fewer seconds has no bar."""

_shown: list[bool | None] = [None]

T = TypeVar("T")


def show_progress(shown: bool | None) -> None:
    """Whether `sgtune.tune`, `sgtune.sample` and the search for the mode show progress bars on stderr, in this process.

    Args:
        shown: None, as at the start: in a terminal or a notebook only.
    """
    _shown[0] = shown


def _is_shown() -> bool:
    if _shown[0] is not None:
        return _shown[0]
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def progress_bar(name: str, total: float | None, unit: str) -> Iterator[Callable[[float], None]]:
    """A bar for the block, which goes away with it. The function that it yields is called with what was done since its
    last call, from any thread.

    Args:
        total: all that will be done, in ``unit``; None: not known.
    """
    if not _is_shown():
        yield lambda done: None
        return
    from tqdm.auto import tqdm

    lock = Lock()
    count = "{n_fmt} " if total is None else "{bar} {n_fmt}/{total_fmt} "
    times = " {elapsed}" if total is None else " {elapsed}<{remaining}"
    # Of an unknown total there are few, which are not 5.00.
    options = {"leave": False, "delay": DELAY, "unit_scale": total is not None}
    with tqdm(desc=name, total=total, bar_format="{desc}: " + count + unit + times, **options) as bar:

        def advance(done: float) -> None:
            with lock:
                # Arms may make more steps than they have, and tqdm would show "?" for a total below the count.
                if total is not None:
                    bar.total = max(bar.total, bar.n + done)
                bar.update(done)

        yield advance


def tracked(items: Iterable[T], name: str, unit: str) -> Iterator[T]:
    """``items``, counted by a bar as long as they are taken."""
    with progress_bar(name, None, unit) as done:
        for item in items:
            yield item
            done(1)
