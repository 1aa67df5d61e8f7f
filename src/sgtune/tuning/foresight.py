"""A tuner that runs nothing: it chooses the arm with the smallest error at the horizon that theory predicts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sgtune.mode.find import MOST_DEPARTURE, N_DRAWS, departure
from sgtune.model import Model
from sgtune.model.posterior import LARGE_DIMENSION
from sgtune.support.axes import Arm
from sgtune.support.errors import InputError
from sgtune.theory.laplace import MOST_NUMBERS, laplace_of, spread_ratios, terms_of
from sgtune.theory.linear import expected_errors
from sgtune.theory.recursions import check_known
from sgtune.tuning.race import Racer, describe, record_rung

__all__ = ["Choice", "foresee", "promising"]

FAR = 2.0
"""The theory holds as long as sds are within this factor of the Laplace approximation's."""


HOPELESS = 1.5
"""Arms of which theory expects more than this many times the least error do not race (`promising`)."""


class Choice(NamedTuple):
    """The decision of a tuner without a race.

    Attributes:
        best: the index of the chosen arm; None if all arms are unstable.
        rows, warnings: as in `sgtune.tuning.tune.TuningResult`.
        evaluations: data terms of gradients that it took.
    """

    best: int | None
    rows: list[dict]
    warnings: list[str]
    evaluations: int = 0


def foresee(
    model: Model,
    sampler: str,
    arms: Sequence[Arm],
    n_steps: Sequence[int],
    report: Callable[[str], None] = lambda line: None,
) -> Choice:
    """The arm with the smallest expected error after its ``n_steps``, by `sgtune.theory.linear.expected_errors`.

    The row of each arm has this error in place of a discrepancy. Of arms with equal errors, the smallest step size
    wins.

    Raises:
        InputError: the theory does not cover the sampler, or the model has no proper mode.
    """
    try:
        laplace = laplace_of(model)
    except InputError as error:
        raise InputError(f"{error}: use the tuner mamba") from error
    errors = expected_errors(sampler, arms, laplace.directions, n_steps)
    order = np.lexsort(([arm.step_size for arm in arms], np.where(np.isfinite(errors), errors, np.inf)))
    best = int(order[0]) if np.isfinite(errors[order[0]]) else None
    racers = [Racer(place, arm) for place, arm in enumerate(arms)]
    reasons = ["" if np.isfinite(error) else "unstable" for error in errors]
    survivors = [] if best is None else [racers[best]]
    values = dict(enumerate(errors.tolist()))
    rows, warnings = record_rung(0, racers, [0] * len(arms), values, reasons, survivors)
    evaluations = terms_of(model)
    if laplace.basis is not None:
        root = laplace.basis / np.sqrt(laplace.directions.curvature)
        away = departure(model, laplace.mode, root)
        evaluations += N_DRAWS * model.n_data
        if not away <= MOST_DEPARTURE:
            warnings.append(
                f"theory: scores at draws of the Laplace approximation differ from a Gaussian's by {away:.2g} of these "
                f"(trusted up to {MOST_DEPARTURE:g}): the mode may be far from the posterior, use the tuner mamba"
            )
    if best is not None:
        warnings += _doubts(arms[best], n_steps[best], spread_ratios(laplace, sampler, arms[best]))
        report(
            f"errors of {len(arms)} arms predicted, {sum(np.isfinite(errors))} of them stable, best "
            f"{errors[best]:.4g} at {arms[best]}"
        )
    return Choice(best, rows, warnings, evaluations)


def promising(
    model: Model, sampler: str, arms: Sequence[Arm], n_steps: Sequence[int]
) -> tuple[list[Arm], int]:
    """The arms whose expected error after their ``n_steps`` is at most `HOPELESS` times the least, and the data terms
    of gradients that this takes. ``model`` is in its Laplace coordinates.

    A race is too short to see what a handful of rows of a large leverage do; theory reads all rows. All arms where
    theory does not cover the sampler or the posterior, where the scores are not those of a Gaussian (`departure`), or
    above 200 parameters, where theory knows no directions.
    """
    if model.dimension > LARGE_DIMENSION or model.n_data * model.dimension > MOST_NUMBERS:
        return list(arms), 0
    terms = N_DRAWS * model.n_data
    if not departure(model) <= MOST_DEPARTURE:
        return list(arms), terms
    try:
        errors = expected_errors(check_known(sampler), arms, laplace_of(model).directions, n_steps)
    except InputError:
        return list(arms), terms
    # No arm is below infinity where all are unstable.
    most = HOPELESS * np.min(errors, where=np.isfinite(errors), initial=np.inf)
    kept = [arm for arm, error in zip(arms, errors, strict=True) if error <= most]
    return (kept if np.isfinite(most) else list(arms)), terms + terms_of(model)


def _doubts(arm: Arm, n_steps: int, ratios: np.ndarray) -> list[str]:
    """Reasons to doubt the prediction for the chosen arm."""
    far = (ratios > FAR) | (ratios < 1 / FAR)
    doubts = []
    if far.any():
        worst = ratios[np.argmax(np.abs(np.log(ratios)))]
        doubts.append(
            f"theory: {describe(arm)} is predicted to have {worst:.3g} times the Laplace sd in the worst of "
            f"{len(ratios)} directions, and to differ from it by more than a factor of {FAR:g} in {far.sum()} of them: "
            "the approximation holds near the mode only, so the predicted error may be wrong"
        )
    if n_steps < 1:
        doubts.append(f"theory: the budget buys no step of {describe(arm)}")
    return doubts
