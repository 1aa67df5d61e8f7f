"""Which errors can be trusted: those of quantities that the reference has sampled well."""

from collections.abc import Iterator

from sgtune.study.ground_truth import is_trusted
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.records import Records, belonging

__all__ = ["OF_REFERENCE", "doubted"]

OF_POSITION = ("relative_sd_error_x100", "xi_rel_x100")
OF_JUDGED = ("xi_white_x100", "functional_error")
OF_REFERENCE = (*OF_POSITION, *OF_JUDGED)
"""Metrics that compare with the reference: its parameters, or the quantities that tuners are judged by."""


def doubted(records: Records, name: str) -> set[tuple[str, str]]:
    """(model, metric) of the errors in the artifact ``name`` that are distances from something badly sampled.

    No error can be trusted where the quantities that tuners are judged by are not; errors of the parameters need every
    block of these sampled as well.
    """
    if "reference" not in artifact(name).kinds:
        return set()
    found = [one for one in belonging(records, "reference", name) if "monte_carlo_error" in one]
    return {(record["model"], metric) for record in found for metric in _metrics_doubted(record)}


def _metrics_doubted(record: dict) -> Iterator[str]:
    if not record["trusted"]:
        yield from OF_REFERENCE
    elif not all(map(is_trusted, record["blocks"].values())):
        yield from OF_POSITION
