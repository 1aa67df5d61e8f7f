"""What a run may spend, and the cost model that turns one currency into another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

from sgtune.errors import InputError, check_integer, check_number

__all__ = ["Budget", "CostTable", "check_budget"]


@dataclass(frozen=True)
class Budget:
    """One of: ``seconds`` of sampling, ``steps`` (samples of the chain), or ``gradients`` (minibatch terms).

    ``gradients`` counts data terms: a step with batch size n and L leapfrogs spends n * L of them, twice as many with
    control variates.

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
        """The amount, in whatever currency."""
        return float(next(iter(self.given().values())))

    def steps_for(self, amount: float, *, seconds_per_step: float | None, gradients_per_step: int) -> int:
        """Whole steps that ``amount`` of this budget's currency buys."""
        if self.seconds is not None:
            return int(amount / seconds_per_step)
        return int(amount / (1 if self.steps is not None else gradients_per_step))


def check_budget(budget: object) -> Budget:
    """``budget`` if it is one, or an `InputError`."""
    if not isinstance(budget, Budget):
        raise InputError(
            f"budget: {budget!r} is not allowed; it must be a Budget, such as Budget(seconds=1.0)"
        )
    return budget


@dataclass(frozen=True)
class CostTable:
    """Seconds that one step takes, by (sampler, batch_size, n_leapfrog), measured once on this machine.

    A step's cost does not depend on its step size, so one entry serves all arms of one shape.
    """

    seconds_per_step: Mapping[tuple[str, int, int | None], float] = field(default_factory=dict)

    def __post_init__(self):
        for shape, seconds in self.seconds_per_step.items():
            check_number(f"cost: seconds_per_step of {shape}", seconds, above=0)

    def lookup(self, sampler: str, batch_size: int, n_leapfrog: int | None) -> float:
        """Seconds of one step.

        Raises:
            InputError: the table has no such entry.
        """
        shape = (sampler, batch_size, n_leapfrog)
        if shape not in self.seconds_per_step:
            raise InputError(
                f"cost: the table has no entry for sampler={sampler!r}, batch_size={batch_size}, "
                f"n_leapfrog={n_leapfrog}; calibrate it for that shape"
            )
        return self.seconds_per_step[shape]

    def to_rows(self) -> list[dict]:
        """As records, for JSON."""
        names = ("sampler", "batch_size", "n_leapfrog")
        return [
            dict(zip(names, shape, strict=True), seconds_per_step=seconds)
            for shape, seconds in self.seconds_per_step.items()
        ]

    @classmethod
    def from_rows(cls, rows: list[dict]) -> "CostTable":
        """From records.

        Raises:
            InputError: a cost is not a positive number.
        """
        return cls(
            {(row["sampler"], row["batch_size"], row["n_leapfrog"]): row["seconds_per_step"] for row in rows}
        )
