"""The JSON schema of the configuration, made from its models, and what it allows in words.

``python -m sgtune.study.config.schema`` writes ``workflow/schemas/config.schema.yaml`` whole, and the tables of
``config/README.md`` below what is written by hand there.
"""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import yaml
from pydantic import TypeAdapter

from sgtune.study.config.keys import Section, is_section
from sgtune.study.config.run import Configuration
from sgtune.study.config.sections import canonical
from sgtune.support.files import atomic_write

__all__ = ["allowed", "entries", "generated", "json_schema"]


@cache
def json_schema() -> dict:
    """The schema of a configuration: every key in its place, with description, unit, bounds and default."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of a run"}
    return head | canonical(
        _entry_of(Configuration, Configuration(run="any").filled(), Configuration.__doc__)
    )


def _entry_of(section: type[Section], values: Mapping, description: str) -> dict:
    """A section's entry; its keys' defaults are their ``values`` in a configuration that gives no others."""
    texts = {name: text for base in reversed(section.__mro__) for name, text in _docstrings(base).items()}
    types, properties, required = get_type_hints(section, include_extras=True), {}, []
    for name, field in section.model_fields.items():
        key, kind = field.alias or name, types[name]
        if is_section(kind):
            properties[key] = _entry_of(kind, values.get(key, {}), texts.get(name) or kind.__doc__)
            continue
        entry = {"description": " ".join(texts[name].split()), **TypeAdapter(kind).json_schema()}
        if "anyOf" in entry:
            one, null = entry.pop("anyOf")
            entry |= one | {"type": [one["type"], null["type"]]}
        if field.is_required():
            required.append(key)
        elif key in values:
            entry["default"] = values[key]
        properties[key] = entry
    entry = {"description": " ".join(description.split()), "type": "object", "additionalProperties": False}
    return entry | ({"required": required} if required else {}) | {"properties": properties}


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
    for name, entry in schema.get("properties", {}).items():
        yield f"{path}{name}", entry
        yield from entries(entry, f"{path}{name}.")


def allowed(entry: Mapping) -> str:
    """The values that a schema entry allows, in words."""
    if isinstance(entry["type"], list):
        return f"null or {allowed({**entry, 'type': entry['type'][0]})}"
    if "enum" in entry:
        return "one of: " + ", ".join(entry["enum"])
    if entry["type"] == "boolean":
        return "true or false"
    if entry["type"] == "array":
        least = f", of {entry['minItems']} or more" if "minItems" in entry else ""
        return f"a list without repeats{least}, each {allowed(entry['items'])}"
    if entry["type"] == "object":
        return "a mapping with keys among " + ", ".join(entry["properties"])
    if entry["type"] == "string":
        return (
            f"a string that matches `{entry['pattern']}`" if "pattern" in entry else "text that is not empty"
        )
    signs = {"exclusiveMinimum": ">", "minimum": ">=", "maximum": "<=", "exclusiveMaximum": "<"}
    bounds = " and ".join(f"{sign} {entry[name]}" for name, sign in signs.items() if name in entry)
    return f"{'an integer' if entry['type'] == 'integer' else 'a number'} {bounds}"


def generated(folder: Path) -> dict[Path, str]:
    """The files below ``folder``, the repository, that are made from the models of the configuration, with their texts:
    the schema, and the page with a table of keys for each section."""
    schema, page = json_schema(), folder / "config/README.md"
    text = "# Made from the models of the configuration by `python -m sgtune.study.config.schema`.\n"
    text += yaml.safe_dump(schema, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    by_hand, keys, _ = page.read_text(encoding="utf-8").partition("## Keys\n")
    parts = [by_hand + keys, _table(schema, "")]
    for path, entry in entries(schema):
        if "properties" in entry and not path.startswith("per_model."):
            parts += [f"\n### `{path}`\n\n{entry['description']}", _table(entry, f"{path}.")]
    return {
        folder / "workflow/schemas/config.schema.yaml": text,
        page: "\n".join(part for part in parts if part) + "\n",
    }


def _table(section: Mapping, path: str) -> str:
    rows = ["", "| key | meaning | unit | allowed | default |", "| --- | --- | --- | --- | --- |"]
    for name, entry in section["properties"].items():
        if "properties" not in entry:
            unit = entry.get("unit", entry.get("items", {}).get("unit", ""))
            default = f"`{json.dumps(entry['default'])}`" if "default" in entry else "none"
            rows.append(
                f"| `{path}{name}` | {entry['description']} | {unit} | {allowed(entry)} | {default} |"
            )
    return "\n".join(rows) if len(rows) > 3 else ""


if __name__ == "__main__":
    for path, text in generated(Path()).items():
        with atomic_write(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
