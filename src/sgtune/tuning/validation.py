"""Rows held out of the training data, for tuners that judge by predictions and must not see the test set."""

from sgtune.model import Model
from sgtune.model.derived import hold_out
from sgtune.sampling.arm import Arm
from sgtune.support.errors import check_number

__all__ = ["on_fewer_rows", "racing_model"]


def racing_model(model: Model, tasks: tuple[str, ...] | None, fraction: float) -> Model:
    """The model whose posterior the arms sample: ``model``, without ``fraction`` of its rows if these judge the arms.

    Args:
        tasks: of the tuner (`sgtune.tuning.tuners.Tuner`): None if it does not judge by predictions.

    Raises:
        InputError: the fraction is not in [0, 1), or `hold_out` does not allow it.
    """
    check_number("validation_fraction", fraction, at_least=0, below=1)
    if tasks is None or fraction == 0:
        return model
    return hold_out(model, fraction, name="validation_fraction")


def on_fewer_rows(arm: Arm, n_data: int, n_left: int) -> Arm:
    """``arm``, which is for ``n_data`` rows, with a batch of the same share of ``n_left`` rows, at least one row."""
    return Arm(**{**arm, "batch_size": max(1, arm.batch_size * n_left // n_data)})
