"""Pieces of the study's sentences."""

from collections.abc import Iterable

from sgtune.study.adam_mcmc.verdicts import estimate_text

__all__ = ["listed", "said_with_error", "too_slow_said"]


def said_with_error(value: float, se: float | None, *, signed: bool = False) -> str:
    """``value ± se``; the value alone without an error."""
    return estimate_text(value, se, signed=signed) or f"{value:.3g}"


def listed(items: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def too_slow_said(count: int, after: str = "") -> str:
    """``3 more are too slow to tell.``; empty for none."""
    if not count:
        return ""
    return f"{count} more {'is' if count == 1 else 'are'} too slow to tell.{after}"
