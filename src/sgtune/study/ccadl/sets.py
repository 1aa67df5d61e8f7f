"""The study's data sets for its jobs: prepared, or a line that says why the set is unavailable."""

from pathlib import Path

from sgtune.support.files import read_json

__all__ = ["missing"]


def missing(facts: str | Path) -> str | None:
    """The reason why the prepared set of ``facts`` is unavailable; None if it is available.

    Raises:
        DataError: the file is missing or cannot be read.
    """
    return read_json(facts).get("missing")
