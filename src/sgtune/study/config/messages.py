"""Errors of a configuration in one line: the key, its value, and what is allowed."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from jsonschema import ValidationError

__all__ = ["allowed", "dotted", "leaves", "nearest", "validation_message"]


def validation_message(error: ValidationError) -> str:
    """A schema violation as one line: key, value, what is allowed, and the nearest known name."""
    path, value, schema = error.absolute_path, error.instance, error.schema
    if error.validator == "additionalProperties":
        known = sorted(schema["properties"])
        name = next(str(name) for name in value if name not in schema["properties"])
        return f"{dotted([*path, name])}: no such key{nearest(name, known)}; allowed: {', '.join(known)}"
    if error.validator == "required":
        name = next(name for name in error.validator_value if name not in value)
        return f"{dotted([*path, name])}: missing; it must be {allowed(schema['properties'][name])}"
    hint = ""
    if error.validator == "enum":
        hint = nearest(value, error.validator_value)
    elif error.validator == "type" and is_numeral(value):
        hint = " (text: a file needs 1.0e-6, not 1e-6; --config has no numbers inside a mapping)"
    return f"{dotted(path) or 'config'}: {value!r} is not allowed{hint}; it must be {allowed(schema)}"


def allowed(schema: Mapping) -> str:
    """The values that a schema entry allows, in words."""
    if "enum" in schema:
        return "one of: " + ", ".join(map(str, schema["enum"]))
    if isinstance(schema["type"], list):
        return f"null or {allowed({**schema, 'type': schema['type'][0]})}"
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] == "array":
        least = f", of {schema['minItems']} or more" if schema["minItems"] else ""
        return f"a list without repeats{least}, each {allowed(schema['items'])}"
    if schema["type"] == "object":
        return "a mapping with keys among " + ", ".join(schema["properties"])
    if "pattern" in schema:
        return f"a string that matches `{schema['pattern']}`"
    if schema["type"] == "string":
        return "text that is not empty"
    signs = {"exclusiveMinimum": ">", "minimum": ">=", "maximum": "<=", "exclusiveMaximum": "<"}
    bounds = " and ".join(f"{sign} {schema[name]}" for name, sign in signs.items() if name in schema)
    return f"{'an integer' if schema['type'] == 'integer' else 'a number'} {bounds}".rstrip()


def dotted(path: Sequence) -> str:
    """``("grids", "logistic", "n_leapfrogs", 0)`` as ``grids.logistic.n_leapfrogs[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def nearest(name: object, known: Sequence[str]) -> str:
    near = get_close_matches(str(name), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def is_numeral(value: object) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def leaves(value: object, path: tuple = ()) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, child in value.items():
            yield from leaves(child, (*path, name))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            yield from leaves(child, (*path, i))
    else:
        yield dotted(path), value
