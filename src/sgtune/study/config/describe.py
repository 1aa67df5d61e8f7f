"""The keys of the configuration as Markdown, made from its schema: the tables of config/README.md."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sgtune.study.config.messages import allowed
from sgtune.study.config.sections import merge

__all__ = ["describe_keys", "resolved"]

YAML_WORDS = {"None": "null", "True": "true", "False": "false"}


def describe_keys(schema: Mapping) -> str:
    """The keys of the schema as Markdown tables, one per section; of ``per_model``, the values that are set."""
    schema = resolved(schema)
    top = {name: entry for name, entry in schema["properties"].items() if entry.get("type") != "object"}
    parts = [_table(top, "", schema["required"])]
    for key, entry in _sections(schema):
        plain = {name: child for name, child in entry["properties"].items() if child.get("type") != "object"}
        parts.append(f"### `{key}`\n\n{entry['description']}")
        if key == "per_model":
            parts.append(_overlay_table(schema, entry))
        elif plain:
            parts.append(_table(plain, key))
    return "\n\n".join(parts) + "\n"


def resolved(schema: Mapping) -> dict:
    """The schema with every ``$ref`` replaced by its target, which the keywords beside it override."""
    return _resolved({name: value for name, value in schema.items() if name != "$defs"}, schema)


def _resolved(entry: object, root: Mapping) -> object:
    if isinstance(entry, list):
        return [_resolved(item, root) for item in entry]
    if not isinstance(entry, Mapping):
        return entry
    own = {name: _resolved(value, root) for name, value in entry.items() if name != "$ref"}
    if "$ref" not in entry:
        return own
    target = root
    for part in entry["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    referred = _resolved(target, root)
    # The default of a section is not the default of a key that refers to it.
    return merge({name: value for name, value in referred.items() if name != "default"}, own)


def _sections(schema: Mapping, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping]]:
    for name, entry in schema["properties"].items():
        if entry.get("type") == "object":
            yield ".".join([*path, name]), entry
            if name != "per_model":
                yield from _sections(entry, (*path, name))


def _table(entries: Mapping[str, Mapping], section: str, required: Sequence[str] = ()) -> str:
    rows = ["| key | meaning | unit | allowed | default |", "| --- | --- | --- | --- | --- |"]
    for name, entry in entries.items():
        key = f"{section}.{name}" if section else name
        default = "none: give one" if name in required else _default(entry)
        unit = entry.get("unit", entry.get("items", {}).get("unit", ""))
        rows.append(
            " | ".join([f"| `{key}`", entry["description"].strip(), unit, allowed(entry), f"{default} |"])
        )
    return "\n".join(rows)


def _default(entry: Mapping) -> str:
    if "default" not in entry:
        return "none"
    value = entry["default"]
    text = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return f"`{YAML_WORDS.get(text, text)}`"


def _overlay_table(schema: Mapping, per_model: Mapping) -> str:
    """One row for each key for which some model has its own default, beside the section's."""
    models = per_model["properties"]
    rows = [
        f"| key | section | {' | '.join(f'`{model}`' for model in models)} |",
        f"| --- | --- {'| --- ' * len(models)}|",
    ]
    for key, entry in _plain(schema):
        own = [_entry(model, key) for model in models.values()]
        if any("default" in of_model for of_model in own):
            cells = [_default(of_model) if "default" in of_model else "as there" for of_model in own]
            rows.append(f"| `{key}` | {_default(entry)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _plain(schema: Mapping, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping]]:
    for name, entry in schema["properties"].items():
        if entry.get("type") == "object":
            yield from _plain(entry, (*path, name))
        else:
            yield ".".join([*path, name]), entry


def _entry(schema: Mapping, key: str) -> Mapping:
    for name in key.split("."):
        if name not in schema.get("properties", {}):
            return {}
        schema = schema["properties"][name]
    return schema


if __name__ == "__main__":
    import yaml

    print(describe_keys(yaml.safe_load(Path(sys.argv[1]).read_text())), end="")
