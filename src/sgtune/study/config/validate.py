"""Validation of a run's configuration: one clear line for each error, before any work starts."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from jsonschema import ValidationError

from sgtune.study.catalogue import MODELS, SAMPLERS, TUNERS
from sgtune.study.config.messages import leaves, validation_message
from sgtune.study.config.model_checks import check_model
from sgtune.study.config.sections import OF_STUDIES, canonical
from sgtune.support.errors import InputError

__all__ = [
    "check_config",
    "exit_unless_valid",
    "validate_config",
]

RESERVED_RUNS = {
    "published": "results/published/ is the tracked copy of a finished run",
    "saved": "results/saved/ has the small files of unfinished runs",
    "downloads": "results/downloads/ has the data sets",
}


def exit_unless_valid(config: dict, schema: str | Path) -> None:
    """`validate_config` for a Snakefile: on bad input, its one line on stderr and exit status 1.

    Snakemake would print the file, line and traceback of the Snakefile, in which nothing is wrong.
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
        with _with_names_of_the_catalogue(schema) as whole:
            # Without defaults first: Snakemake sets them before it looks at the type, and crashes on `mamba: 3`.
            validate(config, str(whole), set_default=False)
            validate(config, str(whole))
    except WorkflowError as failure:
        if not isinstance(failure.__context__, ValidationError):
            raise
        raise InputError(validation_message(failure.__context__)) from None
    check_config(config)
    # JSON Schema takes 5000.0 for an integer; `range` does not.
    config.update(canonical(config))


@contextmanager
def _with_names_of_the_catalogue(schema: str | Path) -> Iterator[Path]:
    """The schema with all names of the catalogue beside those that it lists; a file, as Snakemake wants."""
    import yaml

    # PyYAML has libyaml's parser, ten times as fast as its own, where it was built with it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    held = yaml.load(Path(schema).read_text(), Loader=loader)
    own = [name for name, entry in TUNERS.items() if entry.method is None]
    for key, names in {"models": MODELS, "samplers": SAMPLERS, "tuners": own}.items():
        # In place: other entries of the schema are aliases of this list.
        listed = held["properties"][key]["items"]["enum"]
        listed += [name for name in names if name not in listed]
    with TemporaryDirectory() as folder:
        # As JSON, which Snakemake reads in no time: it reads the file twice.
        path = Path(folder, "config.schema.json")
        path.write_text(json.dumps(held))
        yield path


def check_config(config: Mapping) -> None:
    """Checks that a schema cannot express, because they compare one key with another.

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

    if config["published_as"] in OF_STUDIES:
        raise InputError(
            f"published_as: {config['published_as']!r} is not allowed; it must be another name: that folder has the "
            "published run of a further study"
        )

    mirror = config["data"]["mirror"]
    if mirror is not None and not Path(mirror).is_dir():
        raise InputError(
            f"data.mirror: {mirror!r} is not allowed; it must be null or a folder; "
            f"{str(Path(mirror).absolute())!r} is not a folder"
        )

    logistic = config["data"]["logistic"]
    if not logistic["n_train"] < logistic["n_rows"]:
        raise InputError(
            f"data.logistic.n_train: {logistic['n_train']} is not allowed; "
            f"it must be < data.logistic.n_rows = {logistic['n_rows']}, to leave rows for the test set"
        )

    for i, tuner in enumerate(config["ladder"]["tuners"]):
        if TUNERS[tuner].needs_classes or TUNERS[tuner].looks_at_test_set:
            raise InputError(
                f"ladder.tuners[{i}]: {tuner!r} is not allowed; it must judge without predictions: Gaussians have none"
            )

    for model in config["models"]:
        check_model(config, model)
    for study in OF_STUDIES:
        import_module(f"sgtune.study.{study}.settings").check(config[study])
