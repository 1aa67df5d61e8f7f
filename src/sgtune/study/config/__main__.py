"""Writes what is generated from the models of the configuration: ``python -m sgtune.study.config``.

It writes ``workflow/schemas/config.schema.yaml`` whole, and the tables of ``config/README.md`` below what is written by
hand there.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml

from sgtune.study.config.schema import allowed, entries, json_schema
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
    for path, entry in entries(schema):
        if _is_section(entry) and not path.startswith("per_model."):
            parts.append(f"### `{path}`\n\n{entry['description']}")
            parts.append(_table_of_models(schema) if path == "per_model" else _table(entry, f"{path}."))
    tables = "\n\n".join(part for part in parts if part)
    return f"{page.partition(KEYS)[0]}{KEYS}\n{tables}\n"


def _is_section(entry: Mapping) -> bool:
    return "properties" in entry


def _table(section: Mapping, path: str) -> str:
    rows = []
    for name, entry in section["properties"].items():
        if not _is_section(entry):
            default = "none: give one" if name in section.get("required", ()) else _default(entry)
            unit = entry.get("unit", entry.get("items", {}).get("unit", ""))
            rows.append(
                f"| `{path}{name}` | {entry['description']} | {unit} | {allowed(entry)} | {default} |"
            )
    head = ["| key | meaning | unit | allowed | default |", "| --- | --- | --- | --- | --- |"]
    return "\n".join(head + rows) if rows else ""


def _default(entry: Mapping, otherwise: str = "none") -> str:
    if "default" not in entry:
        return otherwise
    return f"`{yaml.safe_dump(entry['default'], default_flow_style=True, width=1_000).splitlines()[0]}`"


def _table_of_models(schema: Mapping) -> str:
    """One row for each key for which some model has its own default, beside the section's."""
    of_models = {
        model: dict(entries(entry))
        for model, entry in schema["properties"]["per_model"]["properties"].items()
    }
    rows = [
        f"| key | section | {' | '.join(f'`{model}`' for model in of_models)} |",
        f"| --- | --- {'| --- ' * len(of_models)}|",
    ]
    for path, entry in entries(schema):
        own = [of_model.get(path, {}) for of_model in of_models.values()]
        if any("default" in of_model for of_model in own):
            cells = " | ".join(_default(of_model, "as there") for of_model in own)
            rows.append(f"| `{path}` | {_default(entry)} | {cells} |")
    return "\n".join(rows)


if __name__ == "__main__":
    schema, page = json_schema(), Path("config/README.md")
    texts = {
        Path("workflow/schemas/config.schema.yaml"): schema_text(schema),
        page: page_of(schema, page.read_text(encoding="utf-8")),
    }
    for path, text in texts.items():
        with atomic_write(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
