"""Errors that users see: one line that names the argument, the value, and what is allowed."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral, Real
from operator import ge, gt, le, lt
from types import ModuleType

__all__ = ["DataError", "InputError", "check_choice", "check_integer", "check_number", "import_extra"]


class InputError(ValueError):
    """A bad argument or config value. The message is one line that names it, its value, and what is allowed."""


class DataError(InputError):
    """A file that is missing, truncated, from another version, or has wrong contents."""


def check_choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """``value`` if it is one of ``allowed``; otherwise an `InputError` that suggests the nearest."""
    allowed = sorted(allowed)
    if isinstance(value, str) and value in allowed:
        return value
    near = get_close_matches(str(value), allowed, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InputError(f"{name}: {value!r} is not known{hint}; allowed: {', '.join(allowed)}")


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """``value`` as a finite float within the bounds, or an `InputError`."""
    value = _from_array(value)
    known = ((">", above, gt), (">=", at_least, ge), ("<=", at_most, le), ("<", below, lt))
    bounds = [(sign, bound, holds) for sign, bound, holds in known if bound is not None]
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    # An integer may be too large for a float.
    is_number = is_number and -sys.float_info.max <= value <= sys.float_info.max
    if not is_number or not all(holds(value, bound) for _, bound, holds in bounds):
        allowed = " and ".join(f"{sign} {bound:g}" for sign, bound, _ in bounds)
        raise InputError(
            f"{name}: {value!r} is not allowed; it must be a number{' ' * bool(bounds)}{allowed}"
        )
    return float(value)


def check_integer(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """``value`` as an int within the bounds, or an `InputError`."""
    value = _from_array(value)
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < at_least or (at_most is not None and value > at_most):
        upper = f" and <= {at_most}" if at_most is not None else ""
        raise InputError(f"{name}: {value!r} is not allowed; it must be an integer >= {at_least}{upper}")
    return int(value)


def _from_array(value: object) -> object:
    """The number in an array without axes, such as ``jnp.float32(1e-3)``."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def import_extra(module: str, extra: str) -> ModuleType:
    """A module of a package that only an extra of sgtune installs; without it an `InputError` that names the extra."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise InputError(f"{error.name}: not installed; pip install 'sgtune[{extra}]' installs it") from None
