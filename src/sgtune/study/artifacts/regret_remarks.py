"""What captions say of regret: oracles, references that are not trusted, and models without it."""

from collections.abc import Sequence

from sgtune.study.artifacts.labels import MODELS, in_order, label
from sgtune.study.artifacts.layout import NOT_TRUSTED
from sgtune.study.artifacts.records import Records

__all__ = ["doubts", "left_out", "oracles_said"]


def oracles_said(found: Sequence[dict]) -> str:
    """In captions, after the meaning of the oracle."""
    several = any(len(record["oracles"]) > 1 for record in found)
    return "; each loss has its own oracle" if several else ""


def doubts(found: Sequence[dict]) -> str:
    """The models whose numbers are not printed, and the reason."""
    names = in_order((record["model"] for record in found if record["trusted"] is False), MODELS)
    if not names:
        return ""
    words = ", ".join(label(name, MODELS) for name in names)
    return (
        f" “{NOT_TRUSTED}”: not printed, because the reference of {words} is not trusted (its R-hat is too large "
        "or its effective sample size too small, see its table)."
    )


def left_out(records: Records, found: Sequence[dict]) -> str:
    """The models of the run whose arms did not run again, for captions."""
    judged = {record["model"] for record in found}
    others = {record["model"] for record in records.get("reference") or []} - judged
    words = ", ".join(label(name, MODELS) for name in in_order(others, MODELS))
    return f" Without fresh runs, and so without regret, in this run: {words}." if others else ""
