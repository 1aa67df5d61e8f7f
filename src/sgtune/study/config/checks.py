"""Checks of the configuration that compare one key of a model's settings with another."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from sgtune.sampling.budget import read_costs
from sgtune.study.catalogue import MODELS, PREDICTIVE_LOSSES, TUNERS, losses_of
from sgtune.study.config.sections import model_settings, settings_of, shapes_of
from sgtune.support.axes import FRICTION, NOISE_ESTIMATE
from sgtune.support.errors import InputError

__all__ = ["SMALL_DIMENSION", "check_config"]

MOST_ARMS = 81
"""Of a sampler in the study of AdamMCMC."""

SMALL_DIMENSION = 200
"""As `sgtune.model.posterior.LARGE_DIMENSION`, whose module imports JAX."""


def check_config(config: Mapping) -> None:
    """Check what a key alone does not show; the first failure is reported.

    Args:
        config: valid key by key, defaults filled in.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    mirror, of_logistic = config["data"]["mirror"], config["data"]["logistic"]
    if mirror is not None and not Path(mirror).is_dir():
        where = str(Path(mirror).absolute())
        _refuse("data.mirror", mirror, f"be null or a folder; {where!r} is not a folder")
    if not of_logistic["n_train"] < of_logistic["n_rows"]:
        what = f"be < data.logistic.n_rows = {of_logistic['n_rows']}, to leave rows for the test set"
        _refuse("data.logistic.n_train", of_logistic["n_train"], what)
    for i, tuner in enumerate(config["ladder"]["tuners"]):
        if TUNERS[tuner].needs_classes or TUNERS[tuner].looks_at_test_set:
            _refuse(f"ladder.tuners[{i}]", tuner, "judge without predictions: Gaussians have none")
    for model in config["models"]:
        settings = _Settings(config, model)
        _check_judges(settings)
        _check_arms(settings)
        _check_runs(settings)
    _check_ccadl(config["ccadl"])
    for sampler, grid in config["adam_mcmc"]["grids"].items():
        n_arms = prod(len(values) for values in grid.values())
        if n_arms > MOST_ARMS:
            _refuse(
                f"adam_mcmc.grids.{sampler}", n_arms, f"be <= {MOST_ARMS}", ", the number of combinations"
            )


def _refuse(key: str, value: object, what: str, why: str = "") -> None:
    raise InputError(f"{key}: {value!r} is not allowed{why}; it must {what}")


class _Settings:
    """The settings of one model, and the full names of its keys in the configuration."""

    def __init__(self, config: Mapping, model: str):
        self.config, self.model = config, model
        self.sections = model_settings(config, model)
        of_data = self.sections["data"][model]
        self.n_data, self.dimension = MODELS[model].n_data(of_data), MODELS[model].dimension(of_data)

    def __getitem__(self, section: str) -> Any:
        return self.sections[section]

    def key(self, *path: str) -> str:
        """The name of a key: under ``per_model`` if it is set there."""
        part = self.config["per_model"].get(self.model, {})
        for name in path:
            if name not in part:
                return ".".join(path)
            part = part[name]
        return ".".join(("per_model", self.model, *path))


def _check_judges(settings: _Settings) -> None:
    """Of what judges the arms."""
    model, has_reference = settings.model, settings["reference"]["nuts"]
    if MODELS[model].task != "classification":
        needing = [name for name, entry in TUNERS.items() if entry.needs_classes]
        for i, tuner in enumerate(settings["tuners"]):
            if tuner in needing:
                what, why = f"be none of: {', '.join(needing)}", f" for {model}, which is not a classifier"
                _refuse(f"{settings.key('tuners')}[{i}]", tuner, what, why)
    n_draws, chains = settings["reference"]["n_draws"], settings["reference"]["chains"]
    if n_draws % chains:
        what = f"be a multiple of {settings.key('reference', 'chains')} = {chains}"
        _refuse(settings.key("reference", "n_draws"), n_draws, what)
    by_predictions = [loss for loss in losses_of(model, has_reference) if loss in PREDICTIVE_LOSSES]
    if by_predictions and not settings["regret"]["prediction_draws"]:
        reason = "" if has_reference else ", which has no reference"
        why = f" for {model}{reason}: its arms are judged by {' and '.join(by_predictions)}"
        _refuse(settings.key("regret", "prediction_draws"), 0, "be >= 1", why)


def _check_arms(settings: _Settings) -> None:
    """Of the hyperparameters: all combinations of a grid are arms."""
    grid, of_grid = settings["grids"], f"grids.{settings.model}"
    smaller = grid.get("smaller", {})
    if smaller.get("samplers") and "log10_step_sizes" not in smaller:
        raise InputError(
            f"{of_grid}.smaller.log10_step_sizes: missing; it must be a list of the step sizes for "
            f"{', '.join(smaller['samplers'])}"
        )
    friction, noise = (grid.get(axis.in_grids, [axis.default]) for axis in (FRICTION, NOISE_ESTIMATE))
    if max(noise) > min(friction):
        what = f"be <= {min(friction)!r}, the smallest friction of the grid"
        _refuse(f"{of_grid}.noise_estimate", max(noise), what)
    fractions = {f"{of_grid}.batch_fractions": grid["batch_fractions"]}
    for section in ("grid", "heuristic", "estimates"):
        fractions[settings.key(section, "batch_fraction")] = settings[section]["batch_fraction"]
    fractions[settings.key("estimates", "batch_fractions")] = settings["estimates"]["batch_fractions"]
    rows = f"{1 / settings.n_data:g}, one of the {settings.n_data} training rows"
    for key, values in fractions.items():
        for i, fraction in enumerate(values if isinstance(values, list) else [values]):
            # A batch has floor(fraction * N) rows (preprint Table 4).
            if fraction * settings.n_data * (1 + 1e-12) < 1:
                _refuse(f"{key}[{i}]" if isinstance(values, list) else key, fraction, f"be >= {rows}")
    held_out = settings["tuning"]["validation_fraction"]
    if held_out and held_out * settings.n_data < 1:
        _refuse(settings.key("tuning", "validation_fraction"), held_out, f"be 0 or >= {rows}")


def _check_runs(settings: _Settings) -> None:
    """Of how long something runs."""
    dimension, table = settings.dimension, settings["calibration"]["table"]
    # Adam runs only where D is larger (`sgtune.mode.find`).
    if settings["map"]["max_steps"] == 0 and dimension is not None and dimension <= SMALL_DIMENSION:
        why = (
            f" for {settings.model}, which has {dimension} parameters: only above {SMALL_DIMENSION} does Adam find a "
            "mode without L-BFGS"
        )
        _refuse(settings.key("map", "max_steps"), 0, "be >= 1", why)
    thin, most = settings["estimates"]["thin"], settings["estimates"]["max_points"]
    if thin > most:
        what = f"be <= {settings.key('estimates', 'max_points')} = {most}, or no point is left"
        _refuse(settings.key("estimates", "thin"), thin, what)
    times, longest = settings["evaluation"]["curves"]["seconds"], settings["evaluation"]["seconds"]
    if times[-1] > longest:
        why = "; a curve is the first seconds of a run behind the tables"
        what = f"end at <= {settings.key('evaluation', 'seconds')} = {longest}"
        _refuse(settings.key("evaluation", "curves", "seconds"), times, what, why)
    if table is not None:
        _check_costs(settings, table, settings.key("calibration", "table"))


def _check_costs(settings: _Settings, table: str, key: str) -> None:
    """A given table must have the cost of every step that the run can make for the model, at its N and D."""
    run = settings.config["run"]
    if Path("results", run).resolve() in Path(table).resolve().parents:
        raise InputError(
            f"{key}: {table!r} is not allowed: the run itself writes to results/{run}/; copy the file elsewhere"
        )
    try:
        costs = read_costs(table, settings.model, settings.n_data, settings.dimension)
        for shape in shapes_of(settings_of(settings.config, "cost", settings.model), settings.n_data):
            costs.lookup(*shape)
    except InputError as problem:
        raise InputError(f"{key}: {table!r} is not allowed: {problem}") from None


def _check_ccadl(section: Mapping) -> None:
    """Of the section ``ccadl``."""
    normal, reference = section["normal"], section["logistic"]["reference"]
    if reference["n_draws"] % reference["chains"]:
        what = f"be a multiple of ccadl.logistic.reference.chains = {reference['chains']}"
        _refuse("ccadl.logistic.reference.n_draws", reference["n_draws"], what)
    rows = dict.fromkeys(("logistic", "drbm"), ("data.simulated", section["data"]["simulated"]))
    for name, (other, most) in {"normal": ("normal.n_data", normal["n_data"]), **rows}.items():
        size = section[name]["batch_size"]
        if most is not None and size > most:
            _refuse(f"ccadl.{name}.batch_size", size, f"be <= ccadl.{other} = {most}")
