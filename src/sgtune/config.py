"""Validation of a run's configuration: one clear line for whatever is wrong, before any work starts.

``python -m sgtune.config workflow/schemas/config.schema.yaml`` prints the tables of config/README.md.
"""

import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

from jsonschema import ValidationError

from sgtune.budget import read_costs
from sgtune.errors import InputError
from sgtune.settings import FACTS, model_settings, settings_of, shapes_of

__all__ = [
    "allowed",
    "check_config",
    "exit_unless_valid",
    "fingerprint",
    "validate_config",
    "validation_message",
]

RESERVED_RUNS = {"published": "results/published/ is the tracked copy of a finished run"}

NEED_CLASSES = ("mamba-ece", "mamba-mce", "mamba-accuracy", "mamba-log-loss")
"""Tuners that judge by predicted classes."""


def exit_unless_valid(config: dict, schema: str | Path) -> None:
    """`validate_config` for a Snakefile: on bad input, its one line on stderr and exit status 1.

    Snakemake wraps other exceptions in the file, line and traceback of the Snakefile, where nothing is wrong.
    """
    try:
        validate_config(config, schema)
    except InputError as problem:
        sys.exit(f"Error in the configuration: {problem}")


def validate_config(config: dict, schema: str | Path) -> None:
    """Check ``config`` against the schema and across keys, in place: missing keys get the schema's defaults.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    from snakemake.exceptions import WorkflowError
    from snakemake.utils import validate

    try:
        # Without defaults first: Snakemake sets them before it looks at the type, and crashes on `mamba: 3`.
        validate(config, str(schema), set_default=False)
        validate(config, str(schema))
    except WorkflowError as failure:
        if not isinstance(failure.__context__, ValidationError):
            raise
        raise InputError(validation_message(failure.__context__)) from None
    check_config(config)
    # JSON Schema takes 5000.0 for an integer; `range` does not.
    config.update(canonical(config))


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


def check_config(config: Mapping) -> None:
    """What a schema cannot say, because it compares one key with another.

    Args:
        config: valid under the schema, defaults filled in.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    for key, value in leaves(config):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{key}: {value!r} is not allowed; it must be a finite number")
    if config["run"] in RESERVED_RUNS:
        raise InputError(
            f"run: {config['run']!r} is not allowed; it must be another name: {RESERVED_RUNS[config['run']]}"
        )

    mirror = config["data"]["mirror"]
    if mirror is not None and not Path(mirror).is_dir():
        raise InputError(
            f"data.mirror: {mirror!r} is not allowed; it must be null or a folder; "
            f"{str(Path(mirror).absolute())!r} is none"
        )

    logistic = config["data"]["logistic"]
    if not logistic["n_train"] < logistic["n_rows"]:
        raise InputError(
            f"data.logistic.n_train: {logistic['n_train']} is not allowed; "
            f"it must be < data.logistic.n_rows = {logistic['n_rows']}, to leave rows for the test set"
        )

    for model in config["models"]:
        check_model(config, model)


def check_model(config: Mapping, model: str) -> None:
    """What must hold within the settings of ``model``, wherever they stand (`check_config`)."""
    settings = model_settings(config, model)

    def key(*path: str) -> str:
        part = config["per_model"].get(model, {})
        for name in path:
            part = part.get(name, {}) if isinstance(part, Mapping) else {}
        return dotted(path) if part == {} else dotted(("per_model", model, *path))

    for i, tuner in enumerate(settings["tuners"]):
        if tuner in NEED_CLASSES and FACTS[model].task != "classification":
            raise InputError(
                f"{key('tuners')}[{i}]: {tuner!r} is not allowed for {model}, which is not a classifier; "
                f"it must be none of: {', '.join(NEED_CLASSES)}"
            )

    widths = settings["widths"]["widths"]
    if 1 not in widths:
        raise InputError(
            f"{key('widths', 'widths')}: {widths!r} is not allowed; it must contain 1, the exact draws"
        )

    reference = settings["reference"]
    if reference["n_draws"] % reference["chains"]:
        raise InputError(
            f"{key('reference', 'n_draws')}: {reference['n_draws']} is not allowed; "
            f"it must be a multiple of {key('reference', 'chains')} = {reference['chains']}"
        )

    if not reference["nuts"] and not settings["sweep"]["prediction_draws"]:
        raise InputError(
            f"{key('sweep', 'prediction_draws')}: 0 is not allowed for {model}, which has no reference; "
            "it must be >= 1, or nothing judges the arms"
        )

    estimates = settings["estimates"]
    if estimates["thin"] > estimates["max_points"]:
        raise InputError(
            f"{key('estimates', 'thin')}: {estimates['thin']} is not allowed; "
            f"it must be <= {key('estimates', 'max_points')} = {estimates['max_points']}, or no point is left"
        )

    smaller = settings["grids"].get("smaller", {})
    if smaller.get("samplers") and "log10_step_sizes" not in smaller:
        raise InputError(
            f"grids.{model}.smaller.log10_step_sizes: missing; it must be a list of the step sizes for "
            f"{', '.join(smaller['samplers'])}"
        )

    n_data = FACTS[model].n_data(settings["data"][model])
    for i, fraction in enumerate(settings["grids"]["batch_fractions"]):
        check_fraction(f"grids.{model}.batch_fractions[{i}]", fraction, n_data)
    for section in ("grid", "heuristic", "estimates"):
        check_fraction(key(section, "batch_fraction"), settings[section]["batch_fraction"], n_data)
    for i, fraction in enumerate(settings["estimates"]["batch_fractions"]):
        check_fraction(f"{key('estimates', 'batch_fractions')}[{i}]", fraction, n_data)

    check_table(config, model, key("calibration", "table"))

    budgets = settings["evaluation"]["curves"]["seconds"]
    if any(later <= earlier for earlier, later in pairwise(budgets)):
        raise InputError(
            f"{key('evaluation', 'curves', 'seconds')}: {budgets!r} is not allowed; it must ascend"
        )


def check_table(config: Mapping, model: str, key: str) -> None:
    """A cost table that is named has the cost of every step of ``model`` that the run can make, at its N."""
    of_costs = settings_of(config, "cost", model)
    table = model_settings(config, model)["calibration"]["table"]
    if table is None:
        return
    if Path("results", config["run"]).resolve() in Path(table).resolve().parents:
        raise InputError(
            f"{key}: {str(table)!r} is not allowed: the run itself writes to "
            f"results/{config['run']}/; copy the file elsewhere"
        )
    of_data = of_costs["data"][model]
    n_data, dimension = FACTS[model].n_data(of_data), FACTS[model].dimension(of_data)
    try:
        costs = read_costs(table, model, n_data, dimension)
        for shape in shapes_of(of_costs, n_data):
            costs.lookup(*shape)
    except InputError as problem:
        raise InputError(f"{key}: {str(table)!r} is not allowed: {problem}") from None


def check_fraction(key: str, fraction: float, n_data: int) -> None:
    # A batch has floor(fraction * N) rows (preprint Table 4).
    if fraction * n_data * (1 + 1e-12) < 1:
        raise InputError(
            f"{key}: {fraction!r} is not allowed; "
            f"it must be >= {1 / n_data:g}, one of the {n_data} training rows"
        )


def fingerprint(section: object) -> str:
    """SHA-256, in hex, of a configuration or a part of it; the order of keys and 1 against 1.0 do not matter.

    Raises:
        InputError: the section holds what JSON cannot, or a number that is not finite.
    """
    try:
        text = json.dumps(canonical(section), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"section: {section!r} is not allowed; it must be made of finite JSON values"
        ) from problem
    return hashlib.sha256(text.encode()).hexdigest()


def allowed(schema: Mapping) -> str:
    """What a schema entry allows, in words."""
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
        return f"a string that matches {schema['pattern']}"
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


def canonical(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): canonical(child) for name, child in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


if __name__ == "__main__":
    import yaml

    from sgtune.config_tables import describe_keys

    print(describe_keys(yaml.safe_load(Path(sys.argv[1]).read_text())), end="")
