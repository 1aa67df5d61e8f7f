"""The budget of a run, and the cost model that converts one currency to another."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path

from sgtune.support.axes import STATIC, key_of, numbers_of
from sgtune.support.errors import DataError, InputError, check_integer, check_number
from sgtune.support.files import read_json

__all__ = [
    "Budget",
    "CostTable",
    "batch_size_of",
    "check_budget",
    "check_cost_table",
    "read_costs",
    "rows_of",
    "shape_of_row",
]


def rows_of(fraction: float, n_data: int) -> int:
    """floor(fraction * N), which may be 0."""
    # 0.29 * 100 is 28.999...96 in floats: a product within rounding of an integer counts as this integer.
    return math.floor(fraction * n_data * (1 + 1e-12))


def batch_size_of(fraction: float, n_data: int) -> int:
    """floor(fraction * N), as in the paper's tables.

    Raises:
        InputError: the fraction is not in (0, 1], or so small that no row is left.
    """
    check_number("batch_fraction", fraction, above=0, at_most=1)
    size = rows_of(fraction, n_data)
    if size < 1:
        raise InputError(
            f"batch_fraction: {fraction!r} of N={n_data} rows leaves none; it must be at least {1 / n_data:.3g}"
        )
    return size


@dataclass(frozen=True)
class Budget:
    """One of: ``seconds`` of sampling, ``steps`` (samples of the chain), or ``gradients`` (minibatch terms).

    ``gradients`` counts data terms: a step with batch size n and L leapfrogs spends n * L of them; of batches below N
    twice as many with control variates, and again twice as many for samplers that estimate the noise's covariance;
    the log densities of a Metropolis test count, too. A run makes at least one step.

    Raises:
        InputError: not exactly one is given, or it is not a positive finite number.
    """

    seconds: float | None = None
    steps: int | None = None
    gradients: int | None = None

    def __post_init__(self):
        given = self.given()
        if len(given) != 1:
            named = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "nothing"
            raise InputError(f"budget: {named} given; give exactly one of seconds, steps, gradients")
        ((name, value),) = given.items()
        check_number(f"budget: {name}", value, above=0)
        if name != "seconds":
            check_integer(f"budget: {name}", value, at_least=1)

    def given(self) -> dict[str, Real]:
        """The currency in use and its amount."""
        currencies = ("seconds", "steps", "gradients")
        return {name: getattr(self, name) for name in currencies if getattr(self, name) is not None}

    @property
    def amount(self) -> float:
        """The amount, in the currency of the budget."""
        return float(next(iter(self.given().values())))


def check_budget(budget: object, name: str = "budget") -> Budget:
    """``budget`` if it is a `Budget`, or an `InputError` that calls it ``name``."""
    if not isinstance(budget, Budget):
        raise InputError(
            f"{name}: {budget!r} is not allowed; it must be a Budget, such as Budget(seconds=1.0)"
        )
    return budget


@dataclass(frozen=True)
class CostTable:
    """Seconds that one step takes, by (sampler, batch_size, n_leapfrog, ...): measured once on this machine, or given.

    A step's cost does not depend on traced numbers, so one entry serves all arms of one shape (`sgtune.sampling.arm`).
    """

    seconds_per_step: Mapping[tuple, float] = field(default_factory=dict)

    def __post_init__(self):
        for shape, seconds in self.seconds_per_step.items():
            check_number(f"cost: seconds_per_step of {shape}", seconds, above=0)

    def lookup(self, sampler: str, *static: object) -> float:
        """Seconds of one step of a shape.

        Raises:
            InputError: the table has no such entry.
        """
        if (sampler, *static) not in self.seconds_per_step:
            numbers = numbers_of(static, STATIC).items()
            raise InputError(
                f"cost: the table has no entry for sampler={sampler!r}, "
                f"{', '.join(f'{name}={number}' for name, number in numbers)}; calibrate it for that shape"
            )
        return self.seconds_per_step[sampler, *static]

    def to_rows(self) -> list[dict]:
        """As records, for JSON."""
        return [
            {"sampler": sampler, **numbers_of(tuple(static), STATIC), "seconds_per_step": seconds}
            for (sampler, *static), seconds in self.seconds_per_step.items()
        ]

    @classmethod
    def from_rows(cls, rows: list[dict]) -> "CostTable":
        """From records.

        Raises:
            InputError: a cost is not a positive number, or a record lacks an entry.
        """
        try:
            return cls({shape_of_row(row): row["seconds_per_step"] for row in rows})
        except KeyError as error:
            raise InputError(f"cost: a row lacks {error}") from None


def check_cost_table(cost: object) -> None:
    """An `InputError` unless ``cost`` is a `CostTable` or None."""
    if cost is not None and not isinstance(cost, CostTable):
        raise InputError(f"cost: {cost!r} is not allowed; it must be a CostTable or None")


def shape_of_row(row: Mapping) -> tuple:
    """The shape that a record of a cost table is for."""
    static = {axis.name: row[axis.name] for axis in STATIC}
    # Numbers are further static axes; text, such as a user's remark, is not.
    others = row.keys() - {"sampler", "seconds_per_step"} - static.keys()
    further = [name for name in others if isinstance(row[name], Real)]
    return (row["sampler"], *key_of({**static, **{name: row[name] for name in further}}, STATIC))


def read_costs(path: str | Path, model: str, n_data: int, dimension: int | None = None) -> CostTable:
    """The costs of ``model`` from a file of several models' costs (the rule collect_costs makes one).

    Args:
        n_data, dimension: N and D of the model (D None: not known yet); the cost of a step depends on them.

    Raises:
        DataError: the file is missing or not a cost table, has no costs of ``model``, or costs for another N or D.
    """
    held = read_json(path)
    if not isinstance(held, dict) or not isinstance(held.get("models"), dict):
        raise DataError(
            f"{path}: not a cost table; it must hold 'models', as the rule collect_costs writes it"
        )
    if model not in held["models"]:
        known = ", ".join(held["models"]) or "no model"
        raise DataError(f"{path}: has no costs for {model}; it has costs for {known}")
    of_model = held["models"][model]
    if not isinstance(of_model, dict):
        raise DataError(f"{path}: its entry for {model} is not a cost table")
    for name, wanted in (("n_data", n_data), ("dimension", dimension)):
        if wanted is not None and of_model.get(name) != wanted:
            raise DataError(
                f"{path}: its costs of {model} are for {name}={of_model.get(name)}; this run has {name}={wanted}"
            )
    try:
        return CostTable.from_rows(of_model["rows"])
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: the rows of {model} are not rows of a cost table ({error!r})") from None
    except InputError as error:
        raise DataError(f"{path}: {error}") from None
