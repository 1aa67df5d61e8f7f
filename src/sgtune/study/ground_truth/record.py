"""The record of a reference: its moments, its diagnostics, and whether it can be trusted."""

from typing import TYPE_CHECKING

from sgtune.study.ground_truth import ESS_TRUSTED, R_HAT_TRUSTED, is_trusted
from sgtune.study.ground_truth.accuracy import monte_carlo_error, standard_errors
from sgtune.study.ground_truth.convergence import (
    by_block,
    convergence,
    diagnostics,
    of_functionals,
)
from sgtune.study.ground_truth.draws import covariance, summary

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = ["doubts", "reference_record"]


def reference_record(idata: "InferenceData") -> dict:
    """The record of all chains that `combine_nuts` writes.

    ``mean``, ``sd`` and, where D <= 200, ``covariance`` of the position; ``functionals``, the model's, by
    `of_functionals`; whether they are ``trusted``; the ``monte_carlo_error``; ``diagnostics`` and ``blocks``.
    """
    mean, sd = summary(idata)
    checked, errors = convergence(idata), standard_errors(idata)
    functionals = of_functionals(idata, checked, errors)
    record = {"mean": mean, "sd": sd, "covariance": covariance(idata), "functionals": functionals}
    record |= {"trusted": is_trusted(functionals), "monte_carlo_error": monte_carlo_error(idata, errors)}
    record |= {"diagnostics": diagnostics(idata, checked), "blocks": by_block(idata, checked, errors)}
    return {name: value for name, value in record.items() if value is not None}


def doubts(record: dict) -> str | None:
    """Why a reference is not trusted, with the numbers; None if it is."""
    if record["trusted"]:
        return None
    found = record["functionals"]
    return (
        f"the 99th percentile of R-hat is {found['r_hat_p99']:.3g} (trusted up to {R_HAT_TRUSTED}), the median "
        f"effective sample size {found['ess_median']:,.0f} (trusted from {ESS_TRUSTED})"
    )
