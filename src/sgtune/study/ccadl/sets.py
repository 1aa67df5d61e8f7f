"""The study's data sets as its jobs meet them: prepared, or a line that says why there is none."""

from pathlib import Path

from sgtune.files import read_json

__all__ = ["missing"]


def missing(facts: str | Path) -> str | None:
    """Why the prepared set that ``facts`` stands for is not there; None if it is.

    Raises:
        DataError: the file is missing or cannot be read.
    """
    return read_json(facts).get("missing")
