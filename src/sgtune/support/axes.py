"""The axes along which arms differ, the hyperparameters of samplers; arms; and the keys made of their numbers.

An axis is traced or static. A traced one is a number that each chain of an ensemble has for itself: one compiled
program serves all values. A static one is a part of a step's shape: all chains of an ensemble share its value, and the
cost of a step depends on it.

Imports nothing heavy: the workflow reads it while it is parsed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import c_float
from dataclasses import dataclass, replace
from numbers import Real

from sgtune.support.errors import InputError, check_integer, check_number

__all__ = ["AXES", "COMMON", "STATIC", "Arm", "Axis", "key_of", "named", "numbers_of", "symbol_of"]


@dataclass(frozen=True)
class Axis:
    """One hyperparameter.

    Attributes:
        default: the value for an arm that does not give one: a number, or a function of the numbers, by name, of the
            sampler's axes before this one; None if every arm must give a value.
        symbol: a short name for table columns and labels; the axis's name if it is empty.
        is_static: whether it is a part of a step's shape.
        is_integer: whether its values are integers.
        above, at_least, at_most, below: bounds of its values.
        in_grids: the key under which a grid lists its values; its name if it is empty.
    """

    name: str
    default: float | Callable[[Mapping[str, float]], float] | None = None
    symbol: str = ""
    is_static: bool = False
    is_integer: bool = False
    above: float | None = None
    at_least: float | None = 0
    in_grids: str = ""
    at_most: float | None = None
    below: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "symbol", self.symbol or self.name)
        object.__setattr__(self, "in_grids", self.in_grids or self.name)

    def check(self, number: object, at_most: float | None = None, name: str = "") -> float | int:
        """``number`` as a float, or as an int if the axis has integer values; ``name`` is its name in error messages.

        Raises:
            InputError: it is not finite, not an integer where it must be, or out of bounds; or it reaches a bound that
                it must not reach once it is rounded to float32, as chains use it.
        """
        name = name or self.name
        at_most = min((bound for bound in (at_most, self.at_most) if bound is not None), default=None)
        if self.is_integer:
            return check_integer(name, number, at_least=self.at_least, at_most=at_most)
        value = check_number(
            name, number, above=self.above, at_least=self.at_least, at_most=at_most, below=self.below
        )
        # Infinity if it is too large.
        rounded = c_float(value).value
        try:
            # The other bounds are allowed values, so rounding to one does no harm.
            check_number(name, rounded, above=self.above, below=self.below)
        except InputError as error:
            allowed = str(error).partition("; ")[2]
            raise InputError(
                f"{name}: {number!r} is not allowed: in float32 it is {rounded:g}; {allowed}"
            ) from None
        return value


STEP_SIZE = Axis("step_size", symbol="h", above=0, at_least=None, in_grids="log10_step_sizes")
BATCH_SIZE = Axis(
    "batch_size", symbol="n", is_static=True, is_integer=True, at_least=1, in_grids="batch_fractions"
)
N_LEAPFROG = Axis(
    "n_leapfrog", symbol="L", is_static=True, is_integer=True, at_least=1, in_grids="n_leapfrogs"
)
FRICTION = Axis("friction", 0.01, symbol="a")
NOISE_ESTIMATE = Axis("noise_estimate", 0.0, symbol="b")
FRICTION_RATE = replace(FRICTION, default=1.0, symbol="A", above=0, at_least=None)
"""The friction of samplers whose momentum has unit scale: A, per unit of time; one of their steps has a = A h."""
KAPPA = Axis("kappa", 0.0, at_most=1)
"""Weight of the newest minibatch in a running average; 0: 1/t in step t."""


# Of MALA and AdamMCMC (Bieringer et al. 2023). The step size of AdamMCMC is the paper's gamma; MALA's is s^2/2.
DRIFT = Axis("drift", lambda numbers: numbers["step_size"], symbol="gamma", above=0, at_least=None)
# Step size and noise sd have the unit of a position; the bias of AdamMCMC vanishes as their ratio does.
NOISE_SD = Axis("noise_sd", lambda numbers: 10 * numbers["step_size"], symbol="s", above=0, at_least=None)
DIRECTIONAL_NOISE = Axis("directional_noise", 1.0, symbol="s_d")
B1 = Axis("b1", 0.9, below=1)
B2 = Axis("b2", 0.999, below=1)
EPS = Axis("eps", 1e-8, symbol="delta", above=0, at_least=None)
# With these the stationary sd of the first moment, rho / sqrt(1 - b1^2), is 1 / s, in the unit of a gradient, and
# that of the second is 1 / s^2.
MOMENTUM_NOISE = Axis(
    "momentum_noise",
    lambda numbers: (1 - numbers["b1"] ** 2) ** 0.5 / numbers["noise_sd"],
    symbol="rho1",
    above=0,
    at_least=None,
)
SECOND_MOMENT_NOISE = Axis(
    "second_moment_noise",
    lambda numbers: (1 - numbers["b2"] ** 2) ** 0.5 / numbers["noise_sd"] ** 2,
    symbol="rho2",
    above=0,
    at_least=None,
)

COMMON = (STEP_SIZE, BATCH_SIZE, N_LEAPFROG)
"""The axes that every record has a place for, empty for samplers that lack them; further axes follow them."""

STATIC = tuple(axis for axis in COMMON if axis.is_static)
"""The axes that make up a step's shape, in the order of a cost table's keys."""

OF_METROPOLIS = (DRIFT, NOISE_SD, DIRECTIONAL_NOISE, B1, B2, EPS, MOMENTUM_NOISE, SECOND_MOMENT_NOISE)

AXES = {axis.name: axis for axis in (*COMMON, FRICTION, NOISE_ESTIMATE, KAPPA, *OF_METROPOLIS)}
"""All axes of the samplers of this package, by name, in the order in which they are printed."""


def key_of(numbers: Mapping, common: Sequence[Axis]) -> tuple:
    """``numbers`` as a tuple: the numbers of the axes ``common`` in their order, None where there is none, then a pair
    (name, number) for each other axis, in alphabetical order.

    Random streams and cost tables are keyed by it. A further axis only appends a pair, so older keys stay valid."""
    names = [axis.name for axis in common]
    further = sorted(numbers.keys() - set(names))
    return (*(numbers.get(name) for name in names), *((name, numbers[name]) for name in further))


def numbers_of(key: tuple, common: Sequence[Axis]) -> dict[str, float | int | None]:
    """The inverse of `key_of`: the numbers by name; None for an axis of ``common`` without a number."""
    if len(key) < len(common):
        names = ", ".join(axis.name for axis in common)
        raise InputError(f"shape: {key!r} is not allowed; it must have {names}")
    first, further = key[: len(common)], key[len(common) :]
    return {**{axis.name: number for axis, number in zip(common, first, strict=True)}, **dict(further)}


def symbol_of(name: str) -> str:
    """The symbol of the axis ``name``, or the name itself if it is not in `AXES`."""
    return AXES[name].symbol if name in AXES else name


def named(numbers: Mapping[str, float | int | None]) -> str:
    """A line such as ``h=0.001 n=20``, of every number that is not None."""
    return " ".join(
        f"{symbol_of(name)}={number if isinstance(number, int) else format(number, '.6g')}"
        for name, number in numbers.items()
        if number is not None
    )


class Arm(Mapping):
    """One setting of the tuned hyperparameters: an immutable, hashable mapping of names to numbers.

    ``Arm(step_size=1e-3, batch_size=50)``, or ``Arm(1e-3, 50)`` for the axes in `COMMON`. ``arm.step_size`` is
    ``arm["step_size"]``; for a common axis that the arm does not have, the attribute is None and there is no entry.
    Entries are always in the same order: the common axes, then all others alphabetically. The arm that
    `sgtune.tune` chooses, and that of a `sgtune.Chain`, also have the ``preconditioner`` that their numbers are for,
    which is part of no key or record.
    """

    __slots__ = ("_numbers",)

    def __init__(self, *common: Real | None, **numbers: Real | None):
        names = [axis.name for axis in COMMON]
        if len(common) > len(names) or numbers.keys() & set(names[: len(common)]):
            raise TypeError(f"Arm takes {', '.join(names)} by place, each once, and all else by name")
        numbers = {**dict(zip(names, common, strict=False)), **numbers}
        ordered = [*names, *sorted(numbers.keys() - set(names))]
        self._numbers = {name: numbers[name] for name in ordered if numbers.get(name) is not None}

    def __getitem__(self, name: str) -> float | int:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getattr__(self, name: str) -> float | int | None:
        # Private names are excluded: `copy` asks for them before the copy has its numbers.
        if not name.startswith("_"):
            if name in self._numbers:
                return self._numbers[name]
            if any(name == axis.name for axis in COMMON):
                return None
        raise AttributeError(f"an arm has no {name!r}")

    def __hash__(self) -> int:
        return hash(tuple(self._numbers.items()))

    def __repr__(self) -> str:
        return f"Arm({', '.join(f'{name}={number!r}' for name, number in self.items())})"

    @property
    def key(self) -> tuple:
        """The name of its random streams (`key_of`)."""
        return key_of(self._axes, COMMON)

    @property
    def _axes(self) -> dict[str, float | int]:
        return {name: number for name, number in self.items() if isinstance(number, Real)}

    def to_record(self) -> dict[str, float | int | None]:
        """The arm as a new dict for files, with None for the common axes that it does not have."""
        return {**{axis.name: None for axis in COMMON}, **self._axes}
