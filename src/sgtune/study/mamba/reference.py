"""The mode, where chains start, and the NUTS reference, against which tuners are judged."""

# ruff: noqa: RUF001 - tables print Greek letters and signs of mathematics

from dataclasses import replace
from math import sqrt

from sgtune.study.ground_truth import ESS_TRUSTED, R_HAT_TRUSTED, is_trusted
from sgtune.study.report.artifacts import artifact
from sgtune.study.report.labels import MODELS, label
from sgtune.study.report.layout import DASH, Cell, Table, lay_out
from sgtune.study.report.records import Records, finite, need
from sgtune.support.errors import DataError

__all__ = ["modes", "reference"]

TESTED = {"accuracy": ("accuracy_percent", 100), "log_loss": ("log_loss", 1), "rmse": ("rmse", 1)}
IN_BLOCK = ("n", "sd", "sd_error", "r_hat_max", "r_hat_p99", "r_hat_median", "ess_min", "ess_median")
ERRORS = {
    "relative_sd_error": "ξ(σ̂)",
    "xi_rel": "ξ of relative errors",
    "xi_white": "ξ along eigen-directions",
    "functional_error": "the error of the functionals",
}

INFINITE = "∞"  # printed for an infinite R-hat: a chain that never moved


def _cell(model: str, metric: str, value: float | None, block: str = "", missing: str = DASH) -> Cell:
    return Cell(
        model=model, sampler="", tuner="", metric=metric, value=finite(value), missing=missing, detail=block
    )


def modes(records: Records) -> Table:
    """How close to the mode the MAP is, and its predictions."""
    cells, far = [], []
    for record in need(records, "reference", "modes"):
        if "gradient_norm" not in record:
            continue
        model = record["model"]
        cells += [
            _cell(model, metric, record[metric])
            for metric in ("negative_log_posterior", "gradient_norm", "distance", "steps")
        ]
        cells += [_cell(model, "root_dimension", sqrt(len(record["laplace_sd"])))]
        cells += [
            _cell(model, metric, factor * record["test"][key])
            for key, (metric, factor) in TESTED.items()
            if key in record["test"]
        ]
        if "converged" not in record:
            raise DataError(f"modes: the MAP of {model} is of another version of sgtune; --forcerun find_map")
        if not record["converged"]:
            far.append(label(model, MODELS))
    return lay_out(
        cells,
        name="modes",
        title=artifact("modes").title,
        caption="Where control variates are centred and chains start: −log π without the constants that a model leaves "
        "out, norm of its gradient over all data in the model's own coordinates, length of the Newton step from there "
        "in posterior standard deviations (by the Hessian's diagonal where D > 200), steps of the "
        "optimisers (where D > 200 Adam on minibatches, and then L-BFGS if the run allows it any step), √D, the "
        "distance of draws from a mode in those units, and the error of the mode's predictions on the test set. "
        + (f"NOT converged: {', '.join(far)}." if far else "All have converged to the tolerance of the run."),
        rows=("model",),
        columns=("metric",),
    )


def reference(records: Records) -> Table:
    """How well NUTS sampled each block of parameters and the quantities that judge tuners; whether it is trusted."""
    cells, said = [], []
    for record in need(records, "reference", "reference"):
        if "diagnostics" not in record:
            continue
        model = record["model"]
        if "functionals" not in record:
            raise DataError(
                f"reference: the draws of {model} are of another version of sgtune; --forcerun sample_nuts"
            )
        own = record["functionals"]
        sds = own.get("sd", record["sd"])
        judged = own | {"sd": sqrt(sum(sd**2 for sd in sds) / len(sds))}
        blocks = {"all" if block == model else block: summary for block, summary in record["blocks"].items()}
        for block, summary in (blocks | {"functionals": judged}).items():
            # Where there is no ESS either, there are too few draws for R-hat.
            missing = DASH if summary["ess_median"] is None else INFINITE
            cells += [_cell(model, f"block_{metric}", summary[metric], block, missing) for metric in IN_BLOCK]
            trusted = record["trusted"] if block == "functionals" else is_trusted(summary)
            cells.append(replace(_cell(model, "block_trusted", None, block), text="yes" if trusted else "no"))
        said.append(_said(record))
    return lay_out(
        cells,
        name="reference",
        title=artifact("reference").title,
        caption="NUTS from the MAP, by block of the parameters and of the quantities that tuners are judged by (the "
        "model's functionals if it has them, otherwise all parameters): number, root mean square of the "
        "standard deviations, their Monte Carlo error relative to them, R-hat and bulk effective sample "
        f"size. A row is trusted if R-hat is at most {R_HAT_TRUSTED} for 99% of its quantities and their median "
        f"effective sample size is at least {ESS_TRUSTED}. No regret is printed unless what tuners are judged by is "
        "trusted, and none in ξ of the parameters, nor a best tuner in it, unless all blocks are, too. The reference's "
        f"own error is the error that exact draws would have against it. {' '.join(said)}",
        rows=("model", "detail"),
        columns=("metric",),
        stub={"detail": "Block"},
    )


def _said(record: dict) -> str:
    checks, errors = record["diagnostics"], record["monte_carlo_error"]
    known = [
        f"{errors[name]:.2g} in {words}" for name, words in ERRORS.items() if errors.get(name) is not None
    ]
    lost = f" ({checks['draws_lost']:,} of them lost)" if checks["draws_lost"] else ""
    return (
        f"{label(record['model'], MODELS)}: {'trusted' if record['trusted'] else 'NOT trusted'} for what tuners are "
        "judged by; its own error "
        f"{', '.join(known) or 'unknown'}; {checks['chains']} chains of {checks['draws']:,} draws{lost}, "
        f"{checks['divergences']:,} divergences, {checks['n_parameters_stuck']:,} parameters stuck in a chain, "
        f"{checks['leapfrogs_per_draw']:.3g} leapfrogs a draw, "
        f"{100 * checks['max_tree_depth_share']:.3g}% of the trajectories cut at the greatest depth, E-BFMI "
        f"{' and '.join(f'{value:.2g}' for value in checks['e_bfmi'])}."
    )
