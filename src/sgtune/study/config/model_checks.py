"""Checks of the settings of one model that compare one key with another."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from sgtune.sampling.budget import read_costs
from sgtune.study.catalogue import MODELS, PREDICTIVE_LOSSES, TUNERS, losses_of
from sgtune.study.config.messages import dotted
from sgtune.study.config.sections import model_settings, settings_of, shapes_of
from sgtune.support.axes import FRICTION, NOISE_ESTIMATE
from sgtune.support.errors import InputError

__all__ = ["SMALL_DIMENSION", "check_model"]

SMALL_DIMENSION = 200
"""As `sgtune.model.posterior.LARGE_DIMENSION`, whose module imports JAX."""


def check_table(config: Mapping, model: str, key: str) -> None:
    """Check that a given cost table has the cost of every step of ``model`` that the run can make, at its N."""
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
    n_data, dimension = MODELS[model].n_data(of_data), MODELS[model].dimension(of_data)
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


class _Settings:
    """The settings of one model, and the full names of its keys in the configuration."""

    def __init__(self, config: Mapping, model: str):
        self.config, self.model = config, model
        self.sections = model_settings(config, model)
        self.n_data = MODELS[model].n_data(self.sections["data"][model])

    def __getitem__(self, section: str) -> Any:
        return self.sections[section]

    def key(self, *path: str) -> str:
        """The name of a key: under ``per_model`` if it is set there."""
        part = self.config["per_model"].get(self.model, {})
        for name in path:
            part = part.get(name, {}) if isinstance(part, Mapping) else {}
        return dotted(path) if part == {} else dotted(("per_model", self.model, *path))


def check_model(config: Mapping, model: str) -> None:
    """Check all `RULES` for the settings of ``model``, both in sections and under ``per_model``."""
    settings = _Settings(config, model)
    for rule in RULES:
        rule(settings)


def _tuners_can_judge(settings: _Settings) -> None:
    needing = [name for name, entry in TUNERS.items() if entry.needs_classes]
    for i, tuner in enumerate(settings["tuners"]):
        if TUNERS[tuner].needs_classes and MODELS[settings.model].task != "classification":
            raise InputError(
                f"{settings.key('tuners')}[{i}]: {tuner!r} is not allowed for {settings.model}, which is not a "
                f"classifier; it must be none of: {', '.join(needing)}"
            )


def _widths_have_the_exact_draws(settings: _Settings) -> None:
    widths = settings["widths"]["widths"]
    if 1 not in widths:
        raise InputError(
            f"{settings.key('widths', 'widths')}: {widths!r} is not allowed; it must contain 1, the exact draws"
        )


def _a_mode_takes_steps(settings: _Settings) -> None:
    # Adam runs only where D is larger (`sgtune.mode.find`).
    dimension = MODELS[settings.model].dimension(settings["data"][settings.model])
    if settings["map"]["max_steps"] == 0 and dimension is not None and dimension <= SMALL_DIMENSION:
        raise InputError(
            f"{settings.key('map', 'max_steps')}: 0 is not allowed for {settings.model}, which has {dimension} "
            f"parameters: only above {SMALL_DIMENSION} does Adam find a mode without L-BFGS; it must be >= 1"
        )


def _chains_share_the_draws(settings: _Settings) -> None:
    reference = settings["reference"]
    if reference["n_draws"] % reference["chains"]:
        raise InputError(
            f"{settings.key('reference', 'n_draws')}: {reference['n_draws']} is not allowed; "
            f"it must be a multiple of {settings.key('reference', 'chains')} = {reference['chains']}"
        )


def _something_judges_the_arms(settings: _Settings) -> None:
    losses = losses_of(settings.model, settings["reference"]["nuts"])
    by_predictions = [name for name in losses if name in PREDICTIVE_LOSSES]
    if by_predictions and not settings["regret"]["prediction_draws"]:
        reason = "" if settings["reference"]["nuts"] else ", which has no reference"
        raise InputError(
            f"{settings.key('regret', 'prediction_draws')}: 0 is not allowed for {settings.model}{reason}: its arms "
            f"are judged by {' and '.join(by_predictions)}; it must be >= 1"
        )


def _thinning_leaves_a_point(settings: _Settings) -> None:
    estimates = settings["estimates"]
    if estimates["thin"] > estimates["max_points"]:
        raise InputError(
            f"{settings.key('estimates', 'thin')}: {estimates['thin']} is not allowed; it must be "
            f"<= {settings.key('estimates', 'max_points')} = {estimates['max_points']}, or no point is left"
        )


def _smaller_grid_has_step_sizes(settings: _Settings) -> None:
    smaller = settings["grids"].get("smaller", {})
    if smaller.get("samplers") and "log10_step_sizes" not in smaller:
        raise InputError(
            f"grids.{settings.model}.smaller.log10_step_sizes: missing; it must be a list of the step sizes for "
            f"{', '.join(smaller['samplers'])}"
        )


def _batches_have_rows(settings: _Settings) -> None:
    for i, fraction in enumerate(settings["grids"]["batch_fractions"]):
        check_fraction(f"grids.{settings.model}.batch_fractions[{i}]", fraction, settings.n_data)
    for section in ("grid", "heuristic", "estimates"):
        key = settings.key(section, "batch_fraction")
        check_fraction(key, settings[section]["batch_fraction"], settings.n_data)
    for i, fraction in enumerate(settings["estimates"]["batch_fractions"]):
        check_fraction(f"{settings.key('estimates', 'batch_fractions')}[{i}]", fraction, settings.n_data)


def _noise_is_at_most_the_friction(settings: _Settings) -> None:
    # This must hold for every arm, because a grid has all combinations.
    friction, noise = (
        settings["grids"].get(axis.in_grids, [axis.default]) for axis in (FRICTION, NOISE_ESTIMATE)
    )
    if max(noise) > min(friction):
        raise InputError(
            f"grids.{settings.model}.noise_estimate: {max(noise)!r} is not allowed; it must be <= {min(friction)!r}, "
            "the smallest friction of the grid"
        )


def _cost_table_is_of_this_run(settings: _Settings) -> None:
    check_table(settings.config, settings.model, settings.key("calibration", "table"))


def _curves_ascend(settings: _Settings) -> None:
    budgets, longest = settings["evaluation"]["curves"]["seconds"], settings["evaluation"]["seconds"]
    key = settings.key("evaluation", "curves", "seconds")
    if any(later <= earlier for earlier, later in pairwise(budgets)):
        raise InputError(f"{key}: {budgets!r} is not allowed; it must ascend")
    if budgets[-1] > longest:
        raise InputError(
            f"{key}: {budgets!r} is not allowed; a curve is the first seconds of a run behind the tables: its last "
            f"entry must be <= {settings.key('evaluation', 'seconds')} = {longest}"
        )


def _regret_is_read_in_order(settings: _Settings) -> None:
    budgets = settings["regret"]["seconds"]
    if any(later <= earlier for earlier, later in pairwise(budgets)):
        raise InputError(f"{settings.key('regret', 'seconds')}: {budgets!r} is not allowed; it must ascend")


def _horizons_ascend(settings: _Settings) -> None:
    seconds = settings["horizons"]["seconds"]
    if any(later <= earlier for earlier, later in pairwise(seconds)):
        raise InputError(f"{settings.key('horizons', 'seconds')}: {seconds!r} is not allowed; it must ascend")


def _rows_are_held_out(settings: _Settings) -> None:
    fraction, n_data = settings["tuning"]["validation_fraction"], settings.n_data
    if fraction and fraction * n_data < 1:
        raise InputError(
            f"{settings.key('tuning', 'validation_fraction')}: {fraction!r} is not allowed; it must be 0 or >= "
            f"{1 / n_data:g}, one of the {n_data} training rows"
        )


RULES = (
    _tuners_can_judge,
    _widths_have_the_exact_draws,
    _a_mode_takes_steps,
    _chains_share_the_draws,
    _something_judges_the_arms,
    _thinning_leaves_a_point,
    _smaller_grid_has_step_sizes,
    _batches_have_rows,
    _noise_is_at_most_the_friction,
    _cost_table_is_of_this_run,
    _curves_ascend,
    _regret_is_read_in_order,
    _horizons_ascend,
    _rows_are_held_out,
)
"""Checks that compare one key of a model's settings with another; the first failure is reported."""
