"""The settings of a configuration in words."""

# ruff: noqa: RUF001 - tables print signs of mathematics

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from sgtune.study.catalogue import TUNERS as CATALOGUE
from sgtune.study.config.sections import n_races
from sgtune.study.report.labels import SAMPLERS, TUNERS, label

__all__ = [
    "data_said",
    "every",
    "listed",
    "number",
    "of_nuts_said",
    "percent",
    "points_said",
    "smaller_said",
    "tunings_said",
    "validation_said",
]


def number(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−")


def listed(values: Sequence[float]) -> str:
    """The numbers, or their ends where their steps are equal."""
    steps = {round(b - a, 9) for a, b in pairwise(values)}
    if len(values) > 3 and len(steps) == 1:
        return f"{number(values[0])} to {number(values[-1])} by {number(abs(steps.pop()))}"
    return ", ".join(map(number, values))


def percent(fraction: float) -> str:
    return f"{number(100 * fraction)}%"


def data_said(settings: Mapping, model: str) -> str:
    own = settings["data"][model]
    if model == "logistic":
        words = f"{own['n_rows']:,} rows, {own['n_train']:,} of them train, D = {own['dimension']}"
        return words + ("" if own["seed"] == 42 else f", seed {own['seed']}")
    of_paper = {"pmf": "MovieLens 100K", "bnn": "MNIST"}[model]
    words = of_paper if own["simulated"] is None else f"{own['simulated']:,} simulated"
    # Earlier runs do not name the network's hidden units.
    n_hidden = own.get("n_hidden", 100)
    return words + ("" if n_hidden == 100 else f", {n_hidden:,} hidden units")


def smaller_said(settings: Mapping, model: str) -> str | None:
    smaller = settings["grids"].get("smaller") or {}
    if not smaller.get("samplers"):
        return "none"
    samplers = ", ".join(label(name, SAMPLERS) for name in smaller["samplers"])
    return f"{samplers}: {listed(smaller['log10_step_sizes'])}"


def of_nuts_said(say: Callable[[Mapping], str]) -> Callable[[Mapping, str], str]:
    """The words that ``say`` makes from the section ``reference``, if there is one."""
    return lambda s, m: say(s["reference"]) if s["reference"]["nuts"] else "no reference"


def tunings_said(settings: Mapping) -> str:
    """Tuning runs, and those of grid searches if they are fewer."""
    most, fewer = settings["tuning"]["replicates"], {}
    for tuner in settings["tuners"]:
        if CATALOGUE[tuner].is_random and n_races(tuner, settings) < most:
            fewer.setdefault(n_races(tuner, settings), []).append(label(tuner, TUNERS))
    return "; ".join([f"{most}", *(f"{', '.join(tuners)}: {n}" for n, tuners in fewer.items())])


def validation_said(settings: Mapping, model: str) -> str:
    fraction = settings["tuning"]["validation_fraction"]
    return f"{percent(fraction)} of the training data, held out" if fraction else "the test data"


def every(n: int) -> str:
    return "all" if n == 1 else f"one in {n}"


def points_said(section: str, then: str = "") -> Callable[[Mapping, str], str]:
    return lambda s, m: f"{s[section]['points']:,} at most{then.format(**s['mamba'])}"
