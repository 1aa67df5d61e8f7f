"""The whole configuration of a run, its JSON schema, and what it allows in words.

``python -m sgtune.study.config.schema`` writes ``workflow/schemas/config.schema.yaml`` whole, and the tables of
``config/README.md`` below what is written by hand there.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import yaml

from sgtune.study.catalogue import MODELS
from sgtune.study.config.adam_mcmc import AdamMcmc
from sgtune.study.config.ccadl import Ccadl
from sgtune.study.config.main import Main, PerModel
from sgtune.study.config.ours import Audit, Posteriors
from sgtune.study.config.sections import canonical
from sgtune.support.files import atomic_write


class Configuration(Main):
    """One schema for every run. Defaults are the paper's values for the logistic regression; config/paper.yaml has
    those of the other models. A section holds for all models; `per_model` overrides it for a single model."""

    ccadl: Ccadl = Ccadl()
    adam_mcmc: AdamMcmc = AdamMcmc()
    posteriors: Posteriors = Posteriors()
    audit: Audit = Audit()


DEFAULTS = Configuration(run="any").model_dump(by_alias=True, exclude={"run", "per_model"})
DEFAULTS["per_model"] = {model: {} for model in PerModel.model_fields if MODELS[model].in_paper}
"""The keys of every configuration that have a default. No value is one for a single model until it is given."""


@cache
def json_schema() -> dict:
    """The schema of a configuration: every key in its place, with description, unit, bounds and default."""
    made = Configuration.model_json_schema(ref_template="{model}")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of a run"}
    return head | canonical(_placed(made, made.pop("$defs"), DEFAULTS))


def _placed(entry: Mapping, sections: Mapping, values: Mapping) -> dict:
    """An entry of pydantic's schema, with the sections below it in their places, and the ``values`` as defaults."""
    entry = sections.get(entry.get("$ref"), {}) | entry
    if "anyOf" in entry:
        one, null = entry["anyOf"]
        entry |= one | {"type": [one["type"], null["type"]]}
    left_out = ("$ref", "anyOf", "default", "description", "properties", "title")
    placed = {"description": " ".join(entry["description"].split())}
    placed |= {name: value for name, value in entry.items() if name not in left_out}
    if "properties" in entry:
        placed["properties"] = below = {}
        for name, child in entry["properties"].items():
            below[name] = _placed(child, sections, values.get(name, {}))
            if name in values and "properties" not in below[name]:
                below[name]["default"] = values[name]
    return placed


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
        pattern = entry.get("pattern")
        return f"a string that matches `{pattern}`" if pattern else "text that is not empty"
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
            cells = f"`{path}{name}`", entry["description"], unit, allowed(entry), default
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) if len(rows) > 3 else ""


if __name__ == "__main__":
    for path, text in generated(Path()).items():
        with atomic_write(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
