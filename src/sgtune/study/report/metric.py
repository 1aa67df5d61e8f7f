"""How one number of a table is printed and judged."""

from typing import NamedTuple

__all__ = ["Metric"]


class Metric(NamedTuple):
    """How one number of a table is printed and judged.

    ``form``: "significant" (3 significant digits), "by error" (down to the second digit of the standard error, and no
    more than 5 digits), "general" (3 digits without trailing zeros, for values of a grid), "count" (whole) or
    "printed" (every digit a paper gives). ``best``: `min`, `max`, or None where neither end is a merit. ``meaning``:
    what a caption says of it.
    ``has_spread``: whether the sd over replicates says something.
    """

    label: str
    meaning: str = ""
    form: str = "significant"
    best: object = None
    has_spread: bool = True
