"""Checks of the configuration that compare one key of a model's settings with another."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sgtune.sampling.budget import read_costs
from sgtune.study.catalogue import MODELS, PREDICTIVE_LOSSES, TUNERS, losses_of
from sgtune.study.config.sections import model_settings, settings_of, shapes_of
from sgtune.support.axes import FRICTION, NOISE_ESTIMATE
from sgtune.support.errors import InputError

__all__ = ["SMALL_DIMENSION", "check_config"]

SMALL_DIMENSION = 200
"""As `sgtune.model.posterior.LARGE_DIMENSION`, whose module imports JAX."""


def check_config(config: Mapping) -> None:
    """Check what a key alone does not show; the first failure is reported.

    Args:
        config: valid key by key, defaults filled in.

    Raises:
        InputError: one line naming the key, its value and what is allowed.
    """
    for i, tuner in enumerate(config["ladder"]["tuners"]):
        if TUNERS[tuner].needs_classes or TUNERS[tuner].looks_at_test_set:
            _refuse(f"ladder.tuners[{i}]", tuner, "judge without predictions: Gaussians have none")
    for model in config["models"]:
        settings = _Settings(config, model)
        for check in CHECKS:
            check(settings)


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


def _tuners_can_judge(settings: _Settings) -> None:
    if MODELS[settings.model].task != "classification":
        needing = [name for name, entry in TUNERS.items() if entry.needs_classes]
        for i, tuner in enumerate(settings["tuners"]):
            if tuner in needing:
                why = f" for {settings.model}, which is not a classifier"
                _refuse(f"{settings.key('tuners')}[{i}]", tuner, f"be none of: {', '.join(needing)}", why)


def _a_mode_takes_steps(settings: _Settings) -> None:
    # Adam runs only where D is larger (`sgtune.mode.find`).
    dimension = settings.dimension
    if settings["map"]["max_steps"] == 0 and dimension is not None and dimension <= SMALL_DIMENSION:
        why = (
            f" for {settings.model}, which has {dimension} parameters: only above {SMALL_DIMENSION} does Adam find a "
            "mode without L-BFGS"
        )
        _refuse(settings.key("map", "max_steps"), 0, "be >= 1", why)


def _chains_share_the_draws(settings: _Settings) -> None:
    n_draws, chains = settings["reference"]["n_draws"], settings["reference"]["chains"]
    if n_draws % chains:
        what = f"be a multiple of {settings.key('reference', 'chains')} = {chains}"
        _refuse(settings.key("reference", "n_draws"), n_draws, what)


def _something_judges_the_arms(settings: _Settings) -> None:
    has_reference = settings["reference"]["nuts"]
    by_predictions = [loss for loss in losses_of(settings.model, has_reference) if loss in PREDICTIVE_LOSSES]
    if by_predictions and not settings["regret"]["prediction_draws"]:
        reason = "" if has_reference else ", which has no reference"
        why = f" for {settings.model}{reason}: its arms are judged by {' and '.join(by_predictions)}"
        _refuse(settings.key("regret", "prediction_draws"), 0, "be >= 1", why)


def _thinning_leaves_a_point(settings: _Settings) -> None:
    thin, most = settings["estimates"]["thin"], settings["estimates"]["max_points"]
    if thin > most:
        what = f"be <= {settings.key('estimates', 'max_points')} = {most}, or no point is left"
        _refuse(settings.key("estimates", "thin"), thin, what)


def _smaller_grid_has_step_sizes(settings: _Settings) -> None:
    smaller = settings["grids"].get("smaller", {})
    if smaller.get("samplers") and "log10_step_sizes" not in smaller:
        raise InputError(
            f"grids.{settings.model}.smaller.log10_step_sizes: missing; it must be a list of the step sizes for "
            f"{', '.join(smaller['samplers'])}"
        )


def _fractions(settings: _Settings) -> Iterator[tuple[str, float]]:
    yield from _items(f"grids.{settings.model}.batch_fractions", settings["grids"]["batch_fractions"])
    for section in ("grid", "heuristic", "estimates"):
        yield settings.key(section, "batch_fraction"), settings[section]["batch_fraction"]
    yield from _items(settings.key("estimates", "batch_fractions"), settings["estimates"]["batch_fractions"])


def _items(key: str, values: list[float]) -> Iterator[tuple[str, float]]:
    return ((f"{key}[{i}]", value) for i, value in enumerate(values))


def _batches_have_rows(settings: _Settings) -> None:
    rows = f"{1 / settings.n_data:g}, one of the {settings.n_data} training rows"
    for key, fraction in _fractions(settings):
        # A batch has floor(fraction * N) rows (preprint Table 4).
        if fraction * settings.n_data * (1 + 1e-12) < 1:
            _refuse(key, fraction, f"be >= {rows}")
    held_out = settings["tuning"]["validation_fraction"]
    if held_out and held_out * settings.n_data < 1:
        _refuse(settings.key("tuning", "validation_fraction"), held_out, f"be 0 or >= {rows}")


def _noise_is_at_most_the_friction(settings: _Settings) -> None:
    # This must hold for every arm, because a grid has all combinations.
    friction, noise = (
        settings["grids"].get(axis.in_grids, [axis.default]) for axis in (FRICTION, NOISE_ESTIMATE)
    )
    if max(noise) > min(friction):
        what = f"be <= {min(friction)!r}, the smallest friction of the grid"
        _refuse(f"grids.{settings.model}.noise_estimate", max(noise), what)


def _cost_table_is_of_this_run(settings: _Settings) -> None:
    """A given table has the cost of every step that the run can make for the model, at its N and D."""
    table, run = settings["calibration"]["table"], settings.config["run"]
    if table is None:
        return
    key = settings.key("calibration", "table")
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


def _curves_are_of_the_runs(settings: _Settings) -> None:
    budgets, longest = settings["evaluation"]["curves"]["seconds"], settings["evaluation"]["seconds"]
    if budgets[-1] > longest:
        raise InputError(
            f"{settings.key('evaluation', 'curves', 'seconds')}: {budgets!r} is not allowed; a curve is the first "
            f"seconds of a run behind the tables: its last entry must be <= {settings.key('evaluation', 'seconds')} = "
            f"{longest}"
        )


CHECKS = (
    _tuners_can_judge,
    _a_mode_takes_steps,
    _chains_share_the_draws,
    _something_judges_the_arms,
    _thinning_leaves_a_point,
    _smaller_grid_has_step_sizes,
    _batches_have_rows,
    _noise_is_at_most_the_friction,
    _cost_table_is_of_this_run,
    _curves_are_of_the_runs,
)
"""Of one model's settings, both in sections and under ``per_model``."""
