"""The JSON schema of the configuration, made from its models, and what it allows in words."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from sgtune.study.config.run import Configuration
from sgtune.study.config.sections import canonical

__all__ = ["allowed", "dotted", "entry_of", "json_schema", "message_of", "nearest"]


class _Generator(GenerateJsonSchema):
    # That of a key without a default.
    ignored_warning_kinds = {"non-serializable-default"}


def json_schema() -> dict:
    """The schema of a configuration: every key in its place, with description, unit, bounds and default."""
    whole = Configuration.model_json_schema(schema_generator=_Generator)
    schema = canonical(_in_place(whole, whole.pop("$defs")))
    _set_defaults(schema, canonical(Configuration(run="any").filled()))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of a run",
        **schema,
    }


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
    if "description" in entry:
        entry = {"description": "", **entry} | {"description": " ".join(entry["description"].split())}
    dropped = ("$ref", "anyOf", "title")
    properties = {name: _in_place(value, sections) for name, value in entry.get("properties", {}).items()}
    return {
        name: properties if name == "properties" else _in_place(value, sections)
        for name, value in entry.items()
        if name not in dropped
    }


def _set_defaults(section: dict, values: Mapping) -> None:
    """A key's default is its value in the configuration that gives only what is required."""
    for name, entry in section["properties"].items():
        entry.pop("default", None)
        if entry.get("type") == "object":
            _set_defaults(entry, values.get(name, {}))
        elif name in values and name not in section.get("required", ()):
            entry["default"] = values[name]


def entry_of(schema: Mapping, path: Sequence[str | int]) -> Mapping:
    """The schema's entry for a key or an item of a list."""
    for part in path:
        schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
    return schema


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
    *parents, name = path = error["loc"]
    value, schema = error["input"], json_schema()
    if error["type"] == "extra_forbidden":
        known = sorted(entry_of(schema, parents)["properties"])
        return f"{dotted(path)}: no such key{nearest(name, known)}; allowed: {', '.join(known)}"
    entry = entry_of(schema, path)
    if error["type"] == "missing":
        return f"{dotted(path)}: missing; it must be {allowed(entry)}"
    must = f"be {allowed(entry)}"
    if error["type"] == "finite_number":
        must = "be a finite number"
    elif error["type"] == "value_error":
        must = str(error["ctx"]["error"]) or must
    hint = nearest(value, entry.get("enum", ()))
    if error["type"] in ("int_type", "float_type") and _is_numeral(value):
        hint = " (text: a file needs 1.0e-6, not 1e-6; --config has no numbers inside a mapping)"
    return f"{dotted(path)}: {value!r} is not allowed{hint}; it must {must}"


def dotted(path: Sequence) -> str:
    """``("grids", "logistic", "n_leapfrogs", 0)`` as ``grids.logistic.n_leapfrogs[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def nearest(name: object, known: Sequence[str]) -> str:
    """A hint at the name of ``known`` that is meant, if there is one."""
    near = get_close_matches(str(name), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _is_numeral(value: object) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)
