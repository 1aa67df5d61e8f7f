"""The JSON schema of the configuration, made from its models, and what it allows in words."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from sgtune.study.config.keys import Section, is_section
from sgtune.study.config.run import Configuration
from sgtune.study.config.sections import canonical

__all__ = ["allowed", "dotted", "entries", "json_schema", "message_of"]

NUMERAL = r"[-+]?[\d.]+([eE][-+]?\d+)?"
"""A number to a reader, but not always to YAML."""


class _Generator(GenerateJsonSchema):
    # That of a key without a default.
    ignored_warning_kinds = {"non-serializable-default"}


@cache
def json_schema() -> dict:
    """The schema of a configuration: every key in its place, with description, unit, bounds and default."""
    whole = Configuration.model_json_schema(schema_generator=_Generator)
    schema = _completed(
        _in_place(whole, whole.pop("$defs")), Configuration, Configuration(run="any").filled()
    )
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of a run"}
    return head | canonical(schema)


def _in_place(entry: Any, sections: Mapping[str, Mapping]) -> Any:
    """An entry with the sections that it refers to in their places, and null as one more type."""
    if isinstance(entry, list):
        return [_in_place(item, sections) for item in entry]
    if not isinstance(entry, Mapping):
        return entry
    if "$ref" in entry:
        entry = {**sections[entry["$ref"].rpartition("/")[2]], **entry}
    if "anyOf" in entry:
        entry = {**entry, **entry["anyOf"][0], "type": [entry["anyOf"][0]["type"], "null"]}
    if "enum" in entry:
        entry = {name: value for name, value in entry.items() if name != "type"}
    dropped = ("$ref", "anyOf", "title")
    properties = {name: _in_place(value, sections) for name, value in entry.get("properties", {}).items()}
    return {
        name: properties if name == "properties" else _in_place(value, sections)
        for name, value in entry.items()
        if name not in dropped
    }


def _completed(entry: Mapping, section: type[Section], values: Mapping) -> dict:
    """A section's entry with all descriptions, and with its keys' values in a configuration that gives no others."""
    below = {name: text for base in reversed(section.__mro__) for name, text in _docstrings(base).items()}
    properties = {}
    for name, field in section.model_fields.items():
        key = field.alias or name
        of_key = {part: value for part, value in entry["properties"][key].items() if part != "default"}
        if is_section(field.annotation):
            of_key = _completed(of_key, field.annotation, values.get(key, {}))
        elif key in values and not field.is_required():
            of_key["default"] = values[key]
        text = below.get(name) or field.annotation.__doc__
        properties[key] = {"description": "", **of_key} | {"description": " ".join(text.split())}
    return {**entry, "description": " ".join(section.__doc__.split()), "properties": properties}


@cache
def _docstrings(section: type) -> dict[str, str]:
    """The docstrings below the fields of a class. (Pydantic would look for them whenever a job starts.)"""
    if not is_section(section):
        return {}
    (definition,) = ast.parse(inspect.getsource(section)).body
    return {
        field.target.id: text.value.value
        for field, text in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def entries(schema: Mapping, path: str = "") -> Iterator[tuple[str, Mapping]]:
    """Every key and section below a section's entry, as ``mamba.seconds``, with its own entry; a section comes before
    its keys."""
    for name, entry in schema["properties"].items():
        yield f"{path}{name}", entry
        if "properties" in entry:
            yield from entries(entry, f"{path}{name}.")


def allowed(entry: Mapping) -> str:
    """The values that a schema entry allows, in words."""
    if "enum" in entry:
        return "one of: " + ", ".join(map(str, entry["enum"]))
    if isinstance(entry["type"], list):
        return f"null or {allowed({**entry, 'type': entry['type'][0]})}"
    if entry["type"] == "boolean":
        return "true or false"
    if entry["type"] == "array":
        least = f", of {entry['minItems']} or more" if "minItems" in entry else ""
        return f"a list without repeats{least}, each {allowed(entry['items'])}"
    if entry["type"] == "object":
        return "a mapping with keys among " + ", ".join(entry["properties"])
    if "pattern" in entry:
        return f"a string that matches `{entry['pattern']}`"
    if entry["type"] == "string":
        return "text that is not empty"
    signs = {"exclusiveMinimum": ">", "minimum": ">=", "maximum": "<=", "exclusiveMaximum": "<"}
    bounds = " and ".join(f"{sign} {entry[name]}" for name, sign in signs.items() if name in entry)
    return f"{'an integer' if entry['type'] == 'integer' else 'a number'} {bounds}".rstrip()


def message_of(error: Mapping) -> str:
    """An error of pydantic as one line: key, value, what is allowed, and the nearest known name."""
    *parents, name = error["loc"]
    key, value, entry = dotted(error["loc"]), error["input"], json_schema()
    for part in parents:
        entry = entry["items"] if isinstance(part, int) else entry["properties"][part]
    if error["type"] == "extra_forbidden":
        known = sorted(entry["properties"])
        return f"{key}: no such key{_nearest(name, known)}; allowed: {', '.join(known)}"
    entry = entry["items"] if isinstance(name, int) else entry["properties"][name]
    if error["type"] == "missing":
        return f"{key}: missing; it must be {allowed(entry)}"
    must = f"be {allowed(entry)}"
    if error["type"] == "finite_number":
        must = "be a finite number"
    elif error["type"] == "value_error":
        must = str(error["ctx"]["error"]) or must
    hint = _nearest(value, entry.get("enum", ()))
    if (
        error["type"] in ("int_type", "float_type")
        and isinstance(value, str)
        and re.fullmatch(NUMERAL, value)
    ):
        hint = " (text: a file needs 1.0e-6, not 1e-6; --config has no numbers inside a mapping)"
    return f"{key}: {value!r} is not allowed{hint}; it must {must}"


def dotted(path: Sequence) -> str:
    """``("grids", "logistic", "n_leapfrogs", 0)`` as ``grids.logistic.n_leapfrogs[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _nearest(name: object, known: Sequence[str]) -> str:
    """A hint at the name of ``known`` that is meant, if there is one."""
    near = get_close_matches(str(name), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
