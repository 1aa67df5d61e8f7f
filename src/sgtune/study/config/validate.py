"""Validation of a run's configuration: one clear line for each error, before any work starts."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

from sgtune.study.config.checks import check_config
from sgtune.study.config.run import Configuration
from sgtune.study.config.schema import allowed, json_schema
from sgtune.study.config.sections import canonical, leaves
from sgtune.support.errors import InputError

__all__ = ["dotted", "exit_unless_valid", "overridden", "validate_config"]

NUMERAL = r"[-+]?[\d.]+([eE][-+]?\d+)?"
"""A number to a reader, but not always to YAML."""


def exit_unless_valid(
    config: dict, *checks: Callable[[Mapping], object], own: Sequence[Mapping] = ()
) -> None:
    """`validate_config` for a Snakefile: on bad input, its one line on stderr and exit status 1.

    Snakemake would print the file, line and traceback of the Snakefile, in which nothing is wrong.

    Args:
        checks: what else is called with the filled-in configuration and may raise an `InputError`.
        own: what files of one's own and the command line set, in their order; where ``per_model`` has other values
            than these, one line on stderr says so.
    """
    try:
        validate_config(config)
        for check in checks:
            check(config)
    except InputError as problem:
        sys.exit(f"Error in the configuration: {problem}")
    if found := overridden(config, *own):
        what = "per_model has other values than those given, and they take precedence"
        print(f"Warning: {what}: {'; '.join(found)}", file=sys.stderr)


def validate_config(config: dict) -> None:
    """Check ``config`` by its models and across keys, in place: missing keys get their defaults.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    try:
        # Whole numbers may be written as 5000.0, which `range` does not take.
        found = Configuration.model_validate(canonical(config))
    except ValidationError as failure:
        # An unknown key first: it may be the reason for another error.
        error = min(failure.errors(), key=lambda error: error["type"] != "extra_forbidden")
        raise InputError(_message_of(error)) from None
    filled = canonical(found.filled())
    check_config(filled)
    config.update(filled)


def _message_of(error: Mapping) -> str:
    """An error of pydantic as one line: key, value, what is allowed, and the nearest known name."""
    *parents, name = error["loc"]
    key, value, entry = dotted(error["loc"]), error["input"], json_schema()
    for part in parents:
        entry = entry["items"] if isinstance(part, int) else entry["properties"][part]
    if error["type"] == "extra_forbidden":
        known = sorted(entry["properties"])
        return f"{key}: no such key{_nearest(name, known)}; allowed: {', '.join(known)}"
    entry = entry["items"] if isinstance(name, int) else entry["properties"][name]
    must = f"be {allowed(entry)}"
    if error["type"] == "missing":
        return f"{key}: missing; it must {must}"
    if error["type"] == "finite_number":
        must = "be a finite number"
    elif error["type"] == "value_error":
        must = str(error["ctx"]["error"]) or must
    hint = _nearest(value, entry.get("enum", ()))
    if entry["type"] in ("integer", "number") and isinstance(value, str) and re.fullmatch(NUMERAL, value):
        hint = " (text: a file needs 1.0e-6, not 1e-6; --config has no numbers inside a mapping)"
    return f"{key}: {value!r} is not allowed{hint}; it must {must}"


def dotted(path: Sequence) -> str:
    """``("grids", "logistic", "n_leapfrogs", 0)`` as ``grids.logistic.n_leapfrogs[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _nearest(name: object, known: Sequence[str]) -> str:
    """A hint at the name of ``known`` that is meant, if there is one."""
    near = get_close_matches(str(name), known, n=1) if name not in known else []
    return f" (did you mean {near[0]!r}?)" if near else ""


def overridden(config: Mapping, *own: Mapping) -> list[str]:
    """Each key of ``own`` for which some of the run's models have another value, with these values. What a file says of
    a model itself, or a later one, is no surprise.

    Args:
        config: the filled-in configuration.
        own: the parts of it that its user has set, each laid on those before.
    """
    found = []
    last = {path: (i, value) for i, part in enumerate(own) for path, value in leaves(part)}
    for path, (i, value) in last.items():
        others = []
        for model in config["models"]:
            of_model = dict(leaves(config["per_model"].get(model, {})))
            given = [dict(leaves(part.get("per_model", {}).get(model, {}))) for part in own[i:]]
            if path in of_model and of_model[path] != value and not any(path in part for part in given):
                others.append(f"{of_model[path]} for {model}")
        if others:
            found.append(f"{path} = {value}, but {', '.join(others)}")
    return found
