"""What the models of the configuration are made of: sections, and types with their bounds and units.

A section of the configuration is a pydantic model. A key is a field of it: its type has the bounds and the unit, and
the docstring below it describes it.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from sgtune.study.catalogue import MODELS, SAMPLERS, TUNERS
from sgtune.study.config.sections import merge

T = TypeVar("T")


class ABSENT:
    """The default of a key that is missing from the configuration unless it is given."""


class Section(BaseModel):
    """A part of the configuration: no other keys, and no value of another type.

    Where a section is a key of another one, what is given for it is laid on its default there.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _laid_on_defaults(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        below = {
            name: field.default.filled()
            for name, field in cls.model_fields.items()
            if isinstance(field.default, Section) and isinstance(values.get(name), Mapping)
        }
        return {**values, **{name: merge(default, values[name]) for name, default in below.items()}}

    def filled(self) -> dict:
        """Its values by the keys of the files, with defaults filled in."""
        return {
            type(self).model_fields[name].alias or name: value.filled()
            if isinstance(value, Section)
            else value
            for name, value in self
            if value is not ABSENT
        }


def number(unit: str, **bounds: float) -> Any:
    """A finite number: the bounds are ``gt``, ``ge``, ``lt`` and ``le``."""
    return Annotated[float, Field(allow_inf_nan=False, json_schema_extra={"unit": unit}, **bounds)]


def integer(unit: str, least: int, most: int) -> Any:
    """A whole number."""
    return Annotated[int, Field(ge=least, le=most, json_schema_extra={"unit": unit})]


def must(what: str, is_allowed: Callable[[Any], bool]) -> AfterValidator:
    """A check of a value: the error says that it must ``what``, or, if that is empty, what its type allows."""

    def check(value: Any) -> Any:
        if not is_allowed(value):
            raise ValueError(what)
        return value

    return AfterValidator(check)


def _one_of(names: Callable[[], Iterable[str]]) -> Any:
    """One of the names that there are when a configuration is read: an entry of the catalogue is allowed at once."""
    listed = Field(json_schema_extra=lambda schema: schema.update(enum=list(names())))
    return Annotated[str, must("", lambda name: name in names()), listed]


DIFFERENT = must("", lambda values: all(value not in values[:i] for i, value in enumerate(values)))
ASCENDING = must("ascend", lambda values: all(one < next_one for one, next_one in pairwise(values)))
Unrepeated = Annotated[list[T], DIFFERENT, Field(json_schema_extra={"uniqueItems": True})]
Several = Annotated[Unrepeated[T], Field(min_length=1)]
Ascending = Annotated[Unrepeated[T], ASCENDING]
Seconds = number("s", gt=0, le=86_400)
Fraction = number("fraction of N", gt=0, le=1)
Points = integer("points", 10, 100_000)
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Text = Annotated[str, Field(min_length=1)]
ModelName = _one_of(lambda: MODELS)
SamplerName = _one_of(lambda: SAMPLERS)
TunerName = _one_of(lambda: [name for name, entry in TUNERS.items() if entry.method is None])


def is_section(annotation: object) -> bool:
    """Whether a field's type is a section."""
    return isinstance(annotation, type) and issubclass(annotation, Section)
