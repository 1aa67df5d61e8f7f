"""Writes what is generated from the models of the configuration: ``python -m sgtune.study.config``.

It writes ``workflow/schemas/config.schema.yaml`` whole, and the tables of ``config/README.md`` below what is written by
hand there.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from sgtune.study.config.schema import allowed, entry_of, json_schema
from sgtune.support.files import atomic_write

__all__ = ["page_of", "schema_text"]

KEYS = "## Keys\n"


def schema_text(schema: Mapping) -> str:
    """The schema as YAML, lists of values in one line."""

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data):
            return True

    def in_one_line(dumper: yaml.SafeDumper, values: list) -> yaml.Node:
        return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=True)

    Dumper.add_representer(list, in_one_line)
    head = "# Made from the models in src/sgtune/study/config by `python -m sgtune.study.config`.\n"
    return head + yaml.dump(schema, Dumper=Dumper, sort_keys=False, width=120, allow_unicode=True)


def page_of(schema: Mapping, page: str) -> str:
    """``page`` with its tables of keys made anew, one for each section; of ``per_model``, the values that are set."""
    parts = [_table(schema, "")]
    for key, entry in _sections(schema):
        parts.append(f"### `{key}`\n\n{entry['description']}")
        parts.append(_overlay_table(schema, entry) if key == "per_model" else _table(entry, key))
    tables = "\n\n".join(part for part in parts if part)
    return f"{page.partition(KEYS)[0]}{KEYS}\n{tables}\n"


def _is_section(entry: Mapping) -> bool:
    return entry.get("type") == "object"


def _sections(schema: Mapping, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping]]:
    for name, entry in schema["properties"].items():
        if _is_section(entry):
            yield ".".join((*path, name)), entry
            if name != "per_model":
                yield from _sections(entry, (*path, name))


def _table(section: Mapping, path: str) -> str:
    rows = []
    for name, entry in section["properties"].items():
        if not _is_section(entry):
            key = f"{path}.{name}" if path else name
            default = "none: give one" if name in section.get("required", ()) else _default(entry)
            unit = entry.get("unit", entry.get("items", {}).get("unit", ""))
            rows.append(f"| `{key}` | {entry['description']} | {unit} | {allowed(entry)} | {default} |")
    head = ["| key | meaning | unit | allowed | default |", "| --- | --- | --- | --- | --- |"]
    return "\n".join(head + rows) if rows else ""


def _default(entry: Mapping) -> str:
    if "default" not in entry:
        return "none"
    return f"`{yaml.safe_dump(entry['default'], default_flow_style=True, width=1_000).splitlines()[0]}`"


def _overlay_table(schema: Mapping, per_model: Mapping) -> str:
    """One row for each key for which some model has its own default, beside the section's."""
    models = per_model["properties"]
    rows = [
        f"| key | section | {' | '.join(f'`{model}`' for model in models)} |",
        f"| --- | --- {'| --- ' * len(models)}|",
    ]
    for path in _keys(next(iter(models.values()))):
        own = [entry_of(of_model, path) for of_model in models.values()]
        if any("default" in entry for entry in own):
            cells = [_default(entry) if "default" in entry else "as there" for entry in own]
            rows.append(f"| `{'.'.join(path)}` | {_default(entry_of(schema, path))} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _keys(section: Mapping, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, entry in section["properties"].items():
        if _is_section(entry):
            yield from _keys(entry, (*path, name))
        else:
            yield (*path, name)


if __name__ == "__main__":
    schema, page = json_schema(), Path("config/README.md")
    texts = {
        Path("workflow/schemas/config.schema.yaml"): schema_text(schema),
        page: page_of(schema, page.read_text(encoding="utf-8")),
    }
    for path, text in texts.items():
        with atomic_write(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
