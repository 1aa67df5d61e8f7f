"""The mode, where chains start, and the NUTS reference, against which tuners are judged; what of it is trusted."""

from math import sqrt

from sgtune.study.ground_truth import is_trusted
from sgtune.study.report.means import SOURCES
from sgtune.study.report.records import Records, finite, required
from sgtune.study.report.table import DASH, Cell

OF_POSITION = ("relative_sd_error_x100", "xi_rel_x100")
OF_REFERENCE = (*OF_POSITION, "xi_white_x100", "functional_error")
"""Metrics that compare with the reference: its parameters, or the quantities that tuners are judged by."""

TESTED = {"accuracy": ("accuracy_percent", 100), "log_loss": ("log_loss", 1), "rmse": ("rmse", 1)}
IN_BLOCK = ("n", "sd", "sd_error", "r_hat_max", "r_hat_p99", "r_hat_median", "ess_min", "ess_median")

INFINITE = "∞"  # printed for an infinite R-hat: a chain that never moved


def doubted(records: Records) -> set[tuple[str, str]]:
    """(model, metric) of the errors that are distances from something badly sampled; none without references.

    No error can be trusted where the quantities that tuners are judged by are not; errors of the parameters need every
    block of these sampled as well.
    """
    doubts = set()
    for record in records.get("reference", ()):
        if "monte_carlo_error" in record:
            of_position = () if all(map(is_trusted, record["blocks"].values())) else OF_POSITION
            metrics = of_position if record["trusted"] else OF_REFERENCE
            doubts |= {(record["model"], metric) for metric in metrics}
    return doubts


def _cell(model: str, metric: str, value: float | None = None, block: str = "", **shown: str) -> Cell:
    return Cell(model, "", "", metric, value=finite(value), detail=block, **shown)


def modes(records: Records) -> list[Cell]:
    """How close to the mode the MAP is, and its predictions."""
    cells = []
    for record in required(records, "reference"):
        if "gradient_norm" not in record:
            continue
        model = record["model"]
        for metric in ("negative_log_posterior", "gradient_norm", "distance", "steps"):
            cells.append(_cell(model, metric, record[metric]))
        cells.append(_cell(model, "root_dimension", sqrt(len(record["laplace_sd"]))))
        for key, (metric, factor) in TESTED.items():
            if key in record["test"]:
                cells.append(_cell(model, metric, factor * record["test"][key]))
        cells.append(_cell(model, "converged", text="yes" if record["converged"] else "no"))
    return cells


def reference(records: Records) -> list[Cell]:
    """How well NUTS sampled each block of parameters and the quantities that judge tuners, and whether it is trusted;
    in the row of the latter also its divergences, and the errors that exact draws would have against it."""
    cells = []
    for record in required(records, "reference"):
        if "diagnostics" not in record:
            continue
        model, own = record["model"], record["functionals"]
        sds = own.get("sd", record["sd"])
        judged = own | {"sd": sqrt(sum(sd**2 for sd in sds) / len(sds))}
        blocks = {"all" if block == model else block: summary for block, summary in record["blocks"].items()}
        for block, summary in (blocks | {"functionals": judged}).items():
            # Where there is no ESS either, there are too few draws for R-hat.
            missing = DASH if summary["ess_median"] is None else INFINITE
            for metric in IN_BLOCK:
                cells.append(_cell(model, f"block_{metric}", summary[metric], block, missing=missing))
            trusted = record["trusted"] if block == "functionals" else is_trusted(summary)
            cells.append(_cell(model, "block_trusted", block=block, text="yes" if trusted else "no"))
        cells.append(_cell(model, "divergences", record["diagnostics"]["divergences"], "functionals"))
        for metric in OF_REFERENCE:
            key, factor = SOURCES[metric]
            error = finite(record["monte_carlo_error"].get(key))
            if error is not None:
                cells.append(_cell(model, metric, factor * error, "functionals"))
    return cells
