"""Validation of a run's configuration: one clear line for each error, before any work starts."""

import sys
from collections.abc import Callable, Mapping

from pydantic import ValidationError

from sgtune.study.config.checks import check_config
from sgtune.study.config.run import Configuration
from sgtune.study.config.schema import message_of
from sgtune.study.config.sections import canonical, leaves
from sgtune.support.errors import InputError

__all__ = ["exit_unless_valid", "overridden", "validate_config"]


def exit_unless_valid(config: dict, *checks: Callable[[Mapping], object], own: Mapping | None = None) -> None:
    """`validate_config` for a Snakefile: on bad input, its one line on stderr and exit status 1.

    Snakemake would print the file, line and traceback of the Snakefile, in which nothing is wrong.

    Args:
        checks: what else is called with the filled-in configuration and may raise an `InputError`.
        own: the part that a file of one's own or the command line sets; where ``per_model`` has other values than this,
            one line on stderr says so.
    """
    try:
        validate_config(config)
        for check in checks:
            check(config)
    except InputError as problem:
        sys.exit(f"Error in the configuration: {problem}")
    if found := overridden(config, own or {}):
        print(
            "Warning: per_model has other values than those given, and they take precedence: "
            + "; ".join(found),
            file=sys.stderr,
        )


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
        problem = error.get("ctx", {}).get("error")
        raise InputError(str(problem) if isinstance(problem, InputError) else message_of(error)) from None
    filled = canonical(found.filled())
    check_config(filled)
    config.update(filled)


def overridden(config: Mapping, own: Mapping) -> list[str]:
    """Each key of ``own`` for which some of the run's models have another value, with these values.

    Args:
        config: the filled-in configuration.
        own: the part of it that its user has set.
    """
    found, of_own = [], own.get("per_model", {})
    for path, value in leaves({name: part for name, part in own.items() if name != "per_model"}):
        others = [
            f"{other} for {model}"
            for model in config["models"]
            for where, other in leaves(config["per_model"].get(model, {}))
            if where == path and other != value and where not in dict(leaves(of_own.get(model, {})))
        ]
        if others:
            found.append(f"{path} = {value}, but {', '.join(others)}")
    return found
