"""What the numbers of a cell of the study can be read as: whether its chains are stuck, too slow or biased,
and its text."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from collections.abc import Mapping, Sequence
from math import floor, log10
from statistics import fmean

from sgtune.study.adam_mcmc.intervals import is_beyond
from sgtune.study.adam_mcmc.names import mean_of
from sgtune.study.adam_mcmc.stationarity import LEAST_MOVES, is_too_slow, moves_of
from sgtune.study.report.layout import format_number

__all__ = [
    "BIASED",
    "LEAST_LENGTH",
    "STUCK",
    "STUCK_MEANS",
    "TOO_SLOW",
    "TOO_SLOW_MEANS",
    "ess_cause",
    "estimate_text",
    "has_left_target",
    "is_biased",
    "is_decided",
    "is_stuck",
    "is_unsettled",
    "moment_cause",
    "rate_text",
    "squares_cause",
]

STUCK, BIASED, TOO_SLOW = "– (stuck)", "– (biased)", "– (too slow)"
"""In print, in place of numbers that say nothing about the target."""

LEAST_ACCEPTANCE = 1e-3
"""Chains with a smaller acceptance rate hardly leave their starts: their squares are those of the starts."""

STUCK_MEANS = (
    "“stuck”: the acceptance rate is below 10⁻³, and the squares of the draws are those of the starts."
)
TOO_SLOW_MEANS = (
    f"“too slow”: steps × mean squared jump of a coordinate is below {LEAST_MOVES} E x², about ten effective "
    "draws of x², or E x² differs between the halves of the run by more than 5%, and the 99.7% t "
    "interval of the difference excludes 0."
)
"""In captions."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

ROUNDING = 1e-9
"""Of a value: a smaller standard error is one of rounding."""

ENOUGH_MOVES = 30
"""As `LEAST_MOVES`, of chains that need not be longer: about 7.5 of their autocorrelation times."""

LEAST_LENGTH = 10
"""Least steps of a chain from an approximate start over its autocorrelation time, for a bias to be claimed."""

MOST_BIAS = 0.1
"""Of E x^2, from 1; an effective sample size of draws with more bias is not reported."""


def is_stuck(cell: Mapping) -> bool:
    """Whether the mean acceptance rate of the cell's chains is below `LEAST_ACCEPTANCE`."""
    return fmean(cell["acceptance"]) < LEAST_ACCEPTANCE


def is_biased(cell: Mapping) -> bool:
    """Whether E x^2 of a cell of an acceptance record is further than `MOST_BIAS` from 1, by the 95% t interval of the
    chains."""
    squares = cell["square"]
    mean, se = mean_of(squares)
    beyond = abs(mean - 1) - MOST_BIAS
    return beyond > 0 and is_beyond(beyond, se, len(squares))


def has_left_target(record: Mapping, cell: Mapping) -> bool:
    """Whether the cell of an acceptance record shows that its sampler does not keep the target.

    Chains on a Gaussian start from exact draws. A sampler that keeps the target leaves E x^2 at 1 in every step, so a
    clear difference shows a bias of chains that have not settled, too. On the logistic posterior the starts are
    approximate, and only chains show one that moved enough and are `LEAST_LENGTH` of their autocorrelation times long:
    the mean squares of shorter ones are skewed, and a few small ones have a standard error that is too small.
    """
    if is_stuck(cell) or not is_biased(cell):
        return False
    return _starts_are_exact(record) or not moment_cause(record, cell)


def moment_cause(record: Mapping, cell: Mapping) -> str:
    """As `squares_cause`; but on the logistic posterior chains of fewer than `LEAST_LENGTH` autocorrelation times are
    too slow as well, because their starts are approximate."""
    cause = squares_cause(cell, cell["steps"])
    if cause or _starts_are_exact(record):
        return cause
    times = [cell.get("time"), *cell.get("time_without", ())]
    is_long = None not in times and cell["steps"] >= LEAST_LENGTH * max(times)
    return "" if is_long else TOO_SLOW


def _starts_are_exact(record: Mapping) -> bool:
    return record.get("n_data", 1) == 1


def is_unsettled(record: Mapping, cell: Mapping) -> bool:
    """Whether the cell's chains are stuck, moved too little, or still drift: their acceptance rate may be that of their
    starts."""
    return bool(moment_cause(record, cell))


def is_decided(cell: Mapping, longest: int, *, starts_are_exact: bool, must_settle: bool = True) -> bool:
    """Whether longer chains of a cell, of up to ``longest`` steps, would tell nothing else: they are stuck, or would
    still be too slow; or they started from exact draws, have settled, and have either a bias (`is_biased`) or
    `ENOUGH_MOVES`. Unless they ``must_settle``, those with a bias end at once: a chain with a bias has no ESS, and
    only the size of the bias needs more steps."""
    if is_stuck(cell) or moves_of(cell, longest) < LEAST_MOVES:
        return True
    if starts_are_exact and not must_settle and is_biased(cell):
        return True
    if not starts_are_exact or is_too_slow(cell, cell["steps"]):
        return False
    return is_biased(cell) or moves_of(cell, cell["steps"]) >= ENOUGH_MOVES


def squares_cause(cell: Mapping, steps: int) -> str:
    """Why the squares of a cell's draws estimate nothing; empty if they estimate E x^2."""
    if is_stuck(cell):
        return STUCK
    return TOO_SLOW if is_too_slow(cell, steps) else ""


def ess_cause(record: Mapping, cell: Mapping) -> str:
    """Why a cell of an acceptance record has no effective sample size; empty if it has one."""
    if has_left_target(record, cell):
        return BIASED
    if cause := squares_cause(cell, cell["steps"]):
        return cause
    return TOO_SLOW if None in (cell["time"], *cell["time_without"]) else ""


def estimate_text(value: float | None, se: float | None, *, signed: bool = False) -> str | None:
    """``value ± se`` by the rule "by error" of `sgtune.study.report.layout.format_number`: two digits of the
    standard error, and no more than five of the value. From 10⁶ up and below 10⁻³ with a power of ten.

    None, for the layout's own text, if there is no error, or only an error of rounding.
    """
    if value is None or not se or not se > ROUNDING * abs(value):
        return None
    exponent = floor(log10(max(abs(value), se)))
    has_power = not -4 < exponent < 6
    scale = 10.0**exponent if has_power else 1.0
    text = format_number(value / scale, "by error", se / scale)
    if signed and value >= 0:
        text = f"+{text}"
    return f"({text}) × 10{str(exponent).translate(SUPERSCRIPTS)}" if has_power else text


def _with_power(number: float) -> str:
    exponent = floor(log10(number))
    return f"{number / 10.0**exponent:.2g} × 10{str(exponent).translate(SUPERSCRIPTS)}"


def rate_text(rates: Sequence[float], n_tests: int) -> str | None:
    """A mean acceptance rate; below one of ``n_tests``, all tests of the cell, as ``< 1 / n_tests``."""
    mean, se = mean_of(rates)
    if mean is not None and mean * n_tests < 1:
        return f"< {_with_power(1 / n_tests)}"
    return estimate_text(mean, se)
