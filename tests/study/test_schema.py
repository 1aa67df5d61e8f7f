"""The schema of the configuration: it documents every key, and has the names and defaults of the library."""

import inspect

import pytest
from config_files import ROOT, SCHEMA, raw_config

from sgtune.mode.find import find_map
from sgtune.samplers import resolve_sampler, sampler_names
from sgtune.study import catalogue
from sgtune.study.catalogue import method_of
from sgtune.study.experiments.ladder import KINDS
from sgtune.tuning import TUNERS, Settings
from sgtune.tuning.grid import BATCH_FRACTIONS, default_fractions

RESOLVED = SCHEMA


def entries(schema: dict, path: str = ""):
    for name, entry in schema.get("properties", {}).items():
        if f"{path}.{name}" == ".per_model":
            continue
        yield f"{path}.{name}".lstrip("."), entry, name in schema.get("required", [])
        yield from entries(entry, f"{path}.{name}")


@pytest.mark.parametrize(
    ("path", "entry", "required"), entries(RESOLVED), ids=[e[0] for e in entries(RESOLVED)]
)
def test_schema_documents_every_key(path, entry, required):
    assert entry["description"].strip().endswith(".")
    # Further axes of a grid have no default, since it would change the dependencies of results.
    optional = (".smaller", ".friction", ".noise_estimate")
    assert required or "default" in entry or any(name in path for name in optional)
    if entry.get("type") == "object":
        assert entry["additionalProperties"] is False
        return
    item = entry.get("items", entry)
    kind = item.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind in ("integer", "number"):
        assert {"minimum", "exclusiveMinimum"} & item.keys()
        assert {"maximum", "exclusiveMaximum"} & item.keys()
        assert "unit" in item or path.endswith("seed")
    else:
        assert kind == "boolean" or {"enum", "pattern", "minLength"} & item.keys()


def test_names_are_those_of_the_library():
    properties = SCHEMA["properties"]
    assert set(properties["samplers"]["items"]["enum"]) <= set(sampler_names())
    assert set(properties["tuners"]["items"]["enum"]) == set(TUNERS)
    own = {name for name, entry in catalogue.TUNERS.items() if entry.method is None}
    assert own == set(TUNERS)
    assert {method_of(name) for name in catalogue.TUNERS} == set(TUNERS)
    assert properties["ladder"]["properties"]["kinds"]["items"]["enum"] == list(KINDS)
    for section in {entry.section for entry in catalogue.TUNERS.values()}:
        assert section in properties
    for name, entry in catalogue.SAMPLERS.items():
        axes = [axis.name for axis in resolve_sampler(name)[0].axes]
        assert ["step_size", "batch_size", *entry.axes] == axes
    assert properties["samplers"]["items"]["enum"] == list(catalogue.SAMPLERS)


def test_defaults_are_those_of_the_library():
    """`sgtune.tune` without a configuration does what the paper run does on the logistic regression."""
    paper, library = raw_config("paper"), Settings()
    grid, mamba = paper["grids"]["logistic"], paper["mamba"]
    given = {name: tuple(values) for name, values in grid.items()}
    # None stands for the paper's fractions that leave enough rows.
    assert given.pop("batch_fractions") == BATCH_FRACTIONS == default_fractions(800_000)
    assert library.batch_fractions is None
    assert given == {name: getattr(library, name) for name in given}
    for name in ("pruning_rate", "clock", "thin"):
        assert mamba[name] == getattr(library, name)
    # The paper's scores use all data; a user rather wants the cheaper tenth, corrected at the mode.
    assert (mamba["score_fraction"], library.score_fraction) == (1, 0.1)
    assert library.points is None
    for section, tuner in (("mamba", "mamba-ksd"), ("grid", "grid"), ("grid_ksd", "grid-ksd")):
        assert paper[section]["points"] == TUNERS[tuner].points
    for name in ("batch_fraction", "n_leapfrog"):
        assert paper["heuristic"][name] == getattr(library, name)
    assert paper["grid"]["start_noise"] == library.start_noise
    defaults = {name: entry.default for name, entry in inspect.signature(find_map).parameters.items()}
    assert paper["map"] == {name: defaults[name] for name in ("epochs", "tolerance", "max_steps")}


def test_readme_tables_are_the_schema():
    readme = (ROOT / "config/README.md").read_text()
    assert readme.endswith(describe_keys(SCHEMA)), (
        "run: python -m sgtune.study.config.describe workflow/schemas/config.schema.yaml"
    )
