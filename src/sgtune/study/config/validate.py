"""Validation of a run's configuration: one clear line for each error, before any work starts."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from math import prod
from operator import le, lt
from pathlib import Path

from pydantic import ValidationError

from sgtune.study.catalogue import MODELS, PREDICTIVE_LOSSES, TUNERS, losses_of
from sgtune.study.config.main import FOLDERS, OwnArms
from sgtune.study.config.schema import DEFAULTS, Configuration, allowed, json_schema
from sgtune.study.config.sections import canonical, leaves, merge, model_settings, tuners_of
from sgtune.study.posteriors.own import NAME as OWN
from sgtune.study.posteriors.own import facts_of, run_named_after
from sgtune.support.axes import FRICTION
from sgtune.support.errors import InputError

NUMERAL = r"[-+]?[\d.]+([eE][-+]?\d+)?"
"""A number to a reader, but not always to YAML."""

MOST_ARMS = 81
"""Of a sampler in the study of AdamMCMC."""

MULTIPLE = (lambda number, of: number % of == 0, "be a multiple of")

SMALL_DIMENSION = 200
"""As `sgtune.model.posterior.LARGE_DIMENSION`, whose module imports JAX."""


def exit_unless_valid(
    config: dict, *checks: Callable[[Mapping], object], own: Sequence[Mapping] = (), warns: bool = True
) -> None:
    """`validate_config` for a Snakefile: on bad input, its one line on stderr and exit status 1.

    Snakemake would print the file, line and traceback of the Snakefile, in which nothing is wrong.

    ``checks`` are called with the filled-in configuration, and may raise an `InputError`. ``own`` is what files of
    one's own and the command line set, in their order; where ``per_model`` has other values than these, one line on
    stderr says so if ``warns``. If they name a model of one's own and no run, the run is named after it.
    """
    try:
        if isinstance(config.get("model"), str) and not any("run" in part for part in own):
            runs = [path.stem for path in Path("config").glob("*.yaml")]
            config["run"] = run_named_after(config["model"], [*FOLDERS, config.get("run", ""), *runs])
        validate_config(config)
        for check in checks:
            check(config)
    except InputError as problem:
        sys.exit(f"Error in the configuration: {problem}")
    if warns and (found := overridden(config, *own)):
        what = "per_model has other values than those given, and they take precedence"
        print(f"Warning: {what}: {'; '.join(found)}", file=sys.stderr)


def validate_config(config: dict) -> None:
    """Check ``config`` by its models and across keys, in place: missing keys get their defaults."""
    given = canonical(config)
    if "model" in given and isinstance(given.get("data"), dict):
        # Facts of the model by an earlier call, which are no key of the configuration.
        given["data"].pop(OWN, None)
    try:
        # Whole numbers may be written as 5000.0, which `range` does not take.
        found = Configuration.model_validate(merge(DEFAULTS, given))
    except ValidationError as failure:
        # An unknown key first: it may be the reason for another error.
        error = min(failure.errors(), key=lambda error: error["type"] != "extra_forbidden")
        raise InputError(_message_of(error)) from None
    # What is unset here is a key without a default, or of a single model.
    filled = canonical(found.model_dump(by_alias=True, exclude_unset=True))
    _add_own(filled)
    _check_run(filled)
    for model in filled["models"]:
        _check_model(filled, model)
    config.update(filled)


def _message_of(error: Mapping) -> str:
    """An error of pydantic as one line: key, value, what is allowed, and the nearest known name."""
    *parents, name = error["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])[1:]
    value, entry = error["input"], json_schema()
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


def _nearest(name: object, known: Sequence[str]) -> str:
    """A hint at the name of ``known`` that is meant, if there is one."""
    near = get_close_matches(str(name), known, n=1) if name not in known else []
    return f" (did you mean {near[0]!r}?)" if near else ""


def _add_own(config: dict) -> None:
    """Add what the study knows of the model of a user's file: its facts, and its grid."""
    if "model" not in config:
        if OWN in config["models"]:
            raise InputError(
                f"models: {OWN!r} is not allowed without the key model, the file that defines it"
            )
        return
    if OWN not in config["models"]:
        raise InputError(
            f"models: {config['models']!r} is not allowed; {OWN!r}, the model of the key model, must be one"
        )
    if OWN in config["posteriors"]["models"]:
        raise InputError(
            f"posteriors.models: {OWN!r} is not allowed; its chains run in Laplace coordinates as they are"
        )
    facts = facts_of(config["model"])
    fractions = facts.pop("batch_fractions")
    config["data"][OWN] = facts
    defaults = {"batch_fractions": fractions, "n_leapfrogs": OwnArms().n_leapfrogs}
    config["grids"][OWN] = defaults | config["grids"].get(OWN, {})
    config["per_model"].setdefault(OWN, {})
    if not any(tuners_of(config, OWN, sampler) for sampler in config["samplers"]):
        names = ", ".join(model_settings(config, OWN)["tuners"])
        raise InputError(f"tuners: {names} is not allowed; none of them suits the model of {config['model']}")


def _check_run(config: Mapping) -> None:
    """Check what a key alone does not show and no model of the run changes."""
    require = partial(_require, dict(leaves(config)), {})
    why = ", for it leaves no row for the test set"
    require("data.logistic.n_train", lt, "be <", why, than="data.logistic.n_rows")
    require("ccadl.logistic.reference.n_draws", *MULTIPLE, than="ccadl.logistic.reference.chains")
    require("posteriors.reference.n_draws", *MULTIPLE, than="posteriors.reference.chains")
    require(
        "posteriors.reference.chains", lambda chains: chains >= 2, "be >= 2", "; the first gives directions"
    )
    require("ccadl.normal.batch_size", le, "be <=", than="ccadl.normal.n_data")
    for experiment in ("logistic", "drbm"):
        require(f"ccadl.{experiment}.batch_size", le, "be <=", than="ccadl.data.simulated")
    for sampler, grid in config["adam_mcmc"]["grids"].items():
        if (n_arms := prod(map(len, grid.values()))) > MOST_ARMS:
            key = f"adam_mcmc.grids.{sampler}: {n_arms}"
            raise InputError(f"{key} is not allowed, the number of combinations; it must be <= {MOST_ARMS}")


def _check_model(config: Mapping, model: str) -> None:
    """Check the settings of one model across keys and against its data."""
    settings, entry = model_settings(config, model), MODELS[model]
    names = {path: f"per_model.{model}.{path}" for path, _ in leaves(config["per_model"][model])}
    names |= {f"grids.{path}": f"grids.{model}.{path}" for path, _ in leaves(settings["grids"])}
    values, of_data = dict(leaves(settings)), settings["data"][model]
    require = partial(_require, values, names)
    n_data, dimension = entry.n_data(of_data), entry.dimension(of_data)
    one_row = f"{1 / n_data:g}, one of the {n_data} training rows"

    if of_data.get("task", entry.task) != "classification":
        why = f" for {model}, which is not a classifier"
        require("tuners", lambda one: not TUNERS[one].needs_classes, "judge without predicted classes", why)
    require("reference.n_draws", *MULTIPLE, than="reference.chains")
    nuts = values["reference.nuts"]
    by_predictions = [loss for loss in losses_of(model, nuts) if loss in PREDICTIVE_LOSSES]
    if by_predictions and settings["regret"]["seconds"]:
        reason = "" if nuts else ", which has no reference"
        why = f" for {model}{reason}: its arms are judged by {' and '.join(by_predictions)}"
        require("regret.prediction_draws", bool, "be >= 1", why)
    if "grids.noise_estimate" in values:
        least = min(values.get("grids.friction", [FRICTION.default]))
        what = f"be <= {least!r}, the smallest friction of the grid"
        require("grids.noise_estimate", lambda noise: noise <= least, what)
    of_batches = ("grid.batch_fraction", "heuristic.batch_fraction", "estimates.batch_fraction")
    for path in ("grids.batch_fractions", *of_batches, "estimates.batch_fractions"):
        # A batch has floor(fraction * N) rows (preprint Table 4).
        require(path, lambda fraction: fraction * n_data * (1 + 1e-12) >= 1, f"be >= {one_row}")
    if not entry.in_paper:
        require("tuning.validation_fraction", lambda share: share == 0, "be 0", f" for {model}")
    what = f"be 0 or >= {one_row}"
    require("tuning.validation_fraction", lambda share: share == 0 or share * n_data >= 1, what)
    # Adam runs only where D is larger (`sgtune.mode.find`).
    if dimension and dimension <= SMALL_DIMENSION:
        why = f" for {model}, which has {dimension} parameters: only above {SMALL_DIMENSION} does"
        require("map.max_steps", bool, "be >= 1", f"{why} Adam find a mode without L-BFGS")
    require("estimates.thin", le, "be <=", "; no point would be left", than="estimates.max_points")
    why = "; a curve is the first seconds of a run behind the tables"
    require("evaluation.curves.seconds", le, "be <=", why, than="evaluation.seconds")


def _require(
    values: Mapping, names: Mapping, key: str, is_allowed: Callable, what: str, why: str = "", than: str = ""
) -> None:
    """Refuse the value of a key, or the first of a list, that is not allowed: it must ``what``.

    ``values`` are those of all keys, as ``mamba.seconds``; ``names`` those of keys with another name in the
    configuration. ``is_allowed`` takes the value, and that of the key ``than``, if it has one; null allows all.
    """
    others = [values[than]] if than else []
    what += f" {names.get(than, than)} = {values[than]}" if than else ""
    value, key = values[key], names.get(key, key)
    is_list = isinstance(value, list)
    for i, one in enumerate(value if is_list else [value]):
        if None not in others and not is_allowed(one, *others):
            raise InputError(f"{key}{f'[{i}]' * is_list}: {one!r} is not allowed{why}; it must {what}")


def overridden(config: Mapping, *own: Mapping) -> list[str]:
    """Each key of ``own`` for which some of the run's models have another value, with these values. What a file says of
    a model itself, or a later one, is no surprise.

    ``config`` is filled in; ``own`` are the parts of it that its user has set, each laid on those before.
    """
    values, parts, found = dict(leaves(config)), [dict(leaves(part)) for part in own], []
    last = {path: i for i, part in enumerate(parts) for path in part}
    for path, i in last.items():
        value, others = parts[i][path], []
        for model in config["models"]:
            of_model = f"per_model.{model}.{path}"
            if values.get(of_model, value) != value and last.get(of_model, -1) < i:
                others.append(f"{values[of_model]} for {model}")
        if others:
            found.append(f"{path} = {value}, but {', '.join(others)}")
    return found
