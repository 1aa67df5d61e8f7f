"""Bounds of hyperparameters, in float64 and in the float32 of chains."""

import pytest

from sgtune.support.axes import AXES
from sgtune.support.errors import InputError


@pytest.mark.parametrize(
    ("axis", "value", "line"),
    [
        ("b2", 0.9999999999, "b2: 0.9999999999 is not allowed: in float32 it is 1; it must be a number < 1"),
        ("b1", 0.99999999, "b1: 0.99999999 is not allowed: in float32 it is 1; it must be a number < 1"),
        ("eps", 1e-60, "eps: 1e-60 is not allowed: in float32 it is 0; it must be a number > 0"),
        ("step_size", 1e60, "step_size: 1e+60 is not allowed: in float32 it is inf; it must be a number > 0"),
    ],
)
def test_bounds_hold_in_float32(axis, value, line):
    with pytest.raises(InputError) as caught:
        AXES[axis].check(value)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("axis", "value"), [("b2", 0.9999999), ("kappa", 1), ("b1", 0), ("step_size", 1e-30)]
)
def test_a_number_within_the_bounds_is_kept_in_float64(axis, value):
    assert AXES[axis].check(value) == value
